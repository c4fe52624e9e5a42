# SPDX-License-Identifier: Apache-2.0
"""Finalize a deletion: release the Lease and delete Magnum's record, in a safe order."""

from __future__ import annotations

import contextlib
from typing import Any

from oslo_log import log as logging

from magnum.common import exception
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.handlers.entry import log_context
from magnum.drivers.k8s_capi_helm.magnum_objects import certificates
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import reader, refresh, saving
from magnum.drivers.k8s_capi_helm.magnum_objects.rows.writer import Status
from magnum.drivers.k8s_capi_helm.model import secrets
from magnum.drivers.k8s_capi_helm.model.management_cluster import with_management
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.ownership import ownership
from magnum.drivers.k8s_capi_helm.reconcile.process.clients import Clients
from magnum.drivers.k8s_capi_helm.reconcile.release import project_namespace
from magnum.drivers.k8s_capi_helm.status.causes import reasons
from magnum.objects import cluster as cluster_object

LOG = logging.getLogger(__name__)


def save_created(context: Any, cluster: Any) -> bool:
    """Save what Magnum has made for a new cluster; False if its row has gone, and that with it.

    The cluster has a reason from this first write on.
    """
    try:
        saving.save(cluster, status_reason=reasons.starting_reason(cluster.status))
    except exception.ClusterNotFound:
        certificates.delete_certificates(context, cluster)
        return False
    return True


def is_leaving(context: Any, cluster: Any) -> bool:
    """Whether a cluster was asked to go, or has gone, since the request for it came."""
    try:
        current = cluster_object.Cluster.get_by_uuid(context, cluster.uuid)
    except exception.ClusterNotFound:
        return True
    return current.status.startswith("DELETE_") or ownership.is_cluster_deleting(current.nodegroups)


def name_release(run: Reconciliation, context: Any, cluster: Any, release: str) -> bool:
    """Give the row of a new cluster the name of its release; False if it was asked to go before.

    A pass that saw the row without a release takes the Lease away at most, and then the row. So
    nothing may be made for it any more, and a Lease that came after that pass goes with this.
    """
    with contextlib.suppress(exception.ClusterNotFound):
        saving.save(cluster, stack_id=with_management(release, run.clients.management))
        if not is_leaving(context, cluster):
            return True
        saving.save(cluster, stack_id=None)
    discard_lease(run, cluster)
    return False


def release_lease(run: Reconciliation, context: Any, cluster: Any, owner: secrets.Owner) -> bool:
    """Take away the Lease of a cluster of which nothing else is left; False if the row has to wait.

    The row forgets its release first: one that has none needs no proof any more. So a conductor may
    die at any moment, and neither a row nor a Lease stays behind. Magnum removes the row after it.
    """
    saving.save(cluster, stack_id=None)
    try:
        run.clients.leases.delete_finished(owner.namespace, owner.release)
    except errors.DriverError as error:
        LOG.warning("Cluster %s: its Lease: %s %s", cluster.uuid, error, error.detail)
        saving.save(cluster, status_reason=str(error))
        return False
    delete_leases(run.clients, owner.namespace)
    project_namespace.delete_unused(run.clients, owner.namespace, owner.project_id)
    # Another pass that saw the row without a release has perhaps ended it meanwhile.
    return refresh.is_unchanged(cluster, context)


def finalize(run: Reconciliation, context: Any, cluster: Any) -> None:
    """Tell Magnum to destroy the row, once. Nothing is saved: should this conductor die before
    Magnum has, the row is still DELETE_IN_PROGRESS and the next pass comes here again.
    """
    if not run.clients.finished_deletions.is_first(cluster.uuid):
        return
    certificates.delete_unreferenced(context, cluster)
    cluster.status, cluster.status_reason = Status.DELETE_COMPLETE, None


def discard_lease(run: Reconciliation, cluster: Any) -> None:
    """Take away the Lease of a row that does not know the name of its release.

    Its create died before that, or its deletion after it. A Lease is all that there can be, and
    does no harm: a management cluster that does not answer keeps nobody from deleting a cluster
    that was refused. On which management cluster it is, is not known either.
    """
    namespace = reader.cluster_namespace(cluster, run.settings)
    for clients in run.clients.all_clients():
        try:
            clients.leases.delete(namespace, cluster.uuid)
            project_namespace.delete_unused(clients, namespace, cluster.project_id)
        except errors.DriverError as error:
            LOG.info(
                "Cluster %s: whether it has left a Lease is not known: %s",
                cluster.uuid,
                error.detail,
            )


def delete_leases(clients: Clients, namespace: str) -> None:
    """Remove the tombstones of a namespace whose clusters Magnum does not know any more.

    None is left but by a management cluster that went away at the very end, or by an older driver.
    """
    admin = log_context.make_admin_context()
    try:
        for release, uuid in clients.leases.tombstones(namespace).items():
            try:
                cluster_object.Cluster.get_by_uuid(admin, uuid)
            except exception.ClusterNotFound:
                clients.leases.delete_finished(namespace, release)
    except errors.DriverError as error:
        LOG.warning("Leases of deleted clusters in %s stay behind: %s", namespace, error)
