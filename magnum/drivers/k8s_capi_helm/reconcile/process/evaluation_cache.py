# SPDX-License-Identifier: Apache-2.0
"""The last evaluations of clusters, with what they were made of.

The rules of ``status`` are pure: the same objects, the same record and the same objects of Magnum
give the same verdict, until a deadline passes. An evaluation with equal inputs is not repeated, and
nothing is even read where the versions of all of them are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
import dataclasses
import datetime
import json
import random
import time
import zlib

from magnum.drivers.k8s_capi_helm.model import LiveRelease, ReleaseRecord, Verdict
from magnum.drivers.k8s_capi_helm.reconcile.process.caches import Cache

#: Seconds after which record and release of a settled cluster are read again at the latest: an
#: operator may have run helm.
_RELEASE_HOLDS = 900.0
#: The same of a cluster in progress.
_CHANGING_RELEASE_HOLDS = 300.0
#: How long a verdict is used again at most. What depends on the time alone, such as the age of a
#: server that is not created, ends it earlier (:attr:`Evaluation.duration`), and so do recorded
#: deadlines.
VERDICT_HOLDS = datetime.timedelta(minutes=5)
#: The same of a cluster that is healthy and has nothing pending: only the ends of certificates
#: depend on the time.
HEALTHY_HOLDS = datetime.timedelta(minutes=15)
#: After which Magnum's nodegroups are read although neither its object of the cluster nor the Lease
#: tells of a change: the conductor that wrote them may have died before the Lease.
_ROWS_HOLD = datetime.timedelta(minutes=1)
_HEALTHY_ROWS_HOLD = datetime.timedelta(minutes=5)


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
class Versions:
    """What changes whenever a verdict may, but for the time; cheap to read where all is watched.

    :ivar row: Magnum's object of the cluster, as a digest.
    :ivar objects: versions of the release's Lease and of all objects of a snapshot.
    :ivar stale_controllers: controllers that do not renew their Leases.
    """

    row: str
    objects: Hashable
    stale_controllers: Hashable


@dataclasses.dataclass(frozen=True, slots=True)
class _Evaluated:
    """A verdict that changed nothing, from when until when it holds.

    :ivar versions: of what was there before its inputs were read; None where they are unknown.
    :ivar compare_at: when Magnum's objects, nodegroups too, are compared with its inputs again.
    """

    inputs: Inputs
    verdict: Verdict
    since: datetime.datetime
    until: datetime.datetime
    versions: Versions | None
    compare_at: datetime.datetime

    def holds(self, now: datetime.datetime) -> bool:
        """Whether it is not too old; a clock that was put back ends it, too."""
        return self.since <= now <= self.until


@dataclasses.dataclass(frozen=True, slots=True)
class _Release:
    """Record and release of a cluster.

    :ivar magnum: digest of Magnum's objects, None where the Lease is watched and tells of changes.
    :ivar until: when they are read again, on the cache's clock.
    """

    magnum: str | None
    location: str
    record: ReleaseRecord
    packed: bytes
    until: float


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
        #: By release, with the health and without.
        self._evaluated: Cache[tuple[str, bool], _Evaluated] = Cache(
            HEALTHY_HOLDS.total_seconds(), clock
        )
        self._releases: Cache[str, _Release] = Cache(_RELEASE_HOLDS, clock)

    def magnum_of(self, release: str, *, include_health: bool) -> str | None:
        """The digest of Magnum's objects that there is a verdict on, None without one.

        With equal objects, reading the rest may show that nothing has changed.
        """
        found = self._evaluated.get((release, include_health))
        return found.inputs.magnum if found is not None else None

    def verdict(self, release: str, inputs: Inputs, now: datetime.datetime) -> Verdict | None:
        """The verdict on the very same inputs, None where there is none that holds.

        :param now: aware, UTC; a clock that was put back ends what it said.
        """
        found = self._evaluated.get((release, inputs.include_health))
        if found is None or found.inputs != inputs or not found.holds(now):
            return None
        return found.verdict

    def verdict_of(
        self,
        release: str,
        versions: Versions,
        now: datetime.datetime,
        *,
        include_health: bool,
        magnum: Callable[[], str],
    ) -> Verdict | None:
        """The verdict on these very versions, None where there is none that holds.

        :param include_health: whether the health is asked for.
        :param magnum: reads the digest of Magnum's objects and of the options; it is called where
            they were compared too long ago.
        :param now: as for :meth:`verdict`.
        """
        key = release, include_health
        found = self._evaluated.get(key)
        if found is None or found.versions != versions or not found.holds(now):
            return None
        if now >= found.compare_at:
            if found.inputs.magnum != magnum():
                return None
            left = (found.until - now).total_seconds()
            compare_at = self._compare_at(now, include_health=include_health)
            self._evaluated.put(key, dataclasses.replace(found, compare_at=compare_at), left)
        return found.verdict

    def keep_verdict(
        self,
        release: str,
        inputs: Inputs,
        verdict: Verdict,
        now: datetime.datetime,
        duration: datetime.timedelta = VERDICT_HOLDS,
        versions: Versions | None = None,
    ) -> None:
        """Cache a verdict that changed nothing, until a recorded deadline or for a while.

        :param duration: how long it is the same if nothing but the time changes.
        :param versions: as they were before anything was read for it.
        """
        operations = inputs.record.operations
        limits = (item.deadline for item in operations if item.deadline is not None)
        longest = HEALTHY_HOLDS if inputs.include_health else VERDICT_HOLDS
        # Not all clusters of a conductor that starts are evaluated again at once.
        duration = min(duration, longest) * self._jitter(0.7, 1.0)
        until = min((now + duration, *limits))
        compare_at = self._compare_at(now, include_health=inputs.include_health)
        entry = _Evaluated(inputs, verdict, now, until, versions, compare_at)
        self._evaluated.put((release, inputs.include_health), entry, duration.total_seconds())

    def _compare_at(self, now: datetime.datetime, *, include_health: bool) -> datetime.datetime:
        """When Magnum's objects are compared again, as the constants say at the latest.

        Magnum's task begins hundreds of passes at once: those of one fleet are not to read all of
        their nodegroups in the same one.
        """
        longest = _HEALTHY_ROWS_HOLD if include_health else _ROWS_HOLD
        return now + longest * self._jitter(0.4, 1.0)

    def release(
        self, release: str, location: str, *, version: str | None, magnum: str
    ) -> tuple[ReleaseRecord, LiveRelease] | None:
        """Record and release as they were kept, unless that is too old, or of another place.

        :param version: of the Lease, as it is watched; None where it is not.
        :param magnum: digest of Magnum's objects, which a request changes first; they count where
            the Lease is not watched.
        """
        found = self._releases.get(release)
        if found is None or found.location != location:
            return None
        if (found.magnum != magnum) if version is None else (found.record.version != version):
            return None
        return found.record, LiveRelease(**json.loads(zlib.decompress(found.packed)))

    def has_release(self, release: str, location: str, version: str) -> bool:
        """Whether :meth:`release` has it for this version of a watched Lease."""
        found = self._releases.get(release)
        if found is None or found.location != location:
            return False
        return found.record.version == version

    def keep_release(
        self,
        release: str,
        location: str,
        record: ReleaseRecord,
        live: LiveRelease,
        *,
        magnum: str | None,
        is_settled: bool,
    ) -> None:
        """Remember what was read of a release, first the record.

        They decide nothing: what would be a change is evaluated by what is read then.

        :param location: where, as a text that is another one for another kubeconfig.
        :param magnum: digest of Magnum's objects; None where the Lease is watched.
        :param is_settled: nothing of the cluster is in progress.
        """
        packed = zlib.compress(json.dumps(dataclasses.asdict(live)).encode(), level=1)
        longest = _RELEASE_HOLDS if is_settled else _CHANGING_RELEASE_HOLDS
        holds = self._jitter(longest / 2, longest)
        until = self._clock() + holds
        self._releases.put(release, _Release(magnum, location, record, packed, until), holds)

    def replace_record(self, release: str, record: ReleaseRecord) -> bool:
        """Keep a release with the record that this process has just written, for no longer.

        Helm runs under the lock only, and who takes that writes the Lease. So a release is what it
        was when this process read it if no other process has written the Lease in between.

        :returns: False where another one has written it, or nothing is kept.
        """
        found = self._releases.get(release)
        if found is None or found.magnum is not None:
            return False
        if found.record.version != record.previous_version:
            return False
        current = dataclasses.replace(found, record=record)
        self._releases.put(release, current, found.until - self._clock())
        return True

    def forget(self, release: str) -> None:
        """What is judged next is read."""
        self._releases.discard(release)
        self.forget_verdict(release)

    def forget_verdict(self, release: str) -> None:
        """Magnum's objects are changed; of the release, the Lease tells where it is watched."""
        for include_health in (False, True):
            self._evaluated.discard((release, include_health))
        self.forget_release(release)

    def forget_release(self, release: str) -> None:
        """It is not at rest."""
        found = self._releases.get(release)
        if found is not None and found.magnum is not None:
            self._releases.discard(release)
