# SPDX-License-Identifier: Apache-2.0
"""The decisions of a rollout: which clusters are next, when it stops, and when it is finished.

Pure: a rollout and what Magnum shows of its clusters come in, the rollout as it is then and the
clusters to upgrade go out. The rollout is stored before a cluster is requested, so that whoever
continues it knows of each request that may have been made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import dataclasses
import datetime
import enum
import math

#: How often an upgrade is requested that Magnum shows no trace of, and how long it is waited for.
_ATTEMPTS, _TRACE_AFTER = 2, datetime.timedelta(minutes=2)


class RolloutState(str, enum.Enum):
    """The state of a rollout."""

    RUNNING = "running"
    PAUSED = "paused"
    #: A cluster has not come good: no other one is requested until an operator resumes it.
    STOPPED = "stopped"
    FINISHED = "finished"


class MemberState(str, enum.Enum):
    """The state of a cluster in a rollout."""

    PENDING = "pending"
    REQUESTED = "requested"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclasses.dataclass(frozen=True, slots=True)
class RolloutMember:
    """A cluster of a rollout.

    :ivar wave: its number, from 1.
    :ivar since: when the state began, None for one that is pending.
    :ivar attempts: how often its upgrade was requested.
    :ivar is_retry: an operator has said that it is requested although its last upgrade failed.
    :ivar text: why it is so, in a sentence; "" where the state says it.
    """

    uuid: str
    name: str
    wave: int
    state: MemberState = MemberState.PENDING
    since: datetime.datetime | None = None
    attempts: int = 0
    is_retry: bool = False
    text: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Rollout:
    """An upgrade of many clusters to one template.

    :ivar template: UUID of the cluster template, *template_name* its name.
    :ivar budget: clusters that are upgraded at once.
    :ivar max_batch_size: machines of a nodegroup that are replaced at once.
    :ivar soak: seconds between the end of a wave and the beginning of the next one.
    :ivar timeout: seconds that the upgrade of a cluster may take.
    :ivar window: when upgrades are requested, "" for always.
    :ivar text: why it is stopped, "" if it is not.
    """

    name: str
    template: str
    template_name: str
    members: tuple[RolloutMember, ...]
    budget: int = 1
    max_batch_size: int = 1
    soak: float = 0.0
    timeout: float = 7200.0
    window: str = ""
    state: RolloutState = RolloutState.RUNNING
    text: str = ""

    def counts(self) -> dict[MemberState, int]:
        """How many clusters are in each state."""
        states = [member.state for member in self.members]
        return {state: states.count(state) for state in MemberState}


@dataclasses.dataclass(frozen=True, slots=True)
class ObservedCluster:
    """What Magnum shows of a cluster.

    :ivar template: UUID of its cluster template.
    :ivar reason: of the status.
    """

    status: str
    health: str
    template: str
    reason: str = ""


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
    is_open: bool,
) -> tuple[Rollout, tuple[str, ...]]:
    """The current rollout, and the clusters whose upgrade is to be requested now.

    :param observed: by UUID; one that is missing was deleted.
    :param is_open: whether the maintenance window is open.
    """
    members = tuple(_follow(rollout, member, observed, now) for member in rollout.members)
    rollout = dataclasses.replace(rollout, members=members)
    failed = [member for member in members if member.state is MemberState.FAILED]
    if failed and rollout.state in (RolloutState.RUNNING, RolloutState.PAUSED):
        text = f"Cluster '{failed[0].name}' has not come good: {failed[0].text}"
        rollout = dataclasses.replace(rollout, state=RolloutState.STOPPED, text=text)
    if rollout.state is not RolloutState.RUNNING:
        return rollout, ()
    if not any(_is_open_member(member) for member in members):
        return dataclasses.replace(rollout, state=RolloutState.FINISHED), ()
    chosen = _chosen(rollout, observed, now) if is_open else ()
    requested = tuple(
        dataclasses.replace(
            member, state=MemberState.REQUESTED, since=now, attempts=member.attempts + 1
        )
        if member.uuid in chosen
        else member
        for member in members
    )
    return dataclasses.replace(rollout, members=requested), chosen


def _is_open_member(member: RolloutMember) -> bool:
    return member.state in (MemberState.PENDING, MemberState.REQUESTED)


def _follow(
    rollout: Rollout,
    member: RolloutMember,
    observed: Mapping[str, ObservedCluster],
    now: datetime.datetime,
) -> RolloutMember:
    """A cluster's state by what Magnum shows of it."""
    if not _is_open_member(member):
        return member
    cluster = observed.get(member.uuid)
    if cluster is None or cluster.status.startswith("DELETE_"):
        return _ended(member, MemberState.SKIPPED, now, "It is deleted.")
    if member.state is MemberState.PENDING:
        return _follow_pending(rollout, member, cluster, now)
    return _follow_requested(rollout, member, cluster, now)


def _follow_pending(
    rollout: Rollout, member: RolloutMember, cluster: ObservedCluster, now: datetime.datetime
) -> RolloutMember:
    if cluster.template == rollout.template and cluster.status.endswith("_COMPLETE"):
        return _ended(member, MemberState.DONE, now, "It had the template already.")
    if cluster.status.endswith("_FAILED") and not member.is_retry:
        text = f"It is {cluster.status}: {cluster.reason or 'without a reason'}"
        return _ended(member, MemberState.SKIPPED, now, text)
    return member


def _follow_requested(
    rollout: Rollout, member: RolloutMember, cluster: ObservedCluster, now: datetime.datetime
) -> RolloutMember:
    assert member.since is not None
    waited = now - member.since
    if cluster.status.endswith("_FAILED"):
        text = f"{cluster.status}: {cluster.reason or 'without a reason'}"
        return _ended(member, MemberState.FAILED, now, text)
    has_template = cluster.template == rollout.template
    if cluster.status.endswith("_COMPLETE") and has_template and cluster.health == "HEALTHY":
        return _ended(member, MemberState.DONE, now, "")
    if waited.total_seconds() > rollout.timeout:
        text = f"{cluster.status} and {cluster.health or 'without health'} at the end of its time."
        return _ended(member, MemberState.FAILED, now, text)
    if cluster.status.endswith("_COMPLETE") and not has_template and waited > _TRACE_AFTER:
        if member.attempts < _ATTEMPTS:
            # Who stored the request may have died before it was made.
            return dataclasses.replace(member, state=MemberState.PENDING)
        text = f"Magnum shows no trace of {member.attempts} requests."
        return _ended(member, MemberState.FAILED, now, text)
    return member


def _ended(
    member: RolloutMember, state: MemberState, now: datetime.datetime, text: str
) -> RolloutMember:
    return dataclasses.replace(member, state=state, since=now, text=text)


def _chosen(
    rollout: Rollout, observed: Mapping[str, ObservedCluster], now: datetime.datetime
) -> tuple[str, ...]:
    """The clusters of the current wave that are requested now, within the budget."""
    wave = min(member.wave for member in rollout.members if _is_open_member(member))
    if now < soak_end(rollout, wave):
        return ()
    room = rollout.budget - rollout.counts()[MemberState.REQUESTED]
    waiting = (
        member.uuid
        for member in rollout.members
        if member.wave == wave
        and member.state is MemberState.PENDING
        and not observed[member.uuid].status.endswith("_IN_PROGRESS")
    )
    return tuple(waiting)[: max(room, 0)]


def soak_end(rollout: Rollout, wave: int) -> datetime.datetime:
    """When a wave may begin: some time after the last upgrade of the waves before it."""
    ends = [
        member.since
        for member in rollout.members
        if member.wave < wave and member.state is MemberState.DONE and member.attempts
    ]
    last = max(filter(None, ends), default=None)
    if last is None:
        return datetime.datetime.min.replace(tzinfo=datetime.timezone.utc)
    return last + datetime.timedelta(seconds=rollout.soak)


def with_refusal(rollout: Rollout, uuid: str, text: str, now: datetime.datetime) -> Rollout:
    """The rollout after Magnum has refused the upgrade of a cluster: it stops.

    :param text: Magnum's sentence.
    """
    members = tuple(
        _ended(member, MemberState.FAILED, now, text) if member.uuid == uuid else member
        for member in rollout.members
    )
    name = next(member.name for member in rollout.members if member.uuid == uuid)
    return dataclasses.replace(
        rollout,
        members=members,
        state=RolloutState.STOPPED,
        text=f"The upgrade of cluster '{name}' was refused: {text}",
    )


def resume_rollout(rollout: Rollout, *, retry: bool) -> Rollout:
    """A rollout that goes on.

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
