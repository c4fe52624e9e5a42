# SPDX-License-Identifier: Apache-2.0
"""A request to rotate the application credential of a cluster."""

from __future__ import annotations

from typing import Any

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.handlers.entry import rpc
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import saving
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.credentials import rotation
from magnum.drivers.k8s_capi_helm.reconcile.ownership import ownership

LOG = logging.getLogger(__name__)


def rotate(run: Reconciliation, context: Any, cluster: Any) -> None:
    """Give a cluster a credential of the requesting user, who becomes its user.

    :raises exception.NotSupported: with the reason; the cluster keeps the one that it has.
    """
    try:
        ownership.require(run.clients, cluster, run.settings)
        rotation.rotate_credentials(run, ownership.owner(cluster, run.settings), context)
    except errors.DriverError as error:
        LOG.warning("Cluster %s: credential rotation: %s %s", cluster.uuid, error, error.detail)
        raise rpc.not_supported(error) from error
    saving.save(cluster, user_id=context.user_id)
