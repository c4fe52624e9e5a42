# SPDX-License-Identifier: Apache-2.0
"""Read a release: its record, the deployed revision, whether it is complete."""

from __future__ import annotations

import dataclasses
from typing import Any

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.kube.informers import CachedReader
from magnum.drivers.k8s_capi_helm.magnum_objects import reader as magnum_reader
from magnum.drivers.k8s_capi_helm.model import (
    LiveRelease,
    operation,
    ReleaseRecord,
)
from magnum.drivers.k8s_capi_helm.reconcile import (
    nodegroups,
    reconciler,
    revisions,
)
from magnum.drivers.k8s_capi_helm.reconcile.clients import Clients
from magnum.drivers.k8s_capi_helm.reconcile.context import Reconciliation, ReleaseSnapshot

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class CacheKey:
    """Where a settled cluster is observed: what is read may be kept, and used once more.

    :ivar magnum: digest of its rows and of the settings.
    """

    magnum: str
    view: CachedReader


@dataclasses.dataclass(frozen=True, slots=True)
class ReadRelease:
    """What was read of a release.

    :ivar applied: whether that is all that was asked for.
    :ivar joining: whether it is all but for nodegroups whose requests are still being checked.
    :ivar answered: whether there was an answer.
    :ivar kept: it was not read now, but a while ago.
    :ivar outdated: why the release that is there is not believed; there is none in *live* then.
    """

    record: ReleaseRecord | None = None
    live: LiveRelease | None = None
    applied: bool = False
    joining: bool = False
    answered: bool = False
    kept: bool = False
    outdated: errors.ReleaseOutdated | None = None

    @property
    def is_lost(self) -> bool:
        """Whether there is no release, not even one that is refused."""
        return self.answered and self.live is None and self.outdated is None


def is_settled(obj: Any) -> bool:
    """Whether nothing is to be done about it; a nodegroup's row of long ago may have no status."""
    return (obj.status or "").endswith("_COMPLETE")


def read_release(
    run: Reconciliation,
    cluster: Any,
    cluster_nodegroups: list[Any],
    snapshot: ReleaseSnapshot | None,
    key: CacheKey | None,
) -> ReadRelease:
    """Read a release: record, deployed revision, completeness.

    :param snapshot: as this pass has read it, None to read it.
    :param key: of a settled cluster: what is read may be kept for the next time, and used where
        everything else is watched; None for any other cluster.
    """
    ports, conf, now = run.clients, run.settings, run.now
    namespace, release = magnum_reader.namespace(cluster, conf), cluster.stack_id
    try:
        if snapshot is None:
            snapshot = _kept(ports, release, key) or ReleaseSnapshot(
                ports.leases.read(namespace, release), ports.helm.live(namespace, release)
            )
        record, live = snapshot.record, snapshot.live
        if outdated := revisions.outdated(record, live):
            LOG.warning("Cluster %s: %s %s", cluster.uuid, outdated, outdated.detail)
            return ReadRelease(record, answered=True, outdated=outdated)
        recent = nodegroups.is_recent(ports, now)
        request = magnum_reader.cluster_request(cluster, cluster_nodegroups, conf, is_recent=recent)
        request = operation.without_deleted(request, record)
        applied = reconciler.is_applied(live, request, record)
        if key is not None and not snapshot.is_kept:
            _keep(ports, release, key, record, live)
        is_joining = not applied and reconciler.is_joining(live, request, record)
        return ReadRelease(record, live, applied, is_joining, answered=True, kept=snapshot.is_kept)
    except errors.DriverError as error:
        LOG.warning("Cluster %s: %s %s", cluster.uuid, error, error.detail)
        return ReadRelease()


def _kept(ports: Clients, release: str, place: CacheKey | None) -> ReleaseSnapshot | None:
    """Record and release as they were kept, where everything else is watched."""
    if place is None or ports.informers is None or not ports.informers.is_whole(place.view):
        return None
    found = ports.evaluations.release(release, place.magnum, place.view.place)
    return ReleaseSnapshot(*found, is_kept=True) if found else None


def _keep(
    ports: Clients,
    release: str,
    place: CacheKey,
    record: ReleaseRecord | None,
    live: LiveRelease | None,
) -> None:
    """Keep what was read, if nothing of it is pending."""
    if record is None or live is None or live.status != "deployed":
        return
    if record.operations or record.retired or record.deferred or record.tombstone:
        return
    if revisions.unrecorded_revisions(record, live) is None:
        ports.evaluations.keep_release(release, place.magnum, place.view.place, record, live)
