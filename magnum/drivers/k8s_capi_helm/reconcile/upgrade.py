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
from magnum.drivers.k8s_capi_helm.values import deferred, upgrade, upgrade_nodegroups
from magnum.drivers.k8s_capi_helm.values import live as values_live


def pending(record: ReleaseRecord | None) -> Operation | None:
    """The upgrade that is on its way, None without one. Only one at a time is written down."""
    operations = record.operations if record else ()
    upgrades = [operation for operation in operations if operation.verb is Verb.UPGRADE]
    return upgrades[-1] if upgrades else None


def is_due(
    ports: Clients, record: ReleaseRecord | None, live: LiveRelease | None, request: ClusterRequest
) -> bool:
    """Whether the next step of an upgrade can be taken now."""
    operation = pending(record)
    if operation is None or record is None or live is None:
        return False
    if not operation.accepted:
        return True
    due = upgrade_nodegroups.due_nodegroups(live.values, operation, request, record.deferred)
    return bool(due) and _is_control_plane_upgraded(ports, live)


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
    changes = record.deferred if record else ()
    if ready and changes:
        live = dataclasses.replace(live, values=deferred.expand_defaults(live.values, changes))
        ready = {
            name: deferred.new_nodegroup_entry(entry, live.values, changes)
            for name, entry in ready.items()
        }
        # What was owed to nodegroups of these names that are gone is not for the new ones.
        remaining = deferred.left_over(changes, ready, live.values, shared=False)
        ports.leases.defer(live.namespace, live.name, remaining)
    operation = pending(record)
    if operation is None or values_live.CONTROL_PLANE not in operation.groups:
        return live, ready
    new = [name for name, entry in ready.items() if not upgrade.is_pinned(entry)]
    is_through = bool(new) and _is_control_plane_upgraded(ports, live)
    if not new or (operation.accepted and is_through):
        return live, ready
    nodegroups = tuple(dict.fromkeys((*operation.groups, *new)))
    ports.leases.add(live.namespace, live.name, dataclasses.replace(operation, groups=nodegroups))
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
    changes: tuple[DeferredChange, ...] = (),
) -> tuple[Json, tuple[DeferredChange, ...]]:
    """The values with which an upgrade begins, and what is owed with it; nothing is touched.

    :param request: what the rows ask for now.
    :param changes: what is owed until now.
    :param facts: as :meth:`cloud.Cloud.software` gives them for the target.
    :raises errors.InvalidRequest: the cluster cannot go there.
    """
    required = requirements.requirements(conf)
    message.refuse(checks.software_problems(target.request, facts, required, operation.groups))
    target_values = render.render_values(_without_fixed(target.request, live), facts, conf)
    _check_distro(live, target.request.image, target_values["osDistro"])
    old, new = upgrade.versions(live), target_values["kubernetesVersion"]
    if values_live.CONTROL_PLANE not in operation.groups:
        for name in operation.groups:
            _check_exists(name, old)
            upgrade.check_nodegroup_version(name, old[name], new, old[values_live.CONTROL_PLANE])
            live = upgrade.upgrade_nodegroup(
                live, name, new, facts.image_id, operation.max_batch_size, changes
            )
        return live, changes
    kept_versions = {name: old[name] for name in old if name not in operation.groups}
    upgrade.check_control_plane(old[values_live.CONTROL_PLANE], new, kept_versions)
    # The old label need not agree with the new image, nor the new image know its version.
    new_facts = dataclasses.replace(facts, kubernetes_version=request.labels.kube_tag or new)
    current, running = _without_fixed(request, live), old[values_live.CONTROL_PLANE]
    base = render.render_values(current, new_facts, conf, running=running)
    values = upgrade.initial_values(live, base, target_values)
    if not any(change.id == operation.id for change in changes) and values_live.node_groups(live):
        # A second time the rows may follow already, and do not tell any more what is owed.
        changes = (*changes, deferred.of_upgrade(operation.id, live, base, target_values))
    deferred.check_size(changes)
    return values, changes


def waiting_nodegroups(
    changes: tuple[DeferredChange, ...], operation: Operation, values: Json
) -> tuple[DeferredChange, ...]:
    """What is owed still, when an upgrade has begun and the release has *values*."""
    is_single = values_live.CONTROL_PLANE not in operation.groups
    return deferred.left_over(changes, operation.groups if is_single else (), values, shared=False)


def _check_exists(name: str, versions: Mapping[str, str]) -> None:
    if name not in versions:
        raise errors.InvalidRequest(
            f"Nodegroup '{name}' was never created, so there is nothing to upgrade. Delete it, and "
            "create it again."
        )


def _check_distro(live: Json, image: str, requested: str) -> None:
    """Nodegroups would be set up for the new one while they are pinned to the old image."""
    current = live.get("osDistro") or "ubuntu"
    if requested != current:
        raise errors.InvalidRequest(
            "The image has another distribution than the cluster. Image "
            f"'{image}' has {requested}: choose a template for {current}, or create a new cluster."
        )


def new_chart(ports: Clients, cluster_labels: labels.Labels) -> Chart:
    """The chart that a cluster with these labels is made with.

    :raises errors.DriverError: it is not allowed, or not to be had.
    """
    return ports.charts.for_new_cluster(
        cluster_labels.capi_helm_chart_version,
        name=cluster_labels.capi_helm_chart_name,
        repository=cluster_labels.capi_helm_chart_repo,
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
    new = new_chart(ports, target.request.labels)
    is_same = new.family == live.chart_family and (new.family or new.name == live.chart_name)
    if not (is_same or conf.capi_helm.allow_chart_family_change):
        raise errors.InvalidRequest(
            "The template has a chart of another family, which would replace all machines. It has "
            f"'{new.name}' {new.version}, and the cluster has '{live.chart_name}' "
            f"{live.chart_version}. Use a template of the same chart, or ask the cloud's operator.",
            f"family '{live.chart_family}' to '{new.family}'; [capi_helm] "
            "allow_chart_family_change is false",
        )
    return new


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
    new = new_chart(ports, target(operation).request.labels)
    is_same = (new.name, new.version) == (live.chart_name, live.chart_version)
    return new if is_same else None


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
    following = upgrade_nodegroups.nodegroups_to_upgrade(request, live, image)
    return (values_live.CONTROL_PLANE, *following)


def _without_fixed(request: ClusterRequest, live: Json) -> ClusterRequest:
    """The request without what an upgrade can neither give nor take.

    Nobody asks for the images of single nodegroups, which stay; and machines that were made without
    a disk for images and containers (by a driver that gives none) get none now.
    """
    entries = values_live.node_groups(live)
    nodegroups = (
        _with_disk(dataclasses.replace(nodegroup, image=None), entries.get(nodegroup.name, {}))
        for nodegroup in request.node_groups
    )
    return dataclasses.replace(
        request,
        control_plane=_with_disk(request.control_plane, live.get("controlPlane") or {}),
        node_groups=tuple(nodegroups),
    )


def _with_disk(nodegroup: NodeGroupRequest, entry: Json) -> NodeGroupRequest:
    has_disk = bool(entry.get("containerdBlockDevice"))
    return nodegroup if has_disk else dataclasses.replace(nodegroup, docker_volume=0)


def _is_control_plane_upgraded(ports: Clients, live: LiveRelease) -> bool:
    now = clock.utc_now()
    observed = snapshot.take_snapshot(ports.kube, live.namespace, live.name, now)
    state = GroupState(
        name=values_live.CONTROL_PLANE,
        status="",
        count=values_live.count(live.values, None),
        is_control_plane=True,
        version=upgrade.versions(live.values)[values_live.CONTROL_PLANE].removeprefix("v"),
    )
    return status.is_control_plane_ready(observed, state)
