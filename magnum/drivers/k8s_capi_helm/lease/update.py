# SPDX-License-Identifier: Apache-2.0
"""Optimistic updates of Leases.

A request and a reconciliation read and write one Lease several times within a second. What the
server answered last is kept: a write begins with it for a few seconds, and as long as a watch shows
its version. The server refuses the write with a conflict (409) where the Lease has changed since,
as Kubernetes' optimistic concurrency has it
(https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions). Nothing is decided
by it alone: that nothing has to be written, and every refusal, is read anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import copy
import dataclasses
import threading
import time

import tenacity

from magnum.drivers.k8s_capi_helm import deadline, errors
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.lease import capacity, codec, record_format, unknown_keys
from magnum.drivers.k8s_capi_helm.model import Json, log_scope, names, ReleaseRecord

# Of many requests at once that change a Lease each time one alone is through, and a server that is
# slow makes the turns long.
_TURNS = 200
# The first attempt may be with what was last known; those after it let others write.
_BETWEEN = tenacity.wait_chain(tenacity.wait_none(), tenacity.wait_random(0.01, 0.1))
_LAST_LOOK = 2.0
# Seconds for which an answer is likely to be the newest, and of how many Leases one is kept.
_FRESH = 5.0
_MOST = 512


class LeaseCache:
    """Leases as the management cluster answered them last; safe to share between threads.

    :param clock: seconds that only ever go up.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._guard = threading.Lock()
        self._answers: dict[tuple[str, str], tuple[Json, float]] = {}

    def keep(self, namespace: str, release: str, lease: Json) -> Json:
        """Remember an answer; returns it."""
        with self._guard:
            self._answers.pop((namespace, release), None)
            while len(self._answers) >= _MOST:
                del self._answers[next(iter(self._answers))]
            self._answers[namespace, release] = (copy.deepcopy(lease), self._clock())
        return lease

    def take(self, namespace: str, release: str, version: str = "") -> Json | None:
        """The last answer, for one write; None where there is none that is a moment old.

        :param version: resourceVersion of the Lease as it is watched; an answer of this version is
            taken however old it is. "" if that is not known.
        """
        with self._guard:
            lease, since = self._answers.pop((namespace, release), (None, 0.0))
        if lease is None:
            return None
        is_watched = version and lease["metadata"].get("resourceVersion") == version
        return lease if is_watched or self._clock() - since < _FRESH else None

    def forget(self, namespace: str, release: str) -> None:
        """Begin the next write with a read."""
        with self._guard:
            self._answers.pop((namespace, release), None)


class LeaseUpdates:
    """The Leases of all releases.

    :param pause: waits so many seconds.
    """

    def __init__(self, kube: KubeClient, pause: Callable[[float], None], cache: LeaseCache) -> None:
        self._kube = kube
        self._pause = pause
        self.cache = cache

    def read(self, namespace: str, release: str) -> Json | None:
        """The current Lease, None without one.

        :raises errors.DriverError: the management cluster cannot be used.
        """
        lease = self._kube.get(names.LEASE, namespace, names.lease(release))
        if lease is None:
            self.cache.forget(namespace, release)
            return None
        return self.cache.keep(namespace, release, lease)

    def record(self, namespace: str, release: str) -> ReleaseRecord | None:
        """What the current Lease says, None without one.

        :raises errors.DriverError: the management cluster cannot be used.
        """
        lease = self.read(namespace, release)
        return None if lease is None else log_scope.with_requests(codec.record(lease))

    def records(self, namespace: str) -> Iterator[tuple[str, ReleaseRecord]]:
        """Releases of a namespace and what their Leases say.

        :raises errors.DriverError: the management cluster cannot be used.
        """
        for release, lease in self._listed(namespace):
            yield release, codec.record(lease)

    def readable_records(self, namespace: str) -> dict[str, ReleaseRecord]:
        """The same without those that cannot be read.

        :raises errors.DriverError: the management cluster cannot be used.
        """
        records: dict[str, ReleaseRecord] = {}
        for release, lease in self._listed(namespace):
            with contextlib.suppress(errors.DriverError):
                records[release] = codec.record(lease)
        return records

    def _listed(self, namespace: str) -> Iterator[tuple[str, Json]]:
        for lease in self._kube.list(names.LEASE, namespace):
            release = (lease["metadata"].get("labels") or {}).get(names.LABEL_CLUSTER_NAME)
            if release:
                yield release, lease

    def change(
        self,
        namespace: str,
        release: str,
        change: Callable[[Json], None],
        *,
        watched_version: str = "",
    ) -> ReleaseRecord:
        """Read, change and replace the Lease of a release, again after each conflict.

        :param change: of the Lease; to change it twice is to change it once.
        :param watched_version: as for :meth:`LeaseCache.take`.
        :raises errors.Conflict: there is no Lease, or others were always faster.
        :raises errors.ManagementRefused: a newer version has written it in a newer format.
        :raises errors.RecordFull: it would hold more than it may.
        :raises errors.DriverError: the management cluster cannot be used.
        """

        def attempt() -> ReleaseRecord | None:
            known = self.cache.take(namespace, release, watched_version)
            if (changed := _changed_as_known(known, change)) is None:
                lease = self.read(namespace, release)
                if lease is None:
                    raise codec.lease_not_found(release)
                changed = _changed(lease, change)
                if changed == lease:
                    return codec.record(lease)
            try:
                return self.replace(namespace, release, changed)
            except errors.Conflict:
                return None
            except errors.ManagementUnreachable:
                if (lease := self._arrived(namespace, release, change)) is None:
                    raise
                return codec.record(lease)

        record = self.retry_on_conflict(_TURNS)(attempt)
        if record is None:
            raise codec.too_large(release, _TURNS)
        return record

    def retry_on_conflict(
        self, attempts: int, is_lost: Callable[[], bool] = lambda: False
    ) -> tenacity.Retrying:
        """Attempts of a write, each of which returns None where another one came in between.

        :param is_lost: asked between two attempts; once it says True, there is no other one.
        """
        return tenacity.Retrying(
            retry=tenacity.retry_if_result(lambda result: result is None),
            stop=lambda state: state.attempt_number >= attempts or is_lost(),
            wait=_BETWEEN,
            sleep=self._pause,
            retry_error_callback=lambda state: None,
        )

    def replace(self, namespace: str, release: str, lease: Json) -> ReleaseRecord:
        """Write a Lease, unless it has changed since it was read.

        :raises errors.Conflict: it has, or there is none any more.
        :raises errors.DriverError: the management cluster cannot be used.
        """
        previous_version = str(lease["metadata"].get("resourceVersion") or "")
        record = log_scope.with_requests(codec.record(self.write(namespace, release, lease)))
        return dataclasses.replace(record, previous_version=previous_version)

    def write(self, namespace: str, release: str, lease: Json) -> Json:
        """As :meth:`replace`; the answer of the server is not read."""
        self.cache.forget(namespace, release)
        return self.cache.keep(namespace, release, self._kube.replace(names.LEASE, lease))

    def delete_all(self, namespace: str, cluster_uuid: str) -> None:
        """Delete the Leases of a cluster.

        :raises errors.ManagementRefused: a newer version has written one of them.
        :raises errors.DriverError: the management cluster cannot be used.
        """
        for lease in self._kube.list(names.LEASE, namespace, {names.LABEL_UUID: cluster_uuid}):
            record_format.require_readable(lease)
            metadata = lease["metadata"]
            self._kube.delete(names.LEASE, namespace, metadata["name"], uid=metadata["uid"])

    def _arrived(self, namespace: str, release: str, change: Callable[[Json], None]) -> Json | None:
        """The Lease, if a change is in it that nobody has confirmed; None if not, or unknown."""
        # Also for whoever does not wait any more: what is on record is not to be called refused.
        with deadline.at_least(_LAST_LOOK), contextlib.suppress(errors.DriverError):
            lease = self._kube.get(names.LEASE, namespace, names.lease(release))
            if lease is not None and _changed(lease, change) == lease:
                return lease
        return None


def _changed_as_known(known: Json | None, change: Callable[[Json], None]) -> Json | None:
    """The last answer with a change, None where the Lease has to be read first."""
    if known is not None:
        with contextlib.suppress(errors.DriverError):
            changed = _changed(known, change)
            return None if changed == known else changed
    return None


def _changed(lease: Json, change: Callable[[Json], None]) -> Json:
    record_format.require_readable(lease)
    changed = copy.deepcopy(lease)
    change(changed)
    if changed != lease:
        unknown_keys.keep_unknown(lease, changed)
    if changed != lease:
        record_format.record_writer(changed)
        capacity.shrink(changed)
    return changed
