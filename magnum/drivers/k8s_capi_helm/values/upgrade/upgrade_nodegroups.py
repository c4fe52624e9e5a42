# SPDX-License-Identifier: Apache-2.0
"""The nodegroups that follow the control plane in an upgrade, wait for it, or are left out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
import dataclasses
from typing import Any

from magnum.drivers.k8s_capi_helm.model import (
    ClusterRequest,
    DeferredChange,
    Json,
    Operation,
    ReleaseRecord,
    UpgradeTarget,
    Verb,
)
from magnum.drivers.k8s_capi_helm.values.tree import live as values_live
from magnum.drivers.k8s_capi_helm.values.tree.live import CONTROL_PLANE
from magnum.drivers.k8s_capi_helm.values.upgrade import upgrade

#: What continues when its time is over before Helm could take it.
_GOES_ON = (Verb.UPGRADE, Verb.RESIZE, Verb.NODEGROUP_UPDATE)


def nodegroups_to_upgrade(request: ClusterRequest, live: Json, image: str) -> tuple[str, ...]:
    """The nodegroups that follow the control plane in an upgrade of the whole cluster.

    One with an image of its own does not, but where that is the image that the upgrade leads to.

    :param live: values of the deployed release.
    :param image: the one that the upgrade leads to.
    """
    own = nodegroups_with_own_image(request, live)
    return tuple(
        nodegroup.name
        for nodegroup in request.node_groups
        if nodegroup.name not in own or nodegroup.image == image
    )


def include_new(
    operation: Operation, request: ClusterRequest, live: Json, target: UpgradeTarget
) -> Operation:
    """An upgrade of a whole cluster, with nodegroups that were created since it was requested.

    Their records follow the new template with the others, so their machines have to.
    """
    if operation.groups[:1] != (CONTROL_PLANE,) or len(operation.groups) == 1:
        return operation
    entries = values_live.node_groups(live).keys()
    new = (
        name
        for name in nodegroups_to_upgrade(request, live, target.request.image)
        if name in entries
    )
    return dataclasses.replace(operation, groups=tuple(dict.fromkeys((*operation.groups, *new))))


def nodegroups_with_own_image(request: ClusterRequest, live: Json) -> frozenset[str]:
    """Nodegroups with an image of their own, as records and release say together.

    Where the release has a nodegroup without an image, that follows the cluster whatever its record
    says: magnum-capi-helm leaves the old template's image in the records when it upgrades.
    """
    entries = values_live.node_groups(live)
    return frozenset(
        name
        for name in request.own_images
        if name not in entries or upgrade.is_pinned(entries[name])
    )


def waiting_for_control_plane(
    values: Mapping[str, Any], operation: Operation, own: Collection[str]
) -> tuple[str, ...]:
    """The nodegroups of an accepted upgrade that still wait for the control plane.

    :param own: nodegroups with an image of their own. They stay pinned and wait for no upgrade;
        one may have the name of a nodegroup that was deleted since the upgrade began.
    """
    if not operation.is_accepted or CONTROL_PLANE not in operation.groups:
        return ()
    return tuple(
        name
        for name, entry in values_live.node_groups(values).items()
        if upgrade.is_pinned(entry) and name in operation.groups and name not in own
    )


def unfinished_operations(
    record: ReleaseRecord | None, values: Json, own: Collection[str]
) -> frozenset[str]:
    """Ids of the operations that have to stay on record, whatever the rows say.

    :param own: nodegroups with an image of their own.
    """
    operations = record.operations if record else ()
    return frozenset(
        operation.id
        for operation in operations
        if waiting_for_control_plane(values, operation, own)
    )


def continued_operations(record: ReleaseRecord | None) -> frozenset[str]:
    """Ids of the operations that go on when their time is over before Helm could take them.

    A nodegroup that could not be made, or taken away, says so in its row, and that is the end.
    """
    operations = record.operations if record else ()
    return frozenset(operation.id for operation in operations if operation.verb in _GOES_ON)


def is_complete(values: Mapping[str, Any], operation: Operation, request: ClusterRequest) -> bool:
    """Whether an upgrade covers all nodegroups that follow the cluster, not only new ones.

    Then what the machines of all nodegroups have in common comes with it.
    """
    requested = {nodegroup.name for nodegroup in request.node_groups} - request.own_images
    entries = values_live.node_groups(values).items()
    waiting = {name for name, entry in entries if upgrade.is_pinned(entry) and name in requested}
    return CONTROL_PLANE in operation.groups and waiting <= {*operation.groups}


def due_nodegroups(
    values: Mapping[str, Any],
    operation: Operation,
    request: ClusterRequest,
    deferred: Iterable[DeferredChange],
) -> tuple[str, ...]:
    """The nodegroups that take their step now, or took it when a process died before it noted so.

    :param deferred: what upgrades owe nodegroups.
    """
    waiting = waiting_for_control_plane(values, operation, request.own_images)
    if not operation.is_accepted or CONTROL_PLANE not in operation.groups:
        return waiting
    deferred, complete = tuple(deferred), is_complete(values, operation, request)
    return waiting + tuple(
        name
        for name, entry in values_live.node_groups(values).items()
        if name in operation.groups
        and not upgrade.is_pinned(entry)
        and any(
            name in change.groups or (complete and any(change.shared_values)) for change in deferred
        )
    )


def version_skew(record: ReleaseRecord | None, values: Json, own: Collection[str]) -> str:
    """A sentence about nodegroups that run something else than their cluster, "" without any.

    Their rows name the image of the cluster's template, which they follow at the next upgrade.

    :param own: nodegroups with an image of their own, whose rows say so.
    """
    operations = record.operations if record else ()
    waiting = {
        name
        for operation in operations
        for name in waiting_for_control_plane(values, operation, own)
    }
    common, nodegroups_by_version = _runs(values, values), dict[str, list[str]]()
    for name, entry in values_live.node_groups(values).items():
        if upgrade.is_pinned(entry) and name not in own and name not in waiting:
            nodegroups_by_version.setdefault(_runs(entry, values), []).append(f"'{name}'")
    return " ".join(
        f"{_subject(names)} {runs}, and the control plane {common}, until the cluster, or the "
        "nodegroup by its name, is upgraded."
        for runs, names in nodegroups_by_version.items()
        if runs != common
    )


def _subject(nodegroups: Sequence[str]) -> str:
    return (
        f"Nodegroup {nodegroups[0]} runs"
        if len(nodegroups) == 1
        else (f"Nodegroups {', '.join(nodegroups)} run")
    )


def missing_template_changes(record: ReleaseRecord | None, values: Json) -> str:
    """A sentence about nodegroups that upgrades have left out, "" without any.

    Their rows show the labels of the cluster's template, which their machines do not have.
    """
    operations, deferred = (record.operations, record.deferred) if record else ((), ())
    upgrading = {
        name
        for operation in operations
        if operation.verb is Verb.UPGRADE
        for name in operation.groups
    }
    nodegroups = ", ".join(
        f"'{name}'"
        for name in values_live.node_groups(values)
        if name not in upgrading and any(name in operation.groups for operation in deferred)
    )
    return nodegroups and (
        f"Changes of the cluster template are not applied yet to the machines of {nodegroups}: "
        "upgrade each of these nodegroups by name to apply them."
    )


def _runs(entry: Json, values: Json) -> str:
    version = str(entry.get("kubernetesVersion") or values.get("kubernetesVersion") or "")
    image = entry.get("machineImageId") or entry.get("machineImage") or values.get("machineImageId")
    return f"Kubernetes v{version.removeprefix('v')} of image {image}"
