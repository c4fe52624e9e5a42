# SPDX-License-Identifier: Apache-2.0
"""What labels and fields move, and whose machines a changed value replaces: data of the package.

The tests of the charts make the files by rendering, and fail where they are not true any more; the
documents print them, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import dataclasses
import functools
import pathlib
from typing import Any

import yaml

from magnum.drivers import k8s_capi_helm

DIRECTORY = pathlib.Path(k8s_capi_helm.__file__).parent / "effects"
#: Consequences of a changed value, as the rows of rolls.yaml say them; "and" joins two.
CONTROL_PLANE, NODEGROUPS, FIXED = "control plane", "node groups", "cannot be changed"
#: Of the defaults of nodegroups there is one row for each first key, whatever is below it.
_DEFAULTS, _ENTRIES = "nodeGroupDefaults", "nodeGroups"


@dataclasses.dataclass(frozen=True, slots=True)
class ValueEffect:
    """What another value of a label or of a field moves.

    :ivar values: paths of Helm values; ``[]`` stands for each item of a list.
    :ivar objects: kind and name of what is rendered, without the release's name.
    """

    values: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()


#: Of what decides about something else than values.
NONE = ValueEffect()


@functools.cache
def label_effects() -> Mapping[str, ValueEffect]:
    """By name of the label."""
    return {name: _effect(moved) for name, moved in _read("labels.yaml").items()}


@functools.cache
def field_effects() -> Mapping[tuple[str, str], ValueEffect]:
    """By owner of the field, as ``fields.FieldOwner`` has it, and its name."""
    return {
        (owner, name): _effect(moved)
        for owner, owned in _read("fields.yaml").items()
        for name, moved in owned.items()
    }


@functools.cache
def rolls() -> Mapping[str, str]:
    """Consequence of another value, by path of the value or of what is above it."""
    return {str(path): str(word) for path, word in _read("rolls.yaml").items()}


def replaced_parts(paths: Iterable[str]) -> frozenset[str]:
    """What follows of other values at some paths, in a cluster that exists.

    :returns: of CONTROL_PLANE, NODEGROUPS and FIXED; none where nothing is replaced.
    """
    words = {word for path in paths for word in rows(path)}
    return frozenset(part for word in words for part in word.split(" and ")) & {
        CONTROL_PLANE,
        NODEGROUPS,
        FIXED,
    }


def rows(path: str) -> set[str]:
    """The rows about a path: the nearest above it, or else those below it."""
    steps = _steps(path)
    if steps[0] == _ENTRIES and ".".join(steps[:3]) not in rolls():
        # What an entry says besides does for one nodegroup what the defaults do for all.
        steps = [_DEFAULTS, *steps[2:]]
    if steps[0] == _DEFAULTS:
        steps = steps[:2]
    for end in range(len(steps), 0, -1):
        if (word := rolls().get(".".join(steps[:end]))) is not None:
            return {word}
    return {word for row, word in rolls().items() if _steps(row)[: len(steps)] == steps}


def _steps(path: str) -> list[str]:
    return path.replace("[]", ".[]").replace("..", ".").split(".")


def _effect(moved: Mapping[str, Any]) -> ValueEffect:
    return ValueEffect(tuple(moved["values"]), tuple(moved["objects"]))


def _read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((DIRECTORY / name).read_text(encoding="utf-8"))
    return content
