# SPDX-License-Identifier: Apache-2.0
"""Adopt the existing objects of a cluster without a Helm release, or refuse.

That is so after a move or a restore of the management cluster that left Helm's Secrets out. Nobody
knows then with which values the objects were made. The rows and the site of today are a guess; it
holds if it renders the very objects that are there, and is given up if it does not.
"""

from __future__ import annotations

from collections.abc import Iterator
import dataclasses

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.helm import manifest_diff
from magnum.drivers.k8s_capi_helm.model import (
    Chart,
    ClusterRequest,
    conditions,
    Json,
    LiveRelease,
    names,
    Observed,
    ReleaseRecord,
    secrets,
    Verb,
)
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.process.clients import Clients
from magnum.drivers.k8s_capi_helm.status.objects import machine_deployment, machines

LOG = logging.getLogger(__name__)

#: Cluster API makes machines of these: one that is not there must not be made anew beside them.
_ROOTS = frozenset({names.CLUSTER.name, names.OPENSTACK_CLUSTER.name, names.CONTROL_PLANE.name})
_DETAILS = 20
_RESTORE = (
    "Nothing was changed. Ask the operator to restore the Secrets of the release "
    "('sh.helm.release.v1.{release}.v*') from a backup, or from the management cluster that was "
    "used before."
)


def is_requested(clients: Clients, record: ReleaseRecord, request: ClusterRequest) -> bool:
    """Whether objects are there that are not those of a creation that is still on its way.

    :raises errors.Busy: they are paused, because somebody is moving or restoring them.
    :raises errors.ReleaseLost: they are being deleted.
    :raises errors.DriverError: the management cluster cannot be asked.
    """
    if _is_creation_pending(record):
        return False
    cluster = clients.kube.get(names.CLUSTER, request.namespace, request.release)
    if cluster is None:
        return False
    if conditions.is_terminating(cluster):
        raise errors.ReleaseLost(
            "The cluster is being deleted on the management cluster, and its release does not "
            "exist. Nothing was changed. Delete the cluster, or ask the operator."
        )
    if conditions.paused(cluster):
        raise errors.Busy(
            "The Cluster is paused on the management cluster, and its release does not exist: it "
            "is "
            "adopted when the Cluster is unpaused."
        )
    return True


def require_cluster(run: Reconciliation, record: ReleaseRecord, request: ClusterRequest) -> None:
    """Refuse a cluster whose release and Cluster are gone, and whose servers run.

    So it is where it was moved to another management cluster, or is not restored yet. To install
    the release would create the cluster a second time.

    :raises errors.Busy: it is so; the operation continues when the Cluster is here again.
    :raises errors.DriverError: the management cluster or OpenStack cannot be asked.
    """
    namespace, release = request.namespace, request.release
    if _is_creation_pending(record) or not record.revisions.last_applied:
        return
    if run.clients.kube.get(names.CLUSTER, namespace, release) is not None:
        return
    if run.cloud().remains.servers(release, request.project_id, namespace):
        raise errors.Busy(
            "This management cluster had the cluster, and has neither its Cluster nor its release "
            "now, while its servers run. Nothing was changed. Ask the operator which management "
            "cluster has them."
        )


def is_adoption_interrupted(live: LiveRelease, record: ReleaseRecord) -> bool:
    """Whether helm was killed while it took objects over, so that some may not be the release's.

    The revision that it leaves has the values of which :func:`require_same_manifest` has shown that
    they are those of the objects.
    """
    return live.status == "pending-install" and not _is_creation_pending(record)


def notice(record: ReleaseRecord | None, observed: Observed) -> str:
    """What is to be said of a cluster at rest whose release is gone, "" if it is not."""
    if (record is not None and _is_creation_pending(record)) or not isinstance(
        observed.cluster, dict
    ):
        return ""
    return (
        "The Helm release of this cluster does not exist on the management cluster any more. A "
        "resize to its current size adopts its objects."
    )


def deployed_values(clients: Clients, request: ClusterRequest) -> ClusterRequest:
    """The request with the nodegroups and the numbers of machines that there are.

    What the rows ask for besides is an operation, for when the release is there again.

    :param request: with all nodegroups that have rows.
    :raises errors.ReleaseLost: a nodegroup is there that has no row.
    :raises errors.DriverError: the management cluster cannot be asked.
    """
    selector = {names.LABEL_CLUSTER_NAME: request.release}
    control_planes = clients.kube.list(names.CONTROL_PLANE, request.namespace, selector)
    deployments = clients.kube.list(names.MACHINE_DEPLOYMENT, request.namespace, selector)
    nodegroups, known = [], set()
    for nodegroup in request.node_groups:
        own_deployments = machines.deployments_of(nodegroup.name, deployments)
        known |= {conditions.name(deployment) for deployment in own_deployments}
        if own_deployments:
            count = machine_deployment.replicas(own_deployments[0])
            nodegroups.append(
                dataclasses.replace(nodegroup, count=nodegroup.count if count is None else count)
            )
    others = sorted({conditions.name(deployment) for deployment in deployments} - known)
    if others:
        raise _lost(
            request, f"MachineDeployment '{others[0]}' belongs to no nodegroup in Magnum", others
        )
    count = machine_deployment.replicas(control_planes[0]) if len(control_planes) == 1 else None
    control_plane = request.control_plane
    control_plane = dataclasses.replace(
        control_plane, count=control_plane.count if count is None else count
    )
    return dataclasses.replace(
        request, control_plane=control_plane, node_groups=tuple(nodegroups), deleted_groups=()
    )


def require_same_manifest(
    clients: Clients, request: ClusterRequest, chart: Chart, values: Json
) -> None:
    """Refuse to adopt objects of other releases, or objects that would change.

    :raises errors.NotOwned: with the object and whose it is.
    :raises errors.ReleaseLost: with the object and the field.
    :raises errors.DriverError: the management cluster cannot be asked.
    """
    rendered = clients.helm.preview(request.namespace, request.release, chart, values, adopt=True)
    changed = []
    for manifest in rendered:
        existing = clients.kube.find(manifest, request.namespace)
        if existing is not None:
            check_owner(secrets.Owner.of(request), existing)
        changed += list(_changes(manifest, existing))
    if changed:
        first = f"{changed[0]} would change"
        raise _lost(request, first, changed)
    LOG.warning(
        "Release %s/%s: Helm has no record of it; its %d existing objects are adopted unchanged.",
        request.namespace,
        request.release,
        len(rendered),
    )


def _is_creation_pending(record: ReleaseRecord) -> bool:
    return any(operation.verb is Verb.CREATE for operation in record.operations)


def _changes(rendered: Json, existing: Json | None) -> Iterator[str]:
    title = f"{rendered['kind']} '{rendered['metadata']['name']}'"
    object_labels = rendered["metadata"].get("labels") or {}
    if object_labels.get(names.LABEL_CHART_COMPONENT) == names.AUTOSCALER:
        return  # it is the operator's, as set today, and no machine hangs on it
    if existing is None:
        if rendered["kind"] in _ROOTS:
            yield title
        return
    for path in manifest_diff.differences(rendered, existing):
        yield f"{path} of {title}"


def check_owner(owner: secrets.Owner, existing_object: Json) -> None:
    """Refuse an existing object that says it is another release's.

    :raises errors.NotOwned: with the object and whose it is.
    """
    title = f"{existing_object['kind']} '{conditions.name(existing_object)}'"
    other = manifest_diff.foreign_owner(existing_object, owner.namespace, owner.release)
    uuid = manifest_diff.owner_uuid(existing_object)
    if uuid and uuid != owner.cluster_uuid:
        other = f"of the Magnum cluster '{uuid}'"
    if other:
        raise errors.NotOwned(
            f"{title} on the management cluster has the name of an object of this cluster and "
            f"belongs to another release, {other}. Nothing was changed; ask the operator whose it "
            "is.",
        )


def _lost(request: ClusterRequest, cause: str, details: list[str]) -> errors.ReleaseLost:
    differences = ", ".join(details[:_DETAILS])
    return errors.ReleaseLost(
        "The release of this cluster does not exist on the management cluster, and its values do "
        f"not follow from Magnum's data. The reason: {cause}. "
        f"{_RESTORE.format(release=request.release)}",
        f"{len(details)} differences: {differences}",
    )
