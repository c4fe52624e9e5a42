# SPDX-License-Identifier: Apache-2.0
"""Read what an evaluation depends on, and compare it with the last evaluation.

Magnum's object of the cluster, the release's Lease and all objects of a snapshot have versions, and
the last two are watched: with equal versions a periodic task has nothing to do, and reads nothing.
Else record, release and objects are read: an equal result saves the evaluation and everything that
is written after it. The checks of credentials, controllers and addons run at their own intervals.
What could not be read never counts as unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
import dataclasses
import hashlib
import json
from typing import Any

from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.kube.watch.informers import CachedReader
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import reader, refresh, template_row
from magnum.drivers.k8s_capi_helm.model import (
    log_scope,
    Missing,
    names,
    Observed,
    ReleaseRecord,
    Verdict,
)
from magnum.drivers.k8s_capi_helm.model.management_cluster import release_of
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import (
    Reconciliation,
    ReleaseSnapshot,
)
from magnum.drivers.k8s_capi_helm.reconcile.observe import observe_cluster
from magnum.drivers.k8s_capi_helm.reconcile.process.clients import Clients
from magnum.drivers.k8s_capi_helm.reconcile.process.evaluation_cache import Inputs, Versions
from magnum.drivers.k8s_capi_helm.reconcile.release import revisions

#: Groups of options that an evaluation may depend on.
_GROUPS = ("capi_helm", "capi_helm_cluster_labels", "drivers", "cinder")
#: Fields of a snapshot that are no inputs: they change with every snapshot.
_TIMES = frozenset({"at", "asof"})


@dataclasses.dataclass(frozen=True, slots=True)
class CacheKey:
    """Under which record and release may be cached, where everything else is watched.

    :ivar magnum: digest of Magnum's objects and of the options.
    :ivar is_settled: nothing of the cluster is in progress.
    """

    magnum: str
    view: CachedReader
    is_settled: bool

    @property
    def is_lease_watched(self) -> bool:
        """Whether the watches tell that another conductor has changed the release."""
        return names.LEASE in self.view.kinds


@dataclasses.dataclass(frozen=True, slots=True)
class SnapshotCheck:
    """A snapshot, compared with that of the last evaluation.

    :ivar verdict: that of the last evaluation, None where something has changed.
    """

    snapshot: ReleaseSnapshot
    verdict: Verdict | None


def read_versions(run: Reconciliation, cluster: Any) -> Versions | None:
    """What changes whenever a verdict may, read from the watches: no request for this cluster.

    Magnum writes its object of the cluster, or the driver its Lease, with each request about a
    nodegroup.

    :returns: None where not everything is watched.
    """
    clients, release = run.clients, release_of(cluster.stack_id)
    if clients.informers is None or not release:
        return None
    view = clients.reader()
    watched = view.versions(reader.cluster_namespace(cluster, run.settings), release)
    if watched is None or not clients.informers.is_whole(view):
        return None
    texts = "\n".join((cluster.status_reason or "", *(cluster.health_status_reason or {}).values()))
    stale_controllers = clients.controller_check.stale_controllers(clients.kube, texts)
    return Versions(_digest(refresh.own_content(cluster)), watched, stale_controllers)


def last_verdict(
    run: Reconciliation, cluster: Any, current: Versions | None, *, include_health: bool = False
) -> Verdict | None:
    """The verdict of the last evaluation, if nothing has changed since and no check is due.

    :param current: of the cluster, read now.
    :param include_health: whether the verdict is to include the health.
    """
    if current is None:
        return None
    clients, release, now = run.clients, release_of(cluster.stack_id), run.now
    is_settled = cluster.status.endswith("_COMPLETE")
    found = clients.evaluations.verdict_of(
        release,
        current,
        now,
        include_health=include_health,
        magnum=lambda: magnum_digest(run.settings, cluster, list(cluster.nodegroups)),
    )
    if found is None or clients.credential_check.is_due(
        cluster.uuid, now, is_waiting=not is_settled
    ):
        return None
    namespace = reader.cluster_namespace(cluster, run.settings)
    if include_health and is_settled and clients.addon_check.is_due(namespace, release, now):
        return None
    return found


def compare_snapshot(
    run: Reconciliation,
    cluster: Any,
    nodegroups: list[Any],
    *,
    include_health: bool = False,
    record: ReleaseRecord | None = None,
) -> SnapshotCheck | None:
    """Read everything that a verdict depends on, and compare it with the last evaluation.

    :param include_health: whether the verdict is to include the health.
    :param record: of the release, as it was read a moment ago; None to read it.
    :returns: None where no evaluation of these objects of Magnum is cached; nothing is read then.
    :raises errors.DriverError: the management cluster cannot be used.
    """
    clients, release = run.clients, release_of(cluster.stack_id)
    evaluated = clients.evaluations.magnum_of(release, include_health=include_health)
    if evaluated is None:
        return None
    magnum = magnum_digest(run.settings, cluster, nodegroups)
    if magnum != evaluated:
        return None
    view, namespace = clients.reader(), reader.cluster_namespace(cluster, run.settings)
    key = CacheKey(magnum, view, is_settled=include_health and is_settled(cluster, nodegroups))
    snapshot = read_snapshot(clients, namespace, release, key, record)
    keep_release(clients, release, key, snapshot)
    if snapshot.record is None or snapshot.live is None:
        return SnapshotCheck(snapshot, None)
    observed = observe_cluster.observe(
        run, cluster, snapshot.live, view, include_health=include_health
    )
    current = inputs(magnum, snapshot, observed, include_health=include_health)
    verdict = clients.evaluations.verdict(release, current, run.now) if current else None
    objects = None if view.watched else observed
    snapshot = dataclasses.replace(snapshot, observed=observed, objects=objects)
    return SnapshotCheck(snapshot, verdict)


def read_changing_release(
    run: Reconciliation, cluster: Any, record: ReleaseRecord | None = None
) -> ReleaseSnapshot:
    """The record of a cluster in progress, with its release where both are cached.

    :param record: as it was read a moment ago; None to read it.
    :raises errors.DriverError: the management cluster cannot be used.
    """
    clients, namespace = run.clients, reader.cluster_namespace(cluster, run.settings)
    key = CacheKey("", clients.reader(), is_settled=False)
    if record is None and (
        cached := _cached_release(clients, namespace, release_of(cluster.stack_id), key)
    ):
        return cached
    return ReleaseSnapshot(
        record or clients.leases.read(namespace, release_of(cluster.stack_id)), None
    )


def read_current_record(run: Reconciliation, cluster: Any) -> ReleaseSnapshot:
    """The current record, in place of the kept one.

    :raises errors.DriverError: the management cluster cannot be used.
    """
    run.clients.evaluations.forget(release_of(cluster.stack_id))
    return read_changing_release(run, cluster)


def read_snapshot(
    clients: Clients,
    namespace: str,
    release: str,
    key: CacheKey,
    record: ReleaseRecord | None = None,
) -> ReleaseSnapshot:
    """Record and release: from the cache where everything else is watched, else read now.

    :param record: as it was read a moment ago; None to read it.
    :raises errors.DriverError: the management cluster cannot be used.
    """
    if record is None:
        if cached := _cached_release(clients, namespace, release, key):
            return cached
        record = clients.leases.read(namespace, release)
    return ReleaseSnapshot(record, clients.helm.live(namespace, release))


def _cached_release(
    clients: Clients, namespace: str, release: str, key: CacheKey
) -> ReleaseSnapshot | None:
    """Record and release from the cache; None where they have to be read.

    Helm runs under the lock only, which is taken and given back by writes of the Lease; so they are
    what they were while the Lease has the version of the record.
    """
    if clients.informers is None or not (key.is_lease_watched or key.is_settled):
        return None
    if not clients.informers.is_whole(key.view):
        return None
    lease = names.LEASE, namespace, names.lease(release)
    version = key.view.version(*lease) if key.is_lease_watched else None
    cached = clients.evaluations.release(
        release, key.view.place, version=version, magnum=key.magnum
    )
    if cached is None:
        return None
    record, live = cached
    return ReleaseSnapshot(log_scope.with_requests(record), live, is_kept=True)


def keep_release(clients: Clients, release: str, key: CacheKey, snapshot: ReleaseSnapshot) -> None:
    """Cache what was read now, if a change of it will be seen, or nothing of it is pending."""
    record, live = snapshot.record, snapshot.live
    if snapshot.is_kept or record is None or live is None or live.status != "deployed":
        return
    pending = record.operations or record.retired_credentials or record.deferred
    if record.tombstone or revisions.unrecorded_revisions(record, live) is not None:
        return
    if key.is_lease_watched or (key.is_settled and not pending):
        clients.evaluations.keep_release(
            release,
            key.view.place,
            record,
            live,
            magnum=None if key.is_lease_watched else key.magnum,
            is_settled=key.is_settled,
        )


def is_settled(cluster: Any, nodegroups: Iterable[Any]) -> bool:
    """Whether nothing is to be done; a nodegroup's row of long ago may have no status."""
    return all((obj.status or "").endswith("_COMPLETE") for obj in (cluster, *nodegroups))


def inputs(
    magnum: str, snapshot: ReleaseSnapshot, observed: Observed, *, include_health: bool
) -> Inputs | None:
    """Everything that a verdict depends on, None where something could not be read."""
    versions = list(_versions(observed))
    if snapshot.record is None or snapshot.live is None or Missing.UNREADABLE in versions:
        return None
    release = json.dumps(dataclasses.asdict(snapshot.live), sort_keys=True)
    return Inputs(
        magnum, include_health, snapshot.record, _digest(release), _digest(repr(versions))
    )


def magnum_digest(settings: Settings, cluster: Any, nodegroups: list[Any]) -> str:
    """A digest of Magnum's objects and of the options."""
    options = [
        (group, *sorted(dict(settings[group]).items())) for group in _GROUPS if group in settings
    ]
    template_row.load_template(cluster)
    rows = [refresh.content(row) for row in (cluster, *nodegroups)]
    return _digest(repr((rows, options)))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _versions(observed: Observed) -> Iterator[object]:
    """Versions of all that was observed, UNREADABLE among them where something could not be."""
    if observed.unreachable:
        yield Missing.UNREADABLE
    for field in dataclasses.fields(observed):
        part = getattr(observed, field.name)
        if field.name in _TIMES:
            continue
        # An empty list and a missing one differ, so the number of objects is an input, too.
        entries = part if isinstance(part, tuple) else (part,)
        yield field.name, isinstance(part, tuple), len(entries)
        yield from (_version(entry) for entry in entries)


def _version(entry: object) -> object:
    """uid and resourceVersion of an object; the content of anything else."""
    if not isinstance(entry, dict):
        return entry
    metadata = entry.get("metadata") or {}
    uid, version = metadata.get("uid"), metadata.get("resourceVersion")
    return (uid, version) if uid and version else json.dumps(entry, sort_keys=True)
