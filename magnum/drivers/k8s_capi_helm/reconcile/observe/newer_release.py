# SPDX-License-Identifier: Apache-2.0
"""Magnum's objects that are older than the release, because the database was restored.

Every change of a nodegroup is saved in Magnum's database first, then applied by Helm. So where the
release differs from a nodegroup that was last saved before Helm began with the newest revision, and
no pending operation says why, the database has forgotten a change. To apply the older object would
remove machines that run, or create a nodegroup again that was deleted.

The two times are of the conductor that ran Helm and of the one that saved the nodegroup. Where
their clocks differ by minutes, a request that was lost counts as a change that was forgotten, so
less is changed than was asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
import dataclasses
import datetime

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import (
    ClusterRequest,
    LiveRelease,
    Operation,
    ReleaseRecord,
)
from magnum.drivers.k8s_capi_helm.reconcile.context.cluster_rows import ClusterRows
from magnum.drivers.k8s_capi_helm.reconcile.nodegroups import lost_request
from magnum.drivers.k8s_capi_helm.values.tree import live as values_live

#: By how much a release has to be newer than a nodegroup that it has another size of. A run of Helm
#: that read the objects before a request was saved may begin so long after it.
_NEWER_SIZE = lost_request.CHECKED_BY_THEN
#: The same of a nodegroup that it does not have. To create one again takes nothing away, so what is
#: not sure counts as a lost request.
_NEWER_DELETION = datetime.timedelta(hours=1)


def correct_rows(
    cluster_rows: ClusterRows,
    request: ClusterRequest,
    record: ReleaseRecord | None,
    live: LiveRelease | None,
) -> ClusterRequest:
    """What Magnum's objects ask for, once those that are older than the release say what it has.

    :param request: what they ask for now.
    """
    if live is None:
        return request
    outdated = list(_outdated(request, record, live))
    for nodegroup in outdated:
        if nodegroup.is_missing:
            error = errors.InvalidRequest(
                "The cluster does not have this nodegroup any more: it was deleted after the "
                "backup from which Magnum's database was restored. Delete the nodegroup."
            )
            cluster_rows.reject_nodegroup(nodegroup.name, error)
        else:
            cluster_rows.correct_node_count(nodegroup.name, nodegroup.count)
    return cluster_rows.request() if outdated else request


def is_newer(
    request: ClusterRequest, record: ReleaseRecord | None, live: LiveRelease | None
) -> bool:
    """Whether an object of Magnum is older than the release, and differs from it."""
    return live is not None and any(True for _ in _outdated(request, record, live))


@dataclasses.dataclass(frozen=True, slots=True)
class _Outdated:
    """A nodegroup whose object is older than the release.

    :ivar name: under which it stands in the values, or ``values.tree.live.CONTROL_PLANE``.
    :ivar count: machines that the release has of it.
    :ivar is_missing: the release does not have it.
    """

    name: str
    count: int = 0
    is_missing: bool = False


def _outdated(
    request: ClusterRequest, record: ReleaseRecord | None, live: LiveRelease
) -> Iterator[_Outdated]:
    # Until Helm has run for this driver it is not known what the rows of an adopted cluster mean.
    if record is None or not record.chart_digest:
        return
    if live.status != "deployed" or not live.deployed_at:
        return
    deployed_at = datetime.datetime.fromtimestamp(live.deployed_at, datetime.timezone.utc)
    entries = values_live.node_groups(live.values)
    entries[values_live.CONTROL_PLANE] = live.values.get("controlPlane") or {}
    workers = ((nodegroup.name, nodegroup) for nodegroup in request.node_groups)
    for name, nodegroup in ((values_live.CONTROL_PLANE, request.control_plane), *workers):
        if nodegroup.changed_at is None or _is_pending(record.operations, name):
            continue
        age, entry = deployed_at - nodegroup.changed_at, entries.get(name)
        if entry is None:
            if age > _NEWER_DELETION:
                yield _Outdated(name, is_missing=True)
        elif age > _NEWER_SIZE and not values_live.is_autoscaled(entry):
            count = entry.get("machineCount")
            if count is not None and count != nodegroup.count:
                yield _Outdated(name, count)


def _is_pending(operations: Iterable[Operation], name: str) -> bool:
    """Whether a request for a nodegroup is recorded.

    One for the whole cluster is the deadline of an update that no request has recorded.
    """
    return any(name in one.groups for one in operations)
