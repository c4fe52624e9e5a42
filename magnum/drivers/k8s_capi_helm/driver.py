# SPDX-License-Identifier: Apache-2.0
"""Driver: Magnum's driver interface; each verb is one call into handlers/.

What Magnum has saved before it calls a verb and what it does with an exception differs from verb to
verb (``magnum/conductor/handlers``). So each verb saves what is intended first, raises only what
can be refused before anything is touched, and otherwise returns: the periodic pass carries the work
on.
"""

from __future__ import annotations

from collections.abc import Callable
import functools
from typing import Any

from oslo_log import log as logging

from magnum.common import exception
import magnum.conf
from magnum.drivers.common import driver
from magnum.drivers.k8s_capi_helm import conf
from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.handlers.entry import log_context, reconciliation, rpc
from magnum.drivers.k8s_capi_helm.handlers.health import health_task
from magnum.drivers.k8s_capi_helm.handlers.outcome import notifications
from magnum.drivers.k8s_capi_helm.handlers.requests import (
    create,
    delete,
    resize,
    rotate_credential,
    upgrade,
)
from magnum.drivers.k8s_capi_helm.handlers.requests import nodegroup as handlers_nodegroup
from magnum.drivers.k8s_capi_helm.handlers.tasks import status_task, watch_trigger
from magnum.drivers.k8s_capi_helm.handlers.tasks.monitor import Monitor
from magnum.drivers.k8s_capi_helm.magnum_objects import certificates
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import query_cache, template
from magnum.drivers.k8s_capi_helm.metrics import exposition, fleet
from magnum.drivers.k8s_capi_helm.model import clock, Verdict
from magnum.drivers.k8s_capi_helm.model import cloud as model_cloud
from magnum.drivers.k8s_capi_helm.model.management_cluster import management_of, release_of
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.process import clients

CONF = magnum.conf.CONF
LOG = logging.getLogger(__name__)
conf.register_opts(CONF)


class Driver(driver.Driver):  # type: ignore[misc]
    """Kubernetes clusters by Cluster API and Helm charts.

    Magnum makes one for each request and each pass of a periodic task, without parameters.

    :param clients_of: the clients that go with the settings; those of this process by default.
    """

    def __init__(
        self, clients_of: Callable[[Settings], clients.Clients] = clients.of_process
    ) -> None:
        query_cache.enable_query_cache()
        log_context.enable_log_context()
        self._clients_of = clients_of

    def _clients(self) -> clients.Clients:
        """The clients of this process, whose metrics can be read from their first use on."""
        if not exposition.STARTED:
            options = CONF.capi_helm
            exposition.start_exposition(
                options.metrics_directory, options.metrics_port, clock.utc_now
            )
        return self._clients_of(CONF)

    def _begin(self, context: Any, cluster: Any) -> Reconciliation:
        """The reconciliation of a request of the person of *context* about a cluster.

        :raises errors.InvalidConfiguration: options contradict each other.
        :raises errors.ManagementRefused: the cluster's management cluster is not configured.
        """
        own_clients = self._clients().at(management_of(cluster.stack_id))
        return reconciliation.of_request(own_clients, CONF, context)

    def _begin_periodic(self, cluster: Any) -> Reconciliation:
        """The reconciliation of a periodic task, with the rights of Magnum's service user.

        Only the watches of the cluster's own management cluster are started and waited for.

        :raises errors.InvalidConfiguration: options contradict each other.
        :raises errors.ManagementRefused: the cluster's management cluster is not configured.
        """
        periodic_clients = self._clients().at(management_of(cluster.stack_id))
        # The first pass of a process waits here, so its time begins after that.
        watch_trigger.start(periodic_clients, CONF)
        return reconciliation.of_periodic_task(periodic_clients, CONF)

    @property
    def provides(self) -> list[dict[str, str]]:
        """Server type, distribution and orchestration engine of the clusters made here."""
        return [
            {"server_type": kind, "os": distro, "coe": "kubernetes"}
            for kind in template.SERVER_TYPES
            for distro in model_cloud.DISTROS
        ]

    # Clusters -------------------------------------------------------------------------------------
    @rpc.count_requests
    def create_cluster(self, context: Any, cluster: Any, cluster_create_timeout: int) -> None:
        """Refuse what can be refused, then found the cluster and install its release.

        :raises errors.DriverError: becomes CREATE_FAILED with its sentence.
        """
        begin = functools.partial(self._begin, context, cluster)
        create.create(begin, context, cluster, cluster_create_timeout)

    @rpc.with_deadline
    def update_cluster(
        self, context: Any, cluster: Any, scale_manager: Any = None, rollback: bool = False
    ) -> None:
        """``PATCH node_count``: Magnum has saved the default worker group's new count.

        It has not said anywhere that something begins, and clients poll at once. The cluster says
        so when the request has passed all checks: until then no periodic pass may carry it out.

        :raises errors.DriverError: nothing has changed, and Magnum puts the count back.
        """
        resize.update_count(self._begin(context, cluster), context, cluster)

    @rpc.with_deadline
    def resize_cluster(
        self,
        context: Any,
        cluster: Any,
        resize_manager: Any,
        node_count: int,
        nodes_to_remove: list[str] | None,
        nodegroup: Any = None,
    ) -> None:
        """Resize one nodegroup, by default the default worker group.

        :param nodes_to_remove: ids or names of servers, or names of nodes, that are to go.
        :raises errors.DriverError: nothing has changed, and Magnum puts the count back.
        """
        chosen = nodegroup or cluster.default_ng_worker
        resize.resize(self._begin(context, cluster), context, cluster, chosen, nodes_to_remove)

    @rpc.with_deadline
    def upgrade_cluster(
        self,
        context: Any,
        cluster: Any,
        cluster_template: Any,
        max_batch_size: int,
        nodegroup: Any,
        scale_manager: Any = None,
        rollback: bool = False,
    ) -> None:
        """Upgrade a cluster, its control plane or one nodegroup, to what a template says.

        Magnum calls this inside the tenant's request. What is refused is refused before anything
        is touched; what cannot be done at once is written down, and the periodic pass goes on.

        :raises exception.NotSupported: with the reason; Magnum then leaves the cluster as it is.
        """
        with rpc.refusals(cluster.uuid):
            run = self._begin(context, cluster)
            upgrade.begin(run, context, cluster, cluster_template, max_batch_size, nodegroup)

    @rpc.with_deadline
    def delete_cluster(self, context: Any, cluster: Any) -> None:
        """Take note of the deletion; the periodic pass deletes in order and with proof.

        :raises errors.NotOwned: nothing proves that the cluster is of this driver and here.
        """
        delete.begin(functools.partial(self._begin, context, cluster), cluster)

    def validate_master_resize(self, node_count: int) -> None:
        """Control planes can be resized to any odd number, which etcd's quorum asks for."""
        self.validate_master_size(node_count)

    # Nodegroups -----------------------------------------------------------------------------------
    @rpc.with_deadline
    def create_nodegroup(self, context: Any, cluster: Any, nodegroup: Any) -> None:
        """Add a nodegroup; what is refused stands on the nodegroup alone."""
        with notifications.notify_request(context, cluster):
            run = self._begin(context, cluster)
            handlers_nodegroup.create(run, context, cluster, nodegroup)

    @rpc.with_deadline
    def update_nodegroup(self, context: Any, cluster: Any, nodegroup: Any) -> None:
        """Change bounds, labels and taints; what is refused stands on the nodegroup alone."""
        with notifications.notify_request(context, cluster):
            run = self._begin(context, cluster)
            handlers_nodegroup.update(run, context, cluster, nodegroup)

    @rpc.with_deadline
    def delete_nodegroup(self, context: Any, cluster: Any, nodegroup: Any) -> None:
        """Take a nodegroup away; its row goes when its last machine has.

        :raises errors.DriverError: nothing proves that the cluster is of this driver and here, or
            the management cluster refuses; the nodegroup is DELETE_FAILED then.
        """
        with notifications.notify_request(context, cluster):
            run = self._begin(context, cluster)
            handlers_nodegroup.delete(run, context, cluster, nodegroup)

    # Credentials ----------------------------------------------------------------------------------
    @rpc.with_deadline
    def rotate_credential(self, context: Any, cluster: Any) -> None:
        """Create an application credential of the requesting user, who becomes the cluster's user.

        The old one is deleted by the health task when nobody can be using it any more.

        :raises exception.NotSupported: with the reason; the cluster keeps the one that it has.
        """
        rotate_credential.rotate(self._begin(context, cluster), context, cluster)

    @log_context.with_log_context
    def rotate_ca_certificate(self, context: Any, cluster: Any) -> None:
        """Refused, so that Magnum goes on handing out certificates that the cluster accepts.

        Magnum writes UPDATE_FAILED whatever is raised; the health task takes that back, because
        nothing has happened to the cluster.

        :raises exception.NotSupported: always.
        """
        certificates.restore(context, cluster)
        raise exception.NotSupported(certificates.ROTATION_REFUSED)

    # Federations ----------------------------------------------------------------------------------
    def create_federation(self, context: Any, federation: Any) -> None:
        """Refused: this driver creates clusters, not federations of clusters."""
        raise exception.NotSupported(operation="Creating a federation")

    def update_federation(self, context: Any, federation: Any) -> None:
        """Refused: this driver creates clusters, not federations of clusters."""
        raise exception.NotSupported(operation="Updating a federation")

    def delete_federation(self, context: Any, federation: Any) -> None:
        """Refused: this driver creates clusters, not federations of clusters."""
        raise exception.NotSupported(operation="Deleting a federation")

    # Magnum's periodic tasks ----------------------------------------------------------------------
    def update_cluster_status(
        self, context: Any, cluster: Any, use_admin_ctx: bool = False
    ) -> None:
        """Carry on what is in progress and write what is true; called every ten seconds or so."""
        with log_context.log_about(cluster, log_context.STATUS_TASK, context):
            run = self._begin_periodic(cluster)
            with (
                reconciliation.record_pass(run, cluster, fleet.STATUS_TASK),
                watch_trigger.visit(
                    run.clients, run.settings, release_of(cluster.stack_id)
                ) as is_free,
            ):
                if is_free:
                    status_task.update_status(run, context, cluster)

    def get_monitor(self, context: Any, cluster: Any) -> Monitor:
        """Magnum's health poll; it also brings FAILED clusters back that have come good."""

        def evaluate() -> Verdict | None:
            run = self._begin_periodic(cluster)
            with reconciliation.record_pass(run, cluster, fleet.HEALTH_TASK):
                verdict = health_task.repair(run, context, cluster)
            reconciliation.show_expiry(run, cluster, verdict)
            return verdict

        return Monitor(context, cluster, evaluate)
