# SPDX-License-Identifier: Apache-2.0
"""Cache the last evaluation of each cluster with its inputs, in one process and for a bounded time.

The rules of ``status`` are pure: the same objects, the same record and the same objects of Magnum
give the same verdict, until a deadline passes. An evaluation with equal inputs is not repeated.
"""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
import datetime
import json
import random
import threading
import time
import zlib

from magnum.drivers.k8s_capi_helm.model import LiveRelease, ReleaseRecord, Verdict

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

_LONG_AGO = datetime.datetime.min.replace(tzinfo=datetime.UTC)


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
    """Record and release of a settled cluster, which are read again after *until*."""

    until: float
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
        self._clock = clock
        self._jitter = jitter
        self._lock = threading.Lock()
        self._evaluated: dict[str, _Evaluated] = {}
        self._discarded_at = _LONG_AGO
        self._releases: dict[str, _Release] = {}

    def is_evaluated(self, release: str, magnum: str, *, include_health: bool) -> bool:
        """Whether there is a verdict on these rows, so that reading the rest may show no change."""
        with self._lock:
            found = self._evaluated.get(release)
        return found is not None and (found.inputs.magnum, found.inputs.include_health) == (
            magnum,
            include_health,
        )

    def verdict(self, release: str, inputs: Inputs, now: datetime.datetime) -> Verdict | None:
        """The verdict on the very same inputs, None where there is none that holds.

        :param now: aware, UTC; a clock that was put back ends what it said.
        """
        with self._lock:
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
        with self._lock:
            self._discard_expired(now)
            self._evaluated[release] = _Evaluated(inputs, verdict, now, until)

    def _discard_expired(self, now: datetime.datetime) -> None:
        """Remove expired entries, of clusters that are deleted too; once in a while is enough."""
        if abs(now - self._discarded_at) < HEALTHY_HOLDS:
            return
        self._discarded_at = now
        self._evaluated = {
            release: entry
            for release, entry in self._evaluated.items()
            if entry.since <= now <= entry.until
        }

    def release(
        self, release: str, magnum: str, location: str
    ) -> tuple[ReleaseRecord, LiveRelease] | None:
        """Record and release as they were kept, unless that is too old, or of another place."""
        with self._lock:
            found = self._releases.get(release)
        if found is None or (found.location, found.magnum) != (location, magnum):
            return None
        if self._clock() > found.until:
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
        now = self._clock()
        until = now + self._jitter(_RELEASE_HOLDS / 2, _RELEASE_HOLDS)
        with self._lock:
            for name in [name for name, one in self._releases.items() if one.until < now]:
                del self._releases[name]
            self._releases[release] = _Release(until, magnum, location, record, packed)

    def forget(self, release: str) -> None:
        """Something is changed."""
        with self._lock:
            self._evaluated.pop(release, None)
            self._releases.pop(release, None)

    def forget_release(self, release: str) -> None:
        """It is not settled."""
        with self._lock:
            self._releases.pop(release, None)
