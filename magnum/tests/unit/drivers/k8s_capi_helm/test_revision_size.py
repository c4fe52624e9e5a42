# SPDX-License-Identifier: Apache-2.0
"""What Helm keeps of the cluster's chart in each revision stays small, and checks the same."""

from __future__ import annotations

import importlib
import importlib.util
import json
from pathlib import Path
import shutil
import tempfile
from typing import Any
import unittest

import testtools

from magnum.drivers.k8s_capi_helm.chart_store import archive
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one

#: Bytes in the Secret of a revision. With all of its templates, texts and README in it, the chart
#: alone took 187,000; the reference's revision takes 53,000.
CHART, STANDARD, LARGEST = 56_000, 72_000, 80_000


def tool(name: str) -> Any:
    """A tool, which is in a checkout and in no wheel."""
    return importlib.import_module(f"tools.{name}")


@unittest.skipUnless(importlib.util.find_spec("tools"), "needs a checkout")
class TestRevisionSize(testtools.TestCase):
    def test_the_chart_takes_little(self) -> None:
        sizes = tool("revision_size")
        self.assertLess(sizes.secret_bytes(sizes.packed()), CHART)

    def test_so_does_each_scenario(self) -> None:
        sizes = tool("revision_size")
        chart = sizes.packed()
        for name, (values, manifest) in at_least_one(sizes.scenarios().items()):
            size = sizes.secret_bytes(sizes.revision(chart, values, manifest))
            self.assertLess(size, STANDARD if name == "standard" else LARGEST, name)
            self.assertGreater(size, sizes.secret_bytes(chart), name)


@unittest.skipUnless(importlib.util.find_spec("tools"), "needs a checkout")
class TestCompactChart(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.source = tool("revision_size").CHART
        self.chart = Path(shutil.copytree(self.source, Path(place.name) / "openstack-cluster"))
        tool("compact_chart").compact(self.chart)

    def schema(self, chart: Path) -> Any:
        return json.loads((chart / "values.schema.json").read_text(encoding="utf-8"))

    def test_only_texts_for_readers_go(self) -> None:
        before, after = archive.archive_paths(self.source), archive.archive_paths(self.chart)
        gone = set(before) - set(after)
        self.assertEqual({"README.md"}, {Path(path).name for path in gone})
        changed = [
            path
            for path in after
            if (self.source / path).read_bytes() != (self.chart / path).read_bytes()
        ]
        names = ["charts/cluster-addons/values.schema.json", "values.schema.json"]
        self.assertEqual(names, changed)

    def test_a_second_time_changes_nothing(self) -> None:
        digest = archive.digest(self.chart)
        tool("compact_chart").compact(self.chart)
        self.assertEqual(digest, archive.digest(self.chart))

    def test_all_rules_of_a_schema_remain(self) -> None:
        before, after = self.schema(self.source), self.schema(self.chart)
        self.assertEqual(list(before["properties"]), list(after["properties"]))
        self.assertEqual(list(before["definitions"]), list(after["definitions"]))
        rules = rules_of(before)
        self.assertGreater(len(rules), 1000)
        self.assertEqual(rules, rules_of(after))
        self.assertFalse('"description": "' in json.dumps(after))

    def test_a_key_may_have_the_name_of_a_text(self) -> None:
        schema = {
            "title": "a",
            "properties": {
                "title": {"type": "string", "description": "b", "enum": ["description"]},
                "description": {"const": {"description": "c"}},
            },
            "allOf": [{"description": "d", "required": ["title"]}],
            "additionalProperties": False,
        }
        expected = {
            "properties": {
                "title": {"type": "string", "enum": ["description"]},
                "description": {"const": {"description": "c"}},
            },
            "allOf": [{"required": ["title"]}],
            "additionalProperties": False,
        }
        self.assertEqual(expected, tool("compact_chart").rules(schema))


def rules_of(schema: Any) -> list[str]:
    """Each rule of a schema; a description that is a text is none."""
    if isinstance(schema, dict):
        return [
            f"{key}: {rule}"
            for key, value in schema.items()
            if key not in ("description", "title") or not isinstance(value, str)
            for rule in rules_of(value)
        ]
    if isinstance(schema, list):
        return [rule for part in schema for rule in rules_of(part)]
    return [repr(schema)]
