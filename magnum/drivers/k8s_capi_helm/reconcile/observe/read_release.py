# SPDX-License-Identifier: Apache-2.0
"""Read a release: its record, the deployed revision, whether it is complete."""

from __future__ import annotations

import dataclasses
from typing import Any

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import reader as magnum_reader
from magnum.drivers.k8s_capi_helm.model import (
    ClusterRequest,
    LiveRelease,
    operation,
    ReleaseRecord,
)
from magnum.drivers.k8s_capi_helm.model.management_cluster import release_of
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import (
    Reconciliation,
    ReleaseSnapshot,
)
from magnum.drivers.k8s_capi_helm.reconcile.nodegroups import lost_request
from magnum.drivers.k8s_capi_helm.reconcile.observe import (
    evaluation_inputs,
    namespace_releases,
    newer_release,
    pending,
)
from magnum.drivers.k8s_capi_helm.reconcile.observe.evaluation_inputs import CacheKey
from magnum.drivers.k8s_capi_helm.reconcile.release import revisions

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class ReadRelease:
    """What was read of a release.

    :ivar is_applied: whether that is all that was asked for.
    :ivar only_new_nodegroups_missing: whether it is all but for nodegroups whose requests are still
        being checked.
    :ivar is_readable: whether there was an answer.
    :ivar is_cached: it was not read now, but a while ago.
    :ivar is_newer: Magnum's database was restored from a backup, and the release has changed since.
    :ivar outdated: why the release that is there is not believed; there is none in *live* then.
    """

    record: ReleaseRecord | None = None
    live: LiveRelease | None = None
    is_applied: bool = False
    only_new_nodegroups_missing: bool = False
    is_readable: bool = False
    is_cached: bool = False
    is_newer: bool = False
    outdated: errors.ReleaseOutdated | None = None

    @property
    def is_lost(self) -> bool:
        """Whether there is no release, not even one that is refused."""
        return self.is_readable and self.live is None and self.outdated is None


def read_release(
    run: Reconciliation,
    cluster: Any,
    cluster_nodegroups: list[Any],
    snapshot: ReleaseSnapshot | None,
    key: CacheKey,
) -> ReadRelease:
    """Read a release: record, deployed revision, completeness.

    :param snapshot: as this pass has read it, None to read it.
    :param key: under which what is read may be cached.
    """
    clients, conf, now = run.clients, run.settings, run.now
    namespace, release = (
        magnum_reader.cluster_namespace(cluster, conf),
        release_of(cluster.stack_id),
    )
    try:
        if snapshot is None:
            namespace_releases.cache_releases(clients, namespace, release, key)
            snapshot = evaluation_inputs.read_snapshot(clients, namespace, release, key)
        record, live = snapshot.record, snapshot.live
        if outdated := revisions.outdated(record, live):
            LOG.warning("Cluster %s: %s %s", cluster.uuid, outdated, outdated.detail)
            return ReadRelease(record, is_readable=True, outdated=outdated)
        recent = lost_request.is_recent(clients, now)
        request = magnum_reader.cluster_request(cluster, cluster_nodegroups, conf, is_recent=recent)
        evaluation_inputs.keep_release(clients, release, key, snapshot)
        return _compared(operation.without_deleted(request, record), snapshot)
    except errors.DriverError as error:
        LOG.warning("Cluster %s: %s %s", cluster.uuid, error, error.detail)
        return ReadRelease()


def _compared(request: ClusterRequest, snapshot: ReleaseSnapshot) -> ReadRelease:
    """A release beside what is asked for."""
    record, live = snapshot.record, snapshot.live
    applied = pending.is_applied(live, request, record)
    return ReadRelease(
        record,
        live,
        applied,
        not applied and pending.is_joining(live, request, record),
        is_readable=True,
        is_cached=snapshot.is_kept,
        is_newer=not applied and newer_release.is_newer(request, record, live),
    )
