# SPDX-License-Identifier: Apache-2.0
"""A directory for charts that cannot be written stops no cluster, and is said to the operator."""

from __future__ import annotations

import errno
import os
import pathlib
import shutil
import subprocess
import tempfile
from typing import Any

import fixtures

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.chart_store import archive, ChartConfigMaps, directory
from magnum.tests.unit.drivers.k8s_capi_helm.fakes import FakeKube
from magnum.tests.unit.drivers.k8s_capi_helm.test_chart_store import StoreCase, write_chart

REMOTE = {"repository": "https://charts.example.org", "name": "openstack-cluster"}


class UnwritableDirectoryTest(StoreCase):
    """The configured directory lies below a file, so that not even root can make it."""

    def setUp(self) -> None:
        super().setUp()
        self.blocked = self.directory / "blocked"
        self.blocked.write_text("a file")
        self.log = self.useFixture(fixtures.FakeLogger())
        self.temporary = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.use_for_temporary_files(self.temporary)
        write_chart(self.remote.source / "0.27.0", version="0.27.0")

    def use_for_temporary_files(self, path: pathlib.Path) -> None:
        self.useFixture(fixtures.MonkeyPatch("tempfile.tempdir", str(path)))

    def test_charts_are_cached_for_this_process(self) -> None:
        store = self.store("blocked/charts")
        bundled = pathlib.Path(store.for_new_cluster(None).path)
        fetched = pathlib.Path(
            self.store("blocked/charts", **REMOTE).for_new_cluster("0.27.0").path
        )
        [cache] = self.temporary.iterdir()
        self.assertTrue(bundled.is_relative_to(cache))
        self.assertTrue(fetched.is_relative_to(cache))

    def test_the_operator_reads_once_whose_directory_it_is(self) -> None:
        for _ in range(3):
            self.store("blocked/charts").for_new_cluster(None)
        [line] = self.log.output.splitlines()
        self.assertIn(f"{self.blocked}/charts, whose parent {self.blocked} is a file of ", line)
        for words in ("mode 0", "runs as ", "Not a directory", "[capi_helm] chart_directory"):
            self.assertIn(words, line)

    def test_a_chart_of_a_release_is_found_there_again(self) -> None:
        chart = self.store("blocked/charts", **REMOTE).for_new_cluster("0.27.0")
        shutil.rmtree(self.remote.source)
        found = self.store("blocked/charts").of_release(self.live(chart), chart.digest)
        self.assertEqual(chart.path, found.path)

    def test_charts_in_a_directory_that_is_only_read_are_used(self) -> None:
        chart = self.store("full", **REMOTE).for_new_cluster("0.27.0")
        make = tempfile.mkdtemp

        def refuse(**given: Any) -> str:
            if given.get("dir") == self.directory / "full":
                raise OSError(errno.EROFS, os.strerror(errno.EROFS))
            return make(**given)

        self.useFixture(fixtures.MonkeyPatch("tempfile.mkdtemp", refuse))
        shutil.rmtree(self.remote.source)
        found = self.store("full").of_release(self.live(chart), chart.digest)
        self.assertEqual(chart.path, found.path)
        self.assertEqual("", self.log.output)
        self.store("full").for_new_cluster(None)
        self.assertIn("Read-only file system", self.log.output)

    def test_the_bundled_chart_needs_no_directory_at_all(self) -> None:
        self.use_for_temporary_files(self.blocked / "temporary")
        store = self.store("blocked/none", copies=ChartConfigMaps(FakeKube()))
        chart = store.for_new_cluster(None)
        self.assertEqual(self.first.path, chart.path)
        found = store.of_release(self.live(chart), chart.digest)
        self.assertEqual(self.first.path, found.path)
        self.assertIsNone(store.recorded_chart("n", chart.digest))

    def test_another_chart_without_any_directory_is_refused_with_the_option(self) -> None:
        self.use_for_temporary_files(self.blocked / "temporary")
        store = self.store("blocked/other", **REMOTE)
        error = self.assertRaises(errors.ChartNotFound, store.for_new_cluster, "0.27.0")
        self.assertIn("check the option [capi_helm] chart_directory.", str(error))
        self.assertIn(f"whose parent {self.blocked} is a file of ", error.detail)

    def test_what_a_cleaner_has_taken_is_stored_again(self) -> None:
        """systemd-tmpfiles takes files first, and directories when they are empty."""
        store = self.store("blocked/charts", **REMOTE)
        chart = store.for_new_cluster("0.27.0")
        (pathlib.Path(chart.path) / "Chart.yaml").unlink()
        again = store.for_new_cluster("0.27.0")
        self.assertEqual(chart.digest, archive.digest(pathlib.Path(again.path)))
        [cache] = self.temporary.iterdir()
        shutil.rmtree(cache)
        again = store.for_new_cluster("0.27.0")
        self.assertEqual(chart.digest, archive.digest(pathlib.Path(again.path)))

    def test_directories_of_ended_processes_are_deleted(self) -> None:
        ended = subprocess.Popen(["true"])
        ended.wait()
        left, alive, other = (
            self.temporary / f"k8s-capi-helm-charts-{name}"
            for name in (f"{ended.pid}-a", f"{os.getppid()}-b", "notes")
        )
        for path in (left, alive, other):
            path.mkdir()
        self.store("blocked/charts").for_new_cluster(None)
        self.assertEqual([False, True, True], [one.exists() for one in (left, alive, other)])

    def test_a_forked_process_has_its_own(self) -> None:
        self.store("blocked/charts").for_new_cluster(None)
        [parents] = self.temporary.iterdir()
        child = os.fork()
        if not child:
            self.store("blocked/charts").for_new_cluster(None)
            os._exit(0)
        os.waitpid(child, 0)
        self.assertEqual(2, len(list(self.temporary.iterdir())))
        self.assertTrue(any(parents.iterdir()))

    def test_a_directory_says_its_owner_and_mode(self) -> None:
        place = pathlib.Path(tempfile.mkdtemp(dir=self.directory))
        place.chmod(0o750)
        self.assertRegex(
            directory.ownership(place), rf"^{place} is a directory of \S+ with mode 0750; "
        )
