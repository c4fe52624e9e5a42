# SPDX-License-Identifier: Apache-2.0
"""Whose cluster it is: the shape of its stack id, and the proof that is on the management cluster.

Another driver's cluster, or a management cluster that was swapped for an empty one, must never look
like a cluster whose objects are simply gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors, intake, names, secrets
from magnum.drivers.k8s_capi_helm.assembly import Ports
from magnum.drivers.k8s_capi_helm.model import Json, Record, Verb

LOG = logging.getLogger(__name__)


def owner(cluster: Any, conf: Any) -> secrets.Owner:
    """Whom the objects of a cluster belong to."""
    return secrets.Owner(
        release=cluster.stack_id,
        namespace=intake.namespace(cluster, conf),
        project_id=cluster.project_id,
        user_id=cluster.user_id,
        cluster_uuid=cluster.uuid,
    )


def require(ports: Ports, cluster: Any, conf: Any) -> None:
    """Refuse a cluster of another driver, or one that is not on this management cluster.

    When the management cluster does not answer nobody can tell; the passes that act look again.

    :raises errors.NotOurs: with a sentence.
    """
    if not names.is_release(cluster.stack_id):
        raise errors.NotOurs(
            f"Cluster '{cluster.name}' has the stack id '{cluster.stack_id}', which is not of this "
            "driver. An operator has to look which driver made it."
        )
    try:
        proved = is_proved(ports, owner(cluster, conf))
    except errors.DriverError as error:
        if not error.retryable:
            raise
        LOG.warning("Cluster %s: %s %s", cluster.uuid, error, error.detail)
        return
    if not proved:
        raise errors.NotOurs(
            f"Nothing on the management cluster proves that release '{cluster.stack_id}' belongs "
            f"to cluster '{cluster.name}'. An operator has to check that the driver's kubeconfig "
            "names the right management cluster."
        )


def is_proved(ports: Ports, whose: secrets.Owner) -> bool:
    """Whether the Lease of this very cluster is there; a cluster of magnum-capi-helm is given one.

    :raises errors.DriverError: the management cluster could not be asked.
    """
    record = ports.operations.read(whose.namespace, whose.release)
    if record is None:
        name = names.credential_secret(whose.release)
        if not _is_labelled(ports.kube.get(names.SECRET, whose.namespace, name), whose):
            return False
        record = ports.operations.open(
            whose.namespace,
            whose.release,
            cluster_uuid=whose.cluster_uuid,
            project_id=whose.project_id,
        )
    return record.cluster_uuid == whose.cluster_uuid


def is_being_deleted(record: Record | None) -> bool:
    """Whether a deletion is pending or through: nodegroup verbs overwrite the row's status."""
    if record is None:
        return False
    return record.tombstone or any(one.verb is Verb.DELETE for one in record.operations)


def is_leaving(nodegroups: Iterable[Any]) -> bool:
    """Whether the rows say that the whole cluster is to go: nobody deletes its masters alone."""
    masters = [row for row in nodegroups if row.role == "master"]
    return any((row.status or "").startswith("DELETE_") for row in masters)


def refuse_leaving(cluster: Any) -> None:
    """Refuse to make anything for a cluster that is being deleted: nobody would take it away.

    :raises errors.InvalidRequest: with a sentence.
    """
    if is_leaving(cluster.nodegroups):
        raise errors.InvalidRequest(f"Cluster '{cluster.name}' is being deleted.")


def _is_labelled(secret: Json | None, whose: secrets.Owner) -> bool:
    """magnum-capi-helm labels the credential Secret the same way as this driver does."""
    labels = ((secret or {}).get("metadata") or {}).get("labels") or {}
    return labels.get(names.LABEL_UUID) == whose.cluster_uuid
