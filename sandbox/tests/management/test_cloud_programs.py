# SPDX-License-Identifier: Apache-2.0
"""Which programs of a cluster's addons are built, and in which versions."""

from pathlib import Path
import unittest

import yaml

from sandbox.management import cloud_programs
from sandbox.management.cloud_programs import CloudRelease, PROGRAMS, RELEASES
from sandbox.state import SandboxError
from tools import tested

_ADDONS = Path(__file__).resolve().parents[3] / "charts" / "cluster-addons" / "values.yaml"


class TestTable(unittest.TestCase):
    def test_every_release_is_pinned(self) -> None:
        for release in RELEASES:
            wanted = [f"{release.module} v{release.version}{end}" for end in ("", "/go.mod")]
            self.assertEqual(wanted, [line.rpartition(" ")[0] for line in release.pins()])

    def test_one_that_is_not_pinned_is_not_built(self) -> None:
        with self.assertRaisesRegex(SandboxError, r"-m sandbox\.management\.cloud_programs"):
            CloudRelease("1.36.99").directory()

    def test_the_addons_install_these_versions(self) -> None:
        """Version 2.36.0 of a chart of cloud-provider-openstack is of its release 1.36.0."""
        addons = yaml.safe_load(_ADDONS.read_text())["openstack"]
        for addon, release in (
            ("ccm", cloud_programs.CONTROLLER_RELEASE),
            ("csiCinder", cloud_programs.VOLUME_RELEASE),
        ):
            self.assertEqual(f"2.{release.version[2:]}", addons[addon]["chart"]["version"])

    def test_each_program_is_one_of_its_own_and_knows_its_version(self) -> None:
        self.assertEqual(len(PROGRAMS), len({program.digest() for program in PROGRAMS}))
        for program in PROGRAMS:
            self.assertIn(f"=v{program.version}", program.linker_flags)
            self.assertTrue(program.package.endswith(f"/cmd/{program.name}"))

    def test_each_program_has_a_row_of_the_table_of_real_programs(self) -> None:
        rows = {row["Program"]: row["Version"] for row in tested.SUBJECTS["programs.tenant"]()}
        self.assertEqual({program.name: program.version for program in PROGRAMS}, rows)
