# SPDX-License-Identifier: Apache-2.0
"""Strict validation of Kubernetes' own kinds against the models of the official client.

The client's models are made from Kubernetes' OpenAPI document
(https://github.com/kubernetes-client/python), so they know every field and its type.
"""

from __future__ import annotations

from collections.abc import Iterator
import re
from typing import Any

from kubernetes.client import models

from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object

_MODELS = {
    ("v1", "Secret"): "V1Secret",
    ("v1", "ServiceAccount"): "V1ServiceAccount",
    ("v1", "ConfigMap"): "V1ConfigMap",
    ("v1", "Service"): "V1Service",
    ("apps/v1", "DaemonSet"): "V1DaemonSet",
    ("apps/v1", "Deployment"): "V1Deployment",
    ("batch/v1", "CronJob"): "V1CronJob",
    ("rbac.authorization.k8s.io/v1", "Role"): "V1Role",
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): "V1RoleBinding",
    ("storage.k8s.io/v1", "StorageClass"): "V1StorageClass",
}
_SCALARS: dict[str, type | tuple[type, ...]] = {
    "str": str,
    "int": int,
    "bool": bool,
    "float": (int, float),
    "datetime": str,
    "bytes": str,
}
# As older and newer versions of the client spell them.
_LIST = re.compile(r"[Ll]ist\[(.*)\]")
_MAP = re.compile(r"[Dd]ict[\[(]str, (.*)[\])]")
_LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


def knows(found: Object) -> bool:
    """Whether the object is of a kind that this module can check."""
    return (found["apiVersion"], found["kind"]) in _MODELS


def faults(found: Object) -> list[str]:
    """What is wrong with an object of Kubernetes' own kinds."""
    return list(_check(found, _MODELS[found["apiVersion"], found["kind"]], "$"))


def metadata_faults(found: Object) -> list[str]:
    """What is wrong with the metadata of any object: fields, name, labels, annotations."""
    metadata = found["metadata"]
    result = list(_check(metadata, "V1ObjectMeta", "$.metadata"))
    if not (_NAME.fullmatch(metadata["name"]) and len(metadata["name"]) <= 63):
        result.append(f"name {metadata['name']!r} is not a DNS label of 63 characters at most")
    result += [
        f"label {key}: {value!r} is not a label"
        for key, value in metadata.get("labels", {}).items()
        if not _LABEL.fullmatch(str(value))
    ]
    return result


def _check(value: Any, kind: str, path: str) -> Iterator[str]:
    if match := _LIST.fullmatch(kind):
        if not isinstance(value, list):
            yield f"{path}: {value!r} is not a list"
            return
        for place, item in enumerate(value):
            yield from _check(item, match[1], f"{path}[{place}]")
    elif match := _MAP.fullmatch(kind):
        if not isinstance(value, dict):
            yield f"{path}: {value!r} is not a map"
            return
        for key, item in value.items():
            yield from _check(item, match[1], f"{path}.{key}")
    elif kind in _SCALARS:
        if not isinstance(value, _SCALARS[kind]) or (kind == "int" and isinstance(value, bool)):
            yield f"{path}: {value!r} is not {kind}"
    elif kind not in ("object", "IntOrString"):
        yield from _check_model(value, getattr(models, kind), path)


def _check_model(value: Any, model: Any, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path}: {value!r} is not a map"
        return
    kinds = {model.attribute_map[name]: kind for name, kind in model.openapi_types.items()}
    for key, item in value.items():
        if key not in kinds:
            yield f"{path}: no field {key}"
        else:
            yield from _check(item, kinds[key], f"{path}.{key}")
