# SPDX-License-Identifier: Apache-2.0
"""Magnum's objects of one cluster for a reconciliation: requests in, results out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from magnum.common import exception
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import reader, refresh, template_row, writer
from magnum.drivers.k8s_capi_helm.magnum_objects.rows.types import Cluster, NodeGroup
from magnum.drivers.k8s_capi_helm.model import ClusterRequest, Operation, UpgradeTarget
from magnum.objects import cluster_template as template_object


class MagnumRows:
    """``reconcile.context.cluster_rows.ClusterRows`` of a Magnum cluster.

    :param is_recent: whether a nodegroup's row is so young that its request may still be validated.
    :ivar context: of Magnum.
    :ivar cluster: Magnum's object of it.
    :ivar nodegroups: the rows of its nodegroups, as they were read last.
    """

    def __init__(
        self,
        context: Any,
        cluster: Cluster,
        settings: Settings,
        is_recent: Callable[[NodeGroup], bool],
    ) -> None:
        self.context = context
        self.cluster = cluster
        self._settings = settings
        self._is_recent = is_recent
        self.nodegroups: list[NodeGroup] = []

    def read_nodegroups(self) -> list[NodeGroup]:
        """The rows of its nodegroups, read now."""
        self.nodegroups = list(self.cluster.nodegroups)
        return self.nodegroups

    def request(self) -> ClusterRequest:
        """What they ask for now.

        Who has waited for the lock may have read the cluster before an upgrade was accepted.
        """
        refresh.refresh(self.cluster, self.cluster.obj_context)
        template_row.load_template(self.cluster)
        return reader.cluster_request(
            self.cluster, self.read_nodegroups(), self._settings, is_recent=self._is_recent
        )

    def request_with_deleted(self) -> ClusterRequest:
        """The same, as if no nodegroup was being deleted."""
        nodegroups = self.cluster.nodegroups
        return reader.cluster_request(
            self.cluster, nodegroups, self._settings, include_deleted=True
        )

    def upgrade_target(self, operation: Operation) -> UpgradeTarget:
        """What a pending upgrade leads to."""
        return reader.upgrade_target(
            self.cluster, self.cluster.nodegroups, self._settings, self._template(operation)
        )

    def accept_upgrade(
        self, operation: Operation, target: UpgradeTarget, with_own_image: Collection[str]
    ) -> None:
        """Save what an upgrade leads to."""
        writer.accept_upgrade(self.cluster, self._template(operation), target, with_own_image)

    def reject_nodegroup(self, name: str, error: errors.DriverError) -> None:
        """Set a new nodegroup CREATE_FAILED."""
        writer.set_create_failed(self.cluster, name, error)

    def restore_nodegroup(
        self, name: str, error: errors.DriverError, fields: Mapping[str, Any]
    ) -> None:
        """Set a nodegroup UPDATE_FAILED, with its fields as the release has them."""
        writer.restore_nodegroup(self.cluster, name, error, fields)

    def correct_node_count(self, name: str, count: int) -> None:
        """Save the number of machines that a newer release has of a nodegroup."""
        writer.correct_node_count(self.cluster, name, count)

    def _template(self, operation: Operation) -> Any:
        try:
            return template_object.ClusterTemplate.get_by_uuid(self.context, operation.template)
        except exception.ClusterTemplateNotFound:
            raise errors.InvalidRequest(
                f"The cluster template '{operation.template}' of the upgrade was deleted before "
                "the upgrade began. Upgrade to another template."
            ) from None
