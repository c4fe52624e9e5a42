# SPDX-License-Identifier: Apache-2.0
"""The examples of the documents: they have the right shape, and their values render."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
import re
import textwrap
import unittest

import yaml

from doc.ext import chart_values
from magnum.tests.functional.k8s_capi_helm.charts import gitops, rendering
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one

DOCUMENTS = Path(__file__).resolve().parents[5] / "doc" / "source" / "charts"
EXAMPLES = DOCUMENTS / "examples"
BLOCK = re.compile(r"^( *)\.\. code-block:: yaml\n\n((?:\1 +.*\n|\n)+)", re.M)


def version_of(chart: str) -> str:
    """The version of a chart, "" if there is none."""
    path = rendering.CHARTS / chart / "Chart.yaml"
    return str(yaml.safe_load(path.read_text())["version"]) if path.is_file() else ""


def blocks() -> Iterator[tuple[str, str]]:
    """Page and text of each YAML block that stands in a page itself."""
    for page in sorted(DOCUMENTS.glob("*.rst")):
        for found in BLOCK.finditer(page.read_text()):
            yield page.name, textwrap.dedent(found.group(2))


class ExampleTest(unittest.TestCase):
    def objects(self) -> Iterator[tuple[str, Object, list[Object]]]:
        """File, object, and all objects of the file."""
        for path in sorted(EXAMPLES.glob("*.yaml")):
            if not path.name.endswith("-values.yaml"):
                found = rendering.documents(path.read_text())
                self.assertTrue(found, path.name)
                yield from ((path.name, one, found) for one in found)

    def releases(self) -> Iterator[tuple[str, gitops.Release]]:
        for name, found, others in self.objects():
            if found["kind"] in ("HelmRelease", "Application"):
                yield name, gitops.release(found, others)

    def test_shapes(self) -> None:
        kinds = set()
        for name, found, _ in self.objects():
            kinds.add(found["kind"])
            with self.subTest(example=name, kind=found["kind"]):
                self.assertEqual([], gitops.faults(found))
        self.assertEqual({kind for _, kind in gitops.SHAPES}, kinds)

    def test_the_chart_and_its_version_are_the_present_ones(self) -> None:
        for name, release in self.releases():
            with self.subTest(example=name):
                self.assertEqual(version_of("openstack-cluster"), release.version)
                self.assertEqual("openstack-cluster", release.chart)

    def test_values_render_a_whole_cluster(self) -> None:
        found = [
            (path.name, yaml.safe_load(path.read_text()))
            for path in sorted(EXAMPLES.glob("*-values.yaml"))
        ]
        found += [(name, release.values) for name, release in self.releases() if release.values]
        self.assertGreaterEqual(len(found), 3)
        for name, values in found:
            with self.subTest(example=name):
                objects = rendering.render(rendering.CLUSTER, values)
                self.assertEqual("demo", rendering.only(objects, "Cluster")["metadata"]["name"])
                self.assertEqual(2, len(rendering.by_kind(objects, "MachineDeployment")))

    def test_what_is_ignored_is_scaled_by_the_autoscaler(self) -> None:
        for _, found, others in self.objects():
            if found["kind"] != "Application":
                continue
            release = gitops.release(found, others)
            objects = rendering.render(rendering.CLUSTER, release.values or {})
            groups = {
                one["metadata"]["name"]: one["spec"]
                for one in rendering.by_kind(objects, "MachineDeployment")
            }
            for rule in found["spec"]["ignoreDifferences"]:
                self.assertEqual("MachineDeployment", rule["kind"])
                self.assertEqual(["/spec/replicas"], rule["jsonPointers"])
                self.assertNotIn("replicas", groups[rule["name"]])

    def test_pages_show_every_example(self) -> None:
        text = "".join(page.read_text() for page in DOCUMENTS.glob("*.rst"))
        for path in at_least_one(EXAMPLES.iterdir()):
            self.assertIn(f"examples/{path.name}", text)

    def test_versions_in_commands_are_the_present_ones(self) -> None:
        version = version_of("openstack-cluster")
        self.assertEqual(version, version_of("cluster-addons"))
        for page in sorted(DOCUMENTS.glob("*.rst")):
            for found in re.findall(r"--version (\S+)|-([0-9.]+)\.tgz", page.read_text()):
                with self.subTest(page=page.name):
                    self.assertIn(version, found)

    def test_the_command_that_lists_templates_lists_them_all(self) -> None:
        named = r'^  name: "?[a-z0-9.-]+-[0-9a-f]{8}"?$'
        pattern = named + r"|^(  |      )(version|failureDomain): "
        self.assertIn(f"grep -E '{pattern}'", (DOCUMENTS / "helm.rst").read_text())
        for scenario in rendering.scenarios(rendering.CLUSTER).values():
            text = rendering.text(scenario.chart, scenario.values)
            listed = re.findall(named, text, re.MULTILINE)
            names = [
                found["metadata"]["name"]
                for kind in ("OpenStackMachineTemplate", "KubeadmConfigTemplate")
                for found in rendering.by_kind(scenario.objects, kind)
            ]
            missing = set(names) - {name.split()[-1].strip('"') for name in listed}
            machines = [
                spec[key]
                for kind in ("KubeadmControlPlane", "MachineDeployment")
                for found in rendering.by_kind(scenario.objects, kind)
                for spec in (found["spec"], found["spec"].get("template", {}).get("spec", {}))
                for key in ("version", "failureDomain")
                if key in spec
            ]
            said = re.findall(pattern.split("|", 1)[1] + "(.+)", text, re.MULTILINE)
            with self.subTest(scenario=scenario.name):
                self.assertEqual(set(), missing)
                self.assertEqual(
                    sorted(machines), sorted(yaml.safe_load(value) for *_, value in said)
                )

    def test_yaml_in_pages_can_be_read(self) -> None:
        for page, text in at_least_one(blocks()):
            with self.subTest(page=page, text=text):
                self.assertTrue(list(yaml.safe_load_all(text)))


class ValuesTest(unittest.TestCase):
    """The page of a chart's values, which is made from its schema and values.yaml."""

    def rows(self, chart: str) -> list[chart_values.Key]:
        reference = chart_values.Reference(chart)
        return [*reference.rows(), *(key for *_, keys in reference.shapes() for key in keys)]

    def row(self, chart: str, path: str) -> chart_values.Key:
        (found,) = [key for key in chart_values.Reference(chart).rows() if key.path == path]
        return found

    def test_every_key_is_described(self) -> None:
        for chart in (rendering.CLUSTER, rendering.ADDONS):
            found = self.rows(chart.name)
            self.assertGreater(len(found), 100)
            self.assertEqual([], [key.path for key in found if not key.description.strip()])

    def test_every_default_of_values_yaml_is_said(self) -> None:
        for chart in (rendering.CLUSTER, rendering.ADDONS):
            said = {key.path: key for key in chart_values.Reference(chart.name).rows()}
            values = yaml.safe_load((chart / "values.yaml").read_text())
            for top, value in at_least_one(values.items()):
                if not isinstance(value, dict | list):
                    self.assertEqual(value, yaml.safe_load(said[top].default), top)

    def test_types_in_words(self) -> None:
        for path, kind in (
            ("apiServer.port", "integer from 1 to 65535"),
            ("volumesPolicy", "one of keep, delete"),
            ("apiVersions.core", "one of empty, v1beta1, v1beta2"),
            ("machineMetadata", "map of strings or integers or booleans or null"),
            ("clusterAnnotations", "map of strings"),
            ("additionalPackages", "list of strings"),
            ("machineImage", "string or null"),
        ):
            with self.subTest(path=path):
                self.assertEqual(kind, self.row("openstack-cluster", path).kind)

    def test_what_is_deprecated_is_said_so(self) -> None:
        self.assertTrue(
            self.row("openstack-cluster", "clusterNetworking.dnsNameservers").deprecated
        )
        self.assertFalse(self.row("openstack-cluster", "clusterNetworking").deprecated)

    def test_keys_of_a_group_are_its_own_and_those_of_the_defaults_are_not_repeated(self) -> None:
        found = {key.path for key in chart_values.Reference("openstack-cluster").rows()}
        self.assertIn("nodeGroups[].name", found)
        self.assertNotIn("nodeGroups[].machineFlavor", found)
        self.assertIn("nodeGroupDefaults.machineFlavor", found)


class ShapeTest(unittest.TestCase):
    """The shapes do see faults."""

    def faults(self, path: str, value: object) -> str:
        found = rendering.documents((EXAMPLES / "flux.yaml").read_text())[1]
        return " ".join(gitops.faults(rendering.changed(found, {path: value})))

    def test_a_misspelt_field(self) -> None:
        self.assertIn("no field disablewait", self.faults("spec.install.disablewait", True))

    def test_a_wrong_type(self) -> None:
        self.assertIn(
            "spec.install.disableWait is 'true'", self.faults("spec.install.disableWait", "true")
        )

    def test_a_text_of_another_form(self) -> None:
        self.assertIn("spec.interval is '10 minutes'", self.faults("spec.interval", "10 minutes"))

    def test_an_empty_list_and_a_missing_field(self) -> None:
        self.assertIn("no list", self.faults("spec.valuesFrom", []))
        self.assertIn(
            "spec.upgrade.strategy.name is missing", self.faults("spec.upgrade.strategy", {})
        )

    def test_an_unknown_kind(self) -> None:
        self.assertIn("nothing is known", self.faults("kind", "Helmrelease"))
