# SPDX-License-Identifier: Apache-2.0
"""Read a release: its record, the deployed revision, whether it is complete."""

from __future__ import annotations

import dataclasses
from typing import Any

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
    observe,
    reconciler,
    revisions,
)
from magnum.drivers.k8s_capi_helm.reconcile.context import Reconciliation, ReleaseSnapshot


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
    view: CachedReader | None,
) -> ReadRelease:
    """Read a release: record, deployed revision, completeness.

    :param snapshot: as this pass has read it, None to read it.
    :param view: through which a cluster at rest is observed: what is read may be kept for the next
        time, and used where everything else is watched; None for any other cluster.
    """
    ports, conf, now = run.clients, run.settings, run.now
    namespace, release = magnum_reader.namespace(cluster, conf), cluster.stack_id
    location = None if view is None else view.place
    is_complete = (
        view is not None and ports.informers is not None and ports.informers.is_whole(view)
    )
    try:
        recent = nodegroups.is_recent(ports, now)
        request = magnum_reader.cluster_request(cluster, cluster_nodegroups, conf, is_recent=recent)
        cached = (
            ports.settled.get(request, location) if is_complete and location is not None else None
        )
        if cached is not None and reconciler.is_applied(cached[1], request, cached[0]):
            return ReadRelease(*cached, applied=True, answered=True, kept=True)
        if snapshot is None:
            snapshot = ReleaseSnapshot(
                ports.leases.read(namespace, release), ports.helm.live(namespace, release)
            )
        record, live = snapshot.record, snapshot.live
        if outdated := revisions.outdated(record, live):
            observe.LOG.warning("Cluster %s: %s %s", cluster.uuid, outdated, outdated.detail)
            return ReadRelease(record, answered=True, outdated=outdated)
        if location is not None and revisions.unrecorded_revisions(record, live) is None:
            ports.settled.keep(request, location, record, live)
        request = operation.without_deleted(request, record)
        applied = reconciler.is_applied(live, request, record)
        is_joining = not applied and reconciler.is_joining(live, request, record)
        return ReadRelease(record, live, applied, is_joining, answered=True)
    except errors.DriverError as error:
        observe.LOG.warning("Cluster %s: %s %s", cluster.uuid, error, error.detail)
        return ReadRelease()
