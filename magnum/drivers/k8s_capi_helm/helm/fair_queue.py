# SPDX-License-Identifier: Apache-2.0
"""Limit the Helm processes of one conductor process; projects take turns.

A run takes a second or two of CPU and 100 MiB, and up to ``helm_timeout`` where the management
cluster is slow. Projects take turns, as packets do in start-time fair queueing (P. Goyal, H. M.
Vin, H. Cheng, SIGCOMM 1996): a turn is worth one, and who comes after a while without any begins
where the others are. So a project with two hundred runs delays one of another project by no more
than the end of one run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
import contextlib
import threading
import time

from magnum.drivers.k8s_capi_helm import errors

# Seconds between two looks whether whoever waits still may.
_POLL = 0.25


class FairQueue:
    """Safe to share between threads; processes have their own.

    :param limit: runs at once.
    :param clock: seconds that only ever go up.
    """

    def __init__(self, limit: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = limit
        self._clock = clock
        self._changed = threading.Condition()
        self._running = 0
        self._waiting: dict[str, deque[object]] = {}
        # The round in which each project has its next turn, where that is later than this one.
        self._next: dict[str, int] = {}
        self._round = 0

    @contextlib.contextmanager
    def acquire(self, project: str, *, wait: float, stop: Callable[[], bool]) -> Iterator[None]:
        """Run helm inside of the ``with``.

        :param wait: seconds at most until the turn comes.
        :param stop: asked all the while; once it says True, the turn is of no use any more.
        :raises errors.Busy: the turn has not come; nothing was run.
        """
        self._wait(project, wait, stop)
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def _wait(self, project: str, wait: float, stop: Callable[[], bool]) -> None:
        token, end = object(), self._clock() + wait
        with self._changed:
            self._waiting.setdefault(project, deque()).append(token)
            try:
                while not self._is_next(project, token):
                    remaining = end - self._clock()
                    if remaining <= 0 or stop():
                        raise self._busy(project)
                    self._changed.wait(min(remaining, _POLL))
                self._running += 1
                self._round = self._turn_of(project)
                later = {
                    project_waiting: when
                    for project_waiting, when in self._next.items()
                    if when > self._round
                }
                self._next = {**later, project: self._round + 1}
            finally:
                queue = self._waiting[project]
                queue.remove(token)
                if not queue:
                    del self._waiting[project]
                self._changed.notify_all()

    def _is_next(self, project: str, token: object) -> bool:
        if self._running >= self._most:
            return False
        first = min(self._waiting, key=self._turn_of)
        return project == first and self._waiting[project][0] is token

    def _turn_of(self, project: str) -> int:
        return max(self._round, self._next.get(project, 0))

    def _busy(self, project: str) -> errors.Busy:
        waiting = sum(len(queue) for queue in self._waiting.values())
        return errors.Busy(
            "Changes of other clusters are applied first. This one is recorded and follows.",
            f"{self._running} concurrent Helm processes ([capi_helm] max_helm_runs is "
            f"{self._most}), {waiting} waiting, {len(self._waiting[project])} of {project}",
        )
