# SPDX-License-Identifier: Apache-2.0
"""What is refused of a single nodegroup before anything is touched."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from magnum.drivers.k8s_capi_helm import conf as conf_module
from magnum.drivers.k8s_capi_helm import errors, labels
from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.labels import kubernetes
from magnum.drivers.k8s_capi_helm.magnum_objects.reader import docker_volume_size, MASTER
from magnum.drivers.k8s_capi_helm.magnum_objects.types import Cluster, NodeGroup
from magnum.drivers.k8s_capi_helm.model import names, NodeGroupRequest, request

#: Roles of Nodes that are the control plane's.
_CONTROL_PLANE_ROLES = (MASTER, "control-plane")
#: Labels or taints of a Node; each is some hundred characters of the release, for each nodegroup.
_MOST_MARKS = 256


def validate_new_nodegroup(row: NodeGroup, cluster: Cluster, conf: Settings) -> None:
    """Refuse what no nodegroup can be.

    :raises errors.InvalidRequest: naming group, field and value.
    """
    if not names.is_node_group(row.name):
        raise errors.InvalidRequest(
            f"The name of the nodegroup is invalid. The name is '{row.name}': expected lower-case "
            "letters, digits and single hyphens, beginning and ending with a letter or digit, at "
            "most 63 characters."
        )
    if not row.flavor_id:
        raise errors.InvalidRequest(
            f"Nodegroup '{row.name}' has no flavor. Name one of 'openstack flavor list', with "
            "--flavor and --master-flavor."
        )
    if row.role != MASTER:
        _check_role(row)
        _check_labels(row, cluster, conf)
    validate_details(row)
    least, most = row.min_node_count or 0, row.max_node_count
    if most is not None and not least <= row.node_count <= most:
        raise errors.InvalidRequest(
            f"Nodegroup '{row.name}' has node_count {row.node_count}, outside of its bounds "
            f"{least} to {most}. Change the count or the bounds."
        )


def validate_details(row: NodeGroup) -> None:
    """Refuse labels and taints that no Node could have.

    :raises errors.InvalidRequest: naming group, field and value.
    """
    for field in ("node_labels", "node_taints"):
        if len(getattr(row, field) or ()) > _MOST_MARKS:
            raise errors.InvalidRequest(
                f"Nodegroup '{row.name}' has {len(getattr(row, field))} entries in {field}, and at "
                f"most {_MOST_MARKS} are allowed. Leave some out."
            )
    for key, value in (row.node_labels or {}).items():
        _check_mark(row.name, "node_labels", key, value)
    for taint in row.node_taints or ():
        _check_mark(row.name, "node_taints", taint["key"], taint.get("value") or "")


def validate_chart(row: NodeGroup, cluster: Cluster, conf: Settings, family: str) -> None:
    """Refuse what only this project's chart can do for a nodegroup, where the chart is another.

    :param family: of the chart that makes it, "" for a foreign one.
    :raises errors.InvalidRequest: naming group, field and value.
    """
    if family == names.CHART_FAMILY:
        return
    texts = cluster.labels or {}
    typed = labels.parse(texts, conf_module.label_defaults(conf), known=texts)
    mine = _labels(row, cluster, conf) if row.role != MASTER else typed
    if docker_volume_size(row, cluster):
        _cannot(row, "docker_volume_size", docker_volume_size(row, cluster))
    if row.role not in (MASTER, "worker"):
        _cannot(row, "role", row.role)
    if mine.node_annotations and row.role != MASTER:
        _cannot(
            row, "node_annotations", (row.labels or {}).get("node_annotations") or "the cluster's"
        )
    # Other charts of this name take false and 0 of a nodegroup for "as the cluster has it".
    if typed.auto_healing_enabled and not mine.auto_healing_enabled:
        _cannot(row, "auto_healing_enabled", "false")
    if typed.boot_volume_size and not mine.boot_volume_size:
        _cannot(row, "boot_volume_size", "0")
    validate_taints(row, family)


def validate_disk(row: NodeGroup, cluster: Cluster, *, known: bool) -> None:
    """Refuse a disk for images and containers where the chart has no key for it.

    :param known: whether it has.
    :raises errors.InvalidRequest: naming group and size.
    """
    if docker_volume_size(row, cluster) and not known:
        _cannot(row, "docker_volume_size", docker_volume_size(row, cluster))


def validate_new_labels(
    before: Iterable[NodeGroupRequest], after: Iterable[NodeGroupRequest], family: str
) -> None:
    """Refuse labels of a new template that the chart cannot follow.

    :param family: of the chart that the upgrade leads to, "" for a foreign one.
    :raises errors.InvalidRequest: naming group, label and value.
    """
    was = {group.name: request.node_annotations(group) for group in before}
    for group in after:
        wanted = request.node_annotations(group)
        if family != names.CHART_FAMILY and wanted and wanted != was.get(group.name):
            texts = ",".join(f"{key}={value}" for key, value in wanted)
            _cannot(group, "node_annotations", texts)


def validate_taints(row: NodeGroup, family: str) -> None:
    """Refuse taints where the chart cannot set them.

    :raises errors.InvalidRequest: naming group and field.
    """
    if row.node_taints and family != names.CHART_FAMILY:
        _cannot(row, "node_taints", row.node_taints)


def _labels(row: NodeGroup, cluster: Cluster, conf: Settings) -> labels.Labels:
    defaults = conf_module.label_defaults(conf)
    return labels.parse_node_group(row.labels or {}, cluster.labels or {}, defaults)


def _check_labels(row: NodeGroup, cluster: Cluster, conf: Settings) -> None:
    own, copied = row.labels or {}, cluster.labels or {}
    # Magnum copies the cluster's, which may have more from before and from upgrades.
    new = {name: text for name, text in own.items() if copied.get(name) != text}
    labels.check_new(new, f"Nodegroup '{row.name}'")
    labels.check_node_group(own, copied, conf_module.label_defaults(conf))
    mine = _labels(row, cluster, conf)
    sizes = {
        "boot_volume_type": ("boot_volume_size", mine.boot_volume_size),
        "boot_volume_availability_zone": ("boot_volume_size", mine.boot_volume_size),
        "docker_volume_type": ("docker_volume_size", docker_volume_size(row, cluster)),
    }
    for label, (field, size) in sizes.items():
        if own.get(label, "").strip() and own[label] != copied.get(label) and not size:
            raise errors.InvalidLabel(
                label, own[label], f"nothing, because the nodegroup has no {field}"
            )


def _check_role(row: NodeGroup) -> None:
    if row.role in _CONTROL_PLANE_ROLES:
        raise errors.InvalidRequest(
            f"Nodegroup '{row.name}' has the role '{row.role}', which is reserved for the control "
            "plane. Choose another one."
        )
    if not (row.role and kubernetes.is_label_value(row.role)):
        raise errors.InvalidRequest(
            f"The role of nodegroup '{row.name}' is invalid. The role is '{row.role}', which "
            "becomes a part of the label node-role.kubernetes.io/ROLE of its Nodes: expected at "
            "most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or "
            "digit."
        )


def _check_mark(group: str, field: str, key: str, value: str) -> None:
    if not (kubernetes.is_label_key(key) and kubernetes.is_label_value(value)):
        raise errors.InvalidRequest(
            f"An entry of {field} of nodegroup '{group}' is invalid. The entry is '{key}={value}': "
            "a key is like example.org/name, key and value have at most 63 letters, digits, '-', "
            "'_' and '.', beginning and ending with a letter or digit."
        )


def _cannot(row: NodeGroup | NodeGroupRequest, field: str, value: Any) -> None:
    raise errors.InvalidRequest(
        f"The chart of this cluster does not support {field} of nodegroup '{row.name}'. The value "
        f"is {value}. Leave it out, or ask the cloud's operator for another chart."
    )
