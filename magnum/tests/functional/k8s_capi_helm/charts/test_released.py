# SPDX-License-Identifier: Apache-2.0
"""A new chart does to the values of the last release what that release did.

No machine is replaced and no object vanishes by an upgrade of the chart alone, unless the release's
``changes.yaml`` says which and why.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
import tempfile
import unittest

import yaml

from magnum.tests.functional.k8s_capi_helm.charts import released, rendering
from magnum.tests.functional.k8s_capi_helm.charts.released import Release
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Scenario, Values
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one

#: Keys of an entry in changes.yaml.
CHANGE = {"object", "path", "why"}


def over(below: Values, above: Values) -> Values:
    """Values with others laid over them, the way Helm takes a second --values file."""
    result = dict(below)
    for key, value in above.items():
        found = result.get(key)
        if isinstance(found, dict) and isinstance(value, dict):
            value = over(found, value)
        result[key] = value
    return result


def facts(found: dict[str, Values]) -> dict[tuple[str, str], object]:
    """(object, path) -> value; that an object is there is a fact too, with the path ""."""
    return {(name, ""): "there" for name in found} | {
        (name, path): value for name, held in found.items() for path, value in held.items()
    }


def moved(before: dict[str, Values], after: dict[str, Values]) -> dict[tuple[str, str], str]:
    """(object, path) -> what became of it. Objects that are new move nothing."""
    old, new = facts(before), facts(after)
    paths = old.keys() | {key for key in new if key[0] in before}
    gone = {name for name in before if name not in after}
    return {
        key: f"was {old.get(key)}, is {new.get(key)}"
        for key in paths
        if old.get(key) != new.get(key) and (key[1] == "" or key[0] not in gone)
    }


def listed(change: dict[str, str], key: tuple[str, str]) -> bool:
    """Whether an entry of changes.yaml is about this."""
    return fnmatchcase(key[0], change["object"]) and fnmatchcase(key[1], change["path"])


class ReleasedTest(unittest.TestCase):
    maxDiff = None

    def each(self) -> Iterator[tuple[Release, Scenario]]:
        for release in released.releases():
            for scenario in release.scenarios():
                yield release, scenario

    def test_there_is_a_record_of_each_chart(self) -> None:
        found = {release.chart for release, _ in self.each()}
        self.assertEqual({rendering.CLUSTER, rendering.ADDONS}, found)

    def test_a_release_on_record_is_older_than_the_chart(self) -> None:
        for release in at_least_one(released.releases()):
            about = yaml.safe_load((release.chart / "Chart.yaml").read_text())
            now, then = (
                tuple(int(part) for part in version.split("."))
                for version in (about["version"], release.version)
            )
            with self.subTest(chart=release.chart.name, version=release.version):
                self.assertLess(then, now, "raise the version in Chart.yaml: this one is out")

    def test_its_scenarios_move_nothing(self) -> None:
        for release, scenario in at_least_one(self.each()):
            with self.subTest(chart=release.chart.name, scenario=scenario.name):
                self.assertEqual({}, self.unexpected(release, scenario, scenario.values))

    def test_its_scenarios_on_its_values_yaml_move_nothing(self) -> None:
        """As those do who keep a copy of values.yaml, and ``helm upgrade --reuse-values``."""
        for release, scenario in at_least_one(self.each()):
            values = over(release.defaults, scenario.values)
            with self.subTest(chart=release.chart.name, scenario=scenario.name):
                self.assertEqual({}, self.unexpected(release, scenario, values))

    def test_every_listed_change_happens(self) -> None:
        for release in at_least_one(released.releases()):
            found = {
                key
                for scenario in release.scenarios()
                for key in self.moved(release, scenario, scenario.values)
            }
            for change in release.changes():
                with self.subTest(chart=release.chart.name, change=change):
                    self.assertEqual(CHANGE, change.keys())
                    self.assertTrue(change["why"].strip())
                    self.assertTrue(
                        [key for key in found if listed(change, key)], "does not happen"
                    )

    def moved(
        self, release: Release, scenario: Scenario, values: Values
    ) -> dict[tuple[str, str], str]:
        objects = rendering.render(release.chart, values, upgrade=True)
        return moved(release.lasting(scenario.name), released.lasting(objects))

    def unexpected(self, release: Release, scenario: Scenario, values: Values) -> dict[str, str]:
        """Object and path -> what became of it, without what is listed."""
        return {
            " ".join(key): what
            for key, what in sorted(self.moved(release, scenario, values).items())
            if not any(listed(change, key) for change in release.changes())
        }


class RecordTest(unittest.TestCase):
    """What the record says, and what comparing it sees."""

    BEFORE = {"A/one": {"spec.x": 1}, "B/two": {}}

    def test_nothing_moved(self) -> None:
        self.assertEqual({}, moved(self.BEFORE, {**self.BEFORE, "C/new": {"spec.y": 1}}))

    def test_an_object_that_is_gone_is_said_once(self) -> None:
        self.assertEqual({("A/one", "")}, moved(self.BEFORE, {"B/two": {}}).keys())

    def test_a_value_that_changed_went_or_came(self) -> None:
        for after in ({"spec.x": 2}, {}, {"spec.x": 1, "spec.z": 3}):
            with self.subTest(after=after):
                found = moved(self.BEFORE, {**self.BEFORE, "A/one": after})
                self.assertEqual({"A/one"}, {name for name, _ in found})
                self.assertEqual(1, len(found))

    def test_items_of_a_list_are_told_apart_by_name_or_path(self) -> None:
        files = [{"path": "/a", "content": "x"}, {"path": "/b", "content": "y"}]
        found = {"apiVersion": "a/v1", "kind": "KubeadmControlPlane", "metadata": {"name": "c"}}
        found["spec"] = {"kubeadmConfigSpec": {"files": files, "verbosity": 1, "users": []}}
        spec = "spec.kubeadmConfigSpec"
        self.assertEqual(
            {
                f"{spec}.files./a.content": "x",
                f"{spec}.files./b.content": "y",
                f"{spec}.verbosity": 1,
                f"{spec}.users": [],
            },
            released.lasting([found])["KubeadmControlPlane/c"],
        )

    def test_another_api_version_moves_nothing(self) -> None:
        scenarios = rendering.scenarios(rendering.CLUSTER)
        for name in ("standard", "every-key", "existing-network"):
            told = []
            for core, cloud in (("v1beta1", "v1beta1"), ("v1beta2", "v1beta2")):
                change = {"apiVersions": {"core": core, "infrastructure": cloud, "clusterApi": ""}}
                values = rendering.changed(scenarios[name].values, change)
                told.append(
                    released.lasting(rendering.render(rendering.CLUSTER, values, upgrade=True))
                )
            with self.subTest(scenario=name):
                self.assertEqual({}, moved(*told))

    def test_the_chart_as_it_is_can_be_recorded(self) -> None:
        chart = rendering.CLUSTER
        with tempfile.TemporaryDirectory() as place:
            released.record(chart, Path(place) / "record")
            files = {path.name for path in (Path(place) / "record" / "lasting").iterdir()}
            self.assertEqual({f"{name}.yaml" for name in rendering.scenarios(chart)}, files)
            text = (Path(place) / "record" / "lasting" / "minimal.yaml").read_text()
        found = yaml.safe_load(text)
        control_plane = found["KubeadmControlPlane/demo-control-plane"]
        etcd = "spec.kubeadmConfigSpec.clusterConfiguration.etcd.local"
        self.assertEqual("/var/lib/etcd", control_plane[f"{etcd}.dataDir"])
        self.assertEqual("5000", control_plane[f"{etcd}.extraArgs.election-timeout"])
        self.assertIn("spec.selector", found["MachineDeployment/demo-md-0"])
        templates = [name for name in found if name.startswith("OpenStackMachineTemplate/")]
        self.assertEqual(2, len(templates))
