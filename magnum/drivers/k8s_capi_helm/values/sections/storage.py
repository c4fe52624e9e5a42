# SPDX-License-Identifier: Apache-2.0
"""Values of storage: drivers for Cinder and Manila, storage classes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
import hashlib
import re
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.labels import Labels
from magnum.drivers.k8s_capi_helm.model import Json

#: Longest name of a StorageClass (a DNS subdomain, RFC 1123).
_SUBDOMAIN_LIMIT = 253
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LOOKS_HASHED = re.compile(r".*-[0-9a-f]{8}")
_NO_TYPE_CLASS = "csi-cinder"


#: Where Cinder's chart has the version of each of its programs.
_CINDER_PROGRAMS = {
    "attacher": "csi_attacher_tag",
    "provisioner": "csi_provisioner_tag",
    "snapshotter": "csi_snapshotter_tag",
    "resizer": "csi_resizer_tag",
    "livenessprobe": "csi_liveness_probe_tag",
    "nodeDriverRegistrar": "csi_node_driver_registrar_tag",
    "plugin": "cinder_csi_plugin_tag",
}


def cinder(
    labels: Labels, types: Sequence[str], default: str | None, allowed_topologies: Sequence[str]
) -> Json:
    """The driver for Cinder volumes; arguments as of :func:`classes`.

    :raises errors.InvalidRequest: as of :func:`classes`.
    """
    if not labels.cinder_csi_enabled:
        return {"enabled": False}
    tags = {part: getattr(labels, label) for part, label in _CINDER_PROGRAMS.items()}
    programs = {part: {"image": {"tag": tag}} for part, tag in tags.items() if tag}
    values: Json = {"values": {"csi": programs}} if programs else {}
    return {**values, **classes(labels, types, default, allowed_topologies)}


def manila(labels: Labels) -> Json:
    """The driver for Manila shares, with a storage class if their type is known."""
    values: Json = {"enabled": True}
    if labels.manila_csi_plugin_tag:
        values["values"] = {"csimanila": {"image": {"tag": labels.manila_csi_plugin_tag}}}
    if not labels.manila_csi_share_type:
        return {**values, "defaultStorageClass": {"enabled": False}}
    parameters: Json = {"type": labels.manila_csi_share_type}
    if labels.manila_csi_share_network_id:
        parameters["shareNetworkID"] = labels.manila_csi_share_network_id
    return {**values, "defaultStorageClass": {"enabled": True, "parameters": parameters}}


def classes(
    labels: Labels, types: Sequence[str], default: str | None, allowed_topologies: Sequence[str]
) -> Json:
    """One storage class per volume type, all alike.

    :param types: names of Cinder's volume types, in Cinder's order.
    :param default: the one of them whose class is the cluster's default; None for the first.
    :param allowed_topologies: see :func:`topologies`.
    :raises errors.InvalidRequest: *default* or a topology is wrong: an operator has to correct it.
    """
    if default and default not in types:
        raise errors.InvalidRequest(
            "This cloud's default volume type does not exist in Cinder. The volume type is "
            f"'{default}'. Ask the cloud's operator.",
            "option csi_cinder_default_volume_type in [capi_helm]",
        )
    common = _class_fields(labels, allowed_topologies)
    first = default or (types[0] if types else None)
    chosen = {
        "enabled": True,
        "name": class_name(first) if first else _NO_TYPE_CLASS,
        "isClusterDefault": True,
        **common,
        **({"volumeType": first} if first else {}),
    }
    others = [storage_class for storage_class in types if storage_class != first]
    return {
        "defaultStorageClass": chosen,
        "additionalStorageClasses": [
            {"name": class_name(storage_class), **common, "volumeType": storage_class}
            for storage_class in others
        ],
    }


def _class_fields(labels: Labels, allowed_topologies: Sequence[str]) -> dict[str, Any]:
    """What all storage classes of a cluster have alike."""
    fields: dict[str, Any] = {
        "reclaimPolicy": labels.csi_cinder_reclaim_policy,
        "allowVolumeExpansion": labels.csi_cinder_allow_volume_expansion,
        "volumeBindingMode": labels.csi_cinder_volume_binding_mode,
        "fstype": labels.csi_cinder_fstype,
        "availabilityZone": labels.csi_cinder_availability_zone,
    }
    if allowed := topologies(allowed_topologies):
        fields["allowedTopologies"] = allowed
    return fields


def class_name(volume_type: str) -> str:
    """A StorageClass name for a Cinder volume type: itself where it is a valid name.

    Where it is not, and where it looks like such a result, a hash of the whole is added: two volume
    types never get the same name.
    """
    if (
        len(volume_type) <= _SUBDOMAIN_LIMIT
        and _SUBDOMAIN.fullmatch(volume_type)
        and not _LOOKS_HASHED.fullmatch(volume_type)
    ):
        return volume_type
    head = re.sub(r"[^a-z0-9]+", "-", volume_type.lower())[:200].strip("-") or "type"
    return f"{head}-{hashlib.sha256(volume_type.encode()).hexdigest()[:8]}"


def topologies(texts: Iterable[str]) -> list[Json]:
    """Node labels as a StorageClass's ``allowedTopologies``; values of one label are alternatives.

    :param texts: ``label=value`` each.
    :raises errors.InvalidRequest: a text has another form.
    """
    by_label: dict[str, list[str]] = {}
    for text in texts:
        label, equals, value = (part.strip() for part in text.partition("="))
        if not (label and equals and value):
            raise errors.InvalidRequest(
                "An allowed topology of this cloud for storage classes is invalid. The topology is "
                f"'{text}': expected a node label like "
                "topology.cinder.csi.openstack.org/zone=nova. Ask the cloud's operator.",
                "option csi_cinder_allowed_topologies in [capi_helm]",
            )
        by_label.setdefault(label, []).append(value)
    if not by_label:
        return []
    return [
        {
            "matchLabelExpressions": [
                {"key": label, "values": alternatives} for label, alternatives in by_label.items()
            ]
        }
    ]
