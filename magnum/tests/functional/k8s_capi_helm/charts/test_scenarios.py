# SPDX-License-Identifier: Apache-2.0
"""Every scenario of a chart renders the objects on record, and these are valid.

UPDATE_GOLDEN=1 writes the record anew; read its difference before you commit it.
"""

from __future__ import annotations

import os
from pathlib import Path
import shutil
import unittest

import yaml

from magnum.tests.functional.k8s_capi_helm.charts import infrastructure, rendering
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object, Scenario
from magnum.tests.functional.k8s_capi_helm.charts.validity import faults


def golden_name(found: Object) -> str:
    """File of an object on record."""
    kind, name = rendering.identity(found)
    return f"{kind.lower()}-{name}.yaml"


class Record(yaml.SafeDumper):
    """Writes text of several lines as lines, so that a difference can be read."""

    def text(self, value: str) -> yaml.Node:
        """How a text is written."""
        style = "|" if "\n" in value else None
        return self.represent_scalar("tag:yaml.org,2002:str", value, style)


Record.add_representer(str, Record.text)


def golden_text(found: Object) -> str:
    """An object as it stands on record."""
    return yaml.dump(found, Dumper=Record, sort_keys=False, allow_unicode=True, width=100)


class ScenarioTest(unittest.TestCase):
    maxDiff = None

    def each(self) -> list[Scenario]:
        found = list(rendering.every_scenario())
        self.assertGreaterEqual(len(found), 6)
        return found

    def test_objects_are_those_on_record(self) -> None:
        for scenario in self.each():
            with self.subTest(chart=scenario.chart.name, scenario=scenario.name):
                rendered = {golden_name(one): golden_text(one) for one in scenario.objects}
                if os.environ.get("UPDATE_GOLDEN"):
                    write(scenario.golden, rendered)
                recorded = {path.name: path.read_text() for path in scenario.golden.glob("*.yaml")}
                self.assertEqual(recorded, rendered)

    def test_no_two_objects_share_kind_and_name(self) -> None:
        for scenario in self.each():
            with self.subTest(chart=scenario.chart.name, scenario=scenario.name):
                names = [rendering.identity(found) for found in scenario.objects]
                self.assertCountEqual(set(names), names)

    def test_every_object_is_valid(self) -> None:
        for scenario in self.each():
            for found in scenario.objects:
                # No release that can be fetched serves v1beta2 of the infrastructure yet;
                # test_crd_releases takes it as it is where its CRDs are given.
                known = infrastructure.in_v1beta1(found)
                with self.subTest(scenario=scenario.name, found=rendering.identity(found)):
                    self.assertEqual([], faults(known))

    def test_no_record_without_its_scenario(self) -> None:
        for chart in (rendering.CLUSTER, rendering.ADDONS):
            recorded = {path.name for path in (chart / "tests" / "golden").iterdir()}
            self.assertEqual(set(rendering.scenarios(chart)), recorded)


class StrictnessTest(unittest.TestCase):
    """The validation that the other tests lean on does see faults."""

    def setUp(self) -> None:
        super().setUp()
        values = rendering.scenarios(rendering.CLUSTER)["every-key"].values
        self.objects = rendering.render(rendering.CLUSTER, values)

    def broken(self, kind: str, path: str, value: object) -> list[str]:
        found = rendering.by_kind(self.objects, kind)[0]
        return faults(rendering.changed(found, {path: value}))

    def test_unknown_field_of_a_custom_resource(self) -> None:
        self.assertIn("nonsense", str(self.broken("OpenStackCluster", "spec.nonsense", 1)))

    def test_field_that_v1beta2_no_longer_has(self) -> None:
        self.assertIn(
            "nodeDrainTimeout",
            str(self.broken("MachineDeployment", "spec.template.spec.nodeDrainTimeout", "5m0s")),
        )

    def test_missing_field_of_a_custom_resource(self) -> None:
        found = rendering.only(self.objects, "KubeadmControlPlane")
        spec = {key: value for key, value in found["spec"].items() if key != "version"}
        self.assertIn("'version' is a required", str(faults({**found, "spec": spec})))

    def test_unknown_field_of_a_deployment(self) -> None:
        self.assertIn(
            "no field nonsense",
            str(self.broken("Deployment", "spec.template.spec.nonsense", 1)),
        )

    def test_number_where_text_belongs(self) -> None:
        self.assertIn("not str", str(self.broken("Deployment", "metadata.labels.a", 1)))

    def test_kind_without_a_schema(self) -> None:
        found = {**rendering.only(self.objects, "Cluster"), "kind": "Nonsense"}
        self.assertIn("serves no Nonsense", str(faults(found)))


def write(directory: Path, files: dict[str, str]) -> None:
    """Replace a directory's files."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for name, text in files.items():
        (directory / name).write_text(text)
