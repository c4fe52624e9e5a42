# SPDX-License-Identifier: Apache-2.0
"""A request to rotate the application credential of a cluster."""

from __future__ import annotations

from typing import Any

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.handlers import rpc
from magnum.drivers.k8s_capi_helm.magnum_objects import saving
from magnum.drivers.k8s_capi_helm.model import clock
from magnum.drivers.k8s_capi_helm.reconcile import clients, credential_rotation, ownership
from magnum.drivers.k8s_capi_helm.reconcile.context import Reconciliation

LOG = logging.getLogger(__name__)


def rotate(context: Any, cluster: Any, conf: Settings) -> None:
    """Give a cluster a credential of the requesting user, who becomes its user.

    :raises exception.NotSupported: with the reason; the cluster keeps the one that it has.
    """
    ports = clients.ports(conf)
    try:
        ownership.require(ports, cluster, conf)
        cloud = clients.cloud(context)
        run = Reconciliation(ports, conf, lambda: cloud, clock.utc_now())
        credential_rotation.rotate(run, ownership.owner(cluster, conf), context)
    except errors.DriverError as error:
        LOG.warning("Cluster %s: credential rotation: %s %s", cluster.uuid, error, error.detail)
        raise rpc.refused(error) from error
    saving.save(cluster, user_id=context.user_id)
