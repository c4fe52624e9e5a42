# SPDX-License-Identifier: Apache-2.0
"""Every key of a chart's schema, and another value for each, so that laws hold for keys to come.

A path is a tuple of steps: the name of a key, "[]" for the items of a list, "*" for the values of a
map whose keys the user chooses. A leaf is a key below which the schema names none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import copy
from dataclasses import dataclass
import functools
import itertools
import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import yaml

from magnum.tests.functional.k8s_capi_helm.charts.rendering import openstack_id, Values

Schema = dict[str, Any]
Path_ = tuple[str, ...]
ITEMS, ANY = "[]", "*"
#: The key that Helm itself adds for a chart inside, which has no values.
LIBRARY = "^common$"


class NoSample(Exception):
    """The tables below have no value for a key; the text names it."""


#: Two values for whatever refers to a definition of the schema, so that one of them is another.
BY_DEFINITION: dict[str, tuple[Any, Any]] = {
    "version": ("1.33.1", "1.33.2"),
    "duration": ("7m0s", "8m0s"),
    "optionalDuration": ("7m0s", "8m0s"),
    "cidr": ("10.96.0.0/16", "10.97.0.0/16"),
    "address": ("10.0.0.7", "10.0.0.8"),
    "optionalAddress": ("203.0.113.7", "203.0.113.8"),
    "optionalFloatingIP": ("203.0.113.7", "203.0.113.8"),
    "id": (openstack_id(1), openstack_id(2)),
    "optionalId": (openstack_id(1), openstack_id(2)),
    "quantity": ("2", "3"),
    "share": (0.3, 0.4),
    "optionalTime": ("2026-01-02T03:04:05Z", "2026-02-03T04:05:06Z"),
    "registryURL": ("https://mirror.example.org/v2", "https://other.example.org/v2"),
    "registryHost": ("one.example.org", "two.example.org"),
    "proxyURL": ("http://proxy.example.org:3128", "http://other.example.org:3128"),
    "lineOfText": ("one", "two"),
    "flags": ({"one": "a"}, {"two": "b"}),
    "nodeLabels": ({"example.org/one": "a"}, {"example.org/two": "b"}),
    "nodeAnnotations": (
        {"node.cluster.x-k8s.io/one": "a"},
        {"node.cluster.x-k8s.io/two": "b"},
    ),
    "role": ("worker", "ingress"),
    "countOrPercent": (1, "40%"),
    "kubeadmFiles": (
        [{"path": "/etc/one", "content": "1"}],
        [{"path": "/etc/two", "content": "2"}],
    ),
}
#: Texts to choose from where the schema has a pattern: the first other one that it takes.
TEXTS = (
    *("other", "another", "/var/lib/other", "/var/lib/another", "0640", "0600"),
    *("https://one.example.org", "https://two.example.org", "1.2.3", "1.2.4", "1.12", "1.13"),
    *("RS512", "ES256", "[2-4]", "[3-5]", "example.org/v1", "example.org/v2", "25%", "35%"),
    *("10.96.0.0/16", "fd00:96::/48"),
    *("-----BEGIN CERTIFICATE-----\nb25l\n-----END CERTIFICATE-----",),
    *("-----BEGIN CERTIFICATE-----\ndHdv\n-----END CERTIFICATE-----",),
)
#: The name that a map's new entry gets, by the end of the path of the map.
ENTRIES: dict[str, str] = {}


@dataclass(frozen=True)
class Key:
    """A leaf of a schema."""

    path: Path_
    definition: str

    @property
    def name(self) -> str:
        """The path as a user writes it."""
        return ".".join(self.path)


@functools.cache
def root(chart: Path) -> Schema:
    """values.schema.json of a chart."""
    found: Schema = json.loads((chart / "values.schema.json").read_text())
    return found


@functools.cache
def defaults(chart: Path) -> Values:
    """values.yaml of a chart."""
    found: Values = yaml.safe_load((chart / "values.yaml").read_text())
    return found


def resolved(chart: Path, schema: Schema) -> tuple[Schema, str]:
    """What a schema says, and the definition that says it."""
    definition = ""
    while "$ref" in schema or "anyOf" in schema:
        if "$ref" in schema:
            definition = schema["$ref"].rpartition("/")[2]
            schema = root(chart)["definitions"][definition]
        else:
            # The richest alternative, which stands last; null, "" and shorter forms stand first.
            richest = schema["anyOf"][-1]
            if definition in BY_DEFINITION or not ("$ref" in richest or "properties" in richest):
                break
            schema = richest
    return schema, definition


def within(schema: Schema) -> Iterator[tuple[str, Schema]]:
    """The steps down from a schema that the schema itself names."""
    yield from schema.get("properties", {}).items()
    if "items" in schema:
        yield ITEMS, schema["items"]
    patterns = schema.get("patternProperties", {}).items()
    below = [inner for pattern, inner in patterns if pattern != LIBRARY]
    for inner in (schema.get("additionalProperties"), *below):
        if isinstance(inner, dict):
            yield ANY, inner


def leaves(chart: Path, *above: str) -> Iterator[Key]:
    """All leaves, or those below a path."""
    schema, _ = at(chart, above)
    yield from _leaves(chart, schema, above)


def _leaves(chart: Path, schema: Schema, path: Path_) -> Iterator[Key]:
    for step, inner in within(schema):
        below, definition = resolved(chart, inner)
        found = list(_leaves(chart, below, (*path, step)))
        if found:
            yield from found
        elif step not in (ITEMS, ANY):
            yield Key((*path, step), definition)


def at(chart: Path, path: Path_) -> tuple[Schema, str]:
    """What the schema says at a path, and the definition that says it."""
    found, definition = resolved(chart, root(chart))
    for step in path:
        found, definition = resolved(chart, dict(within(found)).get(step, {"type": "string"}))
    return found, definition


def values_at(values: Any, path: Path_) -> Iterator[Any]:
    """All that stands at a path, in every item or entry of lists and maps."""
    if not path:
        yield values
    elif path[0] in (ITEMS, ANY):
        kind = list if path[0] == ITEMS else dict
        for inner in list(values.values() if isinstance(values, dict) else values or ()):
            if isinstance(values, kind):
                yield from values_at(inner, path[1:])
    elif isinstance(values, dict) and path[0] in values:
        yield from values_at(values[path[0]], path[1:])


def value_at(values: Any, path: Path_) -> Any:
    """What stands at a path, in the first item or entry of lists and maps; None where nothing."""
    for step in path:
        if step in (ITEMS, ANY):
            inner = values.values() if isinstance(values, dict) else values or ()
            values = next(iter(inner), None)
        else:
            values = values.get(step) if isinstance(values, dict) else None
    return values


def placed(chart: Path, values: Values, path: Path_, value: Any) -> Values:
    """Values with another one at a path, and with what the schema requires beside it."""
    result = copy.deepcopy(values)
    result = _placed(chart, (), result, path, value)
    return result


def _placed(chart: Path, above: Path_, values: Any, path: Path_, value: Any) -> Any:
    if not path:
        return value
    step, *rest = path
    below = (*above, step)
    if step == ITEMS:
        items = list(values or [])
        first = items[0] if items else None
        return [_placed(chart, below, first, tuple(rest), value), *items[1:]]
    found = dict(values) if isinstance(values, dict) else {}
    if step == ANY:
        name = next(iter(found), ENTRIES.get(".".join(above), "one"))
        found[name] = _placed(chart, below, found.get(name), tuple(rest), value)
        return found
    if not found:
        schema, _ = at(chart, above)
        default = value_at(defaults(chart), above) or {}
        found = {
            name: other(chart, (*above, name))
            for name in schema.get("required", ())
            if name not in default
        }
    found[step] = _placed(chart, below, found.get(step), tuple(rest), value)
    return found


def other(
    chart: Path, path: Path_, current: Any = None, table: Mapping[str, Any] | None = None
) -> Any:
    """A value for a key that differs from the current one and that the schema takes.

    :param table: values by the key's name or the end of it, for what its schema does not tell.
    :raises NoSample: there is none.
    """
    schema, definition = at(chart, path)
    name = ".".join(path)
    ends = (".".join(path[place:]) for place in range(len(path)))
    candidates = itertools.chain(
        *((table or {}).get(end, ()) for end in ends),
        BY_DEFINITION.get(definition, ()),
        _generated(chart, path, schema),
    )
    validator = jsonschema.Draft7Validator({**schema, "definitions": root(chart)["definitions"]})
    for candidate in candidates:
        if candidate != current and validator.is_valid(candidate):
            return candidate
    raise NoSample(f"{name}: the tables of the tests have no other value than {current!r}")


def _generated(chart: Path, path: Path_, schema: Schema) -> Iterator[Any]:
    """Values that the schema itself suggests."""
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    yield from schema.get("enum", [])
    if "boolean" in kinds:
        yield from (True, False)
    if "integer" in kinds or "number" in kinds:
        least = schema.get("minimum", 0)
        yield from (n for n in (least + 1, least + 2, least) if n <= schema.get("maximum", n))
    if "string" in kinds:
        yield from TEXTS
    if "array" in kinds:
        inner, _ = resolved(chart, schema.get("items", {}))
        if "required" in inner:
            yield [{name: other(chart, (*path, ITEMS, name)) for name in inner["required"]}]
        yield from ([item] for item in (*inner.get("enum", ()), *TEXTS))
    if "object" in kinds:
        below = dict(within(schema))
        if named := schema.get("required") or list(schema.get("properties", {}))[:1]:
            yield {name: other(chart, (*path, name)) for name in named}
        if ANY in below:
            yield {ENTRIES.get(".".join(path), "one"): other(chart, (*path, ANY))}
            yield {"two": other(chart, (*path, ANY))}
        yield from ({"one": "other"}, {"two": "another"})
    for inner in schema.get("anyOf", ()):
        yield from inner.get("enum", ())
        yield from _generated(chart, path, inner)
