# SPDX-License-Identifier: Apache-2.0
"""The schemas are closed, agree with values.yaml, and no key of theirs is without a scenario."""

from __future__ import annotations

from collections.abc import Iterator
import json
from pathlib import Path
from typing import Any
import unittest

import yaml

from magnum.tests.functional.k8s_capi_helm.charts import rendering

Schema = dict[str, Any]
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
        for chart in self.charts:
            covered = {
                path
                for scenario in rendering.scenarios(chart).values()
                for path in paths_of(scenario.values)
            }
            uncovered = sorted(leaves(chart) - covered)
            self.assertEqual([], uncovered, f"{chart.name}: no ci/*-values.yaml sets these keys")

    def test_every_object_with_named_keys_is_closed(self) -> None:
        for chart in self.charts:
            root = schema_of(chart)
            self.assertIs(False, root["additionalProperties"])
            for path, found in [*properties(root, root), *root["definitions"].items()]:
                if "properties" in found:
                    self.assertIs(False, found.get("additionalProperties"), f"{chart.name}: {path}")

    def test_every_key_stands_in_values_yaml(self) -> None:
        only_in_groups = {
            f"nodeGroups.[].{path}" for path in (*leaves_of_a_group(), "machineCountMin")
        }
        for chart in self.charts:
            text = (chart / "values.yaml").read_text()
            for path in sorted(leaves(chart) - only_in_groups):
                with self.subTest(chart=chart.name, path=path):
                    self.assertTrue(path.rpartition(".")[2] in text, "no word of it")

    def test_values_yaml_has_no_key_that_the_schema_lacks(self) -> None:
        for chart in self.charts:
            root = schema_of(chart)
            known = dict(properties(root, root))
            for path in paths_of(yaml.safe_load((chart / "values.yaml").read_text())):
                with self.subTest(chart=chart.name, path=path):
                    self.assertTrue(path in known or open_above(path, known))

    def test_a_group_may_say_what_the_defaults_say(self) -> None:
        root = schema_of(rendering.CLUSTER)["properties"]
        group = root["nodeGroups"]["items"]["properties"]
        own = {"name", "machineCount", "machineCountMin", "machineCountMax"}
        self.assertEqual(
            root["nodeGroupDefaults"]["properties"],
            {key: value for key, value in group.items() if key not in own},
        )


def leaves_of_a_group() -> set[str]:
    """Paths of nodeGroups[] that are explained at nodeGroupDefaults."""
    prefix = "nodeGroupDefaults."
    return {
        path.removeprefix(prefix) for path in leaves(rendering.CLUSTER) if path.startswith(prefix)
    }


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
