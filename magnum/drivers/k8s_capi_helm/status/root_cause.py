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

from magnum.drivers.k8s_capi_helm.errors import Cause
from magnum.drivers.k8s_capi_helm.model import conditions, GroupState, Json, Missing, Observed
from magnum.drivers.k8s_capi_helm.status import (
    addons,
    infrastructure,
    machines,
    messages,
    remediation,
    timestamps,
)
from magnum.drivers.k8s_capi_helm.status.issue import cause_of, Issue
from magnum.drivers.k8s_capi_helm.status.public_text import first_bullet, public

#: Cluster API's own default for a node to appear; until then a booting machine is no fault.
NODE_PATIENCE = datetime.timedelta(minutes=10)
#: Until then an OpenStackServer without resolved image, flavor and network is just new.
RESOLVE_PATIENCE = datetime.timedelta(seconds=30)
EVENT_AGE = datetime.timedelta(minutes=30)
#: So many characters of a reason tell it from others, also where it was cut.
_BEGINNING = 80

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


@dataclasses.dataclass(frozen=True, slots=True)
class Scope:
    """The objects that one reason is about: those of a group, or all of the cluster.

    :ivar whole: it is the cluster's reason, not a group's.
    :ivar said: what the rows say now: what was told once is told as long as it is so.
    """

    observed: Observed
    machines: tuple[Json, ...]
    sets: tuple[Json, ...]
    servers: tuple[Json, ...]
    whole: bool
    said: str = ""

    def lasts(
        self, since: datetime.datetime | None, longest: datetime.timedelta, text: str
    ) -> bool:
        """Whether something has lasted that long, by its writer's clock, or was told already.

        A conductor that has just begun may know less of that clock than the one before it.

        :param text: that it is told with.
        """
        return text[:_BEGINNING] in self.said or timestamps.has_lasted(
            since, self.observed, longest
        )


def items(listed: tuple[Json, ...] | Missing) -> tuple[Json, ...]:
    """What a list has to tell; one that could not be read tells nothing."""
    return () if isinstance(listed, Missing) else listed


def scope_of(observed: Observed, group: GroupState | None, said: str = "") -> Scope:
    """The objects of *group*, or of everything for None.

    :param said: what the rows say now.
    """
    every, sets = items(observed.machines), items(observed.machine_sets)
    servers = items(observed.servers)
    if group is None:
        return Scope(observed, every, sets, servers, True, said)
    if group.is_control_plane:
        mine, sets = machines.of_control_plane(every), ()
    else:
        owners = machines.deployments_of(group.name, items(observed.machine_deployments))
        mine = machines.of_group(every, group.name, owners)
        sets = machines.of_group(sets, group.name, owners)
    wanted = {machines.server_name(one) for one in mine}
    servers = tuple(one for one in servers if conditions.name(one) in wanted)
    return Scope(observed, mine, sets, servers, False, said)


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
        if found is not None:
            return found
    return None


def _fault_of_server(server: Json, scope: Scope) -> Issue | None:
    name = conditions.name(server)
    said = conditions.condition(server, "InstanceReady")
    if said.bad and said.message and said.reason not in _WAITING:
        return Issue(f"{public(said.message)} (server {name})", cause_of(said.message))
    if conditions.at_path(server, "status", "instanceState") == "ERROR":
        known = scope.observed.server_faults
        text = known.get(str(conditions.at_path(server, "status", "instanceID")), "")
        text = messages.of_nova(public(text)) or "Nova has put the server into ERROR"
        return Issue(f"{text} (server {name})", cause_of(text))
    made = conditions.instant(conditions.metadata(server).get("creationTimestamp"))
    status = conditions.mapping(server.get("status"))
    resolved = status.get("resolved") or status.get("instanceID")
    text = f"image, flavor or network of server {name} cannot be found"
    if not resolved and scope.lasts(made, RESOLVE_PATIENCE, text):
        return Issue(text, Cause.IMAGE)
    return None


def _balancer_fault(scope: Scope) -> Issue | None:
    """CAPO waits for it for minutes; from then on only its deletion helps, which it survives."""
    name = scope.observed.failed_balancer
    text = f"Octavia has load balancer {name} in ERROR; delete it for a new one"
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
        if found is not None:
            return found
    return None


def _fault_of_machine(machine: Json, scope: Scope) -> Issue | None:
    name = conditions.name(machine)
    checked = conditions.condition(machine, "HealthCheckSucceeded")
    if checked.bad and "InfrastructureReady" not in checked.message:
        return Issue(f"machine {name}: {first_bullet(checked.message)}", Cause.BOOTSTRAP)
    made = conditions.condition(machine, "BootstrapConfigReady")
    if made.bad and conditions._FAILURE.search(made.message):
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
        text = f"machine {name}: {first_bullet(node.message)}"
        if scope.lasts(up.since, NODE_PATIENCE, f"{Cause.BOOTSTRAP}: {text}"):
            return Issue(text, Cause.BOOTSTRAP)
    return None


def preflight(scope: Scope) -> Issue | None:
    """Why a MachineSet does not make the machines that it should; only it says so."""
    for one in sorted(scope.sets, key=conditions.name):
        said = conditions.condition(one, "ScalingUp")
        if not said.bad or "blocked because" not in said.message:
            continue
        if "Skew" in said.message:
            why = messages.of_skew(first_bullet(said.message.partition("blocked because:")[2]))
            return Issue(f"{conditions.name(one)} cannot grow: {why}", Cause.REQUEST)
        if "ControlPlaneIsStable" in said.message:
            return Issue("new machines wait for the control plane to settle")
    return None


def _replaced_fault(scope: Scope) -> Issue | None:
    """Why a machine goes, or went, in whose place another one is made that has no fault itself."""
    owner = scope.observed.control_plane
    owners = [*scope.sets, *(() if isinstance(owner, Missing) else (owner,))]
    # Of the whole cluster nobody knows whether it is still that which is waited for.
    return remediation.cause(scope.machines, owners, "" if scope.whole else scope.said)


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
        found = addons.issue_of(one) if addons.is_core(one) else None
        if found is not None:
            return found
    return None


# Events -------------------------------------------------------------------------------------------
def _event_fault(scope: Scope) -> Issue | None:
    """The newest failure of an object that is not fine now: an old fault is no reason."""
    return newest_failure(scope.observed, _not_fine(scope))


def newest_failure(observed: Observed, suspects: set[tuple[str, str]]) -> Issue | None:
    """The newest event, not older than EVENT_AGE, that tells of a failure of one of *suspects*.

    :param suspects: (kind, name) of objects.
    """
    newest: tuple[datetime.datetime, str, str] | None = None
    for event in items(observed.events):
        at = timestamps.of_event(event)
        name = str(conditions.at_path(event, "involvedObject", "name") or "")
        kind = str(conditions.at_path(event, "involvedObject", "kind") or "")
        if not conditions.tells_of_failure(event) or at is None or (kind, name) not in suspects:
            continue
        young = not timestamps.has_lasted(at, observed, EVENT_AGE)
        if young and (newest is None or at > newest[0]):
            newest = (at, str(event.get("message") or event.get("reason")), name)
    if newest is None:
        return None
    return Issue(f"{public(newest[1])} ({newest[2]})", cause_of(newest[1]))


def _not_fine(scope: Scope) -> set[tuple[str, str]]:
    bad = {
        ("OpenStackServer", conditions.name(one))
        for one in scope.servers
        if not conditions.condition(one, "InstanceReady").good
    }
    for one in scope.machines:
        if not machines.is_ready(one):
            server = machines.server_name(one)
            bad |= {("Machine", conditions.name(one))}
            bad |= {("OpenStackMachine", server), ("OpenStackServer", server)}
    bad |= {("MachineSet", conditions.name(one)) for one in scope.sets}
    owner = scope.observed.infrastructure
    if not isinstance(owner, Missing) and infrastructure.openstack_missing(owner):
        bad.add(("OpenStackCluster", conditions.name(owner)))
    return bad


_FAULTS: tuple[Callable[[Scope], Issue | None], ...] = (
    _credential_fault,
    _server_fault,
    _balancer_fault,
    _openstack_fault,
    _machine_fault,
    _event_fault,
    _replaced_fault,
    preflight,
    _control_plane_fault,
    _addon_fault,
)
