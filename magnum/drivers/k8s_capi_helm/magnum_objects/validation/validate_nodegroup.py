# SPDX-License-Identifier: Apache-2.0
"""Refuse requests for a single nodegroup."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from magnum.drivers.k8s_capi_helm import conf as conf_module
from magnum.drivers.k8s_capi_helm import errors, labels
from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.labels.value_types import kubernetes
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import node_metadata
from magnum.drivers.k8s_capi_helm.magnum_objects.rows.reader import docker_volume_size, MASTER
from magnum.drivers.k8s_capi_helm.magnum_objects.rows.types import Cluster, NodeGroup
from magnum.drivers.k8s_capi_helm.model import names, NodeGroupRequest, request

#: Roles of Nodes that are the control plane's.
_CONTROL_PLANE_ROLES = (MASTER, "control-plane")
#: Labels or taints of a Node; each is some hundred characters of the release, for each nodegroup.
_MOST_MARKS = 256


def validate_new_nodegroup(nodegroup: NodeGroup, cluster: Cluster, conf: Settings) -> None:
    """Refuse what no nodegroup can be.

    :raises errors.InvalidRequest: naming group, field and value.
    """
    if not names.is_node_group(nodegroup.name):
        raise errors.InvalidRequest(
            f"The name of the nodegroup is invalid. The name is '{nodegroup.name}': expected "
            "lower-case letters, digits and single hyphens, beginning and ending with a letter or "
            "digit, at most 63 characters."
        )
    if not nodegroup.flavor_id:
        raise errors.InvalidRequest(
            f"Nodegroup '{nodegroup.name}' has no flavor. Name one of 'openstack flavor list', "
            "with --flavor and --master-flavor."
        )
    if nodegroup.role != MASTER:
        _check_role(nodegroup)
        _check_labels(nodegroup, cluster, conf)
    validate_details(nodegroup)
    minimum, maximum = nodegroup.min_node_count or 0, nodegroup.max_node_count
    if maximum is not None and not minimum <= nodegroup.node_count <= maximum:
        raise errors.InvalidRequest(
            f"Nodegroup '{nodegroup.name}' has node_count {nodegroup.node_count}, outside of its "
            f"bounds {minimum} to {maximum}. Change the count or the bounds."
        )


def validate_details(nodegroup: NodeGroup) -> None:
    """Refuse labels and taints that no Node could have.

    :raises errors.InvalidRequest: naming group, field and value.
    """
    labels_by_key = node_metadata.node_labels(nodegroup)
    taints = node_metadata.node_taints(nodegroup)
    for field, marks in (("node_labels", labels_by_key), ("node_taints", taints)):
        if len(marks) > _MOST_MARKS:
            raise errors.InvalidRequest(
                f"Nodegroup '{nodegroup.name}' has {len(marks)} entries in "
                f"{field}, and at most {_MOST_MARKS} are allowed. Leave some out."
            )
    for key, value in labels_by_key.items():
        _check_metadata(nodegroup.name, "node_labels", key, value)
    for taint in taints:
        _check_metadata(nodegroup.name, "node_taints", taint["key"], taint.get("value") or "")


def validate_chart(nodegroup: NodeGroup, cluster: Cluster, conf: Settings, family: str) -> None:
    """Refuse what only this project's chart can do for a nodegroup, where the chart is another.

    :param family: of the chart that makes it, "" for a foreign one.
    :raises errors.InvalidRequest: naming group, field and value.
    """
    if family == names.CHART_FAMILY:
        return
    texts = cluster.labels or {}
    typed = labels.parse(texts, conf_module.label_defaults(conf), running_labels=texts)
    nodegroup_labels = _labels(nodegroup, cluster, conf) if nodegroup.role != MASTER else typed
    if docker_volume_size(nodegroup, cluster):
        _refuse_unsupported(nodegroup, "docker_volume_size", docker_volume_size(nodegroup, cluster))
    if nodegroup.role not in (MASTER, "worker"):
        _refuse_unsupported(nodegroup, "role", nodegroup.role)
    if nodegroup_labels.node_annotations and nodegroup.role != MASTER:
        _refuse_unsupported(
            nodegroup,
            "node_annotations",
            (nodegroup.labels or {}).get("node_annotations") or "the cluster's",
        )
    # Other charts of this name take false and 0 of a nodegroup for "as the cluster has it".
    if typed.auto_healing_enabled and not nodegroup_labels.auto_healing_enabled:
        _refuse_unsupported(nodegroup, "auto_healing_enabled", "false")
    if typed.boot_volume_size and not nodegroup_labels.boot_volume_size:
        _refuse_unsupported(nodegroup, "boot_volume_size", "0")
    validate_taints(nodegroup, family)


def validate_disk(nodegroup: NodeGroup, cluster: Cluster, *, is_supported: bool) -> None:
    """Refuse a disk for images and containers where the chart has no key for it.

    :param is_supported: whether it has.
    :raises errors.InvalidRequest: naming group and size.
    """
    if docker_volume_size(nodegroup, cluster) and not is_supported:
        _refuse_unsupported(nodegroup, "docker_volume_size", docker_volume_size(nodegroup, cluster))


def validate_new_labels(
    before: Iterable[NodeGroupRequest], after: Iterable[NodeGroupRequest], family: str
) -> None:
    """Refuse labels of a new template that the chart cannot follow.

    :param family: of the chart that the upgrade leads to, "" for a foreign one.
    :raises errors.InvalidRequest: naming group, label and value.
    """
    previous = {nodegroup.name: request.node_annotations(nodegroup) for nodegroup in before}
    for nodegroup in after:
        annotations = request.node_annotations(nodegroup)
        if (
            family != names.CHART_FAMILY
            and annotations
            and annotations != previous.get(nodegroup.name)
        ):
            texts = ",".join(f"{key}={value}" for key, value in annotations)
            _refuse_unsupported(nodegroup, "node_annotations", texts)


def validate_taints(nodegroup: NodeGroup, family: str) -> None:
    """Refuse taints where the chart cannot set them.

    :raises errors.InvalidRequest: naming group and field.
    """
    taints = node_metadata.node_taints(nodegroup)
    if taints and family != names.CHART_FAMILY:
        _refuse_unsupported(nodegroup, "node_taints", taints)


def _labels(nodegroup: NodeGroup, cluster: Cluster, conf: Settings) -> labels.Labels:
    defaults = conf_module.label_defaults(conf)
    return labels.parse_nodegroup(nodegroup.labels or {}, cluster.labels or {}, defaults)


def _check_labels(nodegroup: NodeGroup, cluster: Cluster, conf: Settings) -> None:
    own, cluster_labels = nodegroup.labels or {}, cluster.labels or {}
    # Magnum copies the cluster's, which may have more from before and from upgrades.
    new = {name: text for name, text in own.items() if cluster_labels.get(name) != text}
    labels.check_new(new, f"Nodegroup '{nodegroup.name}'")
    labels.check_nodegroup(own, cluster_labels, conf_module.label_defaults(conf))
    nodegroup_labels = _labels(nodegroup, cluster, conf)
    sizes = {
        "boot_volume_type": ("boot_volume_size", nodegroup_labels.boot_volume_size),
        "boot_volume_availability_zone": ("boot_volume_size", nodegroup_labels.boot_volume_size),
        "docker_volume_type": ("docker_volume_size", docker_volume_size(nodegroup, cluster)),
    }
    for label, (field, size) in sizes.items():
        if own.get(label, "").strip() and own[label] != cluster_labels.get(label) and not size:
            raise errors.InvalidLabel(
                label, own[label], f"no value, because the nodegroup has no {field}"
            )


def _check_role(nodegroup: NodeGroup) -> None:
    if nodegroup.role in _CONTROL_PLANE_ROLES:
        raise errors.InvalidRequest(
            f"Nodegroup '{nodegroup.name}' has the role '{nodegroup.role}', which is reserved for "
            "the control plane. Choose another one."
        )
    if not (nodegroup.role and kubernetes.is_label_value(nodegroup.role)):
        raise errors.InvalidRequest(
            f"The role of nodegroup '{nodegroup.name}' is invalid. The role is '{nodegroup.role}', "
            "which becomes a part of the label node-role.kubernetes.io/ROLE of its Nodes: expected "
            "at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or "
            "digit."
        )


def _check_metadata(nodegroup: str, field: str, key: str, value: str) -> None:
    if not (kubernetes.is_label_key(key) and kubernetes.is_label_value(value)):
        raise errors.InvalidRequest(
            f"An entry of {field} of nodegroup '{nodegroup}' is invalid. The entry is "
            f"'{key}={value}': a key is like example.org/name, key and value have at most 63 "
            "letters, digits, '-', '_' and '.', beginning and ending with a letter or digit."
        )


def _refuse_unsupported(nodegroup: NodeGroup | NodeGroupRequest, field: str, value: Any) -> None:
    raise errors.InvalidRequest(
        f"The chart of this cluster does not support {field} of nodegroup '{nodegroup.name}'. The "
        f"value is {value}. Leave it out, or ask the cloud's operator for another chart."
    )
