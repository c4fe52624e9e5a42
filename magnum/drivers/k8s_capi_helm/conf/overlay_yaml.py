# SPDX-License-Identifier: Apache-2.0
"""Parse an overlay: its values, and the line of each key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import dataclasses
import math
from typing import Any

import yaml

from magnum.drivers.k8s_capi_helm.conf import overlay_template
from magnum.drivers.k8s_capi_helm.model import Json

Path = tuple[str, ...]
#: How YAML calls ``<<``, which would bring keys that stand on other lines.
_MERGE = "tag:yaml.org,2002:merge"


@dataclasses.dataclass(frozen=True, slots=True)
class Overlay:
    """One overlay, read and rendered.

    :ivar file: its path, for the operator.
    :ivar lines: the line of each key by its path in the values.
    """

    file: str
    values: Json
    lines: Mapping[Path, int]

    @property
    def name(self) -> str:
        """As labels name it."""
        return self.file.rpartition("/")[2].removesuffix(".yaml")

    def location(self, path: Path) -> str:
        """File, line and key for the operator's log."""
        return f"{self.file}, line {self.lines.get(path, 1)}, key {'.'.join(path)}"

    def setting(self, path: Path) -> Path | None:
        """The key here that sets *path*: the path itself, or a list or string above it."""
        if path in self.lines:
            return path
        for end in range(len(path) - 1, 0, -1):
            if path[:end] in self.lines:
                value: Any = self.values
                for key in path[:end]:
                    value = value[key]
                return None if isinstance(value, Mapping) else path[:end]
        return None


class UnreadableOverlay(ValueError):
    """An overlay that cannot be used; the message has line, key and cause."""

    def __init__(self, line: int, path: Path, words: str) -> None:
        super().__init__(f"line {line}{', key ' if path else ''}{'.'.join(path)}: {words}")


def overlay(file: str, text: str, context: overlay_template.Context | None) -> Overlay:
    """The overlay in a text.

    :param context: for its templates; None leaves them as they are, to know its keys only.
    :raises UnreadableOverlay: the text is invalid YAML, or a template in it cannot be rendered.
    """
    lines: dict[Path, int] = {}
    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        if root is None:
            return Overlay(file, {}, {})
        if not isinstance(root, yaml.MappingNode):
            raise UnreadableOverlay(_line(root), (), "expected keys of the chart's values")
        return Overlay(file, _value(loader, root, (), lines, context), lines)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        words = getattr(error, "problem", None) or "invalid YAML"
        raise UnreadableOverlay(mark.line + 1 if mark else 1, (), str(words)) from None
    except RecursionError:
        raise UnreadableOverlay(1, (), "a value contains itself") from None


def keys(values: Mapping[str, Any], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Path and value of every key, maps before what is in them."""
    for key, value in values.items():
        yield (*path, key), value
        if isinstance(value, Mapping):
            yield from keys(value, (*path, key))


def _value(
    loader: yaml.SafeLoader,
    node: yaml.Node,
    path: Path,
    lines: dict[Path, int],
    context: overlay_template.Context | None,
) -> Any:
    if isinstance(node, yaml.MappingNode):
        mapping: Json = {}
        for key_node, value_node in node.value:
            key = _key(loader, key_node, path, mapping)
            lines[(*path, key)] = _line(key_node)
            value = _value(loader, value_node, (*path, key), lines, context)
            if value is not overlay_template.OMIT:
                mapping[key] = value
        return mapping
    if isinstance(node, yaml.SequenceNode):
        items = [
            _value(loader, item, (*path, str(index)), lines, context)
            for index, item in enumerate(node.value)
        ]
        return [item for item in items if item is not overlay_template.OMIT]
    try:
        value = loader.construct_object(node, deep=True)
        if not isinstance(value, str | bool | int | float | None):
            # YAML knows dates and binary data; the values of a chart do not.
            value = str(node.value)
        if isinstance(value, str) and context is not None:
            value = overlay_template.render_template(value, context)
        if isinstance(value, float) and not math.isfinite(value):
            raise overlay_template.UnusableOverlay(f"{value} is not a JSON number")
    except (yaml.YAMLError, ValueError) as error:
        words = getattr(error, "problem", None) or str(error)
        raise UnreadableOverlay(_line(node), path, words) from None
    return value


def _key(loader: yaml.SafeLoader, node: yaml.Node, path: Path, mapping: Json) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise UnreadableOverlay(_line(node), path, "a template must be quoted")
    key = node.value if node.tag == _MERGE else loader.construct_object(node, deep=True)
    if not isinstance(key, str):
        raise UnreadableOverlay(_line(node), path, f"the key {node.value} is not a string")
    if node.tag == _MERGE or "{{" in key or "{%" in key:
        raise UnreadableOverlay(_line(node), path, f"'{key}' cannot be a key: write out the keys")
    if key in mapping:
        raise UnreadableOverlay(_line(node), (*path, key), "duplicate key")
    return key


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
