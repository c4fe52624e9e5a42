# SPDX-License-Identifier: Apache-2.0
"""Verify the owner of a cluster: the form of its stack id, and the proof.

Another driver's cluster, or a management cluster that was swapped for an empty one, must never look
like a cluster whose objects are simply gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import reader
from magnum.drivers.k8s_capi_helm.model import ReleaseRecord, secrets
from magnum.drivers.k8s_capi_helm.model.management_cluster import is_own_stack_id, release_of
from magnum.drivers.k8s_capi_helm.reconcile.process import credential_secret
from magnum.drivers.k8s_capi_helm.reconcile.process.clients import Clients

LOG = logging.getLogger(__name__)


def owner(cluster: Any, conf: Settings) -> secrets.Owner:
    """Whom the objects of a cluster belong to."""
    return secrets.Owner(
        release=release_of(cluster.stack_id),
        namespace=reader.cluster_namespace(cluster, conf),
        project_id=cluster.project_id,
        user_id=cluster.user_id,
        cluster_uuid=cluster.uuid,
    )


def foreign_reason(cluster: Any) -> str:
    """Why a cluster is another driver's, "" if it may be ours. One without a stack id may be."""
    if not cluster.stack_id or is_own_stack_id(cluster.stack_id):
        return ""
    return (
        f"The cluster was not created by this driver. Cluster '{cluster.name}' has the stack id "
        f"'{cluster.stack_id}': ask the operator which driver created it."
    )


def require(clients: Clients, cluster: Any, conf: Settings) -> ReleaseRecord | None:
    """Refuse a cluster of another driver, or one that is not on this management cluster.

    When the management cluster does not answer nobody can tell; the passes that act look again.

    :returns: the record of its release, None while nobody can tell.
    :raises errors.NotOwned: with a sentence; ProofNotFound when it may be on another management
        cluster.
    """
    if not cluster.stack_id:
        raise errors.NotOwned(
            "The cluster has no release on the management cluster: its creation was interrupted. "
            f"Delete cluster '{cluster.name}' and create it again."
        )
    if sentence := foreign_reason(cluster):
        raise errors.NotOwned(sentence)
    try:
        release_owner = owner(cluster, conf)
        proof = proved_record(
            clients,
            release_owner,
            clients.leases.read(release_owner.namespace, release_owner.release),
        )
    except errors.DriverError as error:
        if not error.retryable:
            raise
        LOG.warning("Cluster %s: %s %s", cluster.uuid, error, error.detail)
        return None
    if proof is None:
        release = release_of(cluster.stack_id)
        raise errors.ProofNotFound(
            f"Nothing on the management cluster proves that release '{release}' belongs to this "
            f"cluster. Ask the operator to check, for cluster '{cluster.name}', that the driver's "
            "kubeconfig names the right management cluster."
        )
    return proof


def proved_record(
    clients: Clients, release_owner: secrets.Owner, record: ReleaseRecord | None
) -> ReleaseRecord | None:
    """The record of this very cluster; a cluster of magnum-capi-helm is given a Lease.

    :param record: what the Lease of the release says, None without one.
    :returns: None where nothing proves that the cluster is on this management cluster.
    :raises errors.DriverError: the management cluster could not be asked.
    """
    if record is None:
        # magnum-capi-helm labels its Secrets as this driver does.
        if not credential_secret.find_secrets(clients.kube, release_owner):
            return None
        record = clients.leases.open(
            release_owner.namespace,
            release_owner.release,
            cluster_uuid=release_owner.cluster_uuid,
            project_id=release_owner.project_id,
        )
    return record if record.cluster_uuid == release_owner.cluster_uuid else None


def check_record(record: ReleaseRecord, release_owner: secrets.Owner) -> None:
    """Refuse the Lease of another cluster.

    :raises errors.NotOwned: it is another cluster's, as names of releases may be after a restore.
    """
    if record.cluster_uuid != release_owner.cluster_uuid:
        raise errors.NotOwned(
            "The release has the Lease of another cluster of Magnum. The Lease of "
            f"'{release_owner.release}' is that of cluster '{record.cluster_uuid}'."
        )


def is_cluster_deleting(nodegroups: Iterable[Any]) -> bool:
    """Whether Magnum is deleting the whole cluster."""
    masters = [nodegroup for nodegroup in nodegroups if nodegroup.role == reader.MASTER]
    return any((nodegroup.status or "").startswith("DELETE_") for nodegroup in masters)


def refuse_deleting(cluster: Any) -> None:
    """Refuse to create anything for a cluster that is being deleted.

    :raises errors.InvalidRequest: with a sentence.
    """
    if is_cluster_deleting(cluster.nodegroups):
        raise errors.InvalidRequest("The cluster is being deleted.")
