# SPDX-License-Identifier: Apache-2.0
"""Observed + MagnumState + now -> Verdict (cluster, nodegroups, health, reason).

:func:`judge` is a list of small questions, worst answer first. Each takes objects that were read
    already;
none reads anything. What is absent, unreadable or stale is never a yes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import dataclasses
import datetime
import hashlib
import json

from magnum.drivers.k8s_capi_helm import conditions, deletion
from magnum.drivers.k8s_capi_helm.errors import Cause
from magnum.drivers.k8s_capi_helm.model import (
    GroupState,
    GroupVerdict,
    Json,
    MagnumState,
    Missing,
    Observed,
    Verdict,
)
from magnum.drivers.k8s_capi_helm.status import (
    addons,
    control_plane,
    health,
    infrastructure,
    machines,
    reasons,
    workers,
)
from magnum.drivers.k8s_capi_helm.status.finding import bounded, Finding

__all__ = ["judge", "servers_in_error"]

#: An older look is no news any more: the same as not having looked.
FRESH = datetime.timedelta(minutes=5)

_IN_PROGRESS = ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS")
_FAILED = ("CREATE_FAILED", "UPDATE_FAILED")


def judge(observed: Observed, state: MagnumState, now: datetime.datetime) -> Verdict:
    """What Magnum should say about a cluster after one look.

    :param now: aware, UTC.
    """
    observed = _fresh(observed, now)
    groups = tuple(_judge_group(one, observed, state, now) for one in state.groups)
    gap = _cluster_gap(observed, state, groups)
    found = "" if gap else _fingerprint(observed, state)
    status, reason = _lifecycle(observed, state, now, gap, found)
    verdict_of_health, texts = health.judge(observed, state)
    return Verdict(
        status=status,
        reason=reason,
        groups=groups,
        health=verdict_of_health,
        health_reason=texts,
        fingerprint=found,
        api_address=infrastructure.api_address(observed.cluster),
        coe_version=control_plane.running_version(observed.control_plane),
    )


def servers_in_error(observed: Observed) -> tuple[str, ...]:
    """Ids of the Nova servers whose fault only Nova can tell, to be put into ``server_faults``."""
    listed = () if isinstance(observed.servers, Missing) else observed.servers
    failed = [one for one in listed if conditions.dig(one, "status", "instanceState") == "ERROR"]
    ids = (conditions.dig(one, "status", "instanceID") for one in failed)
    return tuple(str(one) for one in ids if one)


def _fresh(observed: Observed, now: datetime.datetime) -> Observed:
    """The look itself, or one that knows nothing when it is too old to be true now."""
    if now - observed.at <= FRESH:
        return observed
    lost = Missing.UNREADABLE
    return Observed(
        at=observed.at,
        cluster=lost,
        infrastructure=lost,
        control_plane=lost,
        machine_deployments=lost,
        machine_sets=lost,
        machines=lost,
        servers=lost,
        addons=lost,
        events=lost,
        unreachable=observed.unreachable or f"the last look is from {observed.at:%H:%M:%S} UTC",
    )


# The cluster's lifecycle --------------------------------------------------------------------------
def _lifecycle(
    observed: Observed,
    state: MagnumState,
    now: datetime.datetime,
    gap: Finding | None,
    found: str,
) -> tuple[str, str | None]:
    """The cluster's status and reason."""
    verb = state.status.partition("_")[0]
    if state.status == "DELETE_IN_PROGRESS":
        return state.status, bounded(f"waiting: {deletion.blocking(observed)}")
    if state.status.endswith("_COMPLETE"):
        return state.status, None
    if state.status not in (*_IN_PROGRESS, *_FAILED):
        return state.status, state.status_reason
    if state.refusal:
        return f"{verb}_FAILED", state.refusal
    if found and found == state.first_look:
        return f"{verb}_COMPLETE", None
    if gap is None:
        gap = Finding("everything is in place, looking once more")
    reason = _reason(observed, now, gap, None)
    if state.status in _FAILED:
        return state.status, _kept_reason(state, now, reason)
    if _overdue(state, now) and not found:
        return f"{verb}_FAILED", _timeout(state, now, reason)
    return state.status, reason


def _overdue(state: MagnumState, now: datetime.datetime) -> bool:
    return state.deadline is not None and now > state.deadline


def _reason(
    observed: Observed, now: datetime.datetime, gap: Finding, group: GroupState | None
) -> str:
    if observed.unreachable:
        text = "the management cluster cannot be read, what it does goes on"
        return Finding(text, Cause.MANAGEMENT).line()
    return reasons.told(gap, reasons.deepest(observed, now, group))


def _timeout(state: MagnumState, now: datetime.datetime, reason: str) -> str:
    """The deadline, and what it was missed for."""
    minutes = ""
    if state.started is not None and state.deadline is not None:
        minutes = f" within {round((state.deadline - state.started).total_seconds() / 60)} minutes"
    return bounded(f"{Cause.TIMEOUT.value}: not done{minutes}; {reason}")


def _kept_reason(state: MagnumState, now: datetime.datetime, reason: str) -> str | None:
    """What FAILED goes on saying: a missed deadline with today's news, else its own words."""
    if _overdue(state, now):
        return _timeout(state, now, reason)
    return state.status_reason or reason


def _cluster_gap(
    observed: Observed, state: MagnumState, groups: Iterable[GroupVerdict]
) -> Finding | None:
    """The first thing that keeps the whole from being what was asked for, or None."""
    if observed.unreachable:
        return Finding("the management cluster cannot be read", Cause.MANAGEMENT)
    if not state.applied:
        return Finding(state.waiting or "the change has not been handed to Cluster API yet")
    for question in (
        infrastructure.openstack_missing(observed.infrastructure),
        _first_group_gap(observed, state),
        workers.leftovers(observed),
        addons.core_missing(observed.addons, state.without_addons),
        infrastructure.cluster_missing(observed.cluster),
    ):
        if question is not None:
            return question
    open_groups = [one.name for one in groups if _open(one)]
    if open_groups:
        return Finding(f"node group {open_groups[0]} is in progress")
    return None


def _open(group: GroupVerdict) -> bool:
    return group.status.endswith("_IN_PROGRESS") and not group.gone


def _first_group_gap(observed: Observed, state: MagnumState) -> Finding | None:
    """Control plane first: without it no worker comes."""
    if not any(group.is_control_plane for group in state.groups):
        return Finding("Magnum has no control plane group")
    for group in sorted(state.groups, key=lambda one: not one.is_control_plane):
        gap = _group_gap(group, observed, state)
        if gap is not None:
            return gap
    return None


# Groups -------------------------------------------------------------------------------------------
def _group_gap(group: GroupState, observed: Observed, state: MagnumState) -> Finding | None:
    """What keeps a group from being what its row says, None when it is in place (or not wanted)."""
    if group.status.startswith("DELETE_"):
        if workers.gone(group, observed):
            return None
        return Finding(f"node group {group.name} is being deleted")
    if _never_rendered(group, observed, state):
        return None
    if group.is_control_plane:
        return control_plane.missing(group, observed, state.kubernetes_version)
    return workers.missing(group, observed, state.kubernetes_version)


def _never_rendered(group: GroupState, observed: Observed, state: MagnumState) -> bool:
    """A group that was refused while the cluster lived on: nobody waits for it."""
    return (
        group.status == "CREATE_FAILED"
        and state.status.startswith("UPDATE_")
        and not group.is_control_plane
        and not isinstance(observed.machine_deployments, Missing)
        and not machines.deployments_of(group.name, observed.machine_deployments)
    )


def _judge_group(
    group: GroupState, observed: Observed, state: MagnumState, now: datetime.datetime
) -> GroupVerdict:
    gap = _group_gap(group, observed, state)
    if not state.applied:
        gap = Finding(state.waiting or "the change has not been handed to Cluster API yet")
    mine = _machines_of(group, observed)
    deployments = (
        ()
        if isinstance(observed.machine_deployments, Missing)
        else (machines.deployments_of(group.name, observed.machine_deployments))
    )
    count = workers.replicas(deployments[0]) if group.autoscaled and deployments else None
    verdict = GroupVerdict(
        group.name, group.status, None, node_count=count, addresses=machines.addresses(mine)
    )
    status, reason, gone = _group_lifecycle(group, observed, state, now, gap)
    return dataclasses.replace(verdict, status=status, reason=reason, gone=gone)


def _machines_of(group: GroupState, observed: Observed) -> tuple[Json, ...]:
    if isinstance(observed.machines, Missing):
        return ()
    if group.is_control_plane:
        return machines.of_control_plane(observed.machines)
    if isinstance(observed.machine_deployments, Missing):
        return ()
    owners = machines.deployments_of(group.name, observed.machine_deployments)
    return machines.of_group(observed.machines, group.name, owners)


def _group_lifecycle(
    group: GroupState,
    observed: Observed,
    state: MagnumState,
    now: datetime.datetime,
    gap: Finding | None,
) -> tuple[str, str | None, bool]:
    """A group's status, its reason, and whether its row can go."""
    verb = group.status.partition("_")[0]
    if group.status.endswith("_COMPLETE") or state.status.startswith("DELETE_"):
        return group.status, None, False
    if group.status not in (*_IN_PROGRESS, *_FAILED, "DELETE_IN_PROGRESS", "DELETE_FAILED"):
        return group.status, None, False
    if gap is None and verb == "DELETE":
        return group.status, None, True
    failed = group.status.endswith("_FAILED")
    if gap is None and not state.refusal and not _never_rendered(group, observed, state):
        return f"{verb}_COMPLETE", None, False
    if gap is None or state.refusal:
        return f"{verb}_FAILED", state.refusal or None, False
    reason = _reason(observed, now, gap, group)
    if failed or _overdue(state, now):
        text = _timeout(state, now, reason) if _overdue(state, now) else None
        return f"{verb}_FAILED", text, False
    return group.status, reason, False


# Two looks ----------------------------------------------------------------------------------------
def _fingerprint(observed: Observed, state: MagnumState) -> str:
    """Digest of who was there, in which generation, and what was asked for.

    Two looks that find everything in place agree only if nothing was made, changed or deleted
    between them, and if they judged the same operation.
    """
    wanted: list[object] = [
        state.kubernetes_version,
        state.started.isoformat() if state.started else "",
        sorted((group.name, group.count) for group in state.groups),
    ]
    singles = (observed.cluster, observed.infrastructure, observed.control_plane)
    there = [_identity(one) for one in singles if not isinstance(one, Missing)]
    for listed in (
        observed.machine_deployments,
        observed.machine_sets,
        observed.machines,
        observed.addons,
    ):
        there += [] if isinstance(listed, Missing) else [_identity(one) for one in listed]
    text = json.dumps([wanted, sorted(there)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _identity(thing: Mapping[str, object]) -> list[str]:
    meta = conditions.mapping(thing.get("metadata"))
    return [
        str(thing.get("kind", "")),
        str(meta.get("name")),
        str(meta.get("uid")),
        str(meta.get("generation")),
    ]
