# SPDX-License-Identifier: Apache-2.0
"""What an upgrade changes: labels and values by three-way merge, the control plane first.

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
from magnum.drivers.k8s_capi_helm.values import deferred, merge
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
        spelled = (label.name, *label.aliases) if label else (name,)
        touched = any(own.get(one) != old.get(one) for one in spelled)
        stays = (label is not None and label.immutable) or touched
        if stays and name not in _OF_THE_IMAGE:
            continue
        if name in new:
            result[name] = new[name]
        else:
            result.pop(name, None)
    return result


def check_control_plane(current: str, wanted: str, kept: Mapping[str, str]) -> None:
    """Refuse a version that the control plane cannot go to.

    :param current: version that the control plane has.
    :param kept: version by name of the nodegroups that stay as they are.
    :raises errors.InvalidRequest: a downgrade, a skipped minor release, or a nodegroup that would
        be too old for the new control plane.
    """
    have, want = _parsed(current), _parsed(wanted)
    if want < have:
        raise errors.InvalidRequest(
            "The new template's image has an older Kubernetes version than the cluster. The image "
            f"has v{plain(wanted)}, and the cluster runs v{plain(current)}: a cluster cannot be "
            "downgraded. Choose a newer template."
        )
    if want.major != have.major or want.minor > have.minor + 1:
        raise errors.InvalidRequest(
            "The new template's image skips a minor release of Kubernetes. The image has "
            f"v{plain(wanted)}, and the cluster runs v{plain(current)}. Upgrade to "
            f"v{have.major}.{have.minor + 1} first."
        )
    for name, version in sorted(kept.items()):
        if _parsed(version).minor + _KUBELET_LAG < want.minor:
            raise errors.InvalidRequest(
                f"The Kubernetes version of nodegroup '{name}' is too old for this upgrade. It "
                f"runs v{plain(version)}, more than {_KUBELET_LAG} minor releases before "
                f"v{plain(wanted)}. Upgrade the nodegroup first."
            )


def check_node_group(name: str, current: str, wanted: str, control_plane: str) -> None:
    """Refuse a version that a single nodegroup cannot go to.

    :raises errors.InvalidRequest: a downgrade, or newer than the control plane.
    """
    if _parsed(wanted) < _parsed(current):
        raise errors.InvalidRequest(
            f"The image has an older Kubernetes version than nodegroup '{name}'. The image has "
            f"v{plain(wanted)}, and the nodegroup runs v{plain(current)}: a nodegroup cannot be "
            "downgraded."
        )
    if _parsed(wanted) > _parsed(control_plane):
        raise errors.InvalidRequest(
            "The image has a newer Kubernetes version than the control plane. The image has "
            f"v{plain(wanted)}, and the control plane v{plain(control_plane)}. Upgrade the cluster "
            "first."
        )


def check_new_node_group(name: str, version: str, control_plane: str) -> None:
    """Refuse an image of its own with which a new nodegroup could not live in its cluster.

    :raises errors.InvalidRequest: newer than the control plane, or too old for it.
    """
    have, want = _parsed(control_plane), _parsed(version)
    if want > have:
        raise errors.InvalidRequest(
            f"The image of nodegroup '{name}' has a newer Kubernetes version than the control "
            f"plane. The image has v{plain(version)}, and the control plane "
            f"v{plain(control_plane)}. Choose an older image, or upgrade the cluster first."
        )
    if want.major != have.major or want.minor + _KUBELET_LAG < have.minor:
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


def initial_values(live: Json, base: Json, theirs: Json) -> Json:
    """The values with which an upgrade of the control plane begins.

    :param base: a render with the labels that the cluster has, *theirs* with those it is to have;
        both with the new image.
    :returns: new values; the machines of every nodegroup stay as they are, pinned to what they
        run, until it is released.
    """
    groups = values_live.node_groups(live)
    pins = {name: _software(entry, live) for name, entry in groups.items()}
    result: Json = merge.carry_over(live, base, theirs)
    if groups:
        result = deferred.hold_back(result, live)
    for key in ("kubernetesVersion", "machineImageId", "osDistro"):
        result[key] = theirs[key]
    result.pop("machineImage", None)
    result["controlPlane"] = {
        key: value for key, value in result["controlPlane"].items() if key not in SOFTWARE
    }
    groups = _counted(groups, base, theirs)
    result["nodeGroups"] = [{**entry, **pins[name]} for name, entry in groups.items()]
    _add_storage_classes(result, theirs)
    return result


def unpin_nodegroups(
    values: Json,
    groups: Iterable[str],
    batch: int,
    owing: Iterable[DeferredChange] = (),
    *,
    shared: bool,
) -> Json:
    """The values with which nodegroups follow the control plane.

    :param batch: machines of each group that may be away at once.
    :param owing: what upgrades owe nodegroups.
    :param shared: whether what the machines of all nodegroups have in common comes along.
    """
    chosen = frozenset(groups)
    result = deferred.apply(values, chosen, owing, shared=shared)
    for entry in result.get("nodeGroups") or ():
        if entry["name"] in chosen:
            for key in SOFTWARE:
                entry.pop(key, None)
            _set_batch(entry, batch)
    return result


def upgrade_nodegroup(
    live: Json,
    group: str,
    version: str,
    image: str,
    batch: int,
    owing: Iterable[DeferredChange] = (),
) -> Json:
    """The values with which one nodegroup goes to an image of its own, or back to the cluster's."""
    result = unpin_nodegroups(live, [group], batch, owing, shared=False)
    if (version, image) != (plain(str(live.get("kubernetesVersion"))), live.get("machineImageId")):
        values_live.node_groups(result)[group].update(
            kubernetesVersion=version, machineImageId=image
        )
    return result


def waiting_nodegroups(entry: Json, values: Json, own: Collection[str]) -> Json:
    """A new nodegroup's entry while the control plane is on its way: as old as the others are.

    :param own: nodegroups with an image of their own, which say nothing about the others.
    """
    groups = values_live.node_groups(values)
    pinned = [one for name, one in groups.items() if is_pinned(one) and name not in own]
    if is_pinned(entry) or not pinned:
        return entry
    return {**entry, **_software(max(pinned, key=lambda one: _age(one, values)), values)}


def _age(entry: Mapping[str, Any], values: Mapping[str, Any]) -> Version:
    return _parsed(str(entry.get("kubernetesVersion") or values.get("kubernetesVersion")))


def _counted(groups: Mapping[str, Json], base: Json, theirs: Json) -> dict[str, Json]:
    """Entries with what is new about their numbers, which replaces no machine.

    It cannot wait: who sets the number, the autoscaler or the row, is what the row says already.
    """
    old, new = values_live.node_groups(base), values_live.node_groups(theirs)

    def numbers(entry: Mapping[str, Any]) -> Json:
        return {key: value for key, value in entry.items() if key in values_live.COUNT_KEYS}

    result = {}
    for name, entry in groups.items():
        result[name] = dict(entry)
        if name in old and name in new:
            rest = {key: value for key, value in entry.items() if key not in values_live.COUNT_KEYS}
            counts = merge.carry_over(*(numbers(one[name]) for one in (groups, old, new)))
            result[name] = {**rest, **counts}
    return result


def _add_storage_classes(values: Json, theirs: Json) -> None:
    """A class that is there can never change (Kubernetes refuses it); new ones are added."""
    place = ("addons", "openstack", "csiCinder")
    mine, new = values, theirs
    for key in place:
        mine, new = mine.setdefault(key, {}), new.get(key) or {}
    listed = list(mine.get("additionalStorageClasses") or ())
    known = {one["name"] for one in listed} | {(mine.get("defaultStorageClass") or {}).get("name")}
    default = {
        key: value
        for key, value in (new.get("defaultStorageClass") or {}).items()
        if key not in ("enabled", "isClusterDefault")
    }
    offered = [*([default] if default else []), *(new.get("additionalStorageClasses") or ())]
    added = [one for one in offered if one["name"] not in known]
    if added:
        mine["additionalStorageClasses"] = listed + copy.deepcopy(added)


def _set_batch(entry: Json, batch: int) -> None:
    """A strategy that is not just a batch of an upgrade before was given by somebody else."""
    have = entry.get("rolloutStrategy")
    rolling = have.get("rollingUpdate") if isinstance(have, dict) and len(have) == 1 else None
    if isinstance(rolling, dict) and [*rolling] == ["maxUnavailable"]:
        del entry["rolloutStrategy"]
    if batch > 1:
        wanted = {"rolloutStrategy": {"rollingUpdate": {"maxUnavailable": batch}}}
        entry.update(merge.merge(entry, wanted))


def _software(entry: Mapping[str, Any], live: Mapping[str, Any]) -> Json:
    found = {key: entry.get(key) or live.get(key) for key in SOFTWARE}
    return {key: value for key, value in found.items() if value}


def is_pinned(entry: Mapping[str, Any]) -> bool:
    """Whether a nodegroup's entry says itself what its machines run."""
    return any(entry.get(key) for key in SOFTWARE)


def _parsed(version: str) -> Version:
    found = parse(version)
    if found is None:
        raise errors.InvalidRequest(
            "The Kubernetes version of the image is not valid, so the upgrade cannot be checked. "
            f"The version is '{version}': expected one like v1.34.4."
        )
    return found
