# SPDX-License-Identifier: Apache-2.0
"""How many kills there are to be, and how many there were."""

from __future__ import annotations

import collections
import os
import threading

KILLS = int(os.environ.get("K8S_CAPI_HELM_KILLS") or 40)


class Tally:
    """How many kills there were, over all sites, and of what."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.kills: collections.Counter[str] = collections.Counter()
        self.requests: collections.Counter[str] = collections.Counter()
        self.lives = self.certificates = 0
        self.failed = threading.Event()

    def add(self, *, killed: str = "", request: str = "", lives: int = 0, left: int = 0) -> None:
        with self._lock:
            if killed:
                self.kills[killed] += 1
            if request:
                self.requests[request] += 1
            self.lives += lives
            self.certificates += left

    def is_enough(self) -> bool:
        return self.failed.is_set() or self.kills.total() >= KILLS

    def __str__(self) -> str:
        kills = ", ".join(f"{number} in {verb}" for verb, number in self.kills.most_common())
        asked = ", ".join(f"{number} {what}" for what, number in self.requests.most_common())
        return (
            f"{self.kills.total()} kills ({kills}) in {self.lives} lives with "
            f"{self.requests.total()} requests ({asked}); {self.certificates} certificates are "
            "left of which Magnum alone knew"
        )
