# SPDX-License-Identifier: Apache-2.0
"""Read what an evaluation depends on, and compare it with the last evaluation.

Magnum's object of the cluster, the release's Lease and all objects of a snapshot have versions, and
the last two are watched: with equal versions a periodic task has nothing to do, and reads nothing.
Else record, release and objects are read: an equal result saves the evaluation and everything that
is written after it. The checks of credentials, controllers and addons run at their own intervals.
What could not be read never counts as unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
import dataclasses
import hashlib
import json
from typing import Any

from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.kube.informers import CachedReader
from magnum.drivers.k8s_capi_helm.magnum_objects import reader, refresh
from magnum.drivers.k8s_capi_helm.model import (
    Missing,
    Observed,
    ReleaseRecord,
    Verdict,
)
from magnum.drivers.k8s_capi_helm.reconcile import observe_cluster
from magnum.drivers.k8s_capi_helm.reconcile.clients import Clients
from magnum.drivers.k8s_capi_helm.reconcile.context import Reconciliation, ReleaseSnapshot
from magnum.drivers.k8s_capi_helm.reconcile.evaluation_cache import Inputs, Versions

#: Groups of options that an evaluation may depend on.
_GROUPS = ("capi_helm", "capi_helm_cluster_labels", "drivers", "cinder")
#: Fields of a snapshot that are no inputs: they change with every snapshot.
_TIMES = frozenset({"at", "asof"})


@dataclasses.dataclass(frozen=True, slots=True)
class CacheKey:
    """Of a settled cluster, whose record and release may be cached where the rest is watched.

    :ivar magnum: digest of Magnum's objects and of the options.
    """

    magnum: str
    view: CachedReader


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
    clients, release = run.clients, cluster.stack_id
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
    clients, release, now = run.clients, cluster.stack_id, run.now
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
    clients, release = run.clients, cluster.stack_id
    magnum = magnum_digest(run.settings, cluster, nodegroups)
    if not clients.evaluations.is_evaluated(release, magnum, include_health=include_health):
        return None
    view, namespace = clients.reader(), reader.cluster_namespace(cluster, run.settings)
    key = CacheKey(magnum, view) if include_health else None
    snapshot = read_snapshot(clients, namespace, release, key, record)
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


def read_snapshot(
    clients: Clients,
    namespace: str,
    release: str,
    key: CacheKey | None,
    record: ReleaseRecord | None = None,
) -> ReleaseSnapshot:
    """Record and release: from the cache where everything else is watched, else read now.

    :param key: None for a cluster that is not settled: nothing comes from the cache.
    :param record: as it was read a moment ago; None to read it.
    :raises errors.DriverError: the management cluster cannot be used.
    """
    if key is not None and clients.informers is not None and clients.informers.is_whole(key.view):
        cached = clients.evaluations.release(release, key.magnum, key.view.place)
        if cached is not None:
            return ReleaseSnapshot(*cached, is_kept=True)
    record = record or clients.leases.read(namespace, release)
    return ReleaseSnapshot(record, clients.helm.live(namespace, release))


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
