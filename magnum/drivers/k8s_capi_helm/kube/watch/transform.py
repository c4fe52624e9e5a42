# SPDX-License-Identifier: Apache-2.0
"""Reduce watched objects to the fields that determine a status."""

from __future__ import annotations

from typing import Any

from magnum.drivers.k8s_capi_helm.model import addons, conditions, Json, names, observed

#: Of ``metadata``; what is left out is above all managedFields, the longest part of most objects.
_METADATA = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "labels",
    "annotations",
    "creationTimestamp",
    "deletionTimestamp",
    "finalizers",
    "ownerReferences",
)
#: Annotations that hold a copy of the whole object.
_COPIES = ("kubectl.kubernetes.io/last-applied-configuration",)
#: Of a kind's ``spec``: parts that are long, and that no question is about.
_LONG = {
    names.CONTROL_PLANE.name: ("kubeadmConfigSpec",),
    names.OPENSTACK_CLUSTER.name: ("managedSecurityGroups",),
}
_ADDONS = (names.HELM_RELEASE, names.MANIFESTS)
_EVENT = (
    "involvedObject",
    "reason",
    "message",
    "type",
    "series",
    "lastTimestamp",
    "eventTime",
)
_REFERENCE = ("kind", "name", "namespace")


def transform(kind: names.Kind, obj: Json) -> Json:
    """A new object with the parts of *obj* that are judged; they are shared with it."""
    metadata = _only(obj.get("metadata") or {}, _METADATA)
    if "annotations" in metadata:
        metadata["annotations"] = _without(metadata["annotations"], _COPIES)
    trimmed: Json = {
        "apiVersion": obj.get("apiVersion"),
        "kind": obj.get("kind") or kind.name,
        "metadata": metadata,
    }
    if kind == names.LEASE:
        # Only its version counts: what a Lease says is read before anything is decided by it.
        metadata.pop("annotations", None)
        return trimmed
    if kind == names.EVENT:
        trimmed |= _only(obj, _EVENT)
        trimmed["involvedObject"] = _only(obj.get("involvedObject") or {}, _REFERENCE)
        trimmed["message"] = conditions.words(obj.get("message"))
        return trimmed
    trimmed |= _only(obj, ("spec", "status"))
    if isinstance(trimmed.get("status"), dict):
        trimmed["status"] = _bounded(trimmed["status"])
    if kind.name in _LONG and isinstance(trimmed.get("spec"), dict):
        trimmed["spec"] = _without(trimmed["spec"], _LONG[kind.name])
    return addons.without_long_specs(trimmed) if kind in _ADDONS else trimmed


def _bounded(status: Json) -> Json:
    """A status whose own texts and lists are no longer than they are ever read."""
    bounded = dict(status)
    for key, value in status.items():
        if isinstance(value, str) and len(value) > conditions.LONGEST:
            bounded[key] = conditions.words(value)
        elif isinstance(value, list) and len(value) > observed.LONGEST_LIST:
            bounded[key] = value[: observed.LONGEST_LIST]
    return bounded


def _only(mapping: Json, keys: tuple[str, ...]) -> Json:
    return {key: mapping[key] for key in keys if key in mapping}


def _without(mapping: Any, keys: tuple[str, ...]) -> Json:
    return {key: value for key, value in mapping.items() if key not in keys}
