# SPDX-License-Identifier: Apache-2.0
"""Limits of concurrent addon checks, per process and per project.

A look takes as long as a cluster's API server lets it take, up to ten seconds, and its server is
the tenant's. Nobody waits for room: the next health poll tries again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
import contextlib
import threading

#: Looks at once: of all, of one tenant, and of clusters where the last one was in vain.
ALL, TENANT, VAIN = 8, 2, 4


class TenantBudget:
    """Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tenants: Counter[str] = Counter()
        self._vain = 0

    @contextlib.contextmanager
    def attempt(self, tenant: str, *, failed_before: bool) -> Iterator[bool]:
        """Whether there is room for a look, which is taken until the end of the ``with``.

        :param failed_before: whether the last look at this cluster was in vain, as this one will
            probably be; those leave half of the room to others.
        """
        with self._lock:
            free = (
                self._tenants.total() < ALL
                and self._tenants[tenant] < TENANT
                and not (failed_before and self._vain >= VAIN)
            )
            if free:
                self._tenants[tenant] += 1
                self._vain += failed_before
        try:
            yield free
        finally:
            if free:
                with self._lock:
                    self._tenants[tenant] -= 1
                    self._tenants += Counter()  # without those that have none
                    self._vain -= failed_before
