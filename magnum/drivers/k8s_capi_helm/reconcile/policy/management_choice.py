# SPDX-License-Identifier: Apache-2.0
"""Choose the management cluster of a new cluster, by the operator's conditions and weights."""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
import hashlib
import math

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors, labels
from magnum.drivers.k8s_capi_helm.conf import management_clusters
from magnum.drivers.k8s_capi_helm.model import ClusterRequest
from magnum.drivers.k8s_capi_helm.model.management_cluster import ManagementCluster
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation

LOG = logging.getLogger(__name__)
_BITS = 64


def choose_management(run: Reconciliation, request: ClusterRequest) -> Reconciliation:
    """The reconciliation of a new cluster at the management cluster that is to have it.

    One that does not respond is not chosen as long as there is another one with as many kinds of
    conditions: a creation would fail there, and the choice is for life.

    :raises errors.InvalidRequest: none takes it.
    :raises errors.InvalidConfiguration: they are not configured as they have to be.
    """
    listed = management_clusters.read_management_clusters(run.settings)
    if not listed:
        return run
    refusals = {one.name: refusal_reason(one, request) for one in listed}
    found = with_most_conditions([one for one in listed if not refusals[one.name]])
    if not found:
        words = "; ".join(f"{name}: {reason}" for name, reason in refusals.items())
        raise errors.InvalidRequest(
            "No management cluster of this cloud takes this cluster. Choose another availability "
            "zone or other labels, or ask the operator.",
            f"[capi_helm] management_clusters: {words}",
        )
    responding = [one for one in found if not run.clients.at(one.name).kube.is_unreachable()]
    chosen = by_weight(responding or found, request.uuid)
    LOG.info("Cluster %s: its management cluster is %s.", request.uuid, chosen.name)
    return dataclasses.replace(run, clients=run.clients.at(chosen.name))


def refusal_reason(management: ManagementCluster, request: ClusterRequest) -> str:
    """Why a management cluster does not take a new cluster, for the operator; "" if it does."""
    if management.is_draining:
        return "draining"
    if management.projects and request.project_id not in management.projects:
        return f"project {request.project_id} is not in projects"
    zones = {*request.labels.control_plane_zones, request.labels.availability_zone or ""} - {""}
    if management.zones and not zones:
        return "the cluster names no availability zone"
    if management.zones and (others := zones.difference(management.zones)):
        return f"{', '.join(sorted(others))} is not in availability_zones"
    for name, text in management.labels:
        label = labels.BY_NAME[name].name
        wanted = getattr(labels.parse({name: text}, {}), label)
        if getattr(request.labels, label) != wanted:
            return f"label {name} is not {text}"
    return ""


def with_most_conditions(choices: Sequence[ManagementCluster]) -> list[ManagementCluster]:
    """Those with the most kinds of conditions: one for a project comes before one for all."""
    most = max(map(_conditions, choices), default=0)
    return [one for one in choices if _conditions(one) == most]


def _conditions(management: ManagementCluster) -> int:
    return sum(map(bool, (management.projects, management.zones, management.labels)))


def by_weight(choices: Sequence[ManagementCluster], uuid: str) -> ManagementCluster:
    """One of several, the same each time for a cluster, each as often as its weight says.

    This is weighted rendezvous hashing (https://www.ietf.org/archive/id/draft-ietf-bess-weighted-hrw-00.html):
    a management cluster that is added or drained changes the choice for its own share only.

    :param uuid: of the cluster.
    """
    weighted = [one for one in choices if one.weight] or choices

    def score(one: ManagementCluster) -> float:
        digest = hashlib.sha256(f"{one.name}/{uuid}".encode()).digest()
        share = (int.from_bytes(digest[: _BITS // 8], "big") + 0.5) / 2**_BITS
        return (one.weight or 1) / -math.log(share)

    return max(weighted, key=score)
