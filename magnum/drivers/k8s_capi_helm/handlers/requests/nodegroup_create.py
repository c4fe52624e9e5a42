# SPDX-License-Identifier: Apache-2.0
"""The request to create a nodegroup: its checks, and its server group."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import deadline, errors
from magnum.drivers.k8s_capi_helm.cloud import provision
from magnum.drivers.k8s_capi_helm.handlers.entry import reconciliation
from magnum.drivers.k8s_capi_helm.handlers.outcome import deleting_nodegroups
from magnum.drivers.k8s_capi_helm.handlers.requests import preflight
from magnum.drivers.k8s_capi_helm.handlers.tasks import status_task
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import reader, saving, writer
from magnum.drivers.k8s_capi_helm.magnum_objects.rows.writer import Status
from magnum.drivers.k8s_capi_helm.magnum_objects.validation import (
    validate_cluster,
    validate_nodegroup,
)
from magnum.drivers.k8s_capi_helm.metrics import record as metrics
from magnum.drivers.k8s_capi_helm.model import (
    ClusterRequest,
    LiveRelease,
    names,
    NodeGroupRequest,
    NOTHING,
    ReleaseRecord,
    ResolvedNames,
)
from magnum.drivers.k8s_capi_helm.model.management_cluster import release_of
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.nodegroups import autoscaling, nodegroups
from magnum.drivers.k8s_capi_helm.reconcile.ownership import ownership
from magnum.drivers.k8s_capi_helm.reconcile.policy import policy_check
from magnum.drivers.k8s_capi_helm.reconcile.release import revisions

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class CheckedNodegroup:
    """A nodegroup that can be made.

    :ivar count: machines to hand over to it, because the autoscaler will size it; None for no
        number.
    :ivar resolved_names: what its names stand for, as the person who asks sees it.
    """

    count: int | None
    resolved_names: ResolvedNames


def check(
    run: Reconciliation, cluster: Any, nodegroup: Any, record: ReleaseRecord | None
) -> CheckedNodegroup:
    """Refuse a nodegroup that cannot be, or else make its server group.

    :param nodegroup: of the nodegroup; it is among the cluster's already.
    :param record: of the release, as it was read a moment ago.
    :raises errors.DriverError: it cannot be made, and nothing of the cluster has changed.
    """
    validate_nodegroup.validate_new_nodegroup(nodegroup, cluster, run.settings)
    validate_cluster.validate_entry_name(nodegroup, cluster.nodegroups)
    live = readable_release(run, cluster, record)
    validate_nodegroup.validate_chart(nodegroup, cluster, run.settings, chart_family(live))
    if live:
        takes_disk = names.takes_containerd_disk(live.chart_family, live.chart_version)
        validate_nodegroup.validate_disk(nodegroup, cluster, is_supported=takes_disk)
    request = status_task.request(run, cluster)
    requests = [
        node_group for node_group in request.node_groups if node_group.name == nodegroup.name
    ]
    # Nobody waits for it, and what the cloud does not give now nobody can ask for later.
    with deadline.end_at(None):
        resolved = _create_server_group(run, request, requests, nodegroup, live)
    if _is_leaving(run, cluster, nodegroup):
        _roll_back(run, cluster, nodegroup)
        raise errors.InvalidRequest(
            f"Nodegroup '{nodegroup.name}' was deleted while it was being created."
        )
    return CheckedNodegroup(
        next(iter(autoscaling.first_replicas(requests, request.labels).values()), None), resolved
    )


def _create_server_group(
    run: Reconciliation,
    request: ClusterRequest,
    requests: list[NodeGroupRequest],
    nodegroup: Any,
    live: LiveRelease | None,
) -> ResolvedNames:
    """Look whether the cloud has what a nodegroup needs, and make its server group.

    :returns: what its names stand for; nothing where the cloud does not answer.
    """
    resolved = NOTHING
    for request_of_nodegroup in requests:
        facts = preflight.for_nodegroup(
            run, request, request_of_nodegroup, live.values if live else {}
        )
        image = facts.images.get(request_of_nodegroup.image or "") if facts else None
        version = image.kubernetes_version if image else ""
        name = request_of_nodegroup.name
        policy_check.check_nodegroup_policy(run.settings, request, name, version)
        if facts and live:
            nodegroups.new_entries(live, request, requests, facts.resolved_names, run.settings)
        resolved = facts.resolved_names if facts else NOTHING
    try:
        provision.create_server_groups(run.cloud(), request, requests)
    except errors.CloudUnreachable as error:
        # Only the person who asks can make one in the project, and no later pass is that person.
        raise errors.CloudUnreachable(
            f"Nodegroup '{nodegroup.name}' was not created, because its server group cannot be "
            f"created. {error} Delete the nodegroup and create it again, with or without the label "
            "server_group_policies=none.",
            error.detail,
        ) from error
    return resolved


def refuse_nodegroup(
    run: Reconciliation, cluster: Any, nodegroup: Any, error: errors.DriverError
) -> None:
    """Say that a new nodegroup cannot be made, unless it was deleted meanwhile and goes anyway."""
    metrics.request_refused("create_nodegroup")
    if not _is_leaving(run, cluster, nodegroup):
        saving.save(nodegroup, status=Status.CREATE_FAILED, status_reason=str(error))


def _roll_back(run: Reconciliation, cluster: Any, nodegroup: Any) -> None:
    """Take back what was made for a nodegroup that was deleted while its request was checked.

    The pass that removes its row looks for its server group first; it may have been there before
    there was one.
    """
    remaining = list(cluster.nodegroups)
    if any(other.name == nodegroup.name and other.uuid != nodegroup.uuid for other in remaining):
        return  # asked for anew: the server group of that name is the new one's
    owner = ownership.owner(cluster, run.settings)
    cloud = reconciliation.of_periodic_task(run.clients, run.settings).cloud()
    name = reader.entry_names_of(remaining).get(nodegroup.name, nodegroup.name)
    try:
        cloud.belongings.delete_server_groups(owner.release, owner.project_id, name)
    except errors.DriverError as error:
        LOG.warning(
            "Cluster %s: the server group of refused nodegroup %s cannot be deleted: %s",
            cluster.uuid,
            nodegroup.uuid,
            error.detail,
        )


def _is_leaving(run: Reconciliation, cluster: Any, nodegroup: Any) -> bool:
    """Whether a nodegroup was asked to go, or has gone, since the request for it came.

    Its row says so then, if a request that came after that has overwritten it.
    """
    stored = {other.uuid: other for other in cluster.nodegroups}.get(nodegroup.uuid)
    if stored is None or writer.is_deleting(stored):
        return True
    try:
        namespace = reader.cluster_namespace(cluster, run.settings)
        record = run.clients.leases.read(namespace, release_of(cluster.stack_id))
    except errors.DriverError:
        return False  # nobody can tell; the passes work from the rows then
    return deleting_nodegroups.reassert_deleting([stored], record)


def readable_release(
    run: Reconciliation, cluster: Any, record: ReleaseRecord | None
) -> LiveRelease | None:
    """The deployed release; None if it does not exist or cannot be read.

    :raises errors.ReleaseOutdated: it is older than what runs.
    """
    with contextlib.suppress(errors.ManagementUnreachable):
        namespace = reader.cluster_namespace(cluster, run.settings)
        return revisions.deployed_release(
            run.clients, namespace, release_of(cluster.stack_id), record
        )
    return None


def chart_family(release: LiveRelease | None) -> str:
    """The family of the deployed chart; the bundled one if it cannot be read."""
    if release is None:
        return names.CHART_FAMILY
    return names.family_of_keys(release.chart_family, release.chart_version)
