# SPDX-License-Identifier: Apache-2.0
"""The root cause of an issue, from the server to the events.

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
from magnum.drivers.k8s_capi_helm.status.causes import failure_events, remediation
from magnum.drivers.k8s_capi_helm.status.causes.scope import readable_objects, Scope, scope_of
from magnum.drivers.k8s_capi_helm.status.objects import addons, infrastructure, machines
from magnum.drivers.k8s_capi_helm.status.texts import messages
from magnum.drivers.k8s_capi_helm.status.texts.issue import about, cause_of, Issue
from magnum.drivers.k8s_capi_helm.status.texts.public_text import first_sentence, public

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
#: What a kubelet says of its node for as long as no network addon is installed there.
_NO_NETWORK = re.compile(r"\bnetwork not ready\b")
#: What Cluster API says of a machine whose server runs, from the first second on.
_NO_NODE = re.compile(r"Waiting for a Node with spec\.providerID\b")
_FAILURE = re.compile(r"fail|error|invalid", re.IGNORECASE)


def root_cause(scope: Scope) -> Issue | None:
    """The deepest fault that needs an action; None without one."""
    for find_fault in _FAULTS:
        issue = find_fault(scope)
        if issue is not None and issue.cause is not None:
            return issue
    return None


def _credential_fault(scope: Scope) -> Issue | None:
    """Without a credential nothing goes on, and CAPO before 0.15 says so on no object."""
    text = scope.observed.credential
    return Issue(text, Cause.CREDENTIAL) if text else None


# Servers and network ------------------------------------------------------------------------------
def _server_fault(scope: Scope) -> Issue | None:
    for server in sorted(scope.servers, key=conditions.name):
        issue = _fault_of_server(server, scope)
        if issue is not None and scope.affects(conditions.name(server), issue.text):
            return issue
    return None


def _fault_of_server(server: Json, scope: Scope) -> Issue | None:
    name = conditions.name(server)
    instance_ready = conditions.condition(server, "InstanceReady")
    if instance_ready.bad and instance_ready.message and instance_ready.reason not in _WAITING:
        return Issue(
            about(public(instance_ready.message), f"server {name}"),
            cause_of(instance_ready.message),
        )
    if conditions.at_path(server, "status", "instanceState") == "ERROR":
        faults = scope.observed.server_faults
        text = faults.get(str(conditions.at_path(server, "status", "instanceID")), "")
        if not text and (issue := remediation.reported_of_server(name, scope.previous_reasons)):
            return issue
        text = messages.of_nova(public(text)) or "the server is in ERROR and Nova gives no reason"
        return Issue(about(text, f"server {name}"), cause_of(text))
    created = conditions.instant(conditions.metadata(server).get("creationTimestamp"))
    status = conditions.mapping(server.get("status"))
    resolved = status.get("resolved") or status.get("instanceID")
    text = f"the image, flavor or network of server {name} cannot be found"
    if not resolved and scope.is_older(created, RESOLVE_PATIENCE, text):
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
        condition = conditions.condition(owner, kind)
        if condition.bad and (condition.message or condition.reason):
            text = public(condition.message or condition.reason)
            return Issue(text, cause_of(condition.message or kind, Cause.NETWORK))
    failure = conditions.at_path(owner, "status", "failureMessage")
    if failure:
        return Issue(public(str(failure)), cause_of(str(failure), Cause.NETWORK))
    return None


# Machines -----------------------------------------------------------------------------------------
def _machine_fault(scope: Scope) -> Issue | None:
    for machine in sorted(scope.machines, key=conditions.name):
        issue = _fault_of_machine(machine, scope)
        if issue is not None and scope.affects(conditions.name(machine), issue.text):
            return issue
    return None


def machine_fault(machine: Json, observed: Observed, previous_reasons: str) -> Issue | None:
    """The fault of one machine or of its server, None while it is only a matter of time.

    :param previous_reasons: what the row says of the cluster now.
    """
    scope = dataclasses.replace(scope_of(observed, None, previous_reasons), whole=False)
    name = machines.server_name(machine)
    for server in scope.servers:
        if conditions.name(server) == name:
            issue = _fault_of_server(server, scope)
            if issue is not None:
                return issue
    return _fault_of_machine(machine, scope)


def _fault_of_machine(machine: Json, scope: Scope) -> Issue | None:
    name = conditions.name(machine)
    node_healthy = conditions.condition(machine, "NodeHealthy")
    if _NO_NETWORK.search(node_healthy.message):
        issue = addons.component_issue(scope.observed, addons.NETWORK, scope.previous_reasons)
        if issue is not None:
            return issue
    health_check = conditions.condition(machine, "HealthCheckSucceeded")
    if health_check.bad and "InfrastructureReady" not in health_check.message:
        return Issue(f"machine {name}: {first_sentence(health_check.message)}", Cause.BOOTSTRAP)
    bootstrap_ready = conditions.condition(machine, "BootstrapConfigReady")
    if bootstrap_ready.bad and _FAILURE.search(bootstrap_ready.message):
        return Issue(f"machine {name}: {first_sentence(bootstrap_ready.message)}", Cause.BOOTSTRAP)
    if not conditions.is_terminating(machine) and (clause := _other_kubelet(machine)):
        return Issue(f"machine {name} {clause}", Cause.IMAGE)
    infrastructure_ready = conditions.condition(machine, "InfrastructureReady")
    if (
        infrastructure_ready.bad
        and infrastructure_ready.reason in _REFUSED
        and infrastructure_ready.message
    ):
        text, cause_text = (
            first_sentence(infrastructure_ready.message),
            f"{infrastructure_ready.reason} {infrastructure_ready.message}",
        )
        return Issue(f"machine {name}: {text}", cause_of(cause_text, Cause.NETWORK))
    if infrastructure_ready.good and node_healthy.present and not node_healthy.good:
        words, issue = first_sentence(node_healthy.message), _unreachable_api(scope)
        if not words or _NO_NODE.match(words):
            words = "its node has not joined"
            issue = issue or addons.component_issue(
                scope.observed, addons.CLOUD_CONTROLLER, scope.previous_reasons
            )
        issue = issue or Issue(f"machine {name}: {words}", Cause.BOOTSTRAP)
        if scope.is_older(infrastructure_ready.since, NODE_PATIENCE, issue.text):
            return issue
    return None


def _other_kubelet(machine: Json) -> str:
    """That a machine's kubelet is not the one of its version; "" where it is, or is not known."""
    up_to_date = conditions.condition(machine, "UpToDate")
    if up_to_date.bad and "kubeletVersion" in up_to_date.message:
        return messages.of_kubelet(first_sentence(up_to_date.message))
    versions = machines.other_kubelet(machine)
    return messages.other_kubelet(*versions) if versions else ""


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
    for machine_set in sorted(scope.sets, key=conditions.name):
        scaling_up = conditions.condition(machine_set, "ScalingUp")
        if not scaling_up.bad or "blocked because" not in scaling_up.message:
            continue
        if "Skew" in scaling_up.message:
            cause_text = messages.of_skew(
                first_sentence(scaling_up.message.partition("blocked because:")[2])
            )
            return Issue(
                f"{conditions.name(machine_set)} creates no machines: {cause_text}", Cause.REQUEST
            )
        if "ControlPlaneIsStable" in scaling_up.message:
            return Issue("new machines wait until the control plane is stable")
    return None


def _replaced_fault(scope: Scope) -> Issue | None:
    """Why a machine goes, or went, in whose place another one is made that has no fault itself."""
    owner = scope.observed.control_plane
    owners = [*scope.sets, *(() if isinstance(owner, Missing) else (owner,))]
    # Of the whole cluster nobody knows whether it is still that which is waited for.
    issue = remediation.cause(scope.machines, owners, "" if scope.whole else scope.previous_reasons)
    is_known = issue is not None and any(
        f"machine {name}:" in issue.text and not scope.affects(name, issue.text)
        for name in scope.deleting_names
    )
    return None if is_known else issue


# Above the machines -------------------------------------------------------------------------------
def _control_plane_fault(scope: Scope) -> Issue | None:
    owner = scope.observed.control_plane
    if isinstance(owner, Missing):
        return None
    for kind in ("CertificatesAvailable", "Remediating"):
        condition = conditions.condition(owner, kind)
        if condition.bad and (
            kind == "CertificatesAvailable" or "can't remediate" in condition.message
        ):
            return Issue(f"control plane: {first_sentence(condition.message)}", Cause.BOOTSTRAP)
    return None


def _addon_fault(scope: Scope) -> Issue | None:
    for addon in readable_objects(scope.observed.addons) if scope.whole else ():
        if not addons.is_core(addon):
            continue
        issue = addons.issue_of(addon, scope.observed, scope.previous_reasons)
        if issue is not None:
            return issue
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
