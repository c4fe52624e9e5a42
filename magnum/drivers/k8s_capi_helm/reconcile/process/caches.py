# SPDX-License-Identifier: Apache-2.0
"""What a process keeps in memory, each for a bounded time: Cache, and two caches made of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
import datetime
import threading
import time
from typing import Generic, TypeVar

import cachetools

#: Entries of one cache at most; the least recently used entry is discarded first.
_MAX_SIZE = 100_000
#: Seconds for Magnum to destroy its objects of a deleted cluster; after that its attempt has
#: failed, and comes again.
_REPORTED = 60.0
#: Seconds after which a first-seen time that is not asked for is discarded: its request has ended.
_FORGOTTEN = 86400.0
#: Clocks of two hosts differ by less: on this, and on nothing narrower, the times of others count.
CLOCKS_DIFFER = datetime.timedelta(days=1)

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Cache(Generic[K, V]):
    """Safe to share between threads.

    :param duration: seconds that a value is kept after it was put.
    :param clock: seconds that only ever go up.
    """

    def __init__(self, duration: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._duration = duration
        self._lock = threading.Lock()
        self._entries: cachetools.TLRUCache[K, tuple[V, float]] = cachetools.TLRUCache(
            _MAX_SIZE, lambda _key, entry, now: now + entry[1], timer=clock
        )

    def __len__(self) -> int:
        """Entries that have not expired."""
        with self._lock:
            self._entries.expire()
            return len(self._entries)

    def get(self, key: K) -> V | None:
        """The value that is kept, None without one."""
        with self._lock:
            entry = self._entries.get(key)
        return entry[0] if entry else None

    def put(self, key: K, value: V, duration: float | None = None) -> None:
        """Keep a value from now on, *duration* seconds instead of this cache's."""
        with self._lock:
            self._entries[key] = value, self._duration if duration is None else duration

    def get_or_put(self, key: K, value: V) -> V:
        """The value that is kept; *value* itself, kept from now on, without one."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                entry = self._entries[key] = value, self._duration
            return entry[0]

    def replace(self, key: K, previous: V | None, value: V) -> bool:
        """Put a value unless another thread has put one after *previous* was read (None: none)."""
        with self._lock:
            entry = self._entries.get(key)
            if (entry[0] if entry else None) is not previous:
                return False
            self._entries[key] = value, self._duration
            return True

    def discard(self, key: K) -> None:
        """Discard what is kept, if anything is."""
        with self._lock:
            self._entries.pop(key, None)


class FinishedOnce:
    """Deletions that this process has already reported to Magnum; safe to share between threads.

    Magnum begins a pass of each cluster every ten seconds and waits for none. It notifies of a
    deletion, and destroys its objects, after each pass that tells of its end; the second one would
    find nothing to destroy, and fail.

    :param clock: seconds that only ever go up.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._reported: Cache[str, bool] = Cache(_REPORTED, clock)

    def is_first(self, uuid: str) -> bool:
        """Whether this deletion is not reported yet; the caller reports it."""
        return self._reported.replace(uuid, None, True)


class FirstSeen:
    """First-seen times of requests without progress; safe to share between threads.

    The times in Magnum's objects and in Leases are by the clock of the host that wrote them.
    Compared with a clock that is ahead they would end a request that another conductor is carrying
    out; so the time for which this process has observed a request counts, by a monotonic clock. A
    restart begins the observation again, once: a request that is older than its limit by more than
    a day, by its own time, counts as that old, so that conductors that never run for a whole limit
    do not keep it for ever.

    :param clock: seconds that only ever go up.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: Cache[Hashable, float] = Cache(_FORGOTTEN, clock)

    def age(
        self,
        key: Hashable,
        created_at: datetime.datetime | None = None,
        now: datetime.datetime | None = None,
    ) -> datetime.timedelta:
        """For how long it was seen at least; zero if that begins now.

        :param key: the object, and whatever makes it another one for who asks.
        :param created_at: since when it is there by its own time (aware), None if it does not say.
        :param now: the same clock as who wrote that would have it, but for a day (aware).
        """
        seconds = self._clock()
        first_seen = self._seen.get_or_put(key, seconds)
        # Each call extends the time for which it is kept.
        self._seen.put(key, first_seen)
        seen = datetime.timedelta(seconds=max(0.0, seconds - first_seen))
        if created_at is None or now is None:
            return seen
        return max(seen, now - created_at - CLOCKS_DIFFER)
