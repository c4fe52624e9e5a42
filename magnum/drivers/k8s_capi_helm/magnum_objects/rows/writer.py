# SPDX-License-Identifier: Apache-2.0
"""Write Magnum's objects: requests in progress, and verdicts that are still current."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import reader, saving
from magnum.drivers.k8s_capi_helm.magnum_objects.rows.types import (
    Cluster,
    ClusterTemplate,
    NodeGroup,
)
from magnum.drivers.k8s_capi_helm.model import UpgradeTarget
from magnum.drivers.k8s_capi_helm.status.causes import reasons
from magnum.drivers.k8s_capi_helm.values import change
from magnum.drivers.k8s_capi_helm.values.tree import live
from magnum.drivers.k8s_capi_helm.values.upgrade import upgrade
from magnum.objects import fields

LOG = logging.getLogger(__name__)
Status = fields.ClusterStatus
_MARKS = ("node_labels", "node_taints")


def mark_in_progress(nodegroup: Cluster | NodeGroup, status: str) -> None:
    """Say that something has begun, before it has: clients poll at once.

    The reason of an earlier request ends with this.
    """
    saving.save(nodegroup, status=status, status_reason=reasons.starting_reason(status))


def is_deleting(nodegroup: NodeGroup) -> bool:
    """Whether the row of a nodegroup says that it is to go."""
    return (nodegroup.status or "").startswith("DELETE_")


def set_update_failed(nodegroup: NodeGroup, error: errors.DriverError, **restored: Any) -> None:
    """Set UPDATE_FAILED on a nodegroup with a refused request, and not on its cluster.

    :param restored: fields that were saved for the request, as they were before.
    """
    saving.save(
        nodegroup,
        status=Status.UPDATE_FAILED,
        status_reason=reasons.refused_reason(str(error)),
        **restored,
    )


def clears_metadata(nodegroup: NodeGroup) -> bool:
    """Whether a request takes all labels or all taints of a nodegroup away."""
    changed = nodegroup.obj_what_changed()
    return any(field in changed and not getattr(nodegroup, field) for field in _MARKS)


def nodegroup_bounds(nodegroup: NodeGroup) -> tuple[int | None, int | None]:
    """The fewest and the most machines that a nodegroup's row allows."""
    return nodegroup.min_node_count, nodegroup.max_node_count


def changed_fields(nodegroup: NodeGroup) -> tuple[str, ...]:
    """Fields of a nodegroup that a request changes and that tenants may change."""
    changed = nodegroup.obj_what_changed()
    return tuple(field for field in (*change.BOUNDS, *_MARKS) if field in changed)


def accept_upgrade(
    cluster: Cluster,
    template: ClusterTemplate,
    target: UpgradeTarget,
    with_own_image: Collection[str],
) -> None:
    """Say that an upgrade was accepted: the cluster follows *template* from now on.

    Nodegroups have copies of the cluster's labels and image, which follow the cluster.

    :param with_own_image: nodegroups that keep an image of their own, by their names in the values.
    """
    previous_labels, nodegroups = cluster.labels or {}, list(cluster.nodegroups)
    entry_names = reader.entry_names_of(nodegroups)
    for nodegroup in nodegroups:
        texts = upgrade.merged_labels(previous_labels, target.labels, nodegroup.labels or {})
        image = (
            nodegroup.image_id
            if entry_names[nodegroup.name] in with_own_image
            else template.image_id
        )
        saving.save(nodegroup, labels=texts, image_id=image)
    saving.save(cluster, cluster_template_id=template.uuid, labels=dict(target.labels))
    cluster.cluster_template = template
    cluster.obj_reset_changes(["cluster_template"])


def set_create_failed(cluster: Cluster, name: str, error: errors.DriverError) -> None:
    """Set CREATE_FAILED on a nodegroup that cannot be created.

    :param name: under which it would stand in the chart's values.
    """
    LOG.warning("Cluster %s: nodegroup %s: %s %s", cluster.uuid, name, error, error.detail)
    nodegroups = list(cluster.nodegroups)
    entry_names = reader.entry_names_of(nodegroups)
    for nodegroup in nodegroups:
        if entry_names[nodegroup.name] == name and not is_deleting(nodegroup):
            saving.save(nodegroup, status=Status.CREATE_FAILED, status_reason=str(error))


def set_creation_failed(cluster: Cluster, reason: str) -> None:
    """Set CREATE_FAILED on a cluster that was never created, and on nodegroups that failed since.

    :param reason: of the cluster; nodegroups keep their own.
    """
    for nodegroup in cluster.nodegroups:
        if nodegroup.status == Status.UPDATE_FAILED:
            saving.save(nodegroup, status=Status.CREATE_FAILED)
    saving.save(cluster, status=Status.CREATE_FAILED, status_reason=reason)


def restore_nodegroup(
    cluster: Cluster, name: str, error: errors.DriverError, fields: Mapping[str, Any]
) -> None:
    """Say that a nodegroup cannot be changed; its row asks for what the release has.

    :param name: under which it stands in the chart's values, or :data:`change.CONTROL_PLANE`.
    """
    LOG.warning("Cluster %s: nodegroup %s: %s %s", cluster.uuid, name, error, error.detail)
    for nodegroup in _named(cluster, name):
        set_update_failed(nodegroup, error, **fields)


def correct_node_count(cluster: Cluster, name: str, count: int) -> None:
    """Give a nodegroup that is older than the release the number of machines of the release.

    :param name: as for :func:`restore_nodegroup`.
    """
    for nodegroup in _named(cluster, name):
        LOG.warning(
            "Cluster %s: nodegroup %s: node_count was %s in Magnum's database and is %s now, as in "
            "the release: the release is newer, so the database was restored from a backup.",
            cluster.uuid,
            nodegroup.name,
            nodegroup.node_count,
            count,
        )
        saving.save(nodegroup, node_count=count)


def _named(cluster: Cluster, name: str) -> Iterator[NodeGroup]:
    """The nodegroup of an entry of the chart's values, unless it is being deleted."""
    nodegroups = list(cluster.nodegroups)
    entry_names = reader.entry_names_of(nodegroups)
    for nodegroup in nodegroups:
        entry_name = (
            live.CONTROL_PLANE if nodegroup.role == reader.MASTER else entry_names[nodegroup.name]
        )
        if entry_name == name and not is_deleting(nodegroup):
            yield nodegroup
