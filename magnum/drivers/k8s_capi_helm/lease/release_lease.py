# SPDX-License-Identifier: Apache-2.0
"""Read and atomically change a release's pending operations and record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
import datetime
import functools
import time
from typing import TYPE_CHECKING

from magnum.drivers.k8s_capi_helm import errors, kube_client
from magnum.drivers.k8s_capi_helm.lease import capacity, codec, pending_operations
from magnum.drivers.k8s_capi_helm.lease.holder import has_ended
from magnum.drivers.k8s_capi_helm.lease.lock import HeldLease, Lock
from magnum.drivers.k8s_capi_helm.lease.update import LeaseCache, LeaseUpdates
from magnum.drivers.k8s_capi_helm.model import clock as wall_clock
from magnum.drivers.k8s_capi_helm.model import (
    DeferredChange,
    Json,
    names,
    Operation,
    ReleaseRecord,
    RetiredCredential,
    Revisions,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

_CHANGES = 20


class ReleaseLeases:
    """The Leases of all releases, as one process sees them; safe to share between threads.

    :param holder: names this process among all others for ever (host, pid and something random).
    :param lease_duration: seconds without a renewal after which others may take the lock; rounded
        up to whole seconds, as a Lease has them.
    :param clock: seconds that only ever go up.
    :param pause: waits so many seconds.
    :param now: the time that people read in a Lease (aware, UTC).
    """

    def __init__(
        self,
        kube: kube_client.KubeClient,
        *,
        holder: str,
        lease_duration: float,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
        now: Callable[[], datetime.datetime] = wall_clock.utc_now,
    ) -> None:
        self._kube = kube
        self._leases = LeaseUpdates(kube, pause, LeaseCache(clock))
        self._locks = Lock(
            self._leases,
            holder=holder,
            lease_duration=lease_duration,
            clock=clock,
            pause=pause,
            now=now,
        )

    def open(
        self, namespace: str, release: str, *, cluster_uuid: str, project_id: str
    ) -> ReleaseRecord:
        """Make the Lease of a release, or read it when there is one.

        :raises errors.NotOwned: it belongs to another cluster.
        :raises errors.DriverError: the management cluster cannot be used.
        """
        manifest = codec.new(namespace, release, cluster_uuid, project_id)

        def create_or_read() -> Json | None:
            try:
                # To create comes first: the right to do anything here may be a moment old, and a
                # client waits for that only before it makes something.
                return self._kube.create(names.LEASE, manifest)
            except errors.Conflict:
                # None where it was deleted in between, or the namespace is not there yet.
                return self._kube.get(names.LEASE, namespace, names.lease(release))

        lease = self._leases.retry_on_conflict(_CHANGES)(create_or_read)
        if lease is None:
            raise codec.too_large(release, _CHANGES)
        record = codec.record(lease)
        if record.cluster_uuid != cluster_uuid:
            raise errors.NotOwned(
                f"Release '{release}' belongs to cluster '{record.cluster_uuid}', not to "
                f"'{cluster_uuid}'. Nothing was changed; ask the operator to check that this "
                "Magnum uses the right management cluster.",
                f"Lease {namespace}/{names.lease(release)}",
            )
        return record

    def read(self, namespace: str, release: str) -> ReleaseRecord | None:
        """What the Lease says, or None without one.

        :raises errors.DriverError: the management cluster cannot be used.
        """
        return self._leases.record(namespace, release)

    def records(self, namespace: str) -> Mapping[str, ReleaseRecord]:
        """What :meth:`read` says of each release of a namespace; without those that it refuses."""
        return self._leases.readable_records(namespace)

    def add(
        self, namespace: str, release: str, operation: Operation, *, alone: bool = False
    ) -> ReleaseRecord:
        """Write an operation down as pending, as one with others that are about the same thing.

        :param alone: not beside another one of its verb.
        :raises errors.RecordFull: too many are pending; a deletion is always taken.
        :raises errors.InvalidRequest: there is such another one.
        :raises errors.Conflict: the release has no Lease.
        :raises errors.DriverError: the management cluster cannot be used.
        """

        def change(lease: Json) -> None:
            entries = codec.pending_entries(lease)
            others = [entry for entry in entries if entry.get("id") != operation.id]
            if alone and any(entry.get("verb") == operation.verb for entry in others):
                raise codec.not_alone(operation)
            pending = pending_operations.with_operation(entries, operation)
            capacity.put_operation(lease, pending, operation)

        return self._leases.change(namespace, release, change)

    def update(self, namespace: str, release: str, operation: Operation) -> ReleaseRecord:
        """Write down what has become of an operation; one that is finished meanwhile stays so.

        :raises errors.Conflict: the release has no Lease.
        :raises errors.DriverError: the management cluster cannot be used.
        """
        change = functools.partial(pending_operations.replace_operation, operation=operation)
        return self._leases.change(namespace, release, change)

    def finish(self, namespace: str, release: str, ids: Iterable[str]) -> ReleaseRecord:
        """Take operations off the record; ids that are not on it do not matter.

        :raises errors.Conflict: the release has no Lease.
        :raises errors.DriverError: the management cluster cannot be used.
        """
        change = functools.partial(pending_operations.finish, ids=frozenset(ids))
        return self._leases.change(namespace, release, change)

    def record_verdict(
        self,
        namespace: str,
        release: str,
        expected: ReleaseRecord,
        *,
        ids: frozenset[str],
        same_version: bool,
        **fields: Unpack[codec.RecordFields],
    ) -> ReleaseRecord:
        """Set what a verdict leaves, by one write, unless the Lease has changed in the meantime.

        :param expected: the record that the verdict was made by.
        :param ids: of the operations that it ends.
        :param same_version: any change to the watched *expected* counts; else those of operations.
        :raises errors.Conflict: it has changed, or the release has no Lease.
        :raises errors.DriverError: the management cluster cannot be used.
        """

        def change(lease: Json) -> None:
            if not pending_operations.is_verdict_written(lease, expected, ids, fields):
                pending_operations.require_unchanged(lease, expected, same_version=same_version)
                codec.set_fields(lease, fields)
                pending_operations.finish(lease, ids)

        watched = expected.version if same_version else ""
        return self._leases.change(namespace, release, change, watched_version=watched)

    def remember(
        self, namespace: str, release: str, **fields: Unpack[codec.RecordFields]
    ) -> ReleaseRecord:
        """Set fields of the record; None keeps a field, "" clears it.

        :raises errors.Conflict: the release has no Lease.
        :raises errors.DriverError: the management cluster cannot be used.
        """
        change = functools.partial(codec.set_fields, fields=fields)
        return self._leases.change(namespace, release, change)

    def record_revisions(
        self, namespace: str, release: str, expected: Revisions, new: Revisions
    ) -> ReleaseRecord:
        """Record the observed revisions of a release, unless newer ones are recorded.

        :param expected: what stood there when *new* was seen.
        :raises errors.Conflict: the release has no Lease.
        :raises errors.DriverError: the management cluster cannot be used.
        """

        def change(lease: Json) -> None:
            if codec.record(lease).revisions == expected:
                codec.annotate(lease, codec.REVISIONS, codec.revisions(new))

        return self._leases.change(namespace, release, change)

    def defer(self, namespace: str, release: str, new: Iterable[DeferredChange]) -> ReleaseRecord:
        """Write down what nodegroups still lack of upgrades, in place of what stands there.

        :raises errors.Conflict: the release has no Lease.
        :raises errors.DriverError: the management cluster cannot be used.
        """
        owed = codec.deferred_changes(new)
        change = functools.partial(codec.annotate, key=codec.OWED, value=owed)
        return self._leases.change(namespace, release, change)

    def retire(self, namespace: str, release: str, credential: RetiredCredential) -> ReleaseRecord:
        """Write down that a credential is to be deleted some time after another took its place.

        :raises errors.RecordFull: too many are.
        :raises errors.Conflict: the release has no Lease.
        :raises errors.DriverError: the management cluster cannot be used.
        """

        def change(lease: Json) -> None:
            retired, new = codec.record(lease).retired_credentials, (credential.id, credential.name)
            others = (item for item in retired if (item.id, item.name) != new)
            capacity.put_retired(lease, [*others, credential])

        return self._leases.change(namespace, release, change)

    def forget(self, namespace: str, release: str, ids: Iterable[str]) -> ReleaseRecord:
        """Take retired credentials off the record, because they are deleted.

        :param ids: of those that have none, their names.
        :raises errors.Conflict: the release has no Lease.
        :raises errors.DriverError: the management cluster cannot be used.
        """
        deleted = frozenset(ids)

        def change(lease: Json) -> None:
            retired = codec.record(lease).retired_credentials
            others = [item for item in retired if (item.id or item.name) not in deleted]
            codec.annotate(lease, codec.RETIRED, codec.retired_credentials(others))

        return self._leases.change(namespace, release, change)

    def set_tombstone(self, namespace: str, release: str) -> ReleaseRecord:
        """Mark that everything of the cluster is gone: nothing is pending, the proof stays.

        :raises errors.Conflict: the release has no Lease.
        :raises errors.DriverError: the management cluster cannot be used.
        """

        def change(lease: Json) -> None:
            for key in (codec.OPERATIONS, codec.FIRST_LOOK):
                codec.annotate(lease, key, "")
            codec.annotate(lease, codec.TOMBSTONE, "true")

        return self._leases.change(namespace, release, change)

    def delete(self, namespace: str, cluster_uuid: str) -> None:
        """Delete the Leases of a cluster of which nothing was ever made under them.

        :raises errors.DriverError: the management cluster cannot be used.
        """
        self._leases.delete_all(namespace, cluster_uuid)

    def delete_finished(self, namespace: str, release: str) -> bool:
        """Delete the Lease of a release, if it is a tombstone.

        :returns: True when there is none (any more), False when it is not a tombstone.
        :raises errors.DriverError: the management cluster cannot be used.
        """
        name = names.lease(release)
        lease = self._kube.get(names.LEASE, namespace, name)
        if lease is None:
            return True
        if not codec.record(lease).tombstone:
            return False
        self._kube.delete(names.LEASE, namespace, name, uid=lease["metadata"]["uid"])
        return True

    def tombstones(self, namespace: str) -> Mapping[str, str]:
        """Releases of a namespace whose Lease is a tombstone, with the uuid of their cluster.

        :raises errors.DriverError: the management cluster cannot be used.
        """
        records = self._leases.records(namespace)
        return {release: record.cluster_uuid for release, record in records if record.tombstone}

    def chart_digests(self, namespace: str, *, other: str) -> frozenset[str]:
        """Digests of the live charts of a namespace, "" for a release that has not noted its own.

        :param other: a release that does not count; those that are tombstones do not either.
        :raises errors.DriverError: the management cluster cannot be used.
        """
        return frozenset(
            record.chart_digest
            for release, record in self._leases.records(namespace)
            if release != other and not record.tombstone
        )

    @staticmethod
    def is_locked(record: ReleaseRecord) -> bool:
        """Whether the lock was held when *record* was read, by a process that has not ended."""
        return record.holder != "" and not has_ended(record.holder)

    def acquire(
        self, namespace: str, release: str, *, wait: float
    ) -> AbstractContextManager[HeldLease]:
        """Hold the lock of a release for the body of a ``with``.

        A thread renews it meanwhile. It is given back at the end, also after an exception.

        :param wait: seconds to wait at most for another holder to release it; 0 does not wait.
        :raises errors.LockHeld: another holder kept it.
        :raises errors.Conflict: the release has no Lease.
        :raises errors.DriverError: the management cluster cannot be used.
        """
        return self._locks.acquire(namespace, release, wait=wait)
