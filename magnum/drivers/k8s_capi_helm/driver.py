# SPDX-License-Identifier: Apache-2.0
"""Magnum's verbs: read, decide, act, record. The only module that saves or destroys Magnum objects.

What Magnum has saved before it calls a verb and what it does with an exception differs from verb to
verb (``magnum/conductor/handlers``). So each verb saves what is intended first, raises only what
can be refused before anything is touched, and otherwise returns: the periodic pass carries the work
on.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from oslo_log import log as logging

from magnum.common import exception
import magnum.conf
from magnum.drivers.common import driver
from magnum.drivers.k8s_capi_helm import conf, deadline, errors
from magnum.drivers.k8s_capi_helm.cloud import provision
from magnum.drivers.k8s_capi_helm.handlers import (
    create,
    delete,
    federation,
    health_task,
    pending_operation,
    resize,
    rpc,
    status_task,
    upgrade,
    watch_trigger,
)
from magnum.drivers.k8s_capi_helm.handlers import nodegroup as handlers_nodegroup
from magnum.drivers.k8s_capi_helm.handlers.monitor import Monitor
from magnum.drivers.k8s_capi_helm.magnum_objects import (
    certificates,
    refresh,
    saving,
    state,
    template,
    writer,
)
from magnum.drivers.k8s_capi_helm.magnum_objects.writer import Status
from magnum.drivers.k8s_capi_helm.model import clock, Verb, Verdict
from magnum.drivers.k8s_capi_helm.model import cloud as model_cloud
from magnum.drivers.k8s_capi_helm.reconcile import (
    clients,
    credential_rotation,
    ownership,
    prerequisites,
    reconciler,
)
from magnum.drivers.k8s_capi_helm.status import deletion

CONF = magnum.conf.CONF
LOG = logging.getLogger(__name__)
conf.register_opts(CONF)


class Driver(federation.UnsupportedFederations, driver.Driver):  # type: ignore[misc]
    """Kubernetes clusters by Cluster API and Helm charts."""

    @property
    def provides(self) -> list[dict[str, str]]:
        """Server type, distribution and orchestration engine of the clusters made here."""
        return [
            {"server_type": kind, "os": distro, "coe": "kubernetes"}
            for kind in template.SERVER_TYPES
            for distro in model_cloud.DISTROS
        ]

    # Clusters -------------------------------------------------------------------------------------
    def create_cluster(self, context: Any, cluster: Any, cluster_create_timeout: int) -> None:
        """Refuse what can be refused, then found the cluster and install its release.

        :raises errors.DriverError: becomes CREATE_FAILED with its sentence.
        """
        # Magnum has made certificates and not saved yet which: nobody else would ever find them.
        try:
            is_there = delete.save_created(context, cluster)
        except Exception as error:  # Magnum writes its words, whatever they are
            raise rpc.as_driver_error(error, cluster.uuid) from error
        if not is_there:
            return
        groups = list(cluster.nodegroups)
        try:
            self._create(context, cluster, groups, cluster_create_timeout)
        except Exception as error:  # whatever it is, no row may stay CREATE_IN_PROGRESS
            known = rpc.as_driver_error(error, cluster.uuid)
            if delete.is_leaving(context, cluster):  # Magnum would write CREATE_FAILED over that
                return
            for group in groups:
                saving.save(group, status=Status.CREATE_FAILED, status_reason=str(known))
            raise known from error

    def _create(self, context: Any, cluster: Any, groups: list[Any], timeout: int) -> None:
        ports, cloud, end = clients.ports(CONF), clients.cloud(context), rpc.deadline_of_request()
        plan = create.plan_create(ports, cloud, context, cluster, groups, CONF)
        request = plan.rendered.request
        release = request.release
        level = CONF.capi_helm.pod_security_level
        prerequisites.ensure_namespace(ports, request.namespace, request.project_id, level)
        now = clock.utc_now()
        limit = state.deadline(now, timeout or cluster.create_timeout)
        # The Lease comes first: nothing proves a release without one, and a row with its name could
        # not be deleted. A Lease whose row does not know its name is found by its label.
        prerequisites.ensure_lease(ports, request, plan.rendered.facts, now, limit)
        if not delete.name_release(context, cluster, release, CONF):
            return
        with ports.leases.hold(request.namespace, release, wait=CONF.capi_helm.lock_wait) as hold:
            pairs = certificates.key_pairs(context, cluster)
            facts = provision.create(cloud, request, plan.rendered.facts)
            created = dataclasses.replace(plan.rendered, facts=facts)
            prerequisites.save_secrets(ports, hold, cloud, request, facts, pairs, plan.grants, CONF)
            try:
                # What comes before cannot be left to a pass, and nobody waits for a creation.
                wanted = status_task.without_changes(context, cluster, CONF)
                with deadline.end_at(end):
                    reconciler.reconcile_held(
                        ports, hold, wanted, lambda: cloud, CONF, created=created
                    )
            except errors.DriverError as error:
                if not error.retryable:
                    raise
                LOG.warning("Cluster %s: %s %s", cluster.uuid, error, error.detail)

    @rpc.with_deadline
    def update_cluster(
        self, context: Any, cluster: Any, scale_manager: Any = None, rollback: bool = False
    ) -> None:
        """``PATCH node_count``: Magnum has saved the default worker group's new count.

        It has not said anywhere that something begins, and clients poll at once. The cluster says
        so when the request has passed all checks: until then no periodic pass may carry it out.

        :raises errors.DriverError: nothing has changed, and Magnum puts the count back.
        """
        group = cluster.default_ng_worker
        before = {"status": group.status, "status_reason": group.status_reason}
        writer.mark_in_progress(group, Status.UPDATE_IN_PROGRESS)
        try:
            resize.resize(context, cluster, group, None, CONF)
        except Exception:  # whatever it is, Magnum puts the count back and says it of the cluster
            saving.save(group, **before)
            raise

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
        group = nodegroup or cluster.default_ng_worker
        resize.resize(context, cluster, group, nodes_to_remove, CONF)

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
        try:
            upgrade.begin(context, cluster, cluster_template, max_batch_size, nodegroup, CONF)
        except Exception as error:  # of anything else Magnum makes UPDATE_FAILED, with its words
            raise rpc.refused(rpc.as_driver_error(error, cluster.uuid)) from error

    @rpc.with_deadline
    def delete_cluster(self, context: Any, cluster: Any) -> None:
        """Take note of the deletion; the periodic pass deletes in order and with proof.

        :raises errors.NotOurs: nothing proves that the cluster is of this driver and here.
        """
        if cluster.stack_id:
            try:
                ownership.require(clients.ports(CONF), cluster, CONF)
            except errors.NotHere as error:
                raise errors.NotHere(deletion.NO_PROOF_SENTENCE) from error
            pending_operation.begin(cluster, CONF, Verb.DELETE)
        else:
            writer.mark_in_progress(cluster, Status.DELETE_IN_PROGRESS)
        # Nodegroup verbs overwrite the cluster's status, also while nothing can be written on the
        # management cluster; the control plane's row, which nobody can delete alone, keeps it.
        for group in cluster.nodegroups:
            writer.mark_in_progress(group, Status.DELETE_IN_PROGRESS)

    def validate_master_resize(self, node_count: int) -> None:
        """Control planes can be resized to any odd number, which etcd's quorum asks for."""
        self.validate_master_size(node_count)

    # Nodegroups -----------------------------------------------------------------------------------
    @rpc.with_deadline
    def create_nodegroup(self, context: Any, cluster: Any, nodegroup: Any) -> None:
        """Add a nodegroup; what is refused stands on the nodegroup alone."""
        handlers_nodegroup.create(context, cluster, nodegroup, CONF)

    @rpc.with_deadline
    def update_nodegroup(self, context: Any, cluster: Any, nodegroup: Any) -> None:
        """Change bounds, labels and taints; what is refused stands on the nodegroup alone."""
        handlers_nodegroup.update(context, cluster, nodegroup, CONF)

    @rpc.with_deadline
    def delete_nodegroup(self, context: Any, cluster: Any, nodegroup: Any) -> None:
        """Take a nodegroup away; its row goes when its last machine has.

        :raises errors.DriverError: nothing proves that the cluster is of this driver and here, or
            the management cluster refuses; the nodegroup is DELETE_FAILED then.
        """
        handlers_nodegroup.delete(context, cluster, nodegroup, CONF)

    # Credentials ----------------------------------------------------------------------------------
    @rpc.with_deadline
    def rotate_credential(self, context: Any, cluster: Any) -> None:
        """A new application credential, of the user who asks; the cluster is that user's then.

        The old one is deleted by the health task when nobody can be using it any more.

        :raises exception.NotSupported: with the reason; the cluster keeps the one that it has.
        """
        ports = clients.ports(CONF)
        try:
            ownership.require(ports, cluster, CONF)
            owner, now = ownership.owner(cluster, CONF), clock.utc_now()
            credential_rotation.rotate(ports, clients.cloud(context), owner, context, CONF, now)
        except errors.DriverError as error:
            LOG.warning("Credential of cluster %s: %s %s", cluster.uuid, error, error.detail)
            raise rpc.refused(error) from error
        saving.save(cluster, user_id=context.user_id)

    def rotate_ca_certificate(self, context: Any, cluster: Any) -> None:
        """Refused, so that Magnum goes on handing out certificates that the cluster accepts.

        Magnum writes UPDATE_FAILED whatever is raised; the health task takes that back, because
        nothing has happened to the cluster.

        :raises exception.NotSupported: always.
        """
        certificates.restore(context, cluster)
        raise exception.NotSupported(certificates.ROTATION_REFUSED)

    # Magnum's periodic tasks ----------------------------------------------------------------------
    def update_cluster_status(
        self, context: Any, cluster: Any, use_admin_ctx: bool = False
    ) -> None:
        """Carry on what is in progress and write what is true; called every ten seconds or so."""
        watch_trigger.start(CONF, cluster.stack_id)
        if not refresh.is_unchanged(cluster, context):
            return
        if cluster.status == Status.DELETE_IN_PROGRESS:
            status_task.continue_deletion(context, cluster, CONF)
        else:
            status_task.advance(context, cluster, CONF)

    def get_monitor(self, context: Any, cluster: Any) -> Monitor:
        """Magnum's health poll; it also brings FAILED clusters back that have come good."""

        def judge() -> Verdict | None:
            watch_trigger.start(CONF)
            return health_task.repair(context, cluster, CONF)

        return Monitor(context, cluster, judge)
