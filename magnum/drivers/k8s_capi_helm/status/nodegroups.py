# SPDX-License-Identifier: Apache-2.0
"""Evaluate nodegroups: missing parts, and the status of each."""

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
from magnum.drivers.k8s_capi_helm.status.causes import reasons
from magnum.drivers.k8s_capi_helm.status.objects import (
    control_plane,
    fingerprint,
    generations,
    machine_deployment,
    machines,
)
from magnum.drivers.k8s_capi_helm.status.texts.issue import Issue

_JUDGED = ("IN_PROGRESS", "FAILED")


def missing(nodegroup: GroupState, observed: Observed, state: MagnumState) -> Issue | None:
    """The first missing part of a nodegroup, None if it is complete or not waited for."""
    if nodegroup.is_deleting:
        if machine_deployment.is_deleted(nodegroup, observed):
            return None
        return Issue(f"nodegroup {nodegroup.name} is being deleted", group=nodegroup)
    if _never_rendered(nodegroup, observed, state):
        return None
    module = control_plane if nodegroup.is_control_plane else machine_deployment
    issue = module.missing(nodegroup, observed, nodegroup.version or state.kubernetes_version)
    if issue is None and nodegroup.waits_for_control_plane:
        issue = Issue(f"nodegroup {nodegroup.name} waits for the upgrade of the control plane")
    return None if issue is None else dataclasses.replace(issue, group=nodegroup)


def first_missing(observed: Observed, state: MagnumState) -> Issue | None:
    """The first group's gap, the control plane's before any other: without it no worker comes."""
    if not any(nodegroup.is_control_plane for nodegroup in state.groups):
        return Issue("Magnum has no control plane nodegroup for this cluster")
    for nodegroup in sorted(
        state.groups, key=lambda state_of_nodegroup: not state_of_nodegroup.is_control_plane
    ):
        issue = missing(nodegroup, observed, state)
        if issue is not None:
            return issue
    return None


def evaluate(
    nodegroup: GroupState,
    observed: Observed,
    state: MagnumState,
    now: datetime.datetime,
    *,
    cluster_confirmed: bool = False,
) -> GroupVerdict:
    """What the group's row should say after this look.

    :param cluster_confirmed: this look and the one before found everything of the cluster in place.
    """
    issue = (
        (None if state.only_new_nodegroups_missing else reasons.not_applied(state))
        or generations.missing(observed, state)
        or missing(nodegroup, observed, state)
    )
    current_fingerprint = (
        ""
        if issue or observed.unreachable
        else fingerprint.nodegroup_fingerprint(nodegroup, observed, state)
    )
    confirmed = cluster_confirmed or (
        bool(current_fingerprint) and current_fingerprint == nodegroup.ready_fingerprint
    )
    status, reason, is_gone = _lifecycle(
        nodegroup, observed, state, now, issue, confirmed=confirmed
    )
    return GroupVerdict(
        name=nodegroup.name,
        status=status,
        reason=reason,
        node_count=_node_count(nodegroup, observed),
        addresses=_addresses(nodegroup, observed),
        is_deleted=is_gone,
        fingerprint=current_fingerprint,
    )


def _addresses(nodegroup: GroupState, observed: Observed) -> tuple[str, ...] | None:
    """The addresses of a group's machines; None where they are not known.

    A cluster that comes from another management cluster, or out of a backup, has no machines at
    first, and then machines without a status until their controllers have looked.
    """
    parts = (observed.cluster, observed.machines, observed.machine_deployments)
    if any(isinstance(part, Missing) for part in parts):
        return None
    own = list(_machines(nodegroup, observed))
    return machines.addresses(own) or (None if own else ())


def _lifecycle(
    nodegroup: GroupState,
    observed: Observed,
    state: MagnumState,
    now: datetime.datetime,
    issue: Issue | None,
    *,
    confirmed: bool,
) -> tuple[str, str | None, bool]:
    """A group's status, its reason, and whether its row can go.

    :param confirmed: this look and the one before found the group in place.
    """
    verb, _, outcome = nodegroup.status.partition("_")
    if outcome not in _JUDGED or state.status.startswith("DELETE_"):
        return nodegroup.status, None if outcome == "COMPLETE" else nodegroup.reason, False
    if issue is None and verb == "DELETE":
        return nodegroup.status, None if confirmed else reasons.ONCE_MORE, confirmed
    if _never_rendered(nodegroup, observed, state):
        return nodegroup.status, nodegroup.reason, False
    if state.refusal:
        return f"{verb}_FAILED", state.refusal, False
    if issue is None:
        if nodegroup.status == "UPDATE_FAILED" and reasons.is_refused(nodegroup.reason):
            return nodegroup.status, nodegroup.reason, False
        if not confirmed:
            return (
                nodegroup.status,
                nodegroup.reason if outcome == "FAILED" else reasons.ONCE_MORE,
                False,
            )
        return f"{verb}_COMPLETE", None, False
    reason = reasons.with_cause(issue, observed, state, nodegroup)
    if reasons.is_late(state, now):
        return f"{verb}_FAILED", reasons.timeout(state, reason), False
    return (
        nodegroup.status,
        reasons.kept_reason(nodegroup.reason, reason) if outcome == "FAILED" else reason,
        False,
    )


def _never_rendered(nodegroup: GroupState, observed: Observed, state: MagnumState) -> bool:
    """A group that was refused while the cluster lived on: nobody waits for it."""
    return (
        nodegroup.status == "CREATE_FAILED"
        and state.status.startswith("UPDATE_")
        and not nodegroup.is_control_plane
        and not isinstance(observed.machine_deployments, Missing)
        and not machines.deployments_of(nodegroup.name, observed.machine_deployments)
    )


def replica_drift(observed: Observed, state: MagnumState) -> str:
    """A sentence about settled nodegroups with replica drift, "" without any.

    Nobody puts it back: Helm sets a number only when it is asked for another one.
    """
    if not state.is_applied or generations.missing(observed, state) is not None:
        return ""
    drifts = [
        f"'{nodegroup.name}' has {size} instead of {nodegroup.count}"
        for nodegroup in state.groups
        if nodegroup.status.endswith("_COMPLETE")
        and not nodegroup.is_autoscaled
        and (size := _size(nodegroup, observed)) not in (None, nodegroup.count)
    ]
    if not drifts:
        return ""
    return (
        "The number of machines was changed outside of Magnum: nodegroup "
        f"{'; '.join(drifts)}. To restore it, resize to another number and back."
    )


def _size(nodegroup: GroupState, observed: Observed) -> int | None:
    """How many machines a group is to have on the management cluster; None if that is not known."""
    if nodegroup.is_control_plane:
        owner = observed.control_plane
        return None if isinstance(owner, Missing) else machine_deployment.replicas(owner)
    if isinstance(observed.machine_deployments, Missing):
        return None
    owners = machines.deployments_of(nodegroup.name, observed.machine_deployments)
    return machine_deployment.replicas(owners[0]) if len(owners) == 1 else None


def _node_count(nodegroup: GroupState, observed: Observed) -> int | None:
    """What the autoscaler has made of an autoscaled group, None for all others.

    A number that was asked for and not handed over yet stays in the row.
    """
    return (
        _size(nodegroup, observed)
        if nodegroup.is_autoscaled and not nodegroup.scale_pending
        else None
    )


def _machines(nodegroup: GroupState, observed: Observed) -> tuple[Json, ...]:
    if isinstance(observed.machines, Missing):
        return ()
    if nodegroup.is_control_plane:
        return machines.of_control_plane(observed.machines)
    if isinstance(observed.machine_deployments, Missing):
        return ()
    owners = machines.deployments_of(nodegroup.name, observed.machine_deployments)
    return machines.of_nodegroup(observed.machines, nodegroup.name, owners)
