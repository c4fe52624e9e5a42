# SPDX-License-Identifier: Apache-2.0
"""What the command has of Magnum's conductor: its periodic tasks, and requests by RPC."""

from __future__ import annotations

import contextlib
from typing import Any

import oslo_messaging
from oslo_service import loopingcall

from magnum import objects
from magnum.common import context as magnum_context
from magnum.common import exception, rpc
from magnum.conductor import api
import magnum.conf
from magnum.drivers.k8s_capi_helm import errors
from magnum.service import periodic

_EXCHANGE = "magnum"


class MagnumConductor:
    """The conductors of this cloud, by Magnum's own classes."""

    def run_tasks(self, cluster: Any) -> None:
        """Run Magnum's periodic tasks for one cluster: status if it is in progress, and health.

        They are Magnum's own jobs, which send its notifications and destroy what is deleted.

        :param cluster: ``magnum.objects.Cluster``.
        """
        _connect()
        # The driver's clients of this process, which ends soon, watch nothing and show no metrics.
        options = (("watch_staleness", 0), ("metrics_directory", ""), ("metrics_port", 0))
        for option, value in options:
            magnum.conf.CONF.set_override(option, value, "capi_helm")
        context = cluster.obj_context
        # A job says by this exception that it is done.
        if cluster.status.endswith("_IN_PROGRESS"):
            with contextlib.suppress(loopingcall.LoopingCallDone):
                periodic.ClusterUpdateJob(context, cluster).update_status()
        if cluster.status != "DELETE_COMPLETE":
            with contextlib.suppress(loopingcall.LoopingCallDone):
                periodic.ClusterHealthUpdateJob(context, cluster).update_health_status()

    def request_upgrade(self, uuid: str, template: str, max_batch_size: int) -> None:
        """Request the upgrade of a cluster to a template as an administrator's request.

        :param uuid: of the cluster; *template* that of the cluster template.
        :raises errors.InvalidRequest: it is refused.
        :raises errors.ManagementUnreachable: no conductor has answered, so it may have begun.
        """
        _connect()
        context = magnum_context.make_admin_context(all_tenants=True)
        try:
            cluster = objects.Cluster.get_by_uuid(context, uuid)
            chosen = objects.ClusterTemplate.get_by_uuid(context, template)
            nodegroup = cluster.default_ng_worker
            api.API(context=context).cluster_upgrade(cluster, chosen, max_batch_size, nodegroup)
        except exception.MagnumException as error:
            raise errors.InvalidRequest(str(error)) from None
        except (oslo_messaging.MessagingException, oslo_messaging.RemoteError) as error:
            raise errors.ManagementUnreachable(
                "No magnum-conductor has answered the request. It may have begun all the same.",
                type(error).__name__,
            ) from None


def _connect() -> None:
    """Connect this process to Magnum's message bus, once."""
    if rpc.TRANSPORT is None:
        # As Magnum's services do (magnum.common.config): conductors listen to this exchange.
        rpc.set_defaults(control_exchange=_EXCHANGE)
        rpc.init(magnum.conf.CONF)
