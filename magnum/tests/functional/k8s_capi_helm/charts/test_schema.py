# SPDX-License-Identifier: Apache-2.0
"""The schemas are closed, agree with values.yaml, and no key of theirs is without a scenario."""

from __future__ import annotations

from collections.abc import Iterator
import json
from pathlib import Path
import re
from typing import Any
import unittest

import jsonschema  # type: ignore[import-untyped]
import yaml

from magnum.tests.functional.k8s_capi_helm.charts import keys, rendering
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one

Schema = dict[str, Any]
#: Of what is passed through, the shapes of the parts that the templates look into.
_PASSED_THROUGH = "partsOf"
#: Helm hands it to every chart of a release, with keys of all of them.
_SHARED = "global"
#: Read by helm itself, not set by anybody.
_HELMS_OWN = {"global", "enabled"}


def schema_of(chart: Path) -> Schema:
    """values.schema.json of a chart."""
    found: Schema = json.loads((chart / "values.schema.json").read_text())
    return found


def properties(schema: Schema, root: Schema) -> Iterator[tuple[str, Schema]]:
    """Each property of a schema with its dotted path; "[]" stands for the items of a list."""
    for name, inner in schema.get("properties", {}).items():
        target = resolved(inner, root)
        yield name, target
        yield from ((f"{name}.{path}", found) for path, found in properties(target, root))
        items = resolved(target.get("items", {}), root)
        yield from ((f"{name}.[].{path}", found) for path, found in properties(items, root))


def resolved(schema: Schema, root: Schema) -> Schema:
    """A schema, or what it refers to."""
    if "$ref" in schema:
        found: Schema = root["definitions"][schema["$ref"].rpartition("/")[2]]
        return found
    return schema


def leaves(chart: Path) -> set[str]:
    """Paths of a chart's schema below which there is none."""
    root = schema_of(chart)
    paths = {path for path, _ in properties(root, root)}
    return {
        path
        for path in paths
        if not any(other.startswith(f"{path}.") for other in paths) and path not in _HELMS_OWN
    }


def paths_of(values: Any) -> Iterator[str]:
    """Each path of values, in the spelling of :func:`properties`."""
    if isinstance(values, dict):
        for key, inner in values.items():
            yield key
            yield from (f"{key}.{path}" for path in paths_of(inner))
    elif isinstance(values, list):
        for inner in values:
            yield from (f"[].{path}" for path in paths_of(inner))


class SchemaTest(unittest.TestCase):
    charts = (rendering.CLUSTER, rendering.ADDONS)

    def test_every_key_is_set_by_a_scenario(self) -> None:
        for chart in at_least_one(self.charts):
            values = [scenario.values for scenario in rendering.scenarios(chart).values()]
            uncovered = [
                key.name
                for key in keys.leaves(chart)
                if key.name not in _HELMS_OWN
                and not any(any(True for _ in keys.values_at(one, key.path)) for one in values)
            ]
            self.assertEqual([], uncovered, f"{chart.name}: no ci/*-values.yaml sets these keys")

    def test_every_object_with_named_keys_is_closed(self) -> None:
        for chart in at_least_one(self.charts):
            root = schema_of(chart)
            self.assertIs(False, root["additionalProperties"])
            for path, found in [*properties(root, root), *root["definitions"].items()]:
                if "properties" in found and "type" in found:
                    open_ = path == _SHARED or path.startswith(_PASSED_THROUGH)
                    closed = None if open_ else False
                    said = found.get("additionalProperties")
                    self.assertIs(closed, said, f"{chart.name}: {path}")

    def test_no_rule_for_names_of_keys_makes_helm_name_another_place(self) -> None:
        for chart in at_least_one(self.charts):
            self.assertNotIn('"propertyNames"', (chart / "values.schema.json").read_text())

    def test_what_charts_around_it_share_is_let_through_and_changes_nothing(self) -> None:
        for chart, name in ((rendering.CLUSTER, "minimal"), (rendering.ADDONS, "standalone")):
            scenario = rendering.scenarios(chart)[name]
            shared = {
                "imageRegistry": "registry.example.org",
                "storageClass": None,
                "site": {"a": 1},
            }
            change = {f"global.{key}": value for key, value in shared.items()}
            with self.subTest(chart.name):
                found = rendering.render(chart, rendering.changed(scenario.values, change))
                self.assertEqual(scenario.objects, found)

    def test_every_key_stands_in_values_yaml(self) -> None:
        """In the section of its top-level key, or anywhere if it is part of a shared shape."""
        for chart in at_least_one(self.charts):
            sections = sections_of((chart / "values.yaml").read_text())
            everywhere = "".join(sections.values())
            for key in keys.leaves(chart):
                shared = any(
                    keys.at(chart, key.path[:end])[1] for end in range(1, len(key.path) + 1)
                )
                text = everywhere if shared or key.path[0] == "nodeGroups" else ""
                text += sections.get(key.path[0], "")
                if key.name not in _HELMS_OWN:
                    with self.subTest(chart=chart.name, path=key.name):
                        word = re.compile(rf"\b{re.escape(key.path[-1])}\b")
                        self.assertTrue(word.search(text), "no word of it")

    def test_every_default_is_valid(self) -> None:
        for chart in at_least_one(self.charts):
            values = yaml.safe_load((chart / "values.yaml").read_text())
            validator = jsonschema.Draft7Validator(schema_of(chart))
            self.assertEqual(
                [], [f"{one.json_path}: {one.message}" for one in validator.iter_errors(values)]
            )

    def test_values_yaml_has_no_key_that_the_schema_lacks(self) -> None:
        for chart in at_least_one(self.charts):
            root = schema_of(chart)
            known = dict(properties(root, root))
            for path in paths_of(yaml.safe_load((chart / "values.yaml").read_text())):
                with self.subTest(chart=chart.name, path=path):
                    self.assertTrue(path in known or open_above(path, known))

    def test_a_group_may_say_what_the_defaults_say(self) -> None:
        root = schema_of(rendering.CLUSTER)["properties"]
        group = root["nodeGroups"]["items"]["properties"]
        self.assertEqual(
            root["nodeGroupDefaults"]["properties"],
            {key: value for key, value in group.items() if key != "name"},
        )


def sections_of(text: str) -> dict[str, str]:
    """Lines of a values.yaml by top-level key, each with the comments above it and in it."""
    found: dict[str, str] = {}
    above, current = "", ""
    for line in text.splitlines(keepends=True):
        if match := re.match(r"([A-Za-z]+):", line):
            current = match[1]
            found[current], above = above + line, ""
        elif line.startswith(("#", "\n")):
            above += line
            if current:
                found[current] += line
        else:
            found[current] += line
            above = ""
    return found


def open_above(path: str, known: dict[str, Schema]) -> bool:
    """Whether a path is below a key that passes anything, or any text, through."""
    steps = path.split(".")
    above = [".".join(steps[:end]) for end in range(1, len(steps))]
    return any(
        one in known
        and "properties" not in known[one]
        and "properties" not in known[one].get("items", {})
        for one in above
    )
