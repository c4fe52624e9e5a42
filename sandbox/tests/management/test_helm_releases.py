# SPDX-License-Identifier: Apache-2.0
"""Which releases of Helm are tested, and with what the command runs."""

import os
from pathlib import Path
import shutil
import sys
import tempfile
import unittest
from unittest import mock

from sandbox.management import binaries, helm_releases
from sandbox.management.helm_releases import MINORS, selected
from sandbox.state import SandboxError


class TestTable(unittest.TestCase):
    def test_all_minors_that_the_driver_supports_are_there(self) -> None:
        third = [one.minor for one in MINORS if one.version.startswith("3.")]
        self.assertEqual([f"3.{number}" for number in range(17, 23)], third)
        versions = {one.version for one in MINORS}
        self.assertLessEqual({binaries.HELM.version, binaries.HELM4.version}, versions)

    def test_every_release_is_pinned(self) -> None:
        for release in MINORS:
            name, version = f"helm.sh/helm/v{release.version[0]}", f"v{release.version}"
            found = {tuple(line.split()[:2]) for line in release.pins()}
            self.assertEqual({(name, version), (name, f"{version}/go.mod")}, found)

    def test_each_program_is_one_of_its_own(self) -> None:
        found = [release.program() for release in MINORS]
        self.assertEqual(len(found), len({program.digest() for program in found}))
        for program, release in zip(found, MINORS, strict=True):
            self.assertIn(f"version.version=v{release.version}", program.linker_flags)

    def test_the_variable_picks_some(self) -> None:
        for given, found in (("", list(MINORS)), ("3.18, 3.17", [MINORS[1], MINORS[0]])):
            with mock.patch.dict(os.environ, {helm_releases.VARIABLE: given}):
                self.assertEqual(found, selected())

    def test_a_minor_that_is_not_there_is_named(self) -> None:
        with mock.patch.dict(os.environ, {helm_releases.VARIABLE: "3.17 4.9"}):
            with self.assertRaisesRegex(SandboxError, r"HELMS: 4\.9 is not one of 3\.17, 3\.18"):
                selected()


class TestCommand(unittest.TestCase):
    """The command finds each Helm, and a failure is counted."""

    def setUp(self) -> None:
        self.place = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.place)
        for name in ("3.17", "3.18"):
            folder = self.place / name
            folder.mkdir()
            (folder / "helm").write_text(f"#!/bin/sh\necho v{name}.9\n")
            (folder / "helm").chmod(0o755)
        folders = os.pathsep.join(str(self.place / name) for name in ("3.17", "3.18"))
        path = os.pathsep.join((folders, os.environ["PATH"]))
        changed = {"PATH": path, helm_releases.VARIABLE: "3.17 3.18", "KUBEBUILDER_ASSETS": ""}
        changed["K8S_CAPI_HELM_CACHE"] = str(self.place / "cache")  # nothing is built yet
        self.enterContext(mock.patch.dict(os.environ, changed))

    def run_with(self, code: str) -> int:
        return helm_releases.main([sys.executable, "-c", code, str(self.place / "seen")])

    def test_each_release_runs_once(self) -> None:
        code = "import os, sys; open(sys.argv[1], 'a').write(os.environ['HELM'] + '\\n')"
        self.assertEqual(0, self.run_with(code))
        seen = (self.place / "seen").read_text().splitlines()
        self.assertEqual([str(self.place / name / "helm") for name in ("3.17", "3.18")], seen)

    def test_what_fails_is_counted_and_the_others_run(self) -> None:
        self.assertEqual(1, self.run_with("import os, sys; sys.exit('3.17' in os.environ['HELM'])"))
