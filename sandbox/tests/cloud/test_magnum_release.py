# SPDX-License-Identifier: Apache-2.0
"""Releases of Magnum: which can be run, which can follow which, and with what configuration."""

import configparser
import importlib.metadata
from pathlib import Path
import sys
from typing import Any

import yaml

from sandbox import cli, database
from sandbox.cloud import magnum_options, magnum_release, watched_conductor
from sandbox.cloud.conductor_layout import Layout
from sandbox.management import releases
from sandbox.management.releases import Providers
from sandbox.state import SandboxError
from sandbox.tests.test_state import StateCase

OWN = importlib.metadata.version("magnum")
OLD, NEWER = "20.0.2", "22.0.0"


def layout(version: str, **fields: Any) -> Layout:
    return Layout("rabbit", magnum=version, **fields)


class TestReleases(StateCase):
    def test_the_oldest_is_first_and_the_own_one_last(self) -> None:
        versions = list(magnum_release.known())
        self.assertEqual([OLD, "21.0.1", NEWER, OWN], versions)

    def test_one_is_named_by_its_version_or_its_first_number(self) -> None:
        for text in (OLD, "20"):
            self.assertEqual(OLD, magnum_release.choose(text).version)
        with self.assertRaisesRegex(SandboxError, f"--magnum 19: choose one of {OLD}, "):
            magnum_release.choose("19")

    def test_programs_and_files_are_those_of_its_environment(self) -> None:
        old, own = magnum_release.choose("20"), magnum_release.choose(OWN)
        self.assertFalse(old.is_own)
        self.assertTrue(own.is_own)
        self.assertEqual(str(old.prefix / "bin" / "magnum-api"), old.program("magnum-api"))
        self.assertEqual(old.prefix / "etc" / "magnum" / "policy.yaml", old.packaged("policy.yaml"))
        self.assertEqual(Path(sys.prefix), own.prefix)

    def test_another_driver_has_an_environment_of_its_own(self) -> None:
        old = magnum_release.choose(OLD)
        other = old.with_driver(magnum_release.PREDECESSOR)
        self.assertEqual((old.version, "predecessor-20"), (other.version, other.prefix.name))
        for release, driver in ((old, "x"), (magnum_release.choose(NEWER), "magnum-capi-helm")):
            with self.assertRaisesRegex(SandboxError, f"--driver {driver}: no environment has it"):
                release.with_driver(driver)


class TestLayout(StateCase):
    def test_a_release_needs_a_broker(self) -> None:
        with self.assertRaisesRegex(SandboxError, f"--magnum {OLD}: .* add --transport rabbit"):
            Layout(magnum=OLD)

    def test_another_driver_needs_a_release_and_is_told_its_chart(self) -> None:
        with self.assertRaisesRegex(SandboxError, "--driver x: add --magnum VERSION"):
            Layout(driver="x")
        other = layout(OLD, driver=magnum_release.PREDECESSOR)
        self.assertTrue(other.runs_programs)
        self.assertIn("--magnum 20.0.2 --driver magnum-capi-helm", str(other))
        chart = magnum_options.of_driver(other)["helm_chart_name"]
        self.assertTrue((Path(str(chart)) / "Chart.yaml").exists())
        self.assertEqual({}, magnum_options.of_driver(layout(OLD)))

    def test_its_own_program_forks_its_workers(self) -> None:
        self.assertEqual(["c"], layout(OLD, workers=3).workers_of("c"))
        self.assertEqual(["c", "c-worker-2", "c-worker-3"], layout(OWN, workers=3).workers_of("c"))

    def test_a_database_follows_releases_upwards_only(self) -> None:
        self.assertTrue(layout(NEWER).can_follow(layout(OLD)))
        self.assertTrue(layout(OLD).can_follow(layout(OLD, conductors=2)))
        self.assertFalse(layout(OLD).can_follow(layout(NEWER)))

    def test_the_installed_one_on_sqlite_follows_no_other(self) -> None:
        self.assertTrue(Layout().can_follow(Layout("rabbit")))
        self.assertFalse(Layout().can_follow(layout(OLD)))
        self.assertFalse(layout(OWN).can_follow(Layout()))

    def test_it_is_said_as_it_is_asked_for(self) -> None:
        said = str(layout(OLD))
        arguments = cli._parser().parse_args(["up", *said.split()])
        self.assertEqual(layout(OLD), cli._layout(arguments))

    def test_a_release_brings_its_transport(self) -> None:
        arguments = cli._parser().parse_args(["up", "--magnum", "20"])
        self.assertEqual(layout(OLD), cli._layout(arguments))


class TestOptions(StateCase):
    def test_another_release_has_its_own_processes_files_and_database(self) -> None:
        box = self.sandbox()
        old = magnum_options.of(box, layout(OLD, workers=3))
        self.assertEqual(3, old["conductor"]["workers"])
        self.assertEqual(magnum_options.API_PROCESSES, old["api"]["workers"])
        self.assertIn("/magnum-20/", str(old["api"]["api_paste_config"]))
        self.assertEqual(database.url(box), old["database"]["connection"])

    def test_the_own_release_runs_as_the_other_services_do(self) -> None:
        box = self.sandbox()
        for one in (Layout(), layout(OWN, workers=3)):
            sections = magnum_options.of(box, one)
            self.assertEqual(1, sections["conductor"]["workers"])
            self.assertIn(sys.prefix, str(sections["api"]["api_paste_config"]))
            self.assertEqual(bool(one.magnum), "database" in sections)

    def test_an_older_cluster_api_is_named_in_an_overlay_until_it_is_upgraded(self) -> None:
        box = self.sandbox()
        self.assertEqual({}, magnum_options.overlays(box))
        Providers(releases.CLUSTER_API[0], releases.CAPO[0]).record(box)
        site = Path(str(magnum_options.overlays(box)["overlay_directory"])) / "site.yaml"
        self.assertEqual({"clusterApi": "1.10"}, yaml.safe_load(site.read_text())["apiVersions"])
        Providers().record(box)
        self.assertEqual({}, magnum_options.overlays(box))
        self.assertFalse(site.exists())

    def test_a_database_keeps_its_password(self) -> None:
        box = self.sandbox()
        self.assertEqual(database.url(box), database.url(self.sandbox()))
        self.assertNotEqual(database.url(box), database.url(self.sandbox("two")))
        self.assertEqual(0o600, (box.root / "mariadb" / "password").stat().st_mode & 0o777)


class TestEnvironment(StateCase):
    def test_tox_installs_it_with_its_constraints(self) -> None:
        tox = configparser.RawConfigParser()
        tox.read(magnum_release.ROOT / "tox.ini")
        for release in magnum_release.known().values():
            if not release.is_own:
                self.assertIn(
                    f"{release.major}: UV_CONSTRAINT = {{tox_root}}/constraints/magnum-",
                    tox["testenv:magnum-{20,21,22}{,-core}"]["set_env"],
                )


class TestWatch(StateCase):
    def test_what_a_conductor_writes_is_read(self) -> None:
        log = (
            "2026-11-26 13:44:46.046 17544 INFO magnum.cmd.conductor [-] Starting\n"
            "hub blocked for 52 ms, processor 3 ms: read (ssl.py:1) < get (client.py:2)\n"
            "hub blocked for 61 ms, processor 60 ms: \n"
        )
        self.assertEqual(
            [(52, 3, "read (ssl.py:1) < get (client.py:2)"), (61, 60, "")],
            [tuple(gap) for gap in watched_conductor.gaps(log)],
        )
