# SPDX-License-Identifier: Apache-2.0
"""The chart of a release: from which source, in which version, and never another one."""

from __future__ import annotations

import hashlib
import os
import pathlib
import shutil
import tarfile
import tempfile
import threading
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
import testtools
import yaml

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.chart_store import archive, ChartChoice, ChartStore
from magnum.drivers.k8s_capi_helm.model import Chart, LiveRelease, names
from magnum.tests.unit.drivers.k8s_capi_helm.suites.helm import write_chart


class Repository:
    """The part of HelmClient that fetches charts, with charts of its own."""

    def __init__(self, source: pathlib.Path) -> None:
        self.source = source
        self.pulls: list[tuple[str, str | None, str | None]] = []

    def pull(
        self, reference: str, *, repository: str | None, version: str | None, into: pathlib.Path
    ) -> pathlib.Path:
        self.pulls.append((reference, repository, version))
        chart = self.source / str(version)
        if not chart.is_dir():
            raise errors.ChartNotFound("not in the repository")
        unpacked = pathlib.Path(tempfile.mkdtemp(dir=into))
        shutil.copytree(chart, unpacked / names.CLUSTER_CHART)
        return unpacked


class StoreCase(testtools.TestCase):
    """Charts in a directory of the test."""

    def setUp(self) -> None:
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.bundled = self.directory / "bundled"
        self.first = write_chart(self.bundled / names.CLUSTER_CHART)
        self.remote = Repository(self.directory / "remote")

    def store(self, place: str = "store", **settings: Any) -> ChartStore:
        """A store at *place*, which stands for a conductor."""
        copies = settings.pop("copies", None)
        return ChartStore(
            bundled_charts=self.bundled,
            directory=self.directory / place,
            helm=self.remote,  # type: ignore[arg-type]
            choice=ChartChoice(**settings),
            copies=copies,
        )

    @staticmethod
    def live(chart: Chart) -> LiveRelease:
        return LiveRelease(
            name="r",
            namespace="n",
            revision=1,
            status="deployed",
            chart_name=chart.name,
            chart_version=chart.version,
            chart_family=chart.family,
            values={},
        )


class TestWanted(StoreCase):
    """The chart for a new cluster."""

    def test_the_bundled_one(self) -> None:
        chart = self.store().for_new_cluster(None)
        self.assertEqual(
            ("openstack-cluster", "1.0.0", names.CHART_FAMILY, self.first.digest),
            (chart.name, chart.version, chart.family, chart.digest),
        )
        self.assertTrue(pathlib.Path(chart.path).is_relative_to(self.directory / "store"))
        self.assertEqual(self.first.digest, archive.digest(pathlib.Path(chart.path)))

    def test_a_version_that_is_bundled(self) -> None:
        for version in ("1.0.0", "v1.0.0"):
            self.assertEqual("1.0.0", self.store().for_new_cluster(version).version)

    def test_a_version_that_is_not_bundled_is_refused(self) -> None:
        for store, label in ((self.store(), "2.0.0"), (self.store(default_version="2.0.0"), None)):
            error = self.assertRaises(errors.ChartNotFound, store.for_new_cluster, label)
            self.assertIn("1.0.0, not 2.0.0", str(error))
            self.assertIn("capi_helm_chart_version", str(error))

    def test_the_label_wins_over_the_default(self) -> None:
        self.assertEqual(
            "1.0.0", self.store(default_version="2.0.0").for_new_cluster("1.0.0").version
        )

    def test_a_directory(self) -> None:
        write_chart(self.directory / "own" / "my-chart", "3.0.0", "my-chart")
        for settings in (
            {"repository": str(self.directory / "own"), "name": "my-chart"},
            {"repository": f"{self.directory}/own/", "name": "my-chart"},
            {"name": str(self.directory / "own" / "my-chart")},
        ):
            chart = self.store(**settings).for_new_cluster(None)
            self.assertEqual(("my-chart", "3.0.0"), (chart.name, chart.version))

    def test_an_archive_is_the_same_chart(self) -> None:
        own = self.directory / "own"
        own.mkdir()
        for name in ("openstack-cluster-1.0.0.tgz", "other.tgz"):
            with tarfile.open(own / name, "w:gz") as tar:
                tar.add(self.first.path, "openstack-cluster")
        for settings, version in (
            ({"repository": str(own)}, "1.0.0"),
            ({"name": str(own / "other.tgz")}, None),
        ):
            chart = self.store(**settings).for_new_cluster(version)
            self.assertEqual(self.first.digest, chart.digest)
            self.assertTrue((pathlib.Path(chart.path) / "templates" / "config.yaml").exists())

    def test_a_repository(self) -> None:
        write_chart(self.directory / "remote" / "0.27.0", "0.27.0")
        for settings, pull in (
            (
                {"repository": "https://charts.example.org/"},
                ("openstack-cluster", "https://charts.example.org", "0.27.0"),
            ),
            (
                {"repository": "oci://example.org/charts", "name": "my"},
                ("oci://example.org/charts/my", None, "0.27.0"),
            ),
            ({"name": "oci://example.org/c"}, ("oci://example.org/c", None, "0.27.0")),
        ):
            chart = self.store(**settings, default_version="0.27.0").for_new_cluster(None)
            self.assertEqual(pull, self.remote.pulls[-1])
            self.assertEqual("0.27.0", chart.version)
        self.assertEqual([], list((self.directory / "store").glob(".*")))

    def test_a_repository_needs_a_version(self) -> None:
        store = self.store(repository="https://charts.example.org")
        error = self.assertRaises(errors.ChartNotFound, store.for_new_cluster, None)
        self.assertIn("default_helm_chart_version", str(error))
        self.assertEqual([], self.remote.pulls)

    def test_what_is_not_there_is_said_to_the_operator(self) -> None:
        (self.directory / "empty").mkdir()
        (self.directory / "nonsense.tgz").write_bytes(b"nonsense")
        for settings in (
            {"repository": str(self.directory / "nowhere")},
            {"repository": str(self.directory / "empty")},
            {"name": str(self.directory / "empty")},
            {"name": str(self.directory / "nonsense.tgz")},
            {"name": "not-bundled"},
        ):
            error = self.assertRaises(
                errors.ChartNotFound, self.store(**settings).for_new_cluster, "1.0.0"
            )
            self.assertIn("helm_chart_repo", str(error))
            self.assertNotIn(str(self.directory), str(error))
            self.assertIn(str(self.directory), error.detail)

    def test_what_killed_conductors_have_left_goes(self) -> None:
        first = self.remote.source / "0.27.0"
        write_chart(first, version="0.27.0")
        store = self.store(repository="https://charts.example.org", name="openstack-cluster")
        chart = store.for_new_cluster("0.27.0")
        version = pathlib.Path(chart.path).parent
        left = [version.parent.parent / ".fetched-1", version / ".draft-1"]
        young = [one.with_name(f"{one.name}2") for one in left]
        for one in (*left, *young):
            (one / "chart").mkdir(parents=True)
        for one in left:
            os.utime(one, (0, 0))
        shutil.rmtree(chart.path)
        store.for_new_cluster("0.27.0")
        self.assertEqual([], [one for one in left if one.exists()])
        self.assertEqual([], [one for one in young if not one.exists()])

    def test_an_archive_does_not_write_elsewhere(self) -> None:
        outside = self.directory / "outside"
        with tarfile.open(self.directory / "evil.tgz", "w:gz") as tar:
            tar.add(self.first.path, "openstack-cluster")
            tar.add(f"{self.first.path}/Chart.yaml", "../../outside")
        store = self.store(name=str(self.directory / "evil.tgz"))
        self.assertRaises(errors.ChartNotFound, store.for_new_cluster, None)
        self.assertFalse(outside.exists())

    def test_many_at_once(self) -> None:
        found: list[str] = []
        store = self.store()
        threads = [
            threading.Thread(target=lambda: found.append(store.for_new_cluster(None).path))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        self.assertEqual(8, len(found))
        self.assertEqual(1, len(set(found)))
        self.assertEqual([], list(pathlib.Path(found[0]).parent.glob(".*")))


class TestOfRelease(StoreCase):
    """The chart that a release has."""

    def test_it_comes_from_the_store_without_its_source(self) -> None:
        chart = self.store().for_new_cluster(None)
        shutil.rmtree(self.bundled)
        self.assertEqual(chart, self.store().of_release(self.live(chart), chart.digest))

    def test_a_newer_bundled_one_is_not_taken_for_it(self) -> None:
        chart = self.store().for_new_cluster(None)
        shutil.rmtree(self.bundled)
        write_chart(self.bundled / names.CLUSTER_CHART, "1.1.0")
        store = self.store()
        self.assertEqual(chart, store.of_release(self.live(chart), chart.digest))
        self.assertEqual("1.1.0", store.for_new_cluster(None).version)

    def test_another_conductor_gets_it_from_the_source(self) -> None:
        chart = self.store().for_new_cluster(None)
        found = self.store("another").of_release(self.live(chart), chart.digest)
        self.assertEqual(chart.digest, found.digest)
        self.assertNotEqual(chart.path, found.path)

    def test_a_repository_is_asked_once(self) -> None:
        write_chart(self.directory / "remote" / "0.27.0", "0.27.0")
        store = self.store(repository="https://charts.example.org", default_version="0.27.0")
        chart = store.for_new_cluster(None)
        for _ in range(3):
            store.of_release(self.live(chart), chart.digest)
        self.assertEqual(1, len(self.remote.pulls))

    def test_the_same_version_with_other_contents_is_refused(self) -> None:
        chart = self.store().for_new_cluster(None)
        (self.bundled / names.CLUSTER_CHART / "values.yaml").write_text("changed: true\n")
        error = self.assertRaises(
            errors.ChartNotFound,
            self.store("another").of_release,
            self.live(chart),
            chart.digest,
        )
        self.assertIn("could replace its machines", str(error))
        self.assertIn("other contents", error.detail)

    def test_another_family_of_the_same_name_and_version_is_refused(self) -> None:
        chart = self.store().for_new_cluster(None)
        foreign = self.live(Chart(chart.name, chart.version, ""))
        error = self.assertRaises(errors.ChartNotFound, self.store().of_release, foreign, "")
        self.assertIn("openstack-cluster", str(error))

    def test_a_release_without_a_digest_is_matched_by_version_and_family(self) -> None:
        chart = self.store().for_new_cluster(None)
        self.assertEqual(chart, self.store().of_release(self.live(chart), ""))

    def test_a_version_that_is_nowhere(self) -> None:
        gone = self.live(Chart("openstack-cluster", "0.9.0", "", names.CHART_FAMILY))
        for digest in ("", "0" * 64):
            error = self.assertRaises(errors.ChartNotFound, self.store().of_release, gone, digest)
            self.assertIn("0.9.0", str(error))

    def test_a_damaged_copy_is_made_anew(self) -> None:
        store = self.store()
        chart = store.for_new_cluster(None)
        (pathlib.Path(chart.path) / "templates" / "config.yaml").write_text("damaged")
        again = store.of_release(self.live(chart), chart.digest)
        self.assertEqual(chart, again)
        self.assertEqual(chart.digest, archive.digest(pathlib.Path(again.path)))


class TestDigest(StoreCase):
    """What makes two charts the same."""

    def test_tests_do_not_count(self) -> None:
        chart = pathlib.Path(self.first.path)
        for ignored in ("tests/a.yaml", "ci/b-values.yaml"):
            (chart / ignored).parent.mkdir()
            (chart / ignored).write_text("a: b")
        self.assertEqual(self.first.digest, archive.digest(chart))
        (chart / "templates" / "tests").mkdir()
        (chart / "templates" / "tests" / "a.yaml").write_text("a: b")
        self.assertNotEqual(self.first.digest, archive.digest(chart))

    def with_subchart(self) -> pathlib.Path:
        """The first chart with one inside that has tests."""
        chart = pathlib.Path(self.first.path)
        inner = chart / "charts" / "cluster-addons"
        write_chart(inner, "1.0.0", "cluster-addons")
        (inner / "tests").mkdir()
        (inner / "tests" / "a.yaml").write_text("a: b")
        return chart

    def test_a_package_is_the_chart_that_it_was_made_of(self) -> None:
        """Helm leaves out what .helmignore names, and writes each Chart.yaml anew."""
        chart = self.with_subchart()
        package = self.directory / "package"
        shutil.copytree(chart, package)
        shutil.rmtree(package / "charts" / "cluster-addons" / "tests")
        for path in (package / "Chart.yaml", package / "charts" / "cluster-addons" / "Chart.yaml"):
            metadata = yaml.safe_load(path.read_text())
            path.write_text("# no comment of the source\n" + yaml.safe_dump(metadata))
        self.assertEqual(archive.digest(chart), archive.digest(package))
        path.write_text(path.read_text().replace("1.0.0", "1.0.1"))
        self.assertNotEqual(archive.digest(chart), archive.digest(package))

    def test_a_chart_that_a_driver_of_before_has_kept_is_still_known(self) -> None:
        chart = self.with_subchart()
        total = hashlib.sha256()
        for path in sorted(path.relative_to(chart) for path in chart.rglob("*") if path.is_file()):
            content = (chart / path).read_bytes()
            total.update(f"{path}\0{len(content)}\0".encode() + content)
        former = total.hexdigest()
        self.assertNotEqual(former, archive.digest(chart))
        place = archive.directory_of(self.directory / "store", "openstack-cluster", "1.0.0", former)
        shutil.copytree(chart, place)
        shutil.rmtree(self.bundled)
        found = self.store().of_release(self.live(self.first), former)
        self.assertEqual((former, str(place)), (found.digest, found.path))

    def test_a_linked_subchart_counts(self) -> None:
        chart = pathlib.Path(self.first.path)
        write_chart(self.bundled / "cluster-addons", "1.0.0", "cluster-addons")
        (chart / "charts").mkdir()
        (chart / "charts" / "cluster-addons").symlink_to("../../cluster-addons")
        linked = archive.digest(chart)
        self.assertNotEqual(self.first.digest, linked)
        kept = self.store().for_new_cluster(None)
        self.assertEqual(linked, kept.digest)
        copy = pathlib.Path(kept.path) / "charts" / "cluster-addons"
        self.assertFalse(copy.is_symlink())
        self.assertTrue((copy / "Chart.yaml").exists())

    @given(
        st.dictionaries(st.sampled_from("abcd"), st.binary(max_size=5), min_size=1),
        st.dictionaries(st.sampled_from("abcd"), st.binary(max_size=5), min_size=1),
    )
    def test_it_differs_exactly_when_names_or_contents_do(
        self, one: dict[str, bytes], two: dict[str, bytes]
    ) -> None:
        digests = []
        for content in (one, two):
            with tempfile.TemporaryDirectory() as directory:
                for name, data in content.items():
                    (pathlib.Path(directory) / name).write_bytes(data)
                digests.append(archive.digest(pathlib.Path(directory)))
        self.assertEqual(one == two, digests[0] == digests[1])
