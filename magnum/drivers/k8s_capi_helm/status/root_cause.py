# SPDX-License-Identifier: Apache-2.0
"""Faults: what each kind of object says when it is stuck, asked from the server up to the events.

Cluster API copies a fault upwards late or not at all: a quota error of Nova stands on the
OpenStackServer only (CAPO before 0.15), a server that the scheduler could not place says nothing
but ERROR, and a held back scale-up is told by the MachineSet alone. So the questions go from the
bottom to the top.
"""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
import datetime
import re

from magnum.drivers.k8s_capi_helm.errors import Cause
from magnum.drivers.k8s_capi_helm.model import conditions, Json, Missing, Observed
from magnum.drivers.k8s_capi_helm.status import (
    addons,
    failure_events,
    infrastructure,
    machines,
    messages,
    remediation,
)
from magnum.drivers.k8s_capi_helm.status.issue import about, cause_of, Issue
from magnum.drivers.k8s_capi_helm.status.public_text import first_bullet, public
from magnum.drivers.k8s_capi_helm.status.scope import items, Scope, scope_of

#: Cluster API's own default for a node to appear; until then a booting machine is no fault.
NODE_PATIENCE = datetime.timedelta(minutes=10)
#: Until then an OpenStackServer without resolved image, flavor and network is just new.
RESOLVE_PATIENCE = datetime.timedelta(seconds=30)

#: Reasons of OpenStackServer conditions that only say that it is not its turn yet.
_WAITING = frozenset(
    {"InstanceNotReady", "WaitingForClusterInfrastructure", "WaitingForBootstrapData"}
)

#: Reasons of an OpenStackMachine that Cluster API repeats on the Machine, and that stand nowhere
#: deeper: CAPO has a server and cannot put it where its load balancer or floating IP is.
_REFUSED = frozenset(
    {
        "FloatingIPError",
        "InvalidMachineSpec",
        "LoadBalancerMemberError",
        "OpenStackError",
        "PortCreateFailed",
        "UnableToFindFloatingIPNetwork",
    }
)
_FAILURE = re.compile(r"fail|error|invalid", re.IGNORECASE)


def root_cause(scope: Scope) -> Issue | None:
    """The deepest fault: something that somebody has to do something about; None without one."""
    for question in _FAULTS:
        found = question(scope)
        if found is not None and found.cause is not None:
            return found
    return None


def _credential_fault(scope: Scope) -> Issue | None:
    """Without a credential nothing goes on, and CAPO before 0.15 says so on no object."""
    text = scope.observed.credential
    return Issue(text, Cause.CREDENTIAL) if text else None


# Servers and network ------------------------------------------------------------------------------
def _server_fault(scope: Scope) -> Issue | None:
    for server in sorted(scope.servers, key=conditions.name):
        found = _fault_of_server(server, scope)
        if found is not None and scope.concerns(conditions.name(server), found.text):
            return found
    return None


def _fault_of_server(server: Json, scope: Scope) -> Issue | None:
    name = conditions.name(server)
    said = conditions.condition(server, "InstanceReady")
    if said.bad and said.message and said.reason not in _WAITING:
        return Issue(about(public(said.message), f"server {name}"), cause_of(said.message))
    if conditions.at_path(server, "status", "instanceState") == "ERROR":
        known = scope.observed.server_faults
        text = known.get(str(conditions.at_path(server, "status", "instanceID")), "")
        text = messages.of_nova(public(text)) or "the server is in ERROR and Nova gives no reason"
        return Issue(about(text, f"server {name}"), cause_of(text))
    made = conditions.instant(conditions.metadata(server).get("creationTimestamp"))
    status = conditions.mapping(server.get("status"))
    resolved = status.get("resolved") or status.get("instanceID")
    text = f"the image, flavor or network of server {name} cannot be found"
    if not resolved and scope.lasts(made, RESOLVE_PATIENCE, text):
        return Issue(text, Cause.IMAGE)
    return None


def _balancer_fault(scope: Scope) -> Issue | None:
    """CAPO waits for it for minutes; from then on only its deletion helps, which it survives."""
    name = scope.observed.failed_balancer
    text = f"load balancer {name} is in ERROR; delete it and Cluster API creates a new one"
    return Issue(text, Cause.NETWORK) if name else None


def _openstack_fault(scope: Scope) -> Issue | None:
    owner = scope.observed.infrastructure
    if isinstance(owner, Missing):
        return None
    for kind in infrastructure.PARTS:
        said = conditions.condition(owner, kind)
        if said.bad and (said.message or said.reason):
            text = public(said.message or said.reason)
            return Issue(text, cause_of(said.message or kind, Cause.NETWORK))
    failure = conditions.at_path(owner, "status", "failureMessage")
    if failure:
        return Issue(public(str(failure)), cause_of(str(failure), Cause.NETWORK))
    return None


# Machines -----------------------------------------------------------------------------------------
def _machine_fault(scope: Scope) -> Issue | None:
    for machine in sorted(scope.machines, key=conditions.name):
        found = _fault_of_machine(machine, scope)
        if found is not None and scope.concerns(conditions.name(machine), found.text):
            return found
    return None


def machine_fault(machine: Json, observed: Observed, said: str) -> Issue | None:
    """The fault of one machine or of its server, None while it is only a matter of time.

    :param said: what the row says of the cluster now.
    """
    scope = dataclasses.replace(scope_of(observed, None, said), whole=False)
    name = machines.server_name(machine)
    for server in scope.servers:
        if conditions.name(server) == name:
            found = _fault_of_server(server, scope)
            if found is not None:
                return found
    return _fault_of_machine(machine, scope)


def _fault_of_machine(machine: Json, scope: Scope) -> Issue | None:
    name = conditions.name(machine)
    checked = conditions.condition(machine, "HealthCheckSucceeded")
    if checked.bad and "InfrastructureReady" not in checked.message:
        return Issue(f"machine {name}: {first_bullet(checked.message)}", Cause.BOOTSTRAP)
    made = conditions.condition(machine, "BootstrapConfigReady")
    if made.bad and _FAILURE.search(made.message):
        return Issue(f"machine {name}: {first_bullet(made.message)}", Cause.BOOTSTRAP)
    current = conditions.condition(machine, "UpToDate")
    if current.bad and "kubeletVersion" in current.message and not conditions.deleting(machine):
        text = f"machine {name} {messages.of_kubelet(first_bullet(current.message))}"
        return Issue(text, Cause.IMAGE)
    up = conditions.condition(machine, "InfrastructureReady")
    if up.bad and up.reason in _REFUSED and up.message:
        text, why = first_bullet(up.message), f"{up.reason} {up.message}"
        return Issue(f"machine {name}: {text}", cause_of(why, Cause.NETWORK))
    node = conditions.condition(machine, "NodeHealthy")
    if up.good and node.present and not node.good:
        words = first_bullet(node.message) or "its node has not joined"
        found = _unreachable_api(scope) or Issue(f"machine {name}: {words}", Cause.BOOTSTRAP)
        if scope.lasts(up.since, NODE_PATIENCE, found.text):
            return found
    return None


def _unreachable_api(scope: Scope) -> Issue | None:
    """Where Cluster API does not reach the cluster's API it sees no node, joined or not."""
    owner = scope.observed.cluster
    address = infrastructure.api_address(owner)
    if isinstance(owner, Missing) or address is None:
        return None
    if not conditions.condition(owner, "RemoteConnectionProbe").bad:
        return None
    check = "check load balancer, security groups and the server's console log"
    return Issue(f"the Kubernetes API at {address} cannot be reached ({check})", Cause.NETWORK)


def preflight(scope: Scope) -> Issue | None:
    """Why a MachineSet does not make the machines that it should; only it says so."""
    for one in sorted(scope.sets, key=conditions.name):
        said = conditions.condition(one, "ScalingUp")
        if not said.bad or "blocked because" not in said.message:
            continue
        if "Skew" in said.message:
            why = messages.of_skew(first_bullet(said.message.partition("blocked because:")[2]))
            return Issue(f"{conditions.name(one)} creates no machines: {why}", Cause.REQUEST)
        if "ControlPlaneIsStable" in said.message:
            return Issue("new machines wait until the control plane is stable")
    return None


def _replaced_fault(scope: Scope) -> Issue | None:
    """Why a machine goes, or went, in whose place another one is made that has no fault itself."""
    owner = scope.observed.control_plane
    owners = [*scope.sets, *(() if isinstance(owner, Missing) else (owner,))]
    # Of the whole cluster nobody knows whether it is still that which is waited for.
    found = remediation.cause(scope.machines, owners, "" if scope.whole else scope.said)
    told = found is not None and any(
        f"machine {name}:" in found.text and not scope.concerns(name, found.text)
        for name in scope.leaving
    )
    return None if told else found


# Above the machines -------------------------------------------------------------------------------
def _control_plane_fault(scope: Scope) -> Issue | None:
    owner = scope.observed.control_plane
    if isinstance(owner, Missing):
        return None
    for kind in ("CertificatesAvailable", "Remediating"):
        said = conditions.condition(owner, kind)
        if said.bad and (kind == "CertificatesAvailable" or "can't remediate" in said.message):
            return Issue(f"control plane: {first_bullet(said.message)}", Cause.BOOTSTRAP)
    return None


def _addon_fault(scope: Scope) -> Issue | None:
    for one in items(scope.observed.addons) if scope.whole else ():
        found = addons.issue_of(one, scope.observed) if addons.is_core(one) else None
        if found is not None:
            return found
    return None


_FAULTS: tuple[Callable[[Scope], Issue | None], ...] = (
    _credential_fault,
    _server_fault,
    _balancer_fault,
    _openstack_fault,
    _machine_fault,
    failure_events.event_fault,
    _replaced_fault,
    preflight,
    _control_plane_fault,
    _addon_fault,
)
