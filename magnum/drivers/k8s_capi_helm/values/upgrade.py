# SPDX-License-Identifier: Apache-2.0
"""Values of an upgrade: three-way merge of labels and values, control plane first.

Values are merged like the branches of a text: what differs between a render with the old labels and
one with the new labels is carried over into the live values. Both renders are of today's
configuration, so its changes are in neither difference and never reach a running cluster.

Nodegroups are pinned to their old version and image until the control plane is through, because a
kubelet must not be newer than its API server
(https://kubernetes.io/releases/version-skew-policy/). The pins stand in the live values: whoever
comes next sees from them how far the upgrade is. What else is new for nodegroups is owed until
then, see :mod:`owed`, so that their machines are replaced once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
import copy
from typing import Any

from packaging.version import Version

from magnum.drivers.k8s_capi_helm import errors, labels
from magnum.drivers.k8s_capi_helm.labels.versions import parse, plain
from magnum.drivers.k8s_capi_helm.model import DeferredChange, Json
from magnum.drivers.k8s_capi_helm.values import deferred, merge, rollout
from magnum.drivers.k8s_capi_helm.values import live as values_live
from magnum.drivers.k8s_capi_helm.values.live import CONTROL_PLANE

#: What decides which Kubernetes a machine runs.
SOFTWARE = ("kubernetesVersion", "machineImageId", "machineImage")
#: Labels about the image, which is the new template's whatever the cluster was made with.
_OF_THE_IMAGE = ("kube_tag",)
#: Minor releases that a kubelet may be behind its API server.
_KUBELET_LAG = 3


def merged_labels(
    old: Mapping[str, str], new: Mapping[str, str], own: Mapping[str, str]
) -> dict[str, str]:
    """The labels of a cluster (or nodegroup) after an upgrade.

    A label that is still as the old template (or cluster) has it takes the new one's value; one
    that the tenant set or took away, by whichever of its names, stays so, and so does one that
    cannot be changed in a running cluster. One about the image goes with the image: otherwise a
    cluster that was made with it could never be upgraded.

    :param old: labels of the template that the cluster has, *new* of the one it is to have.
    :param own: labels of the cluster.
    """
    result = dict(own)
    for name in sorted({*old, *new, *_OF_THE_IMAGE}):
        label = labels.BY_NAME.get(name)
        aliases = (label.name, *label.aliases) if label else (name,)
        is_changed = any(own.get(alias) != old.get(alias) for alias in aliases)
        is_kept = (label is not None and label.immutable) or is_changed
        if is_kept and name not in _OF_THE_IMAGE:
            continue
        if name in new:
            result[name] = new[name]
        else:
            result.pop(name, None)
    return result


def check_control_plane(current: str, target: str, nodegroup_versions: Mapping[str, str]) -> None:
    """Refuse a version that the control plane cannot go to.

    :param current: version that the control plane has.
    :param nodegroup_versions: version by name of the nodegroups that stay as they are.
    :raises errors.InvalidRequest: a downgrade, a skipped minor release, or a nodegroup that would
        be too old for the new control plane.
    """
    current_version, target_version = _parsed(current), _parsed(target)
    if target_version < current_version:
        raise errors.InvalidRequest(
            "The new template's image has an older Kubernetes version than the cluster. The image "
            f"has v{plain(target)}, and the cluster runs v{plain(current)}: a cluster cannot be "
            "downgraded. Choose a newer template."
        )
    if (
        target_version.major != current_version.major
        or target_version.minor > current_version.minor + 1
    ):
        raise errors.InvalidRequest(
            "The new template's image skips a minor release of Kubernetes. The image has "
            f"v{plain(target)}, and the cluster runs v{plain(current)}. Upgrade to "
            f"v{current_version.major}.{current_version.minor + 1} first."
        )
    for name, version in sorted(nodegroup_versions.items()):
        if _parsed(version).minor + _KUBELET_LAG < target_version.minor:
            raise errors.InvalidRequest(
                f"The Kubernetes version of nodegroup '{name}' is too old for this upgrade. It "
                f"runs v{plain(version)}, more than {_KUBELET_LAG} minor releases before "
                f"v{plain(target)}. Upgrade the nodegroup first."
            )


def check_nodegroup_version(name: str, current: str, target: str, control_plane: str) -> None:
    """Refuse a version that a single nodegroup cannot go to.

    :raises errors.InvalidRequest: a downgrade, or newer than the control plane.
    """
    if _parsed(target) < _parsed(current):
        raise errors.InvalidRequest(
            f"The image has an older Kubernetes version than nodegroup '{name}'. The image has "
            f"v{plain(target)}, and the nodegroup runs v{plain(current)}: a nodegroup cannot be "
            "downgraded."
        )
    if _parsed(target) > _parsed(control_plane):
        raise errors.InvalidRequest(
            "The image has a newer Kubernetes version than the control plane. The image has "
            f"v{plain(target)}, and the control plane v{plain(control_plane)}. Upgrade the cluster "
            "first."
        )


def check_new_nodegroup(name: str, version: str, control_plane: str) -> None:
    """Refuse an image of its own with which a new nodegroup could not live in its cluster.

    :raises errors.InvalidRequest: newer than the control plane, or too old for it.
    """
    current_version, image_version = _parsed(control_plane), _parsed(version)
    if image_version > current_version:
        raise errors.InvalidRequest(
            f"The image of nodegroup '{name}' has a newer Kubernetes version than the control "
            f"plane. The image has v{plain(version)}, and the control plane "
            f"v{plain(control_plane)}. Choose an older image, or upgrade the cluster first."
        )
    if (
        image_version.major != current_version.major
        or image_version.minor + _KUBELET_LAG < current_version.minor
    ):
        raise errors.InvalidRequest(
            f"The Kubernetes version of nodegroup '{name}' is too old for the control plane. Its "
            f"image has v{plain(version)}, more than {_KUBELET_LAG} minor releases before "
            f"v{plain(control_plane)}. Choose a newer image."
        )


def versions(values: Mapping[str, Any]) -> dict[str, str]:
    """Kubernetes version by nodegroup, and of :data:`CONTROL_PLANE`, as the live values have it."""
    common = values.get("kubernetesVersion") or ""
    own = {CONTROL_PLANE: values.get("controlPlane") or {}, **values_live.node_groups(values)}
    return {name: str(entry.get("kubernetesVersion") or common) for name, entry in own.items()}


def initial_values(live: Json, base: Json, target: Json) -> Json:
    """The values with which an upgrade of the control plane begins.

    :param base: a render with the labels that the cluster has, *target* with those it is to have;
        both with the new image.
    :returns: new values; the machines of every nodegroup stay as they are, pinned to what they
        run, until it is released.
    """
    nodegroups = values_live.node_groups(live)
    pins = {name: _software(entry, live) for name, entry in nodegroups.items()}
    result: Json = merge.carry_over(live, base, target)
    if nodegroups:
        result = rollout.keep_machines(result, live)
    for key in ("kubernetesVersion", "machineImageId", "osDistro"):
        result[key] = target[key]
    result.pop("machineImage", None)
    result["controlPlane"] = {
        key: value for key, value in result["controlPlane"].items() if key not in SOFTWARE
    }
    nodegroups = _with_counts(nodegroups, base, target)
    result["nodeGroups"] = [{**entry, **pins[name]} for name, entry in nodegroups.items()]
    _add_storage_classes(result, target)
    return result


def unpin_nodegroups(
    values: Json,
    nodegroups: Iterable[str],
    max_batch_size: int,
    deferred_changes: Iterable[DeferredChange] = (),
    *,
    shared: bool,
) -> Json:
    """The values with which nodegroups follow the control plane.

    :param max_batch_size: machines of each group that may be away at once.
    :param deferred_changes: what upgrades owe nodegroups.
    :param shared: whether what the machines of all nodegroups have in common comes along.
    """
    chosen = frozenset(nodegroups)
    result = deferred.apply(values, chosen, deferred_changes, shared=shared)
    for entry in result.get("nodeGroups") or ():
        if entry["name"] in chosen:
            for key in SOFTWARE:
                entry.pop(key, None)
            _set_max_batch_size(entry, max_batch_size)
    return result


def upgrade_nodegroup(
    live: Json,
    nodegroup: str,
    version: str,
    image: str,
    max_batch_size: int,
    deferred_changes: Iterable[DeferredChange] = (),
) -> Json:
    """The values with which one nodegroup goes to an image of its own, or back to the cluster's."""
    result = unpin_nodegroups(live, [nodegroup], max_batch_size, deferred_changes, shared=False)
    if (version, image) != (plain(str(live.get("kubernetesVersion"))), live.get("machineImageId")):
        values_live.node_groups(result)[nodegroup].update(
            kubernetesVersion=version, machineImageId=image
        )
    return result


def waiting_nodegroups(entry: Json, values: Json, own: Collection[str]) -> Json:
    """A new nodegroup's entry while the control plane is on its way: as old as the others are.

    :param own: nodegroups with an image of their own, which say nothing about the others.
    """
    nodegroups = values_live.node_groups(values)
    pinned = [other for name, other in nodegroups.items() if is_pinned(other) and name not in own]
    if is_pinned(entry) or not pinned:
        return entry
    return {**entry, **_software(max(pinned, key=lambda other: _age(other, values)), values)}


def _age(entry: Mapping[str, Any], values: Mapping[str, Any]) -> Version:
    return _parsed(str(entry.get("kubernetesVersion") or values.get("kubernetesVersion")))


def _with_counts(nodegroups: Mapping[str, Json], base: Json, target: Json) -> dict[str, Json]:
    """Entries with what is new about their numbers, which replaces no machine.

    It cannot wait: who sets the number, the autoscaler or the row, is what the row says already.
    """
    old, new = values_live.node_groups(base), values_live.node_groups(target)

    def numbers(entry: Mapping[str, Any]) -> Json:
        return {key: value for key, value in entry.items() if key in values_live.COUNT_KEYS}

    result = {}
    for name, entry in nodegroups.items():
        result[name] = dict(entry)
        if name in old and name in new:
            others = {
                key: value for key, value in entry.items() if key not in values_live.COUNT_KEYS
            }
            counts = merge.carry_over(
                *(numbers(entries[name]) for entries in (nodegroups, old, new))
            )
            result[name] = {**others, **counts}
    return result


def _add_storage_classes(values: Json, target: Json) -> None:
    """A class that is there can never change (Kubernetes refuses it); new ones are added."""
    path = ("addons", "openstack", "csiCinder")
    current, new = values, target
    for key in path:
        current, new = current.setdefault(key, {}), new.get(key) or {}
    classes = list(current.get("additionalStorageClasses") or ())
    names = {storage_class["name"] for storage_class in classes} | {
        (current.get("defaultStorageClass") or {}).get("name")
    }
    default = {
        key: value
        for key, value in (new.get("defaultStorageClass") or {}).items()
        if key not in ("enabled", "isClusterDefault")
    }
    available = [*([default] if default else []), *(new.get("additionalStorageClasses") or ())]
    added = [storage_class for storage_class in available if storage_class["name"] not in names]
    if added:
        current["additionalStorageClasses"] = classes + copy.deepcopy(added)


def _set_max_batch_size(entry: Json, max_batch_size: int) -> None:
    """A strategy that is not just a batch of an upgrade before was given by somebody else."""
    strategy = entry.get("rolloutStrategy")
    rolling = (
        strategy.get("rollingUpdate") if isinstance(strategy, dict) and len(strategy) == 1 else None
    )
    if isinstance(rolling, dict) and [*rolling] == ["maxUnavailable"]:
        del entry["rolloutStrategy"]
    if max_batch_size > 1:
        strategy_values = {"rolloutStrategy": {"rollingUpdate": {"maxUnavailable": max_batch_size}}}
        entry.update(merge.merge(entry, strategy_values))


def _software(entry: Mapping[str, Any], live: Mapping[str, Any]) -> Json:
    software = {key: entry.get(key) or live.get(key) for key in SOFTWARE}
    return {key: value for key, value in software.items() if value}


def is_pinned(entry: Mapping[str, Any]) -> bool:
    """Whether a nodegroup's entry says itself what its machines run."""
    return any(entry.get(key) for key in SOFTWARE)


def _parsed(version: str) -> Version:
    parsed = parse(version)
    if parsed is None:
        raise errors.InvalidRequest(
            "The Kubernetes version of the image is not valid, so the upgrade cannot be checked. "
            f"The version is '{version}': expected one like v1.34.4."
        )
    return parsed
