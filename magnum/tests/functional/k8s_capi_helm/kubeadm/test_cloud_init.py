# SPDX-License-Identifier: Apache-2.0
"""The real cloud-init takes the bootstrap data of every shape, and does what these tests do."""

from __future__ import annotations

from pathlib import Path
import tempfile
import unittest

from magnum.tests.functional.k8s_capi_helm.kubeadm import (
    bootstrap_data,
    cloud_init,
    machine,
    shapes,
)
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one
from sandbox.management import kubernetes_releases
from sandbox.state import SandboxError

#: Cluster API writes it without a value where file systems are asked for and no partitions are;
#: cloud-init's module then does nothing.
EMPTY = "Cloud config schema errors: disk_setup: None is not of type 'object'"


class CloudInit(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        made = bootstrap_data.of_clusters(shapes.rendered(kubernetes_releases.selected()[-1]))
        different = {
            one.fingerprint: (f"{name} {one.kind} {one.group}", one)
            for name, found in made.items()
            for one in found
            if one.format == "cloud-config"
        }
        cls.machines = list(at_least_one(different.values()))
        place = tempfile.TemporaryDirectory()
        cls.addClassCleanup(place.cleanup)
        cls.roots = [Path(place.name, str(number)) for number in range(len(cls.machines))]
        try:
            cls.readings = cloud_init.read(
                [one.data for _, one in cls.machines], machine.FACTS, cls.roots
            )
        except SandboxError as error:
            raise unittest.SkipTest(f"Not tested with cloud-init: {error}") from error

    def test_its_schema_has_nothing_to_say(self) -> None:
        every = zip(self.machines, self.readings, strict=True)
        for (name, _), reading in at_least_one(every):
            with self.subTest(machine=name):
                self.assertEqual([], [one for one in reading.problems if one != EMPTY])

    def test_it_writes_the_same_files_and_runs_the_same_commands(self) -> None:
        every = zip(self.machines, self.readings, self.roots, strict=True)
        for (name, one), reading, root in at_least_one(every):
            with self.subTest(machine=name), tempfile.TemporaryDirectory() as other:
                script = machine.write_files(one, Path(other))
                self.assertEqual(files(Path(other)), files(root))
                # Commands that are lists of words are quoted by it; Cluster API gives texts.
                self.assertEqual(
                    script.strip().splitlines(), reading.script.strip().splitlines()[1:]
                )


def files(root: Path) -> dict[str, tuple[int, bytes]]:
    """Mode and content of every file below a directory."""
    return {
        str(path.relative_to(root)): (path.stat().st_mode & 0o7777, path.read_bytes())
        for path in root.rglob("*")
        if path.is_file()
    }
