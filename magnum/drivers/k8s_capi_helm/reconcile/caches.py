# SPDX-License-Identifier: Apache-2.0
"""What a process keeps in memory, each for a bounded time: Cache, and three caches made of it.

Evaluations are kept with their inputs. The rules of ``status`` are pure: the same objects, the same
record and the same objects of Magnum give the same verdict, until a deadline passes. An evaluation
with equal inputs is not repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
import dataclasses
import datetime
import json
import random
import threading
import time
from typing import Generic, TypeVar
import zlib

import cachetools

from magnum.drivers.k8s_capi_helm.model import LiveRelease, ReleaseRecord, Verdict

#: Entries of one cache at most; the least recently used entry is discarded first.
_MAX_SIZE = 100_000
#: Seconds for Magnum to destroy its objects of a deleted cluster; after that its attempt has
#: failed, and comes again.
_REPORTED = 60.0
#: Seconds after which a first-seen time that is not asked for is discarded: its request has ended.
_FORGOTTEN = 86400.0
#: Clocks of two hosts differ by less: on this, and on nothing narrower, the times of others count.
CLOCKS_DIFFER = datetime.timedelta(days=1)
#: Seconds after which record and release of a settled cluster are read again at the latest: an
#: operator may have run helm.
_RELEASE_HOLDS = 900.0
#: How long a verdict is used again at most. What depends on the time alone, such as the age of a
#: server that is not created, is written this much later at most; recorded deadlines end it at
#: their own moment.
VERDICT_HOLDS = datetime.timedelta(minutes=1)
#: The same of a cluster that is healthy and has nothing pending: only the ends of certificates
#: depend on the time, and Magnum polls the health once a minute.
HEALTHY_HOLDS = datetime.timedelta(minutes=5)

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


@dataclasses.dataclass(frozen=True, slots=True)
class Inputs:
    """Everything that a verdict depends on, but for the time.

    :ivar magnum: Magnum's objects and the settings, as a digest.
    :ivar include_health: whether the health was asked for.
    :ivar release: the deployed release, as a digest.
    :ivar observed: versions of the objects of the snapshot and other observations, as a digest.
    """

    magnum: str
    include_health: bool
    record: ReleaseRecord
    release: str
    observed: str


@dataclasses.dataclass(frozen=True, slots=True)
class _Evaluated:
    """A verdict that changed nothing, from when until when it holds."""

    inputs: Inputs
    verdict: Verdict
    since: datetime.datetime
    until: datetime.datetime


@dataclasses.dataclass(frozen=True, slots=True)
class _Release:
    """Record and release of a settled cluster."""

    magnum: str
    location: str
    record: ReleaseRecord
    packed: bytes


class EvaluationCache:
    """Safe to share between threads.

    A request changes Magnum's objects first, so an entry holds for the same objects and options
    only.

    :param clock: seconds that only ever go up.
    :param jitter: a random number between two others, so that not all are read again at once.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._jitter = jitter
        self._evaluated: Cache[str, _Evaluated] = Cache(HEALTHY_HOLDS.total_seconds(), clock)
        self._releases: Cache[str, _Release] = Cache(_RELEASE_HOLDS, clock)

    def is_evaluated(self, release: str, magnum: str, *, include_health: bool) -> bool:
        """Whether there is a verdict on these rows, so that reading the rest may show no change."""
        found = self._evaluated.get(release)
        return found is not None and (found.inputs.magnum, found.inputs.include_health) == (
            magnum,
            include_health,
        )

    def verdict(self, release: str, inputs: Inputs, now: datetime.datetime) -> Verdict | None:
        """The verdict on the very same inputs, None where there is none that holds.

        :param now: aware, UTC; a clock that was put back ends what it said.
        """
        found = self._evaluated.get(release)
        if found is None or found.inputs != inputs or not found.since <= now <= found.until:
            return None
        return found.verdict

    def keep_verdict(
        self, release: str, inputs: Inputs, verdict: Verdict, now: datetime.datetime
    ) -> None:
        """Cache a verdict that changed nothing, until a recorded deadline or for a while."""
        operations = inputs.record.operations
        limits = (item.deadline for item in operations if item.deadline is not None)
        holds = HEALTHY_HOLDS if inputs.include_health else VERDICT_HOLDS
        until = min((now + holds, *limits))
        entry = _Evaluated(inputs, verdict, now, until)
        self._evaluated.put(release, entry, holds.total_seconds())

    def release(
        self, release: str, magnum: str, location: str
    ) -> tuple[ReleaseRecord, LiveRelease] | None:
        """Record and release as they were kept, unless that is too old, or of another place."""
        found = self._releases.get(release)
        if found is None or (found.location, found.magnum) != (location, magnum):
            return None
        return found.record, LiveRelease(**json.loads(zlib.decompress(found.packed)))

    def keep_release(
        self, release: str, magnum: str, location: str, record: ReleaseRecord, live: LiveRelease
    ) -> None:
        """Remember what was read of a settled cluster.

        They decide nothing: what would be a change is evaluated by what is read then.

        :param location: where, as a text that is another one for another kubeconfig.
        """
        packed = zlib.compress(json.dumps(dataclasses.asdict(live)).encode(), level=1)
        holds = self._jitter(_RELEASE_HOLDS / 2, _RELEASE_HOLDS)
        self._releases.put(release, _Release(magnum, location, record, packed), holds)

    def forget(self, release: str) -> None:
        """Something is changed."""
        self._evaluated.discard(release)
        self._releases.discard(release)

    def forget_release(self, release: str) -> None:
        """It is not settled."""
        self._releases.discard(release)
