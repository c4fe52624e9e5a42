# SPDX-License-Identifier: Apache-2.0
"""Nodegroups: what each still lacks, and what its row should say."""

from __future__ import annotations

import dataclasses
import datetime

from magnum.drivers.k8s_capi_helm.model import (
    GroupState,
    GroupVerdict,
    Json,
    MagnumState,
    Missing,
    Observed,
)
from magnum.drivers.k8s_capi_helm.status import (
    control_plane,
    fingerprint,
    generations,
    machine_deployment,
    machines,
    reasons,
)
from magnum.drivers.k8s_capi_helm.status.issue import Issue

_JUDGED = ("IN_PROGRESS", "FAILED")


def missing(group: GroupState, observed: Observed, state: MagnumState) -> Issue | None:
    """What keeps a group from being what its row says, None when it is so (or nobody waits)."""
    if group.is_deleting:
        if machine_deployment.is_gone(group, observed):
            return None
        return Issue(f"nodegroup {group.name} is being deleted", group=group)
    if _never_rendered(group, observed, state):
        return None
    room = control_plane if group.is_control_plane else machine_deployment
    gap = room.missing(group, observed, group.version or state.kubernetes_version)
    if gap is None and group.waits_for_control_plane:
        gap = Issue(f"nodegroup {group.name} waits for the upgrade of the control plane")
    return None if gap is None else dataclasses.replace(gap, group=group)


def first_missing(observed: Observed, state: MagnumState) -> Issue | None:
    """The first group's gap, the control plane's before any other: without it no worker comes."""
    if not any(group.is_control_plane for group in state.groups):
        return Issue("Magnum has no control plane nodegroup for this cluster")
    for group in sorted(state.groups, key=lambda one: not one.is_control_plane):
        gap = missing(group, observed, state)
        if gap is not None:
            return gap
    return None


def evaluate(
    group: GroupState,
    observed: Observed,
    state: MagnumState,
    now: datetime.datetime,
    *,
    agreed: bool = False,
) -> GroupVerdict:
    """What the group's row should say after this look.

    :param agreed: this look and the one before found everything of the cluster in place.
    """
    gap = (
        (None if state.only_new_nodegroups_missing else reasons.not_applied(state))
        or generations.missing(observed, state)
        or missing(group, observed, state)
    )
    found = "" if gap or observed.unreachable else fingerprint.of_group(group, observed, state)
    again = agreed or (bool(found) and found == group.ready_fingerprint)
    status, reason, gone = _lifecycle(group, observed, state, now, gap, again=again)
    return GroupVerdict(
        name=group.name,
        status=status,
        reason=reason,
        node_count=_node_count(group, observed),
        addresses=_addresses(group, observed),
        gone=gone,
        fingerprint=found,
    )


def _addresses(group: GroupState, observed: Observed) -> tuple[str, ...] | None:
    if isinstance(observed.machines, Missing) or isinstance(observed.machine_deployments, Missing):
        return None
    return machines.addresses(_machines(group, observed))


def _lifecycle(
    group: GroupState,
    observed: Observed,
    state: MagnumState,
    now: datetime.datetime,
    gap: Issue | None,
    *,
    again: bool,
) -> tuple[str, str | None, bool]:
    """A group's status, its reason, and whether its row can go.

    :param again: this look and the one before found the group in place.
    """
    verb, _, stage = group.status.partition("_")
    if stage not in _JUDGED or state.status.startswith("DELETE_"):
        return group.status, None if stage == "COMPLETE" else group.reason, False
    if gap is None and verb == "DELETE":
        return group.status, None if again else reasons.ONCE_MORE, again
    if _never_rendered(group, observed, state):
        return group.status, group.reason, False
    if state.refusal:
        return f"{verb}_FAILED", state.refusal, False
    if gap is None:
        if group.status == "UPDATE_FAILED" and reasons.is_refused(group.reason):
            return group.status, group.reason, False
        if not again:
            return group.status, group.reason if stage == "FAILED" else reasons.ONCE_MORE, False
        return f"{verb}_COMPLETE", None, False
    reason = reasons.with_cause(gap, observed, state, group)
    if reasons.late(state, now):
        return f"{verb}_FAILED", reasons.timeout(state, reason), False
    return (
        group.status,
        reasons.kept_reason(group.reason, reason) if stage == "FAILED" else reason,
        False,
    )


def _never_rendered(group: GroupState, observed: Observed, state: MagnumState) -> bool:
    """A group that was refused while the cluster lived on: nobody waits for it."""
    return (
        group.status == "CREATE_FAILED"
        and state.status.startswith("UPDATE_")
        and not group.is_control_plane
        and not isinstance(observed.machine_deployments, Missing)
        and not machines.deployments_of(group.name, observed.machine_deployments)
    )


def drifted_replicas(observed: Observed, state: MagnumState) -> str:
    """A sentence about groups at rest that somebody has given another size, "" without any.

    Nobody puts it back: Helm sets a number only when it is asked for another one.
    """
    if not state.applied or generations.missing(observed, state) is not None:
        return ""
    found = [
        f"'{group.name}' is {size} instead of {group.count}"
        for group in state.groups
        if group.status.endswith("_COMPLETE")
        and not group.autoscaled
        and (size := _size(group, observed)) not in (None, group.count)
    ]
    if not found:
        return ""
    return (
        "The number of machines was changed outside of Magnum: nodegroup "
        f"{'; '.join(found)}. To restore it, resize to another number and back."
    )


def _size(group: GroupState, observed: Observed) -> int | None:
    """How many machines a group is to have on the management cluster; None if that is not known."""
    if group.is_control_plane:
        owner = observed.control_plane
        return None if isinstance(owner, Missing) else machine_deployment.replicas(owner)
    if isinstance(observed.machine_deployments, Missing):
        return None
    owners = machines.deployments_of(group.name, observed.machine_deployments)
    return machine_deployment.replicas(owners[0]) if len(owners) == 1 else None


def _node_count(group: GroupState, observed: Observed) -> int | None:
    """What the autoscaler has made of an autoscaled group, None for all others.

    A number that was asked for and not handed over yet stays in the row.
    """
    return _size(group, observed) if group.autoscaled and not group.scale_pending else None


def _machines(group: GroupState, observed: Observed) -> tuple[Json, ...]:
    if isinstance(observed.machines, Missing):
        return ()
    if group.is_control_plane:
        return machines.of_control_plane(observed.machines)
    if isinstance(observed.machine_deployments, Missing):
        return ()
    owners = machines.deployments_of(group.name, observed.machine_deployments)
    return machines.of_group(observed.machines, group.name, owners)
