# SPDX-License-Identifier: Apache-2.0
"""Magnum's periodic jobs, which its service starts: each cluster has a thread for each."""

from __future__ import annotations

from collections.abc import Callable
import contextlib
import functools
import threading
import traceback
from typing import Any

from oslo_service import loopingcall
from sqlalchemy.orm import exc

from magnum import objects
from magnum.service import periodic

#: Seconds from one status task to the next, and of these to one health poll, as in Magnum.
_PERIOD, _POLL = 10.0, 6


class Jobs:
    """The periodic jobs of one conductor, which can be stopped and begin again."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._running: list[threading.Thread] = []
        #: What a job has raised: Magnum would only log it.
        self.failed: list[str] = []

    def start(self) -> None:
        """Begin, with a health poll."""
        self._stopped.clear()
        self._thread = threading.Thread(target=self._run, name="periodic")
        self._thread.start()

    def stop(self) -> None:
        """Stop, and wait for what runs."""
        self._stopped.set()
        assert self._thread is not None
        for one in (self._thread, *self._running):
            one.join()
        self._running = []

    def _run(self) -> None:
        number = 0
        while not self._stopped.is_set():
            self._running = [one for one in self._running if one.is_alive()]
            for cluster in objects.Cluster.list(self._context):
                if cluster.status.endswith("_IN_PROGRESS"):
                    self._begin(periodic.ClusterUpdateJob(self._context, cluster).update_status)
                if number % _POLL == 0:
                    job = periodic.ClusterHealthUpdateJob(self._context, cluster)
                    self._begin(functools.partial(_polled, job))
            number += 1
            self._stopped.wait(_PERIOD)

    def _begin(self, job: Callable[[], None]) -> None:
        thread = threading.Thread(target=self._once, args=(job,), name="job")
        self._running.append(thread)
        thread.start()

    def _once(self, job: Callable[[], None]) -> None:
        try:
            job()
        except loopingcall.LoopingCallDone:
            return
        except Exception:
            self.failed.append(traceback.format_exc())


def _polled(job: periodic.ClusterHealthUpdateJob) -> None:
    # Magnum saves the health of a cluster that its other job may have ended during the poll.
    with contextlib.suppress(exc.StaleDataError):
        job.update_health_status()
