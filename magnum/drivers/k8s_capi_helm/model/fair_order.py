# SPDX-License-Identifier: Apache-2.0
"""Whose turn it is: projects take turns, however many requests or clusters each has.

As packets do in start-time fair queueing (P. Goyal, H. M. Vin, H. Cheng, SIGCOMM 1996): a turn is
worth one, and who comes after a while without any begins where the others are.
"""

from __future__ import annotations

from collections.abc import Iterable

#: Requests of one project that may wait for others at one place, in each process: an eighth of the
#: threads that Magnum has for all requests (``executor_thread_pool_size`` of oslo.messaging is 64).
MAX_WAITING_REQUESTS = 8


class FairOrder:
    """The order in which projects get turns; for one thread at a time."""

    def __init__(self) -> None:
        # The round in which each project has its next turn, where that is later than this one.
        self._next: dict[str, int] = {}
        self._round = 0

    def first(self, projects: Iterable[str]) -> str:
        """Of projects that wait, the one whose turn it is; the first of those with equal rights.

        :raises ValueError: there are none.
        """
        return min(projects, key=self._turn_of)

    def take(self, project: str) -> None:
        """Count a turn that a project has got."""
        self._round = self._turn_of(project)
        later = {name: turn for name, turn in self._next.items() if turn > self._round}
        self._next = {**later, project: self._round + 1}

    def _turn_of(self, project: str) -> int:
        return max(self._round, self._next.get(project, 0))
