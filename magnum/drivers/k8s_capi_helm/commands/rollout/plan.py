# SPDX-License-Identifier: Apache-2.0
"""The decisions of a rollout: which clusters are next, when it stops, and when it is finished.

Pure: a rollout and what Magnum shows of its clusters come in, the rollout after that and the
clusters to upgrade go out. Each request is recorded before it is made, so that a process that
continues the rollout knows of each request that may have been made, and of no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
import dataclasses
import datetime
import math

from magnum.drivers.k8s_capi_helm.commands.rollout.record import (
    MemberState,
    ObservedCluster,
    Rollout,
    RolloutMember,
    RolloutState,
)
from magnum.drivers.k8s_capi_helm.labels.value_types.maintenance_window import common_opening

#: How often an upgrade is requested that is refused, or of which Magnum shows no trace, and how
#: long it waits for the next attempt: a service may have been away.
_ATTEMPTS, _NEXT_ATTEMPT = 2, datetime.timedelta(minutes=2)
_LONG_AGO = datetime.datetime.min.replace(tzinfo=datetime.timezone.utc)


def wave_numbers(sizes: Iterable[str], count: int) -> list[int]:
    """The wave of each of so many clusters.

    :param sizes: numbers of clusters, or percentages of all of them; the last one is repeated.
    :raises ValueError: a size is not a number, or is less than one.
    """
    numbers: list[int] = []
    parsed = [_wave_size(size, count) for size in sizes]
    while len(numbers) < count:
        wave = numbers[-1] + 1 if numbers else 1
        numbers += [wave] * parsed[min(wave, len(parsed)) - 1]
    return numbers[:count]


def _wave_size(text: str, count: int) -> int:
    size = math.ceil(count * float(text[:-1]) / 100) if text.endswith("%") else int(text)
    if size < 1:
        raise ValueError(f"{text} is less than one cluster")
    return size


def plan_next(
    rollout: Rollout,
    observed: Mapping[str, ObservedCluster],
    now: datetime.datetime,
    *,
    is_window_open: bool,
) -> tuple[Rollout, tuple[str, ...]]:
    """The current rollout, and the clusters whose upgrade is to be requested now.

    :param observed: by UUID; one that is missing was deleted.
    :param is_window_open: whether the maintenance window is open.
    """
    members = tuple(_follow(rollout, member, observed, now) for member in rollout.members)
    rollout = _stopped(dataclasses.replace(rollout, members=members))
    if rollout.state is not RolloutState.RUNNING or not is_window_open:
        return _finished(rollout), ()
    rollout = _without_failed(rollout, observed, now)
    return _finished(rollout), _chosen(rollout, observed, now)


def _stopped(rollout: Rollout) -> Rollout:
    """The rollout, which has stopped if a cluster has failed."""
    failed = [member for member in rollout.members if member.state is MemberState.FAILED]
    if not failed or rollout.state not in (RolloutState.RUNNING, RolloutState.PAUSED):
        return rollout
    text = f"Cluster '{failed[0].name}' has failed: {failed[0].text}"
    return dataclasses.replace(rollout, state=RolloutState.STOPPED, text=text)


def _finished(rollout: Rollout) -> Rollout:
    """The rollout, which is finished if nothing of it is open."""
    has_open = any(member.is_open for member in rollout.members)
    if has_open or rollout.state is not RolloutState.RUNNING:
        return rollout
    return dataclasses.replace(rollout, state=RolloutState.FINISHED)


def _follow(
    rollout: Rollout,
    member: RolloutMember,
    observed: Mapping[str, ObservedCluster],
    now: datetime.datetime,
) -> RolloutMember:
    """A cluster's state by what Magnum shows of it."""
    if not member.is_open:
        return member
    cluster = observed.get(member.uuid)
    if cluster is None or cluster.status.startswith("DELETE_"):
        return _ended(member, MemberState.DELETED, now, "")
    if member.state is MemberState.PENDING:
        return _follow_pending(rollout, member, cluster, now)
    return _follow_requested(rollout, member, cluster, now)


def _follow_pending(
    rollout: Rollout, member: RolloutMember, cluster: ObservedCluster, now: datetime.datetime
) -> RolloutMember:
    if cluster.template == rollout.template:
        is_complete = cluster.status.endswith("_COMPLETE")
        text = "It had the template already."
        return _ended(member, MemberState.DONE, now, text) if is_complete else member
    if cluster.template != member.template:
        text = "Its cluster template was changed since the rollout was recorded."
        return _ended(member, MemberState.SKIPPED, now, text)
    if not cluster.status.endswith("_COMPLETE"):
        text = f"It is {cluster.status}, and is upgraded when its status is COMPLETE."
        return dataclasses.replace(member, text=text)
    # What came of the last attempt stays to be read.
    return member if member.attempts else dataclasses.replace(member, text="")


def _follow_requested(
    rollout: Rollout, member: RolloutMember, cluster: ObservedCluster, now: datetime.datetime
) -> RolloutMember:
    waited = now - (member.since or now)
    if cluster.status.endswith("_FAILED"):
        text = f"{cluster.status}: {cluster.reason or 'without a reason'}"
        return _ended(member, MemberState.FAILED, now, text)
    has_template = cluster.template == rollout.template
    if cluster.status.endswith("_COMPLETE") and has_template and cluster.health == "HEALTHY":
        return _ended(member, MemberState.DONE, now, "")
    if cluster.status.endswith("_COMPLETE") and not has_template:
        if waited <= _NEXT_ATTEMPT:
            return member
        # Who recorded the request may have died before it was made.
        text = f"Magnum shows no trace of {member.attempts} requests."
        is_last = member.attempts >= _ATTEMPTS
        return (
            _ended(member, MemberState.FAILED, now, text)
            if is_last
            else dataclasses.replace(member, state=MemberState.PENDING, text=text)
        )
    if waited.total_seconds() > rollout.timeout:
        text = f"{cluster.status} and {cluster.health or 'without health'} at the end of its time."
        return _ended(member, MemberState.FAILED, now, text)
    return member


def _ended(
    member: RolloutMember, state: MemberState, now: datetime.datetime, text: str
) -> RolloutMember:
    return dataclasses.replace(member, state=state, since=now, text=text)


def _wave(rollout: Rollout) -> int:
    """The wave whose turn it is, 0 if none is."""
    return min((member.wave for member in rollout.members if member.is_open), default=0)


def _without_failed(
    rollout: Rollout, observed: Mapping[str, ObservedCluster], now: datetime.datetime
) -> Rollout:
    """The rollout without clusters that are failed when the rest of their wave is through.

    Until then they have time to recover: a resize over a quota fails one for some minutes.
    """
    wave = _wave(rollout)
    open_members = [member for member in rollout.members if member.is_open and member.wave == wave]
    if any(
        member.state is MemberState.REQUESTED
        or member.is_retry
        or not observed[member.uuid].status.endswith("_FAILED")
        for member in open_members
    ):
        return rollout

    def left_out(member: RolloutMember) -> RolloutMember:
        cluster = observed[member.uuid]
        text = f"It is {cluster.status}: {cluster.reason or 'without a reason'}"
        return _ended(member, MemberState.SKIPPED, now, text)

    members = (left_out(one) if one in open_members else one for one in rollout.members)
    return dataclasses.replace(rollout, members=tuple(members))


def _chosen(
    rollout: Rollout, observed: Mapping[str, ObservedCluster], now: datetime.datetime
) -> tuple[str, ...]:
    """The clusters of the current wave that can be requested now, within the budget.

    Magnum accepts upgrades of clusters that are COMPLETE. One outside of its own maintenance window
    waits, and takes nothing from the budget.
    """
    wave = _wave(rollout)
    if not wave or now < soak_end(rollout, wave):
        return ()
    room = rollout.budget - rollout.counts()[MemberState.REQUESTED]
    waiting = (
        member.uuid
        for member in rollout.members
        if member.wave == wave
        and member.state is MemberState.PENDING
        and observed[member.uuid].status.endswith("_COMPLETE")
        and now - (member.since or _LONG_AGO) >= _NEXT_ATTEMPT
        and common_opening([observed[member.uuid].window], now) == now
    )
    return tuple(waiting)[: max(room, 0)]


def next_request(
    rollout: Rollout, member: RolloutMember, window: str, now: datetime.datetime
) -> datetime.datetime | None:
    """When a pending cluster may be requested if nothing else holds it up; None for never.

    :param window: the cluster's own maintenance window, "" without one.
    """
    earliest = max(now, soak_end(rollout, member.wave))
    return common_opening((rollout.window, window), earliest)


def soak_end(rollout: Rollout, wave: int) -> datetime.datetime:
    """When a wave may begin: some time after the last upgrade of the waves before it."""
    ends = [
        member.since
        for member in rollout.members
        if member.wave < wave and member.state is MemberState.DONE and member.attempts
    ]
    last = max(filter(None, ends), default=None)
    return _LONG_AGO if last is None else last + datetime.timedelta(seconds=rollout.soak)


def with_request(rollout: Rollout, uuid: str, now: datetime.datetime) -> Rollout:
    """The rollout with the request of one cluster, which is made next."""
    return _with_member(
        rollout,
        uuid,
        lambda member: dataclasses.replace(
            _ended(member, MemberState.REQUESTED, now, ""), attempts=member.attempts + 1
        ),
    )


def with_refusal(rollout: Rollout, uuid: str, text: str, now: datetime.datetime) -> Rollout:
    """The rollout after Magnum has refused a request; it stops after the last attempt.

    :param text: Magnum's sentence.
    """

    def refused(member: RolloutMember) -> RolloutMember:
        is_last = member.attempts >= _ATTEMPTS
        return _ended(member, MemberState.FAILED if is_last else MemberState.PENDING, now, text)

    return _stopped(_with_member(rollout, uuid, refused))


def _with_member(
    rollout: Rollout, uuid: str, change: Callable[[RolloutMember], RolloutMember]
) -> Rollout:
    members = (change(one) if one.uuid == uuid else one for one in rollout.members)
    return dataclasses.replace(rollout, members=tuple(members))


def resume_rollout(rollout: Rollout, *, retry: bool) -> Rollout:
    """A rollout that continues.

    :param retry: whether clusters that have failed are requested again; else they are skipped.
    """
    members = tuple(
        _resumed(member, retry=retry) if member.state is MemberState.FAILED else member
        for member in rollout.members
    )
    return dataclasses.replace(rollout, state=RolloutState.RUNNING, text="", members=members)


def _resumed(member: RolloutMember, *, retry: bool) -> RolloutMember:
    if retry:
        return dataclasses.replace(
            member, state=MemberState.PENDING, since=None, attempts=0, is_retry=True, text=""
        )
    return dataclasses.replace(member, state=MemberState.SKIPPED)
