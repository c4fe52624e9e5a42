# SPDX-License-Identifier: Apache-2.0
"""Limit the requests of one project that wait for locks, so that others find a thread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
import contextlib
import threading

from magnum.drivers.k8s_capi_helm import deadline
from magnum.drivers.k8s_capi_helm.model.fair_order import MAX_WAITING_REQUESTS


class WaitingRequests:
    """Those of one process; safe to share between threads.

    The locks that a project's requests wait for may all be held by its status tasks, which wait for
    Helm. Without a limit these requests would hold all of Magnum's threads for requests.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._counts: Counter[str] = Counter()

    @contextlib.contextmanager
    def enter(self, namespace: str) -> Iterator[bool]:
        """Whether this thread may wait inside of the ``with``; always outside of a request.

        :param namespace: of the project.
        """
        if not deadline.is_set():
            yield True
            return
        with self._guard:
            may_wait = self._counts[namespace] < MAX_WAITING_REQUESTS
            self._counts[namespace] += may_wait
        try:
            yield may_wait
        finally:
            with self._guard:
                self._counts[namespace] -= may_wait
                self._counts += Counter()
