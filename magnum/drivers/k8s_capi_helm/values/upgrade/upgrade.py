# SPDX-License-Identifier: Apache-2.0
"""Values of an upgrade: three-way merge of labels and values, control plane first.

The difference between a render with the old labels and one with the new labels is carried over into
the deployed values. Both renders use the current configuration, so its changes are in neither
difference and never reach a running cluster.

Nodegroups are pinned to their old version and image until the control plane is upgraded, because a
kubelet must not be newer than its API server
(https://kubernetes.io/releases/version-skew-policy/). The pins are in the deployed values, so every
reconciliation sees from them how far the upgrade is. Other changes for nodegroups are deferred
until then (:mod:`deferred`), so that their machines are replaced once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
import copy
from typing import Any

from packaging.version import Version

from magnum.drivers.k8s_capi_helm import labels
from magnum.drivers.k8s_capi_helm.labels.value_types.versions import plain
from magnum.drivers.k8s_capi_helm.model import DeferredChange, Json
from magnum.drivers.k8s_capi_helm.values.tree import live as values_live
from magnum.drivers.k8s_capi_helm.values.tree import merge
from magnum.drivers.k8s_capi_helm.values.tree.live import CONTROL_PLANE
from magnum.drivers.k8s_capi_helm.values.upgrade import deferred, rollout, version_skew

#: What decides which Kubernetes a machine runs.
SOFTWARE = ("kubernetesVersion", "machineImageId", "machineImage")
#: Labels about the image, which is the new template's whatever the cluster was made with.
_OF_THE_IMAGE = ("kube_tag",)


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
    include_shared: bool,
) -> Json:
    """The values with which nodegroups follow the control plane.

    :param max_batch_size: machines of each group that may be away at once.
    :param deferred_changes: what upgrades owe nodegroups.
    :param include_shared: whether what the machines of all nodegroups have in common comes along.
    """
    chosen = frozenset(nodegroups)
    result = deferred.apply(values, chosen, deferred_changes, include_shared=include_shared)
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
    result = unpin_nodegroups(
        live, [nodegroup], max_batch_size, deferred_changes, include_shared=False
    )
    if (version, image) != (plain(str(live.get("kubernetesVersion"))), live.get("machineImageId")):
        values_live.node_groups(result)[nodegroup].update(
            kubernetesVersion=version, machineImageId=image
        )
    return result


def pinned_entry(entry: Json, values: Json, own: Collection[str]) -> Json:
    """A new nodegroup's entry while the control plane is on its way: as old as the others are.

    :param own: nodegroups with an image of their own, which say nothing about the others.
    """
    nodegroups = values_live.node_groups(values)
    pinned = [other for name, other in nodegroups.items() if is_pinned(other) and name not in own]
    if is_pinned(entry) or not pinned:
        return entry
    return {**entry, **_software(max(pinned, key=lambda other: _age(other, values)), values)}


def _age(entry: Mapping[str, Any], values: Mapping[str, Any]) -> Version:
    return version_skew.parse_version(
        str(entry.get("kubernetesVersion") or values.get("kubernetesVersion"))
    )


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
