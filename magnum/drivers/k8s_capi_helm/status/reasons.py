# SPDX-License-Identifier: Apache-2.0
"""Why it is not done yet: the deepest object that says so, from the server up to the events.

Cluster API copies a fault upwards late or not at all: a quota error of Nova stands on the
OpenStackServer only (CAPO before 0.15), a server that the scheduler could not place says nothing
but ERROR, and a held back scale-up is told by the MachineSet alone. So the questions go from the
bottom to the top.
"""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
import datetime

from magnum.drivers.k8s_capi_helm import conditions
from magnum.drivers.k8s_capi_helm.errors import Cause
from magnum.drivers.k8s_capi_helm.model import GroupState, Json, Missing, Observed
from magnum.drivers.k8s_capi_helm.status import addons, infrastructure, machines
from magnum.drivers.k8s_capi_helm.status.finding import bounded, cause_of, Finding, unwrapped

#: Cluster API's own default for a node to appear; until then a booting machine is no fault.
NODE_PATIENCE = datetime.timedelta(minutes=10)
#: Until then an OpenStackServer without resolved image, flavor and network is just new.
RESOLVE_PATIENCE = datetime.timedelta(minutes=1)
EVENT_AGE = datetime.timedelta(minutes=30)

#: Reasons of OpenStackServer conditions that only say that it is not its turn yet.
_WAITING = frozenset(
    {"InstanceNotReady", "WaitingForClusterInfrastructure", "WaitingForBootstrapData"}
)


@dataclasses.dataclass(frozen=True, slots=True)
class _Scope:
    """The objects that one reason is about: those of a group, or all of the cluster."""

    now: datetime.datetime
    observed: Observed
    machines: tuple[Json, ...]
    sets: tuple[Json, ...]
    servers: tuple[Json, ...]
    whole: bool


def _readable(listed: tuple[Json, ...] | Missing) -> tuple[Json, ...]:
    return () if isinstance(listed, Missing) else listed


def _scope(observed: Observed, now: datetime.datetime, group: GroupState | None) -> _Scope:
    every, sets = _readable(observed.machines), _readable(observed.machine_sets)
    servers = _readable(observed.servers)
    if group is None:
        return _Scope(now, observed, every, sets, servers, True)
    if group.is_control_plane:
        mine, sets = machines.of_control_plane(every), ()
    else:
        owners = machines.deployments_of(group.name, _readable(observed.machine_deployments))
        mine = machines.of_group(every, group.name, owners)
        sets = machines.of_group(sets, group.name, owners)
    wanted = {conditions.dig(one, "spec", "infrastructureRef", "name") for one in mine}
    servers = tuple(one for one in servers if conditions.name(one) in wanted)
    return _Scope(now, observed, mine, sets, servers, False)


def deepest(
    observed: Observed, now: datetime.datetime, group: GroupState | None = None
) -> Finding | None:
    """The deepest thing that says what is wrong, None when nothing does.

    :param group: only what concerns this group (and what all of them need); None for everything.
    """
    scope = _scope(observed, now, group)
    for question in _QUESTIONS:
        found = question(scope)
        if found is not None:
            return found
    return None


def told(gap: Finding, fault: Finding | None) -> str:
    """One line for the tenant: the fault if there is one, and how far things are."""
    if fault is None:
        return gap.line()
    if gap.text in fault.text or fault.text in gap.text:
        return fault.line() if fault.cause else gap.line()
    if fault.cause is None:
        return bounded(f"waiting: {gap.text}; {fault.text}")
    room = max(80, 240 - len(gap.text) - len(fault.cause.value))
    return bounded(f"{fault.cause.value}: {bounded(fault.text, room)}; {gap.text}")


def _server_fault(scope: _Scope) -> Finding | None:
    for server in sorted(scope.servers, key=conditions.name):
        if conditions.deleting(server):
            continue
        found = _fault_of_server(server, scope)
        if found is not None:
            return found
    return None


def _fault_of_server(server: Json, scope: _Scope) -> Finding | None:
    name = conditions.name(server)
    said = conditions.condition(server, "InstanceReady")
    if said.bad and said.message and said.reason not in _WAITING:
        text = unwrapped(said.message)
        return Finding(f"{text} (server {name})", cause_of(said.message))
    if conditions.dig(server, "status", "instanceState") == "ERROR":
        known = scope.observed.server_faults
        text = known.get(str(conditions.dig(server, "status", "instanceID")), "")
        text = unwrapped(text) or "Nova put the server into ERROR"
        return Finding(f"{text} (server {name})", cause_of(text))
    made = conditions.instant(conditions.metadata(server).get("creationTimestamp"))
    if made and scope.now - made > RESOLVE_PATIENCE and not _resolved(server):
        text = f"image, flavor or network of server {name} cannot be found"
        return Finding(text, Cause.IMAGE)
    return None


def _resolved(server: Json) -> bool:
    status = conditions.mapping(server.get("status"))
    return bool(status.get("resolved") or status.get("instanceID"))


def _openstack_fault(scope: _Scope) -> Finding | None:
    owner = scope.observed.infrastructure
    if isinstance(owner, Missing):
        return None
    for kind in infrastructure.PARTS:
        said = conditions.condition(owner, kind)
        if said.bad and (said.message or said.reason):
            text = unwrapped(said.message or said.reason)
            return Finding(text, cause_of(said.message or kind, Cause.NETWORK))
    failure = conditions.dig(owner, "status", "failureMessage")
    if failure:
        return Finding(unwrapped(str(failure)), cause_of(str(failure), Cause.NETWORK))
    return None


def _machine_fault(scope: _Scope) -> Finding | None:
    found: list[Finding] = []
    for machine in sorted(scope.machines, key=conditions.name):
        if not machines.ready(machine) or conditions.condition(machine, "UpToDate").bad:
            told_by = _fault_of_machine(machine, scope.now)
            if told_by is not None:
                found.append(told_by)
    return next((one for one in found if one.cause), found[0] if found else None)


def _fault_of_machine(machine: Json, now: datetime.datetime) -> Finding | None:
    name = conditions.name(machine)
    for kind, cause in (
        ("HealthCheckSucceeded", Cause.BOOTSTRAP),
        ("Deleting", None),
        ("BootstrapConfigReady", None),
        ("InfrastructureReady", None),
        ("NodeHealthy", None),
        ("Ready", None),
        ("UpToDate", None),
    ):
        said = conditions.condition(machine, kind)
        if said.good or not said.present or not said.message:
            continue
        text = f"machine {name}: {_first_bullet(said.message)}"
        if kind == "NodeHealthy" and _waited_long(machine, now):
            cause = Cause.BOOTSTRAP
        if kind == "UpToDate":
            return Finding(text, Cause.IMAGE if "kubeletVersion" in said.message else None)
        return Finding(text, cause)
    return None


def _waited_long(machine: Json, now: datetime.datetime) -> bool:
    """The server has been up for long enough that its node should be there."""
    up = conditions.condition(machine, "InfrastructureReady")
    return up.good and up.since is not None and now - up.since > NODE_PATIENCE


def _first_bullet(message: str) -> str:
    line = next((one for one in message.splitlines() if one.strip()), "")
    return unwrapped(line.strip().removeprefix("* "))


def _preflight_fault(scope: _Scope) -> Finding | None:
    for one in sorted(scope.sets, key=conditions.name):
        said = conditions.condition(one, "ScalingUp")
        if said.bad and "blocked because" in said.message:
            bullet = said.message.partition("blocked because:")[2]
            text = f"{conditions.name(one)} cannot grow: {_first_bullet(bullet) or said.message}"
            return Finding(text, Cause.REQUEST if "Skew" in said.message else None)
    return None


def _control_plane_fault(scope: _Scope) -> Finding | None:
    owner = scope.observed.control_plane
    if isinstance(owner, Missing):
        return None
    for kind in ("CertificatesAvailable", "Remediating", "Available"):
        said = conditions.condition(owner, kind)
        if not said.bad or not said.message:
            continue
        stuck = kind == "CertificatesAvailable" or "can't remediate" in said.message
        return Finding(
            f"control plane: {_first_bullet(said.message)}", Cause.BOOTSTRAP if stuck else None
        )
    return None


def _addon_fault(scope: _Scope) -> Finding | None:
    if not scope.whole:
        return None
    for one in _readable(scope.observed.addons):
        found = addons.fault(one) if addons.is_core(one) else None
        if found is not None:
            return found
    return None


def _event_fault(scope: _Scope) -> Finding | None:
    """The newest failure of an object that is not fine now: an old fault is no reason."""
    suspects = _not_fine(scope)
    newest: tuple[datetime.datetime, str, str] | None = None
    for event in _readable(scope.observed.events):
        at = _event_time(event)
        name = str(conditions.dig(event, "involvedObject", "name") or "")
        kind = str(conditions.dig(event, "involvedObject", "kind") or "")
        failed = str(event.get("reason") or "").lower().startswith("failed")
        if not failed or at is None or (kind, name) not in suspects:
            continue
        if scope.now - at <= EVENT_AGE and (newest is None or at > newest[0]):
            newest = (at, str(event.get("message") or event.get("reason")), name)
    if newest is None:
        return None
    return Finding(f"{unwrapped(newest[1])} ({newest[2]})", cause_of(newest[1]))


def _not_fine(scope: _Scope) -> set[tuple[str, str]]:
    bad = {
        ("OpenStackServer", conditions.name(one))
        for one in scope.servers
        if not conditions.condition(one, "InstanceReady").good
    }
    for one in scope.machines:
        if not machines.ready(one):
            name = conditions.name(one)
            infra = str(conditions.dig(one, "spec", "infrastructureRef", "name") or "")
            bad |= {("Machine", name), ("OpenStackMachine", infra), ("OpenStackServer", infra)}
    bad |= {("MachineSet", conditions.name(one)) for one in scope.sets}
    owner = scope.observed.infrastructure
    if not isinstance(owner, Missing) and infrastructure.openstack_missing(owner):
        bad.add(("OpenStackCluster", conditions.name(owner)))
    return bad


def _event_time(event: Json) -> datetime.datetime | None:
    for path in (("series", "lastObservedTime"), ("lastTimestamp",), ("eventTime",)):
        at = conditions.instant(conditions.dig(event, *path))
        if at is not None:
            return at
    return conditions.instant(conditions.metadata(event).get("creationTimestamp"))


_QUESTIONS: tuple[Callable[[_Scope], Finding | None], ...] = (
    _server_fault,
    _openstack_fault,
    lambda scope: _with_cause(_machine_fault(scope)),
    _event_fault,
    _preflight_fault,
    _control_plane_fault,
    _addon_fault,
    _machine_fault,
)


def _with_cause(found: Finding | None) -> Finding | None:
    return found if found is not None and found.cause else None
