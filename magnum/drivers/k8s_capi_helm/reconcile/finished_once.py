# SPDX-License-Identifier: Apache-2.0
"""Deletions that this process has already reported to Magnum."""

from __future__ import annotations

from collections.abc import Callable
import threading
import time

#: Seconds for Magnum to destroy the rows; after that, its attempt has failed, and comes again.
_TIME = 60.0


class FinishedOnce:
    """Safe to share between threads.

    Magnum begins a pass of each cluster every ten seconds and waits for none. It notifies of a
    deletion, and destroys the rows, after each pass that tells of its end; the second one would
    find nothing to destroy, and fail.

    :param clock: seconds that only ever go up.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._told: dict[str, float] = {}

    def is_first(self, uuid: str) -> bool:
        """Whether this deletion is not reported yet; the caller reports it."""
        with self._lock:
            now = self._clock()
            self._told = {
                cluster_uuid: at for cluster_uuid, at in self._told.items() if now - at < _TIME
            }
            if uuid in self._told:
                return False
            self._told[uuid] = now
            return True
