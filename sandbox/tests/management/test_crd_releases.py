# SPDX-License-Identifier: Apache-2.0
"""CRDs of other releases: what go.sum pins, fetched once, and nothing that it does not pin."""

import json
from pathlib import Path
import shutil
import tempfile
import unittest
from unittest import mock

from sandbox.management import crd_releases, gomodules, releases
from sandbox.state import SandboxError

CRD = """\
kind: CustomResourceDefinition
spec:
  description: what the kind is
  properties:
    description: {type: string}
"""


class TestFetch(unittest.TestCase):
    def setUp(self) -> None:
        self.place = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.place)
        for name in ("core/config/crd/bases", "config/crd/bases"):
            (self.place / "module" / name).mkdir(parents=True)
            (self.place / "module" / name / "things.yaml").write_text(CRD)
        self.directory = self.played("directory", self.place / "module")
        self.played("require_go", None)

    def played(self, name: str, answer: object) -> mock.Mock:
        played = mock.patch.object(gomodules, name, return_value=answer)
        self.addCleanup(played.stop)
        return played.start()

    def test_each_release_gets_a_directory_and_is_fetched_once(self) -> None:
        found = crd_releases.fetch(self.place / "cache")
        self.assertEqual(
            {release.name for release in releases.RELEASES},
            {path.name for path in found.iterdir()},
        )
        asked = self.directory.call_count
        self.assertEqual(len(releases.RELEASES), asked)
        self.assertEqual(found, crd_releases.fetch(self.place / "cache"))
        self.assertEqual(asked, self.directory.call_count)

    def test_a_field_called_description_is_no_description(self) -> None:
        found = crd_releases.fetch(self.place / "cache") / "cluster-api-v1.14.2" / "things.json"
        spec = json.loads(found.read_text())["spec"]
        self.assertEqual({"properties": {"description": {"type": "string"}}}, spec)

    def test_a_release_without_crds_is_a_fault_and_leaves_nothing(self) -> None:
        shutil.rmtree(self.place / "module")
        with self.assertRaisesRegex(SandboxError, "has no CRDs"):
            crd_releases.fetch(self.place / "cache")
        self.assertFalse((self.place / "cache" / "crds" / crd_releases.digest()).exists())

    def test_go_sum_pins_each_release_and_nothing_else(self) -> None:
        lines = (gomodules.GO / releases.MODULE / "go.sum").read_text().splitlines()
        expected = [line for release in releases.RELEASES for line in release.pins()]
        self.assertEqual(sorted(expected), sorted(lines))
