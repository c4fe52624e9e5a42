# SPDX-License-Identifier: Apache-2.0
"""The charts as packages: the dependency comes along, nothing else does."""

from __future__ import annotations

from pathlib import Path
import tarfile
import tempfile
import unittest

import yaml

from magnum.tests.functional.k8s_capi_helm.charts import rendering


class PackageTest(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = Path(place.name)

    def package(self, chart: Path) -> Path:
        rendering.run("package", chart, f"--destination={self.place}")
        version = yaml.safe_load((chart / "Chart.yaml").read_text())["version"]
        return self.place / f"{chart.name}-{version}.tgz"

    def test_a_package_renders_what_its_directory_renders(self) -> None:
        for scenario in rendering.every_scenario():
            with self.subTest(chart=scenario.chart.name, scenario=scenario.name):
                objects = rendering.render(self.package(scenario.chart), scenario.values)
                self.assertEqual(scenario.objects, objects)

    def test_scenarios_and_records_stay_at_home(self) -> None:
        for chart in (rendering.CLUSTER, rendering.ADDONS):
            with tarfile.open(self.package(chart)) as archive:
                names = archive.getnames()
            self.assertTrue(any(name.endswith("values.schema.json") for name in names))
            self.assertFalse([name for name in names if "/ci/" in name or "/tests/" in name])

    def test_the_dependency_is_the_one_beside_it(self) -> None:
        about = yaml.safe_load((rendering.CLUSTER / "Chart.yaml").read_text())
        (dependency,) = about["dependencies"]
        beside = yaml.safe_load((rendering.ADDONS / "Chart.yaml").read_text())
        self.assertEqual(beside["name"], dependency["name"])
        self.assertEqual(beside["version"], dependency["version"])
        vendored = rendering.CLUSTER / "charts" / beside["name"]
        self.assertEqual(rendering.ADDONS.resolve(), vendored.resolve())
