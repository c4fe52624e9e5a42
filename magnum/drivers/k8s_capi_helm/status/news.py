# SPDX-License-Identifier: Apache-2.0
"""Whether a verdict changes what Magnum shows."""

from __future__ import annotations

import dataclasses

from magnum.drivers.k8s_capi_helm.model import GroupVerdict, MagnumState, Verdict


def is_change(verdict: Verdict, state: MagnumState, health: str | None) -> bool:
    """Whether a verdict changes what Magnum says: then it is not made by what was watched alone.

    A watch may be behind, also behind what this very pass has just had Helm write.
    """
    states = {nodegroup.name: nodegroup for nodegroup in state.groups}
    return (verdict.status, verdict.health) != (state.status, health) or any(
        nodegroup.is_deleted
        or nodegroup.status != states[nodegroup.name].status
        or nodegroup.node_count not in (None, states[nodegroup.name].count)
        for nodegroup in verdict.groups
    )


def only_completes(verdict: Verdict, state: MagnumState) -> bool:
    """Whether all that a verdict changes is that what was in progress is complete."""
    states = {nodegroup.name: nodegroup for nodegroup in state.groups}
    if any(
        nodegroup.is_deleted or nodegroup.node_count not in (None, states[nodegroup.name].count)
        for nodegroup in verdict.groups
    ):
        return False
    statuses = [(state.status, verdict.status)]
    statuses += [(states[item.name].status, item.status) for item in verdict.groups]
    changes = [(old, new) for old, new in statuses if old != new]
    return bool(changes) and all(
        old.endswith("_IN_PROGRESS") and new.endswith("_COMPLETE") for old, new in changes
    )


def is_first_snapshot(verdict: Verdict, state: MagnumState) -> bool:
    """Whether a verdict is the first of the two that the end of an operation asks for.

    It may be made by what was watched, if that is not known to be behind: its fingerprint has the
    generations of all objects, and the second one, which is a change, has to agree.
    """
    return bool(verdict.fingerprint and not state.status.endswith("_COMPLETE")) or any(
        nodegroup.fingerprint and not nodegroup.status.endswith("_COMPLETE")
        for nodegroup in verdict.groups
    )


def without_ends(verdict: Verdict, state: MagnumState) -> Verdict:
    """The parts of a verdict that finish no operation; it may be the first of the two snapshots."""
    states = {nodegroup.name: nodegroup for nodegroup in state.groups}

    def group(verdict_of_group: GroupVerdict) -> GroupVerdict:
        state_of_group = states[verdict_of_group.name]
        is_same = (
            verdict_of_group.status == state_of_group.status and not verdict_of_group.is_deleted
        )
        return dataclasses.replace(
            verdict_of_group,
            status=state_of_group.status,
            reason=verdict_of_group.reason if is_same else state_of_group.reason,
            is_deleted=False,
        )

    is_same_status = verdict.status == state.status
    return dataclasses.replace(
        verdict,
        status=state.status,
        reason=verdict.reason if is_same_status else state.status_reason,
        groups=tuple(group(nodegroup) for nodegroup in verdict.groups),
    )
