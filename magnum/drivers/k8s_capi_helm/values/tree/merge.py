# SPDX-License-Identifier: Apache-2.0
"""Merge values, and three-way merge of the difference of two renders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import copy
from typing import Any

from magnum.drivers.k8s_capi_helm.model import Json

#: A list of entries with names, which is never merged as a whole.
_BY_NAME = "nodeGroups"


def merge(base: Any, overlay: Any, *, nulls: bool = True) -> Any:
    """*overlay* over *base*: maps key by key, anything else as a whole; shares nothing with them.

    :param nulls: whether null above takes the place of what is below; if not, it is as good as
        nothing, in maps that are merged.
    """
    if not (isinstance(base, Mapping) and isinstance(overlay, Mapping)):
        return copy.deepcopy(overlay)
    result = copy.deepcopy(dict(base))
    for key, value in overlay.items():
        if nulls or value is not None:
            result[key] = merge(base.get(key), value, nulls=nulls)
    return result


def carry_over(live: Any, base: Any, target: Any) -> Any:
    """Live with what differs between *base* and *target*; lists and scalars go as a whole.

    The entries of nodegroups stay as they are in *live*, at every depth.
    """
    if base == target:
        return copy.deepcopy(live)
    if not isinstance(target, dict):
        return copy.deepcopy(target)
    live = live if isinstance(live, dict) else {}
    base = base if isinstance(base, dict) else {}
    result = {}
    for key in {**live, **target}:
        if key not in target and key in base:
            continue
        if base.get(key) == target.get(key) or key == _BY_NAME:
            if key in live:
                result[key] = copy.deepcopy(live[key])
        else:
            result[key] = carry_over(live.get(key), base.get(key), target[key])
    return result


def difference(base: Mapping[str, Any], target: Mapping[str, Any]) -> tuple[Json, Json]:
    """What two maps differ in: of each, only that; :func:`carry_over` does the reverse."""
    old: Json = {}
    new: Json = {}
    for key in {**base, **target}:
        old_value, new_value = base.get(key), target.get(key)
        if key in base and key in target and old_value == new_value:
            continue
        if isinstance(old_value, Mapping) and isinstance(new_value, Mapping):
            old[key], new[key] = difference(old_value, new_value)
            continue
        if key in base:
            old[key] = copy.deepcopy(old_value)
        if key in target:
            new[key] = copy.deepcopy(new_value)
    return old, new


def merge_patch(base: Mapping[str, Any], target: Mapping[str, Any]) -> Json:
    """The JSON merge patch (RFC 7386) from one map to another."""

    def patch(old: Json, new: Json) -> Json:
        return {
            key: patch(old[key], new[key])
            if isinstance(old.get(key), dict) and isinstance(new.get(key), dict)
            else new.get(key)
            for key in {**old, **new}
        }

    return patch(*difference(base, target))


def merge_patched(target: Any, patch: Any) -> Any:
    """*target* with a JSON merge patch (RFC 7386); shares nothing with them."""
    if not isinstance(patch, Mapping):
        return copy.deepcopy(patch)
    result = copy.deepcopy(dict(target)) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patched(result.get(key), value)
    return result


def merge_layers(
    full: dict[str, Any],
    base: dict[str, Any],
    others: Iterable[dict[str, Any]],
    overlays: Iterable[Mapping[str, Any]],
) -> dict[str, Any]:
    """Overlays below what was asked for.

    :param full: with everything that was asked for.
    :param base: with nothing of it.
    :param others: as *full*, with something that was asked for asked for otherwise: where they
        differ, *full* says what was asked for.
    :param overlays: laid over *base*, the last one on top.
    :returns: new values that share nothing with the arguments.
    """
    layered = base
    for overlay in overlays:
        layered = merge(layered, overlay)
    result: dict[str, Any] = carry_over(layered, base, full)
    for other in others:
        result = carry_over(result, other, full)
    if _BY_NAME in full:
        result[_BY_NAME] = copy.deepcopy(full[_BY_NAME])
    return result
