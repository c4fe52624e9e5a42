# SPDX-License-Identifier: Apache-2.0
"""Compare rendered objects with existing ones: the fields that would change."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
import dataclasses
import re
from typing import Any

from magnum.drivers.k8s_capi_helm.model import Json, names

#: Whose an object is says Helm in these (https://helm.sh/docs/chart_best_practices/labels/).
RELEASE_NAME = "meta.helm.sh/release-name"
RELEASE_NAMESPACE = "meta.helm.sh/release-namespace"
MANAGED_BY = "app.kubernetes.io/managed-by"
_OWNERSHIP = frozenset({RELEASE_NAME, RELEASE_NAMESPACE, MANAGED_BY})
#: What the API server keeps of an object for its other version.
_CONVERSION = "cluster.x-k8s.io/conversion-data"
_SPAN = re.compile(r"(\d+h)?(\d+m)?(\d+s)?")
_SECONDS = {"h": 3600, "m": 60, "s": 1}
#: Fields by which Cluster API replaces machines: of a MachineDeployment the compared fields of
#: ``mdutil``, of a KubeadmControlPlane those of its rollout
#: (https://cluster-api.sigs.k8s.io/tasks/updating-machine-templates).
_MACHINE_FIELDS = {
    "MachineDeployment": re.compile(
        r"spec\.template\.spec\.(version|bootstrap|infrastructureRef|failureDomain)\b"
    ),
    "KubeadmControlPlane": re.compile(
        r"spec\.(version|kubeadmConfigSpec|machineTemplate\.(spec\.)?infrastructureRef)\b"
    ),
}


@dataclasses.dataclass(frozen=True, slots=True)
class FieldChange:
    """A field that would change.

    :ivar path: of the field, such as ``spec.template.spec.version``.
    :ivar desired_value: what the manifest has there.
    :ivar current_value: what the object has there, None if it has nothing.
    """

    path: str
    desired_value: Any
    current_value: Any


def field_changes(manifest: Json, live: Json) -> Iterator[FieldChange]:
    """The fields that would change, were *manifest* applied.

    What the server or a controller has added stays either way; whose an object is does not count.
    """
    yield from _differing(_content(manifest), _content(live), "")


def differences(manifest: Json, live: Json) -> Iterator[str]:
    """Paths of the fields that would change, were *manifest* applied."""
    for field_change in field_changes(manifest, live):
        yield field_change.path


def state_changes(changed_object: Json, existing_object: Json) -> Iterator[FieldChange]:
    """The fields in which two states of an object differ, those that are removed among them.

    :param changed_object: the later one, as the API server shows it.
    """
    yield from _unequal(_state(changed_object), _state(existing_object), "")


def replaces_machines(kind: str, path: str) -> bool:
    """Whether machines are replaced when a field of an object changes.

    :param kind: of the object; *path* of the field, as in :func:`differences`.
    """
    pattern = _MACHINE_FIELDS.get(kind)
    return pattern is not None and pattern.match(path) is not None


def foreign_owner(live: Json, namespace: str, release: str) -> str:
    """The release that an object says it belongs to, "" if it is this one or none."""
    annotations = live["metadata"].get("annotations") or {}
    owner = annotations.get(RELEASE_NAME, release)
    owner_namespace = annotations.get(RELEASE_NAMESPACE, namespace)
    return "" if (owner, owner_namespace) == (release, namespace) else f"{owner_namespace}/{owner}"


def owner_uuid(live: Json) -> str:
    """The UUID of the Magnum cluster that an object says it is of, "" if it does not say."""
    return str((live["metadata"].get("labels") or {}).get(names.LABEL_UUID, ""))


def _content(obj: Json) -> Json:
    content = {
        key: value
        for key, value in obj.items()
        if key not in ("apiVersion", "kind", "metadata", "status", "stringData")
    }
    if "stringData" in obj:
        texts = obj["stringData"] or {}
        encoded = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
        content["data"] = {**(content.get("data") or {}), **encoded}
    for field in ("labels", "annotations"):
        metadata = obj["metadata"].get(field) or {}
        content[field] = {key: text for key, text in metadata.items() if key not in _OWNERSHIP}
    return content


def _state(obj: Json) -> Json:
    """The content that clients write: neither the status nor what the API server counts."""
    state = _content(obj)
    for field in ("labels", "annotations"):
        texts = obj["metadata"].get(field) or {}
        state[field] = {key: text for key, text in texts.items() if key != _CONVERSION}
    for field in ("finalizers", "ownerReferences"):
        state[field] = obj["metadata"].get(field) or []
    return state


def _unequal(after: Any, before: Any, path: str) -> Iterator[FieldChange]:
    if isinstance(after, Mapping) and isinstance(before, Mapping):
        for key in {**after, **before}:
            field = f"{path}.{key}" if path else str(key)
            yield from _unequal(after.get(key), before.get(key), field)
    elif isinstance(after, list) and isinstance(before, list) and len(after) == len(before):
        for index, (item, other) in enumerate(zip(after, before, strict=True)):
            yield from _unequal(item, other, f"{path}[{index}]")
    elif after != before:
        yield FieldChange(path, after, before)


def _differing(desired: Any, current: Any, path: str) -> Iterator[FieldChange]:
    if isinstance(desired, Mapping) and isinstance(current, Mapping):
        for key, value in desired.items():
            if key == "apiVersion" and _is_same_group(desired, current):
                continue
            yield from _differing(value, current.get(key), f"{path}.{key}" if path else str(key))
    elif isinstance(desired, list) and isinstance(current, list) and len(desired) == len(current):
        for index, (item, other) in enumerate(zip(desired, current, strict=True)):
            yield from _differing(item, other, f"{path}[{index}]")
    elif not _is_same(desired, current):
        yield FieldChange(path, desired, current)


def _is_same_group(desired: Mapping[str, Any], current: Mapping[str, Any]) -> bool:
    """Whether two references name the same API group, whatever the version.

    Cluster API stores references without a version, and shows the newest one in its older versions
    (https://cluster-api.sigs.k8s.io/developer/providers/migrations/v1.10-to-v1.11).
    """
    versions = desired.get("apiVersion"), current.get("apiVersion")
    if "kind" not in desired or not all(isinstance(text, str) for text in versions):
        return False
    group, other = (str(text).rpartition("/")[0] for text in versions)
    return group == other


def _is_same(desired: Any, current: Any) -> bool:
    """Whether the server would keep the one for the other: it drops what is empty."""
    if desired == current or (current is None and not desired):
        return True
    if current is None and isinstance(desired, Mapping):
        return all(_is_same(value, None) for value in desired.values())
    are_texts = isinstance(desired, str) and isinstance(current, str)
    return are_texts and _seconds(desired) is not None and _seconds(desired) == _seconds(current)


def _seconds(text: str) -> int | None:
    """A span of time as Go writes it (``5m``, ``5m0s``), None for another text."""
    match = _SPAN.fullmatch(text)
    if not text or match is None:
        return None
    return sum(int(part[:-1]) * _SECONDS[part[-1]] for part in match.groups() if part)
