# SPDX-License-Identifier: Apache-2.0
"""Limit the Helm processes of one conductor process; projects take turns.

A run takes a second or two of CPU and 100 MiB, and up to ``helm_timeout`` where the management
cluster is slow. A project with two hundred runs does not delay one of another project: the last
free run is for a project that has none, and where several projects have all of them, they take
turns. It does not hold the threads of Magnum's requests either: only a few of its requests wait,
and the others leave, because they are recorded.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
import contextlib
import threading
import time

from magnum.drivers.k8s_capi_helm import deadline, errors
from magnum.drivers.k8s_capi_helm.metrics import record
from magnum.drivers.k8s_capi_helm.model.fair_order import FairOrder, MAX_WAITING_REQUESTS

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
        self._running: Counter[str] = Counter()
        self._waiting: dict[str, deque[object]] = {}
        self._order = FairOrder()

    @contextlib.contextmanager
    def acquire(self, project: str, *, wait: float, stop: Callable[[], bool]) -> Iterator[None]:
        """Run helm inside of the ``with``.

        Of a project's requests (:func:`deadline.is_set`) few wait: a request is recorded, and the
        status task, which has a thread for each cluster, carries it out.

        :param wait: seconds at most until the turn comes.
        :param stop: asked all the while; once it says True, the turn is of no use any more.
        :raises errors.Busy: the turn has not come; nothing was run.
        """
        with record.helm_wait():
            self._wait(project, wait, stop)
        try:
            yield
        finally:
            with self._changed:
                self._running[project] -= 1
                self._changed.notify_all()

    def _wait(self, project: str, wait: float, stop: Callable[[], bool]) -> None:
        token, end = object(), self._clock() + wait
        with self._changed:
            if deadline.is_set() and self._is_full(project):
                raise self._busy(project)
            self._waiting.setdefault(project, deque()).append(token)
            try:
                while not self._is_next(project, token):
                    remaining = end - self._clock()
                    if remaining <= 0 or stop():
                        raise self._busy(project)
                    self._changed.wait(min(remaining, _POLL))
                self._running[project] += 1
                self._order.take(project)
            finally:
                queue = self._waiting[project]
                queue.remove(token)
                if not queue:
                    del self._waiting[project]
                self._changed.notify_all()

    def _is_full(self, project: str) -> bool:
        """Whether enough of a project's requests wait; a chart to fetch ("") is on no record."""
        waiting = len(self._waiting.get(project, ()))
        return bool(project) and waiting >= MAX_WAITING_REQUESTS

    def _is_next(self, project: str, token: object) -> bool:
        ready = [name for name in self._waiting if self._may_run(name)]
        is_first = bool(ready) and project == self._order.first(ready)
        return is_first and self._waiting[project][0] is token

    def _may_run(self, project: str) -> bool:
        """Whether a run is free for a project: the last one is for a project that has none."""
        running = self._running.total()
        limit = self._most if self._running[project] == 0 else max(1, self._most - 1)
        return running < limit

    def _busy(self, project: str) -> errors.Busy:
        waiting = sum(len(queue) for queue in self._waiting.values())
        return errors.Busy(
            "Changes of other clusters are applied first. This one is recorded and follows.",
            f"{self._running.total()} concurrent Helm processes ([capi_helm] max_helm_runs is "
            f"{self._most}), {waiting} waiting, {len(self._waiting.get(project, ()))} of {project}",
        )
