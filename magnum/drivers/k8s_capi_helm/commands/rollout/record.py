# SPDX-License-Identifier: Apache-2.0
"""The record of a rollout: its clusters, how far each one is, and what was asked for."""

from __future__ import annotations

import dataclasses
import datetime
import enum


class RolloutState(str, enum.Enum):
    """The state of a rollout."""

    RUNNING = "running"
    PAUSED = "paused"
    #: A cluster has failed: no other one is requested until an operator resumes it.
    STOPPED = "stopped"
    FINISHED = "finished"


class MemberState(str, enum.Enum):
    """The state of a cluster in a rollout."""

    PENDING = "pending"
    REQUESTED = "requested"
    DONE = "done"
    FAILED = "failed"
    #: It was left out: it was failed before, or has another template now.
    SKIPPED = "skipped"
    DELETED = "deleted"


@dataclasses.dataclass(frozen=True, slots=True)
class RolloutMember:
    """A cluster of a rollout.

    :ivar wave: its number, from 1.
    :ivar template: UUID of the cluster template that it had when the rollout was recorded.
    :ivar since: when the state began, or when the last request was refused; None for neither.
    :ivar attempts: how often its upgrade was requested.
    :ivar is_retry: an operator has said that it is requested although its last upgrade failed.
    :ivar text: why it is so, in a sentence; "" where the state says it.
    """

    uuid: str
    name: str
    wave: int
    template: str
    state: MemberState = MemberState.PENDING
    since: datetime.datetime | None = None
    attempts: int = 0
    is_retry: bool = False
    text: str = ""

    @property
    def is_open(self) -> bool:
        """Whether its upgrade is still to come, or to end."""
        return self.state in (MemberState.PENDING, MemberState.REQUESTED)


@dataclasses.dataclass(frozen=True, slots=True)
class Rollout:
    """An upgrade of many clusters to one template.

    :ivar template: UUID of the cluster template, *template_name* its name.
    :ivar budget: clusters that are upgraded at once.
    :ivar max_batch_size: machines of a nodegroup that are replaced at once.
    :ivar soak: seconds between the end of a wave and the beginning of the next one.
    :ivar timeout: seconds that the upgrade of a cluster may take.
    :ivar window: when upgrades are requested, "" for always.
    :ivar is_auto: the command has found template and clusters, and not an operator.
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
    is_auto: bool = False
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
    :ivar window: its own maintenance window, "" without one.
    """

    status: str
    health: str
    template: str
    reason: str = ""
    window: str = ""
