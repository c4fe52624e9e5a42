# SPDX-License-Identifier: Apache-2.0
"""Values that a schema takes, whatever they are: what its author did not think of, too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import re
from typing import Any

from hypothesis import strategies as st

from magnum.tests.functional.k8s_capi_helm.charts.rendering import openstack_id, Values
from magnum.tests.functional.k8s_capi_helm.charts.test_schema import resolved, Schema

#: What YAML, template languages, shells and people read as something else, and what patterns want.
TEXTS = (
    *(
        "",
        " ",
        "\t",
        "a",
        "ab-c",
        "a.b",
        "A_1",
        "a b",
        "a,b",
        " lead",
        "trail ",
        'it\'s "q"',
        "ü✓ 吉",
        "\\n",
    ),
    *("0x1F", "1e3", "1.10", "0755", "true", "null", "~", "on", "2001-01-01", "a: b", "a #c"),
    *("{{ .Values }}", "{% x %}", "${HOME}", "[x]", "{y}", "-", "*a", "&a", "!t", "%d", "|", ">"),
    *("x" * 64, "example.org", "1.34.4", "v1.33.1", "10.0.0.0/24", "10.0.0.5", "fd00::/112"),
    *(
        "fd00::5",
        "5m0s",
        "30s",
        "1h30m0s",
        "876000h",
        "100Mi",
        "4",
        "0",
        "50%",
        "0.5",
        "2027-01-01T00:00:00Z",
    ),
    *("[0-5]", "[9-1]", "a/b", "https://r.example.org:5000", "http://p.example.org", "secretbox"),
    *(
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "RS256",
        "/etc/x/y",
        "root:root",
        "0644",
        "BlockStorage",
    ),
    *(
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
        "*.example.org",
        "_default",
    ),
    *(openstack_id(1), openstack_id(2), "node.cluster.x-k8s.io/a", "example.org/gpu"),
)
#: One of each shape that JSON has, and of those that are one within another.
SHAPES = (
    *("text", "", 7, 1.5, True, None, {}, {"one": "a"}, {"one": {"two": "a"}}),
    *([], ["a"], [7], [None], [{"one": "a"}], [["a"]]),
)
#: A number that no field of 32 bits holds, where a schema has no maximum.
_MOST = 2**40
#: Keys of maps and places in lists on the way down to a value.
Place = tuple[str | int, ...]
_KINDS = ("null", "boolean", "integer", "number", "string", "array", "object")


def one_key(root: Schema) -> st.SearchStrategy[Values]:
    """A change of one key, or of one section, anywhere in the values."""
    return st.sampled_from(sorted(_paths(root, root))).flatmap(
        lambda path: _at(path, _values(_below(path, root), root))
    )


def _paths(schema: Schema, root: Schema, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, inner in resolved(schema, root).get("properties", {}).items():
        yield (*above, key)
        yield from _paths(inner, root, (*above, key))


def _below(path: tuple[str, ...], root: Schema) -> Schema:
    schema = root
    for key in path:
        schema = resolved(schema, root)["properties"][key]
    return schema


def _at(path: tuple[str, ...], value: st.SearchStrategy[Any]) -> st.SearchStrategy[Values]:
    for key in reversed(path):
        value = st.fixed_dictionaries({key: value})
    return value


def _values(schema: Schema, root: Schema) -> st.SearchStrategy[Any]:
    schema = resolved(schema, root)
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "anyOf" in schema and "type" not in schema:
        return st.one_of([_values(one, root) for one in schema["anyOf"]])
    kinds = schema.get("type", "object" if "properties" in schema else "string")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    return st.one_of([_of_kind(kind, schema, root) for kind in _KINDS if kind in kinds])


def _of_kind(kind: str, schema: Schema, root: Schema) -> st.SearchStrategy[Any]:
    if kind == "null":
        return st.none()
    if kind == "boolean":
        return st.booleans()
    if kind in ("integer", "number"):
        least = schema.get("minimum", 0)
        most = schema.get("maximum", _MOST)
        return st.integers(least, min(most, least + 5000)) | st.sampled_from((least, most))
    if kind == "string":
        return st.sampled_from([text for text in TEXTS if _fits(text, schema)] or [None])
    if kind == "array":
        if resolved(schema.get("items", {"type": "object"}), root) == {"type": "object"}:
            return st.just([])  # passed through, see _maps
        return st.lists(
            _values(schema["items"], root),
            min_size=schema.get("minItems", 0),
            max_size=min(3, schema.get("maxItems", 3)),
            unique_by=repr if schema.get("uniqueItems") else None,
        )
    return _maps(schema, root)


def _fits(text: str, schema: Schema) -> bool:
    return (
        schema.get("minLength", 0) <= len(text) <= schema.get("maxLength", len(text))
        and re.search(schema.get("pattern", ""), text) is not None
    )


def _maps(schema: Schema, root: Schema) -> st.SearchStrategy[Values]:
    named = {key: _values(one, root) for key, one in schema.get("properties", {}).items()}
    needed = set(schema.get("required", ()))
    parts = [
        st.fixed_dictionaries(
            {key: value for key, value in named.items() if key in needed},
            optional={key: value for key, value in named.items() if key not in needed},
        )
    ]
    # What is passed through as it is stays empty: the charts promise nothing of it.
    free = dict(schema.get("patternProperties", {}))
    if isinstance(schema.get("additionalProperties"), dict):
        free["^a"] = schema["additionalProperties"]
    for pattern, inner in free.items():
        keys = [text for text in TEXTS if text and re.search(pattern, text)]
        if keys:
            parts.append(st.dictionaries(st.sampled_from(keys), _values(inner, root), max_size=2))
    return st.tuples(*parts).map(lambda maps: {k: v for one in maps for k, v in one.items()})


def places(values: Any, above: Place = ()) -> Iterator[Place]:
    """Where something stands in values, at every depth."""
    if above:
        yield above
    inner = enumerate(values) if isinstance(values, list) else ()
    for step, value in values.items() if isinstance(values, dict) else inner:
        yield from places(value, (*above, step))


def written(values: Any, others: Mapping[Place, Any], above: Place = ()) -> Any:
    """Values with others at some places."""
    if above in others:
        return others[above]
    if isinstance(values, dict):
        return {step: written(inner, others, (*above, step)) for step, inner in values.items()}
    if isinstance(values, list):
        return [written(inner, others, (*above, n)) for n, inner in enumerate(values)]
    return values
