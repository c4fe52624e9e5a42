# SPDX-License-Identifier: Apache-2.0
"""Values laid over each other, and what differs between two of them carried over to a third."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import copy
from typing import Any

from magnum.drivers.k8s_capi_helm.model import Json

#: A list of entries with names, which is never merged as a whole.
_BY_NAME = "nodeGroups"


def merge(below: Any, above: Any, *, nulls: bool = True) -> Any:
    """*above* over *below*: maps key by key, anything else as a whole; shares nothing with them.

    :param nulls: whether null above takes the place of what is below; if not, it is as good as
        nothing, in maps that are merged.
    """
    if not (isinstance(below, Mapping) and isinstance(above, Mapping)):
        return copy.deepcopy(above)
    result = copy.deepcopy(dict(below))
    for key, value in above.items():
        if nulls or value is not None:
            result[key] = merge(below.get(key), value, nulls=nulls)
    return result


def carry_over(live: Any, base: Any, theirs: Any) -> Any:
    """Live with what differs between *base* and *theirs*; lists and scalars go as a whole.

    The entries of nodegroups stay as they are in *live*, at every depth.
    """
    if base == theirs:
        return copy.deepcopy(live)
    if not isinstance(theirs, dict):
        return copy.deepcopy(theirs)
    live = live if isinstance(live, dict) else {}
    base = base if isinstance(base, dict) else {}
    result = {}
    for key in {**live, **theirs}:
        if key not in theirs and key in base:
            continue
        if base.get(key) == theirs.get(key) or key == _BY_NAME:
            if key in live:
                result[key] = copy.deepcopy(live[key])
        else:
            result[key] = carry_over(live.get(key), base.get(key), theirs[key])
    return result


def difference(base: Mapping[str, Any], theirs: Mapping[str, Any]) -> tuple[Json, Json]:
    """What two maps differ in: of each, only that; :func:`carry_over` does the reverse."""
    old: Json = {}
    new: Json = {}
    for key in {**base, **theirs}:
        low, high = base.get(key), theirs.get(key)
        if key in base and key in theirs and low == high:
            continue
        if isinstance(low, Mapping) and isinstance(high, Mapping):
            old[key], new[key] = difference(low, high)
            continue
        if key in base:
            old[key] = copy.deepcopy(low)
        if key in theirs:
            new[key] = copy.deepcopy(high)
    return old, new


def merge_patch(base: Mapping[str, Any], theirs: Mapping[str, Any]) -> Json:
    """The JSON merge patch (RFC 7386) from one map to another."""

    def patch(old: Json, new: Json) -> Json:
        return {
            key: patch(old[key], new[key])
            if isinstance(old.get(key), dict) and isinstance(new.get(key), dict)
            else new.get(key)
            for key in {**old, **new}
        }

    return patch(*difference(base, theirs))


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
    below = base
    for overlay in overlays:
        below = merge(below, overlay)
    result: dict[str, Any] = carry_over(below, base, full)
    for other in others:
        result = carry_over(result, other, full)
    if _BY_NAME in full:
        result[_BY_NAME] = copy.deepcopy(full[_BY_NAME])
    return result
