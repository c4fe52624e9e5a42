# SPDX-License-Identifier: Apache-2.0
"""Magnum's objects of one cluster, as far as a reconciliation knows them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import ClusterRequest, Operation, UpgradeTarget


class ClusterRows(Protocol):
    """Reads what Magnum's objects ask for, and says in them what has become of it.

    ``magnum_objects.rows.cluster_rows.MagnumRows`` does.
    """

    def request(self) -> ClusterRequest:
        """What they ask for now; read under the lock, so that it is not outdated."""

    def request_with_deleted(self) -> ClusterRequest:
        """The same, as if no nodegroup was being deleted."""

    def upgrade_target(self, operation: Operation) -> UpgradeTarget:
        """What a pending upgrade leads to.

        :raises errors.InvalidRequest: its cluster template was deleted.
        """

    def accept_upgrade(
        self, operation: Operation, target: UpgradeTarget, with_own_image: Collection[str]
    ) -> None:
        """Save what an upgrade leads to, after Helm has taken it.

        :param with_own_image: nodegroups that keep an image of their own, by their names in the
            values.
        """

    def reject_nodegroup(self, name: str, error: errors.DriverError) -> None:
        """Say of a new nodegroup why it cannot be created.

        :param name: under which it would stand in the values.
        """

    def restore_nodegroup(
        self, name: str, error: errors.DriverError, fields: Mapping[str, Any]
    ) -> None:
        """Put fields of a nodegroup back that cannot be changed, and say why.

        :param name: under which it stands in the values, or ``values.tree.live.CONTROL_PLANE``.
        """

    def correct_node_count(self, name: str, count: int) -> None:
        """Save the number of machines that a release has which is newer than a nodegroup's object.

        :param name: under which it stands in the values, or ``values.tree.live.CONTROL_PLANE``.
        """
