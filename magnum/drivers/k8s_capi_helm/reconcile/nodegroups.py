# SPDX-License-Identifier: Apache-2.0
"""Add new nodegroups to a release, and remove the objects of refused ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
import dataclasses
import datetime
from typing import Any

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
    Resolved,
)
from magnum.drivers.k8s_capi_helm.reconcile import requirements
from magnum.drivers.k8s_capi_helm.reconcile.clients import Clients
from magnum.drivers.k8s_capi_helm.status import machines as status_machines
from magnum.drivers.k8s_capi_helm.values import live as values_live
from magnum.drivers.k8s_capi_helm.values import nodegroups, upgrade

LOG = logging.getLogger(__name__)

#: A request is checked by then: Magnum's API waits a minute for an answer, unless an operator has
#: said otherwise.
CHECKED_BY_THEN = datetime.timedelta(minutes=5)
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

    :ivar refused: what is wrong with a group, for good.
    :ivar waiting: why some can only be rendered later, None if all could be looked at.
    """

    ready: dict[str, Json]
    refused: dict[str, errors.DriverError]
    waiting: errors.DriverError | None = None


def is_recent(ports: Clients, now: datetime.datetime) -> Callable[[Any], bool]:
    """Whether this process has seen a nodegroup's row for less than its request takes.

    :param now: aware, UTC.
    """
    return lambda row: ports.first_seen.age(row.uuid, row.created_at, now) < CHECKED_BY_THEN


def without_unvalidated(
    request: ClusterRequest, noted: Iterable[Operation], live: Json
) -> ClusterRequest:
    """The request without nodegroups whose own requests are still being checked.

    Magnum saves the row of a nodegroup before it calls the driver, and any pass sees it from then
    on. Only the request itself can refuse it or make its server group; then it is on record. One
    that is not by the time that a request takes has lost its conductor, and is carried out.

    :param noted: the operations on record.
    :param live: values of the live release, in which a group is no newcomer any more.
    """
    noted, there = tuple(noted), values_live.node_groups(live)
    groups = (
        one
        for one in request.node_groups
        if not one.may_be_unvalidated
        or one.name in there
        or operation.is_creation_recorded(noted, one.name, one.uuid)
    )
    return dataclasses.replace(request, node_groups=tuple(groups))


def render_new(
    groups: Iterable[NodeGroupRequest],
    request: ClusterRequest,
    noted: Iterable[Operation],
    cloud: Callable[[], Cloud],
    conf: Settings,
    live: LiveRelease,
) -> NodegroupEntries:
    """The entry of each new nodegroup, or what is wrong with it.

    Of the cloud only flavors, images and networks of its own are asked for that are not on record,
    all together as long as nothing is wrong: the image, networks and volume types of a cluster are
    those of its live release, and may be gone or others by now.

    :param noted: the operations on record.
    :param live: the release.
    """
    ready: dict[str, Json] = {}
    refused: dict[str, errors.DriverError] = {}
    groups, waiting = list(groups), None
    if not groups:
        return NodegroupEntries(ready, refused)
    service = cloud()
    try:
        ids = provision.find_server_groups(service, request, groups)
    except errors.DriverError as error:
        return NodegroupEntries(ready, refused, error)
    for group in groups:
        if group.is_new and provision.is_server_group_missing(request, group, ids):
            refused[group.name] = errors.CloudRefused(
                f"The creation of nodegroup '{group.name}' was interrupted before its server group "
                "was created, and only a request of a user of its project can create one. Delete "
                "the "
                "nodegroup and create it again."
            )
    groups = [group for group in groups if group.name not in refused]
    rest, noted = [groups] if groups else [], tuple(noted)
    while rest:
        some = rest.pop()
        try:
            made = _entries(live, request, some, noted, service, conf)
        except errors.DriverError as error:
            if len(some) > 1:
                rest += [[group] for group in reversed(some)]
            elif error.retryable:
                waiting = error
            else:
                refused[some[0].name] = error
        else:
            for group, entry in zip(some, made, strict=True):
                own = nodegroups.server_group(group, request.labels, ids)
                ready[group.name] = {**entry, **own}
    return NodegroupEntries(ready, refused, waiting)


def _entries(
    live: LiveRelease,
    request: ClusterRequest,
    groups: Sequence[NodeGroupRequest],
    noted: Iterable[Operation],
    service: Cloud,
    conf: Settings,
) -> list[Json]:
    """The entries of nodegroups, each of what its names stand for on record or else now.

    :raises errors.DriverError: as of :func:`new_entries`, or the cloud cannot be asked.
    """
    known = [operation.resolved_names(noted, group) for group in groups]
    pairs = list(zip(groups, known, strict=True))
    texts = {one.flavor for one, found in pairs if one.flavor not in found.flavors}
    flavors = service.flavors(request.project_id, texts) if texts else {}
    texts = {one.image for one, found in pairs if one.image and one.image not in found.images}
    images = service.named_images(request.project_id, texts) if texts else {}
    there = nodegroups.extra_networks(live.values, request.labels)
    texts = {
        name
        for one, found in pairs
        for name in (one.labels or request.labels).extra_network_names
        if name not in there and name not in found.extra_networks
    }
    networks = service.extra_networks(request.project_id, texts) if texts else {}
    return [
        entry
        for group, found in pairs
        for entry in new_entries(
            live,
            request,
            [group],
            Resolved(
                images={**images, **found.images},
                flavors={**flavors, **found.flavors},
                extra_networks={**networks, **found.extra_networks},
            ),
            conf,
        )
    ]


def new_entries(
    live: LiveRelease,
    request: ClusterRequest,
    groups: Sequence[NodeGroupRequest],
    found: Resolved,
    conf: Settings,
) -> list[Json]:
    """The entries of nodegroups that are to be added to a cluster; nothing is touched.

    :param live: its release.
    :param found: what the texts of all these groups stand for.
    :raises errors.DriverError: the cloud or the cluster does not have what they need.
    """
    images, labels = found.images, request.labels
    requirements.check_flavors(found.flavors, conf)
    groups = nodegroup_images.with_own_images(
        groups, images, str(live.values.get("machineImageId") or "")
    )
    version = upgrade.versions(live.values)[values_live.CONTROL_PLANE]
    nodegroup_images.check_images(groups, images, version, str(live.values.get("osDistro") or ""))
    nodegroup_images.check_annotations(groups, live.values)
    nodegroup_images.check_disks(groups, str(live.values.get("osDistro") or ""))
    tells = names.tells_capacity(live.chart_family, live.chart_version)
    there = nodegroups.extra_networks(live.values, labels)
    found = dataclasses.replace(found, extra_networks={**there, **found.extra_networks})
    inherits = there.keys() >= set(labels.extra_network_names)
    return [nodegroups.nodegroup_entry(one, labels, found, tells, inherits) for one in groups]


def delete_objects(ports: Clients, namespace: str, release: str, group: str) -> None:
    """Take away what a refused revision has left of a new nodegroup that is not in the release.

    Helm writes object by object and knows nothing any more of those before the refused one; a
    MachineDeployment among them would build servers that nobody asks for. One of whose machines has
    a Node is no such thing, whatever is believed of it, and stays.

    :param group: which Helm has refused in this very pass, and whose row is being created.
    :raises errors.DriverError: the management cluster cannot be used.
    """
    selector = {names.LABEL_CHART_CLUSTER: release, names.LABEL_NODE_GROUP: group}
    owners = ports.kube.list(names.MACHINE_DEPLOYMENT, namespace, selector)
    listed = ports.kube.list(names.MACHINE, namespace, {names.LABEL_CLUSTER_NAME: release})
    for one in status_machines.of_nodegroup(listed, group, owners):
        if node := conditions.at_path(one, "status", "nodeRef", "name"):
            LOG.error(
                "Release %s: refused nodegroup %s has node %s and is kept", release, group, node
            )
            return
    for kind in _OBJECTS:
        ports.kube.delete_collection(kind, namespace, selector, level=logging.WARNING)
