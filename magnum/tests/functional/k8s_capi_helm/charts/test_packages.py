# SPDX-License-Identifier: Apache-2.0
"""The charts as packages: with the dependency, nothing else, and a key that vouches for them."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
import shutil
import tarfile
import tempfile
import time
import unittest
from unittest import mock

import yaml

from magnum.drivers.k8s_capi_helm.chart_store import archive as chart_archive
from magnum.tests.functional.k8s_capi_helm.charts import openpgp, rendering
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one
from tools import chart_packages, compact_chart

TIME = 1600000000


class PackageCase(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = Path(place.name)
        self.helm = Path(rendering.helm())
        # Without it the time is that of the last commit, and somebody may commit meanwhile.
        self.enterContext(mock.patch.dict(os.environ, {"SOURCE_DATE_EPOCH": str(TIME)}))

    def package(self, chart: Path) -> Path:
        return chart_packages.package(self.helm, chart, self.place)


class PackageTest(PackageCase):
    def test_a_package_renders_what_its_directory_renders(self) -> None:
        packages = {chart: self.package(chart) for chart in (rendering.CLUSTER, rendering.ADDONS)}
        for scenario in at_least_one(rendering.every_scenario()):
            with self.subTest(chart=scenario.chart.name, scenario=scenario.name):
                objects = rendering.render(packages[scenario.chart], scenario.values)
                self.assertEqual(scenario.objects, objects)

    def test_scenarios_and_records_stay_at_home(self) -> None:
        for chart in (rendering.CLUSTER, rendering.ADDONS):
            with tarfile.open(self.package(chart)) as archive:
                names = archive.getnames()
            self.assertTrue(any(name.endswith("values.schema.json") for name in names))
            self.assertFalse([name for name in names if "/ci/" in name or "/tests/" in name])
            self.assertFalse([name for name in names if name.endswith("README.md")])

    def test_the_dependency_is_the_one_beside_it(self) -> None:
        about = yaml.safe_load((rendering.CLUSTER / "Chart.yaml").read_text())
        (dependency, common) = about["dependencies"]
        expected = {"name": "common", "version": about["version"], "repository": ""}
        self.assertEqual(expected, common)
        inside = yaml.safe_load((rendering.COMMON / "Chart.yaml").read_text())
        self.assertEqual("library", inside["type"])
        self.assertEqual(("common", about["version"]), (inside["name"], inside["version"]))
        beside = yaml.safe_load((rendering.ADDONS / "Chart.yaml").read_text())
        self.assertEqual(beside["name"], dependency["name"])
        self.assertEqual(beside["version"], dependency["version"])
        vendored = rendering.CLUSTER / "charts" / beside["name"]
        self.assertEqual(rendering.ADDONS.resolve(), vendored.resolve())

    def test_to_the_driver_it_is_the_chart_that_it_was_made_of(self) -> None:
        """But for texts for readers, which are not in the driver's wheel either."""
        chart = self.place / "openstack-cluster"
        shutil.copytree(rendering.CLUSTER, chart)
        unpacked = chart_archive.unpack(self.package(chart), self.place / "unpacked")
        self.assertNotEqual(chart_archive.digest(chart), chart_archive.digest(unpacked))
        compact_chart.compact(chart)
        self.assertEqual(chart_archive.digest(chart), chart_archive.digest(unpacked))

    def test_it_refuses_what_its_directory_refuses(self) -> None:
        package = self.package(rendering.CLUSTER)
        base = rendering.scenarios(rendering.CLUSTER)["minimal"].values
        for change in ({"machineFlavour": "a"}, {"apiServer.port": 0}, {"osDistro": "other"}):
            values, sentences = rendering.changed(base, change), []
            for chart in (rendering.CLUSTER, package):
                with self.assertRaises(rendering.HelmRefused) as refused:
                    rendering.render(chart, values)
                sentences.append(str(refused.exception).partition("values don't meet")[2])
            self.assertEqual(sentences[0], sentences[1])
            self.assertIn("openstack-cluster:\n- at '", sentences[0])

    def test_the_name_has_the_version(self) -> None:
        version = yaml.safe_load((rendering.CLUSTER / "Chart.yaml").read_text())["version"]
        self.assertEqual(f"openstack-cluster-{version}.tgz", self.package(rendering.CLUSTER).name)

    def test_the_same_sources_make_the_same_bytes(self) -> None:
        chart = self.place / "openstack-cluster"
        shutil.copytree(rendering.CLUSTER, chart)
        first = digest(self.package(chart))
        for found in chart.rglob("*"):
            os.utime(found)
        self.assertEqual(first, digest(self.package(chart)))

    def test_charts_inside_are_in_order(self) -> None:
        for _ in range(3):
            with tarfile.open(self.package(rendering.CLUSTER)) as archive:
                names = [Path(name).parts for name in archive.getnames()]
            inside = [parts[2] for parts in names if parts[1] == "charts"]
            self.assertEqual({"cluster-addons", "common"}, set(inside))
            self.assertEqual(sorted(inside), inside)

    def test_the_time_of_all_files_can_be_said(self) -> None:
        with tarfile.open(self.package(rendering.ADDONS)) as archive:
            self.assertEqual({TIME}, {int(member.mtime) for member in archive})

    def test_else_it_is_that_of_the_last_commit(self) -> None:
        del os.environ["SOURCE_DATE_EPOCH"]
        self.assertGreater(time.time(), chart_packages.epoch())
        self.assertGreater(chart_packages.epoch(), chart_packages.NO_HISTORY)


class ProvenanceTest(PackageCase):
    NAME = "Chart Test <charts@example.org>"

    def setUp(self) -> None:
        super().setUp()
        ring = self.place / "ring.gpg"
        ring.write_bytes(openpgp.keyring(self.NAME))
        self.key = chart_packages.Key(self.NAME, ring)
        self.signed = chart_packages.package(
            self.helm, rendering.ADDONS, self.place / "signed", self.key
        )

    def test_a_signed_package_is_verified(self) -> None:
        said = rendering.run("verify", self.signed, f"--keyring={self.key.keyring}")
        self.assertIn("charts@example.org", said)
        self.assertIn(digest(self.signed), said)

    def test_another_package_of_that_name_is_not(self) -> None:
        with self.signed.open("ab") as archive:
            archive.write(b"\0")
        with self.assertRaises(rendering.HelmRefused):
            rendering.run("verify", self.signed, f"--keyring={self.key.keyring}")

    def test_nor_is_the_key_of_another_one(self) -> None:
        other = self.place / "other.gpg"
        other.write_bytes(openpgp.keyring(self.NAME))
        with self.assertRaises(rendering.HelmRefused):
            rendering.run("verify", self.signed, f"--keyring={other}")

    def test_what_helm_4_signs_has_the_time_of_the_sources_too(self) -> None:
        helm = Path(rendering.helm4())
        made = chart_packages.package(helm, rendering.ADDONS, self.place / "four", self.key)
        with tarfile.open(made) as archive:
            self.assertEqual({TIME}, {int(member.mtime) for member in archive})
        self.assertTrue(made.with_name(f"{made.name}.prov").is_file())

    def test_a_key_that_is_not_in_the_ring_makes_no_package(self) -> None:
        key = chart_packages.Key("nobody", self.key.keyring)
        with self.assertRaises(chart_packages.CannotPackage):
            chart_packages.package(self.helm, rendering.ADDONS, self.place / "none", key)
        self.assertFalse((self.place / "none").exists())


class IndexTest(PackageCase):
    def index(self) -> dict[str, list[dict[str, object]]]:
        found = yaml.safe_load((self.place / "index.yaml").read_text())
        entries: dict[str, list[dict[str, object]]] = found["entries"]
        return entries

    def test_it_names_the_packages_that_were_made_and_no_others(self) -> None:
        (self.place / "cluster-addons-0.0.1.tgz").write_bytes(b"left by somebody")
        made = chart_packages.make(self.helm, self.place, None, "", None)
        self.assertEqual(2, len(made))
        entries = self.index()
        self.assertEqual({"openstack-cluster", "cluster-addons"}, entries.keys())
        for package in made:
            (entry,) = entries[package.name.rpartition("-")[0]]
            self.assertEqual([package.name], entry["urls"])
            self.assertEqual(digest(package), entry["digest"])

    def test_it_carries_on_another_index_under_an_address(self) -> None:
        made = chart_packages.make(self.helm, self.place, None, "https://charts.example.org/", None)
        before = self.index()
        for entry in (entry for entries in before.values() for entry in entries):
            entry["version"] = "0.9.0"
        old = self.place / "old.yaml"
        old.write_text(yaml.safe_dump({"apiVersion": "v1", "entries": before}))
        chart_packages.index(self.helm, made, self.place, "https://new.example.org", old)
        found = {str(entry["version"]): entry["urls"] for entry in self.index()["cluster-addons"]}
        version = made[0].name.removeprefix("cluster-addons-").removesuffix(".tgz")
        self.assertEqual(
            {
                "0.9.0": [f"https://charts.example.org/{made[0].name}"],
                version: [f"https://new.example.org/{made[0].name}"],
            },
            found,
        )

    def test_an_index_that_is_not_there_is_not_taken_for_empty(self) -> None:
        with self.assertRaisesRegex(chart_packages.CannotPackage, "no index .*missing.yaml"):
            chart_packages.index(self.helm, [], self.place, "", self.place / "missing.yaml")


class CommandTest(PackageCase):
    def test_half_a_key_is_refused(self) -> None:
        asked = chart_packages.parser().parse_args(["--key=me", str(self.place)])
        with self.assertRaisesRegex(chart_packages.CannotPackage, "CHART_KEYRING"):
            chart_packages.key_of(asked)

    def test_make_speaks_through_the_environment(self) -> None:
        said = {"CHART_KEY": "me", "CHART_KEYRING": "ring", "CHART_PASSPHRASE_FILE": "words"}
        with mock.patch.dict(os.environ, said):
            key = chart_packages.key_of(chart_packages.parser().parse_args([str(self.place)]))
        self.assertEqual(chart_packages.Key("me", Path("ring"), Path("words")), key)


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
