# SPDX-License-Identifier: Apache-2.0
"""Every key of a chart: what its values.schema.json and its values.yaml say of it."""

from __future__ import annotations

from collections.abc import Iterator
import dataclasses
import json
from pathlib import Path
from typing import Any

import yaml

CHARTS = Path(__file__).resolve().parents[2] / "charts"

Schema = dict[str, Any]

#: A key without a default: one that only stands in a list, or below a key that is null.
NOTHING = object()

#: Where a list has what another key has: its items' keys are explained there.
SAME_AS = {"nodeGroups[]": "nodeGroupDefaults"}
#: How definitions of what is passed through are called: Cluster API's own pages explain those keys.
PASSED_THROUGH = "partsOf"

#: JSON Schema's words for types, and ours for more than one.
MANY = {
    "string": "strings",
    "integer": "integers",
    "number": "numbers",
    "boolean": "booleans",
    "object": "maps",
    "array": "lists",
}


@dataclasses.dataclass(frozen=True)
class Key:
    """One key of the values.

    :ivar path: with dots; ``[]`` stands for each item of a list, ``NAME`` for a key of one's own.
    :ivar kind: its type, in words.
    :ivar default: as YAML, "" where it has none.
    :ivar section: whether it is there for the keys below it.
    :ivar shape: the name of a shape that several keys have, "" if its keys follow it.
    """

    path: str
    kind: str
    description: str
    default: str
    deprecated: bool
    section: bool
    shape: str

    @property
    def top(self) -> str:
        """The first step of the path."""
        return self.path.partition(".")[0].removesuffix("[]")


class Reference:
    """The keys of a chart, in the order of its schema."""

    def __init__(self, chart: str) -> None:
        self.files = [CHARTS / chart / name for name in ("values.schema.json", "values.yaml")]
        schema, values = self.files
        self._root: Schema = json.loads(schema.read_text(encoding="utf-8"))
        self._values = yaml.safe_load(values.read_text(encoding="utf-8"))
        text = schema.read_text(encoding="utf-8")
        self._shapes = {
            name
            for name, found in self._root["definitions"].items()
            if text.count(f'"#/definitions/{name}"') > 1
            and self._inside(found)
            and not name.startswith(PASSED_THROUGH)
        }

    def rows(self) -> Iterator[Key]:
        """All of them, but for those of a shape where nothing is the default."""
        yield from self._keys(self._root, self._values, "")

    def shapes(self) -> Iterator[tuple[str, str, list[Key]]]:
        """Each shape that several keys have: its name, what it is, its keys."""
        for name in sorted(self._shapes):
            found = self._whole(self._root["definitions"][name])
            keys = list(self._keys(self._inside(found), NOTHING, ""))
            yield name, found.get("description", ""), keys

    def _inside(self, schema: Schema) -> Schema:
        """The schema with the keys: a list's items, or a map itself; {} if there are none."""
        for found in (schema, schema.get("items", {})):
            if isinstance(found, dict) and "properties" in self._whole(found):
                return self._whole(found)
        return {}

    def _shape(self, schema: Schema) -> str:
        """The name of the shape that a key has, or its items have; "" for none."""
        items = schema.get("items", {})
        references = [schema.get("$ref", ""), items.get("$ref", "")]
        found = {reference.rpartition("/")[2] for reference in references} & self._shapes
        return min(found, default="")

    def _keys(self, schema: Schema, values: Any, above: str) -> Iterator[Key]:
        for name, inner in schema.get("properties", {}).items():
            default = values.get(name, NOTHING) if isinstance(values, dict) else NOTHING
            shape = self._shape(inner) if default is NOTHING or not default else ""
            yield from self._key(f"{above}.{name}".lstrip("."), inner, default, shape)
        free = schema.get("additionalProperties")
        if isinstance(free, dict):
            found = self._whole(free)
            if "properties" in found:
                yield from self._keys(found, NOTHING, f"{above}.NAME")

    def _key(self, path: str, inner: Schema, default: Any, shape: str) -> Iterator[Key]:
        schema = self._whole(inner)
        description = schema.get("description", "")
        section = "properties" in schema and default is not None and default is not NOTHING
        yield Key(
            path,
            self._kind(schema),
            description,
            "" if section else written(default),
            bool(schema.get("deprecated")) or description.startswith("Deprecated"),
            section,
            shape,
        )
        if shape:
            return
        for branch in (schema, *map(self._whole, _branches(schema))):
            yield from self._keys(branch, default, path)
            items = self._whole(branch.get("items", {}))
            if isinstance(items, dict):
                yield from self._items(items, f"{path}[]")

    def _items(self, items: Schema, path: str) -> Iterator[Key]:
        elsewhere = self._root["properties"].get(SAME_AS.get(path), {})
        known = self._whole(elsewhere).get("properties", {})
        own = {key: value for key, value in items.get("properties", {}).items() if key not in known}
        for branch in ({**items, "properties": own}, *map(self._whole, _branches(items))):
            yield from self._keys(branch, NOTHING, path)

    def _whole(self, schema: Schema) -> Schema:
        """A schema with what it refers to; what both describe is said by both."""
        if "$ref" not in schema:
            return schema
        own = {key: value for key, value in schema.items() if key != "$ref"}
        other = self._whole(self._root["definitions"][schema["$ref"].rpartition("/")[2]])
        said = [text for text in (own.get("description"), other.get("description")) if text]
        words = {"description": " ".join(dict.fromkeys(said))} if said else {}
        return {**other, **own, **words}

    def _kind(self, schema: Schema) -> str:
        """The type, in words."""
        if "const" in schema:
            return f"only {written(schema['const'])}"
        if "enum" in schema:
            values = ("empty" if value == "" else written(value) for value in schema["enum"])
            return "one of " + ", ".join(values)
        branches = [self._kind(self._whole(branch)) for branch in _branches(schema)]
        if branches and "type" not in schema:
            return " or ".join(dict.fromkeys(branches))
        types = schema.get("type", [])
        words = [self._one(kind, schema) for kind in ([types] if isinstance(types, str) else types)]
        return " or ".join(words) or "anything"

    def _one(self, kind: str, schema: Schema) -> str:
        inner = {"array": "items", "object": "additionalProperties"}.get(kind)
        found = schema.get(inner) if inner else None
        if inner and not found and len(schema.get("patternProperties", {})) == 1:
            (found,) = schema["patternProperties"].values()
        if isinstance(found, dict) and found:
            types = self._whole(found).get("type", [])
            types = [types] if isinstance(types, str) else types
            if many := [MANY[one] for one in types if one != "null"]:
                return f"{'list' if kind == 'array' else 'map'} of {' or '.join(many)}"
        if kind in ("integer", "number"):
            low, high = schema.get("minimum"), schema.get("maximum")
            if low is not None and high is not None:
                return f"{kind} from {low} to {high}"
            if low is not None:
                return f"{kind} from {low}"
        return {"array": "list", "object": "map"}.get(kind, kind)


def _branches(schema: Schema) -> list[Schema]:
    """What a key may be one of; allOf names no keys, it says what else holds for them."""
    return [branch for word in ("anyOf", "oneOf") for branch in schema.get(word, [])]


def written(value: Any) -> str:
    """A value the way it is written in YAML: one line where it is short; "" for none."""
    if value is NOTHING:
        return ""
    text = yaml.safe_dump(value, default_flow_style=True, width=1000, allow_unicode=True)
    text = text.removesuffix("\n").removesuffix("\n...")
    if len(text) <= 80 or not isinstance(value, dict | list):
        return text
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=80).rstrip()
