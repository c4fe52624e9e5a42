# SPDX-License-Identifier: Apache-2.0
"""Add new nodegroups to a release, and remove the objects of refused ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
import dataclasses

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.cloud import Cloud, provision
from magnum.drivers.k8s_capi_helm.cloud.preflight import nodegroup_images
from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.model import (
    ClusterRequest,
    conditions,
    Json,
    LiveRelease,
    names,
    NodeGroupRequest,
    Operation,
    operation,
    ResolvedNames,
)
from magnum.drivers.k8s_capi_helm.reconcile.policy import requirements
from magnum.drivers.k8s_capi_helm.reconcile.process.clients import Clients
from magnum.drivers.k8s_capi_helm.status.objects import machines as status_machines
from magnum.drivers.k8s_capi_helm.values.sections import nodegroups
from magnum.drivers.k8s_capi_helm.values.tree import live as values_live
from magnum.drivers.k8s_capi_helm.values.upgrade import upgrade

LOG = logging.getLogger(__name__)

#: What a chart makes for a nodegroup, its machines' owner first.
_OBJECTS = (
    names.MACHINE_DEPLOYMENT,
    names.MACHINE_HEALTH_CHECK,
    names.MACHINE_TEMPLATE,
    names.BOOTSTRAP_TEMPLATE,
)


@dataclasses.dataclass(frozen=True, slots=True)
class NodegroupEntries:
    """Entries of new nodegroups, as far as they could be rendered.

    :ivar refusals: what is wrong with a group, for good.
    :ivar waiting_error: why some can only be rendered later, None if all could be looked at.
    """

    ready: dict[str, Json]
    refusals: dict[str, errors.DriverError]
    waiting_error: errors.DriverError | None = None


def render_new(
    new_nodegroups: Iterable[NodeGroupRequest],
    request: ClusterRequest,
    operations: Iterable[Operation],
    cloud: Callable[[], Cloud],
    conf: Settings,
    live: LiveRelease,
) -> NodegroupEntries:
    """The entry of each new nodegroup, or what is wrong with it.

    Of the cloud only flavors, images and networks of its own are asked for that are not on record,
    all together as long as nothing is wrong: the image, networks and volume types of a cluster are
    those of its live release, and may be gone or others by now.

    :param operations: the operations on record.
    :param live: the release.
    """
    new_nodegroups, operations = list(new_nodegroups), tuple(operations)
    if not new_nodegroups:
        return NodegroupEntries({}, {})
    service = cloud()
    try:
        ids = provision.find_server_groups(service, request, new_nodegroups)
    except errors.DriverError as error:
        return NodegroupEntries({}, {}, error)
    refused: dict[str, errors.DriverError] = {
        nodegroup.name: _interrupted(nodegroup)
        for nodegroup in new_nodegroups
        if nodegroup.is_new and provision.is_server_group_missing(request, nodegroup, ids)
    }
    accepted = [nodegroup for nodegroup in new_nodegroups if nodegroup.name not in refused]
    entries = _accepted_entries(
        accepted, lambda batch: _entries(live, request, batch, operations, service, conf)
    )
    server_groups = {
        nodegroup.name: nodegroups.server_group_values(nodegroup, request.labels, ids)
        for nodegroup in accepted
    }
    ready = {name: {**entry, **server_groups[name]} for name, entry in entries.ready.items()}
    return NodegroupEntries(ready, refused | entries.refusals, entries.waiting_error)


def _interrupted(nodegroup: NodeGroupRequest) -> errors.CloudRefused:
    return errors.CloudRefused(
        f"The creation of nodegroup '{nodegroup.name}' was interrupted before its server "
        "group was created, and only a request of a user of its project can create one. "
        "Delete the nodegroup and create it again."
    )


def _accepted_entries(
    new_nodegroups: Sequence[NodeGroupRequest],
    render_batch: Callable[[Sequence[NodeGroupRequest]], Sequence[Json]],
) -> NodegroupEntries:
    """Render nodegroups in one batch, and each alone if one of the batch is refused.

    :param render_batch: the entries of some nodegroups, in their order; raises
        :class:`errors.DriverError` if one of them is refused.
    """
    ready: dict[str, Json] = {}
    refused: dict[str, errors.DriverError] = {}
    waiting = None
    batches = [new_nodegroups] if new_nodegroups else []
    while batches:
        batch = batches.pop()
        try:
            rendered = render_batch(batch)
        except errors.DriverError as error:
            if len(batch) > 1:
                batches += [[nodegroup] for nodegroup in reversed(batch)]
            elif error.retryable:
                waiting = error
            else:
                refused[batch[0].name] = error
        else:
            for nodegroup, entry in zip(batch, rendered, strict=True):
                ready[nodegroup.name] = entry
    return NodegroupEntries(ready, refused, waiting)


def _entries(
    live: LiveRelease,
    request: ClusterRequest,
    new_nodegroups: Sequence[NodeGroupRequest],
    operations: Iterable[Operation],
    service: Cloud,
    conf: Settings,
) -> list[Json]:
    """The entries of nodegroups, each of what its names stand for on record or else now.

    :raises errors.DriverError: as of :func:`new_entries`, or the cloud cannot be asked.
    """
    lookups = [operation.resolved_names(operations, nodegroup) for nodegroup in new_nodegroups]
    pairs = list(zip(new_nodegroups, lookups, strict=True))
    found = _found(live, request, pairs, service)
    return [
        entry
        for nodegroup, lookup in pairs
        for entry in new_entries(
            live,
            request,
            [nodegroup],
            ResolvedNames(
                images={**found.images, **lookup.images},
                flavors={**found.flavors, **lookup.flavors},
                extra_networks={**found.extra_networks, **lookup.extra_networks},
            ),
            conf,
        )
    ]


def _found(
    live: LiveRelease,
    request: ClusterRequest,
    pairs: Sequence[tuple[NodeGroupRequest, ResolvedNames]],
    service: Cloud,
) -> ResolvedNames:
    """What the names of nodegroups stand for in the cloud now, of those that are not on record.

    :param pairs: each nodegroup with what is on record for it.
    :raises errors.DriverError: the cloud cannot be asked.
    """
    texts = {
        nodegroup.flavor for nodegroup, lookup in pairs if nodegroup.flavor not in lookup.flavors
    }
    flavors = service.flavors(request.project_id, texts) if texts else {}
    texts = {
        nodegroup.image
        for nodegroup, lookup in pairs
        if nodegroup.image and nodegroup.image not in lookup.images
    }
    images = service.named_images(request.project_id, texts) if texts else {}
    cluster_networks = nodegroups.extra_networks(live.values, request.labels)
    texts = {
        name
        for nodegroup, lookup in pairs
        for name in (nodegroup.labels or request.labels).extra_network_names
        if name not in cluster_networks and name not in lookup.extra_networks
    }
    networks = service.extra_networks(request.project_id, texts) if texts else {}
    return ResolvedNames(images=images, flavors=flavors, extra_networks=networks)


def new_entries(
    live: LiveRelease,
    request: ClusterRequest,
    new_nodegroups: Sequence[NodeGroupRequest],
    lookup: ResolvedNames,
    conf: Settings,
) -> list[Json]:
    """The entries of nodegroups that are to be added to a cluster; nothing is touched.

    :param live: its release.
    :param lookup: what the texts of all these groups stand for.
    :raises errors.DriverError: the cloud or the cluster does not have what they need.
    """
    images, labels = lookup.images, request.labels
    requirements.check_flavors(lookup.flavors, conf)
    new_nodegroups = nodegroup_images.with_own_images(
        new_nodegroups, images, str(live.values.get("machineImageId") or "")
    )
    version = upgrade.versions(live.values)[values_live.CONTROL_PLANE]
    nodegroup_images.check_images(
        new_nodegroups, images, version, str(live.values.get("osDistro") or "")
    )
    nodegroup_images.check_annotations(new_nodegroups, live.values)
    nodegroup_images.check_disks(new_nodegroups, str(live.values.get("osDistro") or ""))
    tells_capacity = names.tells_capacity(live.chart_family, live.chart_version)
    cluster_networks = nodegroups.extra_networks(live.values, labels)
    lookup = dataclasses.replace(
        lookup, extra_networks={**cluster_networks, **lookup.extra_networks}
    )
    inherits = cluster_networks.keys() >= set(labels.extra_network_names)
    return [
        nodegroups.nodegroup_entry(nodegroup, labels, lookup, tells_capacity, inherits)
        for nodegroup in new_nodegroups
    ]


def delete_objects(clients: Clients, namespace: str, release: str, nodegroup: str) -> None:
    """Take away what a refused revision has left of a new nodegroup that is not in the release.

    Helm writes object by object and knows nothing any more of those before the refused one; a
    MachineDeployment among them would build servers that nobody asks for. One of whose machines has
    a Node is no such thing, whatever is believed of it, and stays.

    :param nodegroup: which Helm has refused in this very pass, and whose row is being created.
    :raises errors.DriverError: the management cluster cannot be used.
    """
    selector = {names.LABEL_CHART_CLUSTER: release, names.LABEL_NODE_GROUP: nodegroup}
    owners = clients.kube.list(names.MACHINE_DEPLOYMENT, namespace, selector)
    all_machines = clients.kube.list(names.MACHINE, namespace, {names.LABEL_CLUSTER_NAME: release})
    for machine in status_machines.of_nodegroup(all_machines, nodegroup, owners):
        if node := conditions.at_path(machine, "status", "nodeRef", "name"):
            LOG.error(
                "Release %s: refused nodegroup %s has node %s and is kept", release, nodegroup, node
            )
            return
    for kind in _OBJECTS:
        clients.kube.delete_collection(kind, namespace, selector, level=logging.WARNING)
