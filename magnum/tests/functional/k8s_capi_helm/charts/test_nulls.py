# SPDX-License-Identifier: Apache-2.0
"""Null takes a key away: the chart goes on without it, or says which key it needs.

Helm shows neither the schema nor the templates a key that somebody set to null. What the charts
need stands in the schemas as required; everything else may be null at the same time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent import futures
import json
import os
from pathlib import Path
from typing import Any
import unittest

import yaml

from magnum.tests.functional.k8s_capi_helm.charts import addon_operator, crds, rendering
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one

#: Where a null is refused by a rule of validate.yaml, which has its row in tests/refused.
_BY_A_RULE = {
    ("controlPlane", "machineFlavor"),
    ("clusterNetworking", "internalNetwork", "nodeCidr"),
}
#: Where all addons but two, which stand in for others, are there.
_EVERYTHING = "air-gapped"
_SCENARIOS = {rendering.CLUSTER: "minimal", rendering.ADDONS: "standalone"}
#: A proxy reads more of the values than anything else.
_BESIDES = {"proxy": {"http": "http://proxy.example.org:3128"}}
_Path = tuple[str, ...]


def needed(
    schema: Mapping[str, Any], root: Mapping[str, Any], above: _Path = ()
) -> Iterator[_Path]:
    """Paths of all keys with a default that a schema asks for."""
    if "$ref" in schema:
        schema = root["definitions"][schema["$ref"].rsplit("/", 1)[1]]
    for key in schema.get("required", ()):
        yield (*above, key)
    # Of alternatives the usual one stands first.
    for one in (*schema.get("allOf", ()), *schema.get("anyOf", ())[:1]):
        yield from needed(one, root, above)
    for key, inner in schema.get("properties", {}).items():
        yield from needed(inner, root, (*above, key))


def defaults(values: Mapping[str, Any], above: _Path = ()) -> Iterator[_Path]:
    """Paths of all keys that have a default other than null, sections before what is in them."""
    for key, inner in values.items():
        if inner is not None:
            yield (*above, key)
        if isinstance(inner, dict):
            yield from defaults(inner, (*above, key))


def nulls(paths: list[_Path]) -> dict[str, Any]:
    """Values in which all of these keys are null."""
    values: dict[str, Any] = {}
    for path in paths:
        section = values
        for key in path[:-1]:
            section = section.setdefault(key, {})
        section[path[-1]] = None
    return values


def over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Maps laid over each other key by key."""
    result = dict(below)
    for key, value in above.items():
        low = result.get(key)
        both = isinstance(low, dict) and isinstance(value, dict)
        result[key] = over(low or {}, value) if both else value
    return result


class NullTest(unittest.TestCase):
    charts = tuple(_SCENARIOS)

    def paths(self, chart: Path) -> tuple[list[_Path], list[_Path]]:
        """Keys that the chart needs, and the others."""
        root = json.loads((chart / "values.schema.json").read_text())
        found = list(defaults(yaml.safe_load((chart / "values.yaml").read_text())))
        asked = set(needed(root, root))
        if chart == rendering.CLUSTER:
            inner = json.loads((rendering.ADDONS / "values.schema.json").read_text())
            asked.update(needed(inner, inner, ("addons",)))
        return [one for one in found if one in asked], [
            one for one in found if one not in asked | _BY_A_RULE
        ]

    def scenario(self, chart: Path) -> Mapping[str, Any]:
        values = rendering.scenarios(chart)[_SCENARIOS[chart]].values
        return over(values, _BESIDES) if chart == rendering.CLUSTER else values

    def test_what_a_chart_needs_is_missed_by_its_name(self) -> None:
        for chart in at_least_one(self.charts):
            wanted, _ = self.paths(chart)
            self.assertTrue(wanted)

            def said(path: _Path, chart: Path = chart) -> str:
                try:
                    rendering.render(chart, over(self.scenario(chart), nulls([path])))
                except rendering.HelmRefused as error:
                    return str(error)
                return ""

            with futures.ThreadPoolExecutor(os.cpu_count()) as pool:
                for path, answer in zip(wanted, pool.map(said, wanted), strict=True):
                    with self.subTest(chart=chart.name, path=".".join(path)):
                        self.assertIn("specifications of the schema", answer)
                        self.assertRegex(
                            answer, rf"missing property '{path[-1]}'|/{path[-1]}': got null"
                        )

    def test_everything_else_may_be_null(self) -> None:
        for chart in at_least_one(self.charts):
            wanted, free = self.paths(chart)
            kept = set(wanted) | _BY_A_RULE
            own = set(defaults(self.scenario(chart)))
            #: What stands above a key that is needed, or that the scenario says, stays.
            above = {one[:end] for one in kept | own for end in range(1, len(one) + 1)}
            whole = [one for one in free if one not in above]
            largest = [
                one for one in whole if not any(one[:end] in whole for end in range(1, len(one)))
            ]
            smallest = [
                one for one in whole if not any(two[: len(one)] == one != two for two in whole)
            ]
            for title, paths in (("sections", largest), ("leaves", smallest)):
                with self.subTest(chart=chart.name, nulls=title):
                    self.assertTrue(paths)
                    for found in rendering.render(chart, over(self.scenario(chart), nulls(paths))):
                        self.assertNotIn("<nil>", json.dumps(found))
                        if found["kind"] != "Secret":
                            crds.validate(found)

    def test_the_addon_operator_makes_every_addon_without_any_one_key(self) -> None:
        _, free = self.paths(rendering.ADDONS)
        values = rendering.scenarios(rendering.ADDONS)[_EVERYTHING].values
        identity = addon_operator.credential({"auth": {"auth_url": "https://example.org"}})

        def made(path: _Path) -> int:
            objects = rendering.render(rendering.ADDONS, over(values, nulls([path])))
            for found in addon_operator.addons(objects):
                name = addon_operator.component(found)
                addon_operator.installed(objects, name, identity=identity)
            return len(addon_operator.addons(objects))

        def fault(path: _Path) -> str:
            try:
                return "" if made(path) else "no addon"
            except rendering.HelmRefused as error:
                # A rule, which has its row in tests/refused, says what is missing.
                return "" if "templates/validate.yaml" in str(error) else str(error)
            except Exception as error:
                return repr(error)

        with futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            found = dict(zip(map(".".join, free), pool.map(fault, free), strict=True))
        self.assertEqual({}, {path: error for path, error in found.items() if error})
