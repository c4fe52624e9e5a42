# SPDX-License-Identifier: Apache-2.0
"""Force a deletion that Cluster API cannot finish, because an operator asks for it.

When a project is deleted, Keystone deletes its application credentials, and Cluster API can delete
nothing any more. The objects are then released without their controllers, which is safe only when
nothing of the cluster is left in OpenStack: Nova is asked, or the operator declares it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.lease import codec
from magnum.drivers.k8s_capi_helm.model import (
    CloudResource,
    conditions,
    Json,
    names,
    ReleaseRecord,
    secrets,
)
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.process.clients import Clients

LOG = logging.getLogger(__name__)

#: What Cluster API's controllers hold by finalizers, owners first.
KINDS = (
    names.CLUSTER,
    names.MACHINE_DEPLOYMENT,
    names.MACHINE_SET,
    names.CONTROL_PLANE,
    names.MACHINE,
    names.OPENSTACK_MACHINE,
    names.OPENSTACK_SERVER,
    names.OPENSTACK_CLUSTER,
)


def require_deleting(clients: Clients, cluster: Any, owner: secrets.Owner) -> ReleaseRecord:
    """Refuse a cluster that is not being deleted, or is not on this management cluster.

    :returns: the record of its release.
    :raises errors.InvalidRequest: its deletion was not requested.
    :raises errors.ProofNotFound: no Lease of the cluster is there.
    :raises errors.DriverError: the management cluster cannot be asked.
    """
    if not (cluster.status or "").startswith("DELETE_"):
        raise errors.InvalidRequest(
            f"The cluster is not being deleted. Its status is {cluster.status}: request the "
            f"deletion first ('openstack coe cluster delete {cluster.uuid}')."
        )
    record = clients.leases.read(owner.namespace, owner.release)
    if record is None or record.cluster_uuid != owner.cluster_uuid:
        raise errors.ProofNotFound(
            f"No Lease proves whose the release is. Release '{owner.release}' has none of this "
            "cluster: check the kubeconfig; 'adopt --confirm' creates the Lease."
        )
    return record


def existing_objects(clients: Clients, owner: secrets.Owner) -> Iterator[tuple[names.Kind, Json]]:
    """What is left of a cluster on the management cluster, owners first.

    :raises errors.DriverError: it cannot be read.
    """
    selector = {names.LABEL_CLUSTER_NAME: owner.release}
    for kind in KINDS:
        objects = clients.kube.list(kind, owner.namespace, selector)
        found = {conditions.name(obj): obj for obj in objects}
        if kind is names.CLUSTER:
            # It has the label by its chart only.
            cluster = clients.kube.get(kind, owner.namespace, owner.release)
            found |= {owner.release: cluster} if cluster else {}
        yield from ((kind, found[name]) for name in sorted(found))


def cloud_resources(run: Reconciliation, owner: secrets.Owner) -> tuple[CloudResource, ...]:
    """What is left of a cluster in OpenStack.

    :raises errors.DriverError: a service cannot be asked.
    """
    return run.cloud().remains.resources(owner.release, owner.project_id, owner.namespace)


def confirm_cloud_cleared(clients: Clients, owner: secrets.Owner) -> None:
    """Record an operator's word that nothing of a cluster is left in OpenStack.

    :raises errors.DriverError: the management cluster cannot be used.
    """
    note = {"metadata": {"annotations": {codec.CLEARED: "true"}}}
    clients.kube.patch(names.LEASE, owner.namespace, names.lease(owner.release), note)
    LOG.warning(
        "Cluster %s: an operator has confirmed that nothing of it is left in OpenStack.",
        owner.cluster_uuid,
    )


def release_objects(run: Reconciliation, owner: secrets.Owner, record: ReleaseRecord) -> int:
    """Delete a cluster's objects without waiting for their controllers.

    :returns: how many there were.
    :raises errors.InvalidRequest: servers of the cluster run, or that is unknown.
    :raises errors.DriverError: the management cluster cannot be used.
    """
    if not record.is_cloud_cleared:
        _require_no_servers(run, owner)
    clients, count = run.clients, 0
    for kind, obj in list(existing_objects(clients, owner)):
        name, uid = conditions.name(obj), conditions.metadata(obj).get("uid")
        LOG.warning(
            "Cluster %s: %s %s is deleted without its controller, for an operator.",
            owner.cluster_uuid,
            kind.name,
            name,
        )
        clients.kube.delete(kind, owner.namespace, name, uid=uid)
        try:
            without = {"metadata": {"finalizers": None, "uid": uid}}
            clients.kube.patch(kind, owner.namespace, name, without)
        except errors.Conflict:
            LOG.debug("%s %s is gone already.", kind.name, name)
        count += 1
    return count


def _require_no_servers(run: Reconciliation, owner: secrets.Owner) -> None:
    try:
        servers = run.cloud().remains.servers(owner.release, owner.project_id, owner.namespace)
    except errors.DriverError as error:
        raise errors.InvalidRequest(
            "Whether servers of the cluster run is unknown, so its objects stay. "
            f"{error} Check by hand, and confirm with --confirm-cloud-cleared.",
            error.detail,
        ) from None
    if servers:
        raise errors.InvalidRequest(
            "Servers of the cluster run, so its objects stay. Delete these first: "
            f"{', '.join(servers)}."
        )
