# SPDX-License-Identifier: Apache-2.0
"""Writing Magnum's rows: intents before anything slow, verdicts unless they were overtaken."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.magnum_objects import reader, saving
from magnum.drivers.k8s_capi_helm.magnum_objects.types import Cluster, ClusterTemplate, NodeGroup
from magnum.drivers.k8s_capi_helm.model import UpgradeTarget
from magnum.drivers.k8s_capi_helm.status import reasons
from magnum.drivers.k8s_capi_helm.values import change, live, upgrade
from magnum.objects import fields

LOG = logging.getLogger(__name__)
Status = fields.ClusterStatus
_MARKS = ("node_labels", "node_taints")


def mark_in_progress(row: Cluster | NodeGroup, status: str) -> None:
    """Say that something has begun, before it has: clients poll at once.

    The reason of an earlier request ends with this.
    """
    saving.save(row, status=status, status_reason=reasons.starting(status))


def is_deleting(row: NodeGroup) -> bool:
    """Whether the row of a nodegroup says that it is to go."""
    return (row.status or "").startswith("DELETE_")


def set_update_failed(row: NodeGroup, error: errors.DriverError, **kept: Any) -> None:
    """Say that a request about a nodegroup alone was refused; the cluster goes on as it is.

    :param kept: fields that were saved for the request, as they were before.
    """
    saving.save(row, status=Status.UPDATE_FAILED, status_reason=reasons.refused(str(error)), **kept)


def clears_metadata(row: NodeGroup) -> bool:
    """Whether a request takes all labels or all taints of a nodegroup away."""
    changed = row.obj_what_changed()
    return any(field in changed and not getattr(row, field) for field in _MARKS)


def bounds(row: NodeGroup) -> tuple[int | None, int | None]:
    """The fewest and the most machines that a nodegroup's row allows."""
    return row.min_node_count, row.max_node_count


def changed_fields(row: NodeGroup) -> tuple[str, ...]:
    """Fields of a nodegroup that a request changes and that tenants may change."""
    changed = row.obj_what_changed()
    return tuple(field for field in (*change.BOUNDS, *_MARKS) if field in changed)


def accept_upgrade(
    cluster: Cluster, template: ClusterTemplate, target: UpgradeTarget, kept: Collection[str]
) -> None:
    """Say that an upgrade was accepted: the cluster follows *template* from now on.

    Nodegroups have copies of the cluster's labels and image, which follow the cluster.

    :param kept: nodegroups that keep an image of their own, by their names in the values.
    """
    old, rows = cluster.labels or {}, list(cluster.nodegroups)
    called = reader.values_names(rows)
    for row in rows:
        texts = upgrade.merged_labels(old, target.labels, row.labels or {})
        image = row.image_id if called[row.name] in kept else template.image_id
        saving.save(row, labels=texts, image_id=image)
    saving.save(cluster, cluster_template_id=template.uuid, labels=dict(target.labels))
    cluster.cluster_template = template
    cluster.obj_reset_changes(["cluster_template"])


def set_create_failed(cluster: Cluster, name: str, error: errors.DriverError) -> None:
    """Say that a new nodegroup cannot be made; nobody asks for it any more.

    :param name: under which it would stand in the chart's values.
    """
    LOG.warning("Cluster %s: nodegroup %s: %s %s", cluster.uuid, name, error, error.detail)
    fresh = list(cluster.nodegroups)
    called = reader.values_names(fresh)
    for row in fresh:
        if called[row.name] == name and not is_deleting(row):
            saving.save(row, status=Status.CREATE_FAILED, status_reason=str(error))


def restore_nodegroup(
    cluster: Cluster, name: str, error: errors.DriverError, fields: Mapping[str, Any]
) -> None:
    """Say that a nodegroup cannot be changed; its row asks for what the release has.

    :param name: under which it stands in the chart's values, or :data:`change.CONTROL_PLANE`.
    """
    LOG.warning("Cluster %s: nodegroup %s: %s %s", cluster.uuid, name, error, error.detail)
    fresh = list(cluster.nodegroups)
    called = reader.values_names(fresh)
    for row in fresh:
        place = live.CONTROL_PLANE if row.role == reader.MASTER else called[row.name]
        if place == name and not is_deleting(row):
            set_update_failed(row, error, **fields)
