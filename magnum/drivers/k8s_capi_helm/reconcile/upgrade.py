# SPDX-License-Identifier: Apache-2.0
"""An upgrade in progress: its checks, its initial values, its phases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
import dataclasses
from typing import Any

from magnum.drivers.k8s_capi_helm import errors, labels, status
from magnum.drivers.k8s_capi_helm.cloud import Cloud
from magnum.drivers.k8s_capi_helm.cloud.preflight import checks, message
from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.kube import snapshot
from magnum.drivers.k8s_capi_helm.magnum_objects import reader
from magnum.drivers.k8s_capi_helm.model import (
    Chart,
    clock,
    CloudFacts,
    ClusterRequest,
    DeferredChange,
    GroupState,
    Json,
    LiveRelease,
    NodeGroupRequest,
    Operation,
    ReleaseRecord,
    UpgradeTarget,
    Verb,
)
from magnum.drivers.k8s_capi_helm.reconcile import render, requirements
from magnum.drivers.k8s_capi_helm.reconcile.clients import Clients
from magnum.drivers.k8s_capi_helm.values import deferred, rollout, upgrade
from magnum.drivers.k8s_capi_helm.values import live as values_live


def pending(record: ReleaseRecord | None) -> Operation | None:
    """The upgrade that is on its way, None without one. Only one at a time is written down."""
    operations = record.operations if record else ()
    return next((one for one in reversed(operations) if one.verb is Verb.UPGRADE), None)


def is_due(
    ports: Clients, record: ReleaseRecord | None, live: LiveRelease | None, request: ClusterRequest
) -> bool:
    """Whether the next step of an upgrade can be taken now."""
    operation = pending(record)
    if operation is None or record is None or live is None:
        return False
    if not operation.accepted:
        return True
    groups = rollout.due_nodegroups(live.values, operation, request, record.deferred)
    return bool(groups) and _control_plane_is_through(ports, live)


def with_new_nodegroups(
    ports: Clients,
    record: ReleaseRecord | None,
    live: LiveRelease,
    request: ClusterRequest,
    ready: dict[str, Json],
) -> tuple[LiveRelease, dict[str, Json]]:
    """Entries of new nodegroups, which wait for the control plane like those that are there.

    They have at once what else upgrades have brought and the defaults do not say yet.

    They are written down as part of the upgrade, so that they follow with the others.

    :param ready: their entries by name.
    :returns: with the release that they are to be added to, whose machines are those of *live*.
    :raises errors.DriverError: the record cannot be written.
    """
    owing = record.deferred if record else ()
    if ready and owing:
        live = dataclasses.replace(live, values=deferred.expand_defaults(live.values, owing))
        ready = {
            name: deferred.new_nodegroup_entry(entry, live.values, owing)
            for name, entry in ready.items()
        }
        # What was owed to nodegroups of these names that are gone is not for the new ones.
        left = deferred.remaining(owing, ready, live.values, shared=False)
        ports.leases.defer(live.namespace, live.name, left)
    operation = pending(record)
    if operation is None or values_live.CONTROL_PLANE not in operation.groups:
        return live, ready
    new = [name for name, entry in ready.items() if not upgrade.is_pinned(entry)]
    is_through = bool(new) and _control_plane_is_through(ports, live)
    if not new or (operation.accepted and is_through):
        return live, ready
    groups = tuple(dict.fromkeys((*operation.groups, *new)))
    ports.leases.add(live.namespace, live.name, dataclasses.replace(operation, groups=groups))
    if is_through:
        return live, ready
    own = request.own_images
    return live, {
        name: upgrade.waiting_nodegroups(entry, live.values, own) for name, entry in ready.items()
    }


def software_facts(
    cloud: Cloud, target: UpgradeTarget, operation: Operation, conf: Settings
) -> CloudFacts:
    """What the cloud says of an upgrade, with what its names stood for when it was asked for."""
    interface = conf.capi_helm.app_cred_interface_type
    return cloud.software(target.request, interface=interface, lookup=operation.resolved)


def begin_upgrade(
    live: Json,
    request: ClusterRequest,
    target: UpgradeTarget,
    operation: Operation,
    facts: CloudFacts,
    conf: Settings,
    owing: tuple[DeferredChange, ...] = (),
) -> tuple[Json, tuple[DeferredChange, ...]]:
    """The values with which an upgrade begins, and what is owed with it; nothing is touched.

    :param request: what the rows ask for now.
    :param owing: what is owed until now.
    :param facts: as :meth:`cloud.Cloud.software` gives them for the target.
    :raises errors.InvalidRequest: the cluster cannot go there.
    """
    terms = requirements.requirements(conf)
    message.refuse(checks.software_problems(target.request, facts, terms, operation.groups))
    theirs = render.render_values(_as_made(target.request, live), facts, conf)
    _check_distro(live, target.request.image, theirs["osDistro"])
    old, new = upgrade.versions(live), theirs["kubernetesVersion"]
    if values_live.CONTROL_PLANE not in operation.groups:
        for name in operation.groups:
            _check_there(name, old)
            upgrade.check_nodegroup_version(name, old[name], new, old[values_live.CONTROL_PLANE])
            live = upgrade.upgrade_nodegroup(
                live, name, new, facts.image_id, operation.max_batch_size, owing
            )
        return live, owing
    kept = {name: old[name] for name in old if name not in operation.groups}
    upgrade.check_control_plane(old[values_live.CONTROL_PLANE], new, kept)
    # The old label need not agree with the new image, nor the new image know its version.
    known = dataclasses.replace(facts, kubernetes_version=request.labels.kube_tag or new)
    today, running = _as_made(request, live), old[values_live.CONTROL_PLANE]
    base = render.render_values(today, known, conf, running=running)
    values = upgrade.initial_values(live, base, theirs)
    if not any(one.id == operation.id for one in owing) and values_live.node_groups(live):
        # A second time the rows may follow already, and do not tell any more what is owed.
        owing = (*owing, deferred.of_upgrade(operation.id, live, base, theirs))
    deferred.check_size(owing)
    return values, owing


def waiting_nodegroups(
    owing: tuple[DeferredChange, ...], operation: Operation, values: Json
) -> tuple[DeferredChange, ...]:
    """What is owed still, when an upgrade has begun and the release has *values*."""
    alone = values_live.CONTROL_PLANE not in operation.groups
    return deferred.remaining(owing, operation.groups if alone else (), values, shared=False)


def _check_there(name: str, have: Mapping[str, str]) -> None:
    if name not in have:
        raise errors.InvalidRequest(
            f"Nodegroup '{name}' was never created, so there is nothing to upgrade. Delete it, and "
            "create it again."
        )


def _check_distro(live: Json, image: str, wanted: str) -> None:
    """Nodegroups would be set up for the new one while they are pinned to the old image."""
    have = live.get("osDistro") or "ubuntu"
    if wanted != have:
        raise errors.InvalidRequest(
            "The image has another distribution than the cluster. Image "
            f"'{image}' has {wanted}: choose a template for {have}, or create a new cluster."
        )


def new_chart(ports: Clients, wanted: labels.Labels) -> Chart:
    """The chart that a cluster with these labels is made with.

    :raises errors.DriverError: it is not allowed, or not to be had.
    """
    return ports.charts.for_new_cluster(
        wanted.capi_helm_chart_version,
        name=wanted.capi_helm_chart_name,
        repository=wanted.capi_helm_chart_repo,
    )


def chart(
    ports: Clients, operation: Operation, target: UpgradeTarget, live: LiveRelease, conf: Settings
) -> Chart | None:
    """The chart that an upgrade leads to; None if it keeps the live one, as for a nodegroup alone.

    :raises errors.InvalidRequest: it is of another family than the live one.
    :raises errors.DriverError: it is not allowed, or not to be had.
    """
    if values_live.CONTROL_PLANE not in operation.groups:
        return None
    found = new_chart(ports, target.request.labels)
    same = found.family == live.chart_family and (found.family or found.name == live.chart_name)
    if not (same or conf.capi_helm.allow_chart_family_change):
        raise errors.InvalidRequest(
            "The template has a chart of another family, which would replace all machines. It has "
            f"'{found.name}' {found.version}, and the cluster has '{live.chart_name}' "
            f"{live.chart_version}. Use a template of the same chart, or ask the cloud's operator.",
            f"family '{live.chart_family}' to '{found.family}'; [capi_helm] "
            "allow_chart_family_change is false",
        )
    return found


def interrupted_chart(
    ports: Clients,
    record: ReleaseRecord | None,
    live: LiveRelease,
    target: Callable[[Operation], UpgradeTarget],
) -> Chart | None:
    """The chart of an upgrade that a run of Helm was in the middle of, None for any other run.

    The release is of that chart already, and the record still has the one before.

    :raises errors.DriverError: the chart is not to be had any more.
    """
    operation = pending(record)
    if live.status == "deployed" or operation is None or operation.accepted:
        return None
    if values_live.CONTROL_PLANE not in operation.groups:
        return None
    found = new_chart(ports, target(operation).request.labels)
    same = (found.name, found.version) == (live.chart_name, live.chart_version)
    return found if same else None


def groups(
    nodegroup: Any, name: str, request: ClusterRequest, live: Json, image: str
) -> tuple[str, ...]:
    """What an upgrade is about: Magnum names the default worker group for a whole cluster.

    Nodegroups with an image of their own are none of a cluster's; each is upgraded by its name.

    :param name: the nodegroup's in the values.
    :param image: the one that the upgrade leads to.
    """
    if nodegroup.role == reader.MASTER:
        return (values_live.CONTROL_PLANE,)
    if not nodegroup.is_default:
        return (name,)
    own = own_images(request, live)
    followers = (
        group.name for group in request.node_groups if group.name not in own or group.image == image
    )
    return (values_live.CONTROL_PLANE, *followers)


def with_deferred(
    operation: Operation, request: ClusterRequest, live: Json, target: UpgradeTarget
) -> Operation:
    """An upgrade of a whole cluster, with nodegroups that were made since it was asked for.

    Their rows follow the new template with the others, so their machines have to.
    """
    if operation.groups[:1] != (values_live.CONTROL_PLANE,) or len(operation.groups) == 1:
        return operation
    own, there = own_images(request, live), values_live.node_groups(live).keys()
    late = (
        group.name
        for group in request.node_groups
        if group.name in there and (group.name not in own or group.image == target.request.image)
    )
    return dataclasses.replace(operation, groups=tuple(dict.fromkeys((*operation.groups, *late))))


def own_images(request: ClusterRequest, live: Json) -> frozenset[str]:
    """Nodegroups with an image of their own, as rows and release say together.

    Where the release has a nodegroup without an image, that follows the cluster whatever its row
    says: magnum-capi-helm leaves the old template's image in the rows when it upgrades.
    """
    entries = values_live.node_groups(live)
    return frozenset(
        name
        for name in request.own_images
        if name not in entries or upgrade.is_pinned(entries[name])
    )


def _as_made(request: ClusterRequest, live: Json) -> ClusterRequest:
    """The request without what an upgrade can neither give nor take.

    Nobody asks for the images of single nodegroups, which stay; and machines that were made without
    a disk for images and containers (by a driver that gives none) get none now.
    """
    entries = values_live.node_groups(live)
    groups = (
        _with_disk(dataclasses.replace(group, image=None), entries.get(group.name, {}))
        for group in request.node_groups
    )
    return dataclasses.replace(
        request,
        control_plane=_with_disk(request.control_plane, live.get("controlPlane") or {}),
        node_groups=tuple(groups),
    )


def _with_disk(group: NodeGroupRequest, entry: Json) -> NodeGroupRequest:
    has = bool(entry.get("containerdBlockDevice"))
    return group if has else dataclasses.replace(group, docker_volume=0)


def _control_plane_is_through(ports: Clients, live: LiveRelease) -> bool:
    now = clock.utc_now()
    observed = snapshot.take_snapshot(ports.kube, live.namespace, live.name, now)
    wanted = GroupState(
        name=values_live.CONTROL_PLANE,
        status="",
        count=values_live.count(live.values, None),
        is_control_plane=True,
        version=upgrade.versions(live.values)[values_live.CONTROL_PLANE].removeprefix("v"),
    )
    return status.control_plane_in_place(observed, wanted)
