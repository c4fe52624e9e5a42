# SPDX-License-Identifier: Apache-2.0
"""A named template is found by its name: it begins with its folder or its file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
import re
import unittest

from magnum.tests.functional.k8s_capi_helm.charts import rendering

_DEFINED = re.compile(r'\{\{-? define "([^"]+)"')
_INCLUDED = re.compile(r'\(?include "([^"]+)"')
#: Partials that belong to no folder of the cluster's chart.
_SHARED = {"_names.tpl", "_text.tpl"}


def defined(chart: Path) -> Iterator[tuple[Path, str]]:
    """Every named template, with the file that defines it."""
    for path in rendering.template_files(chart):
        for name in _DEFINED.findall(path.read_text()):
            yield path, name


def included(chart: Path) -> set[str]:
    """The names that the templates include as they stand; a name that is put together is none."""
    return {
        name
        for path in rendering.template_files(chart)
        for name in _INCLUDED.findall(path.read_text())
    }


def word(name: str) -> str:
    """A name of a file, a folder or a template, however its words are joined, in the singular."""
    return name.replace("-", "").lower().removesuffix("s")


class PartialTest(unittest.TestCase):
    def test_a_name_begins_with_its_folder_or_file(self) -> None:
        found = [one for one in defined(rendering.CLUSTER) if one[0].name not in _SHARED]
        self.assertTrue(found)
        for path, name in found:
            chart, first, *_ = name.split(".")
            with self.subTest(name=name):
                self.assertEqual(rendering.CLUSTER.name, chart)
                self.assertIn(word(first), {word(path.parent.name), word(path.stem[1:])})

    def test_only_what_all_folders_share_is_in_none(self) -> None:
        found = {path.name for path in (rendering.COMMON / "templates").glob("_*")}
        self.assertEqual(_SHARED, found)

    def test_named_templates_are_where_helm_keeps_none(self) -> None:
        """Older charts have those of the autoscaler mended, so these are where they were."""
        inside = [path for path, _ in defined(rendering.CLUSTER)]
        outside = [path for path in inside if not path.is_relative_to(rendering.COMMON)]
        self.assertGreater(len(inside), 40)
        self.assertEqual({"autoscaler"}, {path.parent.name for path in outside})

    def test_every_name_is_defined_once_and_included(self) -> None:
        for chart in (rendering.CLUSTER, rendering.ADDONS):
            names = [name for _, name in defined(chart)]
            with self.subTest(chart=chart.name):
                self.assertTrue(names)
                self.assertCountEqual(set(names), names)
                self.assertEqual(set(), included(chart) - set(names))
                # The kinds of addons, which addons.yaml chooses by the addon's own key.
                kinds = {"cluster-addons.HelmRelease", "cluster-addons.Manifests"}
                self.assertEqual(set(), set(names) - included(chart) - kinds)
