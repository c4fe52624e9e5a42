# SPDX-License-Identifier: Apache-2.0
"""The patch that Helm sends for an object that exists, when it upgrades a release.

Of a custom resource Helm sends the difference of its last manifest and of the new one, and does not
look at what is there. An object of a built-in kind is compared with both: what the new manifest
says is set, what only the last one said is removed, and the rest stays as it is. So it is, too,
where the server applies.
Source: ``createPatch`` in https://github.com/helm/helm/blob/main/pkg/kube/client.go
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeGuard

from magnum.drivers.k8s_capi_helm.helm import recovery
from magnum.drivers.k8s_capi_helm.model import Json
from magnum.drivers.k8s_capi_helm.values.tree import merge

#: Lists of built-in kinds whose items are merged by a field; all others are replaced as a whole
#: (``patchMergeKey`` in https://github.com/kubernetes/api/blob/master/core/v1/types.go).
_MERGE_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "secrets": "name",
    "webhooks": "name",
    "hostAliases": "ip",
    "ports": "containerPort",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "topologySpreadConstraints": "topologyKey",
}
_SERVICE = "Service"


def is_compared_with_live(manifest: Json, *, is_server_side: bool) -> bool:
    """Whether the object that exists counts, and not only the last manifest and the new one."""
    return is_server_side or recovery.is_built_in(recovery.object_key(manifest)[0])


def manifest_patch(last_manifests: Iterable[Json], manifest: Json) -> Json:
    """The JSON merge patch of a custom resource.

    :param last_manifests: of the object, in the revisions that it is compared with.
    """
    patch: Json = {}
    for last_manifest in last_manifests:
        patch = merge.merge(patch, merge.merge_patch(last_manifest, manifest))
    return patch


def three_way_patch(last_manifest: Json, manifest: Json, existing_object: Json) -> Json:
    """The JSON merge patch that leads to the same object as the three-way merge."""
    merge_keys = dict(_MERGE_KEYS)
    if manifest["kind"] == _SERVICE:
        merge_keys["ports"] = "port"
    merged = _three_way(last_manifest, manifest, existing_object, merge_keys)
    return merge.merge_patch(existing_object, merged)


def _three_way(
    last: Mapping[str, Any],
    new: Mapping[str, Any],
    existing: Mapping[str, Any],
    merge_keys: Mapping[str, str],
) -> Json:
    result = {key: value for key, value in existing.items() if key in new or key not in last}
    for key, value in new.items():
        other, before = existing.get(key), last.get(key)
        field = merge_keys.get(key, "")
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(other, Mapping):
            before = before if isinstance(before, Mapping) else {}
            result[key] = _three_way(before, value, other, merge_keys)
        elif _has_keys(value, field) and _has_keys(other, field):
            before = before if _has_keys(before, field) else []
            result[key] = _merged_items(before, value, other, field, merge_keys)
        else:
            result[key] = value
    return result


def _has_keys(items: Any, field: str) -> TypeGuard[list[Json]]:
    """Whether it is a list whose items can be told apart by a field."""
    return (
        bool(field)
        and isinstance(items, list)
        and all(isinstance(item, Mapping) and field in item for item in items)
    )


def _merged_items(
    last: list[Json],
    new: list[Json],
    existing: list[Json],
    field: str,
    merge_keys: Mapping[str, str],
) -> list[Json]:
    """The items of a list; in the order of the new ones, where that is not the existing order."""
    before, other = ({item[field]: item for item in items} for items in (last, existing))
    merged = {
        item[field]: _three_way(
            before.get(item[field], {}), item, other.get(item[field], {}), merge_keys
        )
        for item in new
    }
    stays = {key: item for key, item in other.items() if key in merged or key not in before}
    if [key for key in stays if key in merged] == [key for key in merged if key in stays]:
        return list({**stays, **merged}.values())
    return [*merged.values(), *(item for key, item in stays.items() if key not in merged)]
