# SPDX-License-Identifier: Apache-2.0
"""containerd's disk: on which machines it is, and what the script does that mounts it."""

from __future__ import annotations

import os
from pathlib import Path
import subprocess
import tempfile
import unittest

from magnum.tests.functional.k8s_capi_helm.charts import machines, rendering

SCRIPT = rendering.CLUSTER / "files" / "machine" / "containerd-disk.sh"
COMMAND = "sh /opt/openstack-cluster/containerd-disk.sh"
#: Programs of the machine: each call is a line of the log, and a mount is a link to the disk.
PROGRAMS = {
    "systemctl": "",
    "mount": '[ $# -eq 1 ] || { rmdir "$2"; ln -s "$DISK" "$2"; }',
    "umount": 'rm "$1"; mkdir "$1"',
}


class ScriptTest(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.root = Path(holder.name)
        for place in ("bin", "disk", "etc", "var/lib/containerd/images"):
            (self.root / place).mkdir(parents=True)
        self.kept = self.root / "var/lib/containerd"
        (self.kept / "images" / "pause").write_text("of the machine's image")
        (self.kept / ".hidden").write_text("")
        for name, does in PROGRAMS.items():
            self.put(name, does)

    def put(self, name: str, does: str) -> None:
        """A program of the machine."""
        path = self.root / "bin" / name
        path.write_text(f'#!/bin/sh\nprintf "%s\\n" "{name} $*" >>"$LOG"\n{does}\n')
        path.chmod(0o755)

    def run_script(self) -> int:
        """Run the script on the directory; its exit code."""
        script = SCRIPT.read_text()
        for path in ("/var/lib/containerd", "/etc/fstab"):
            script = script.replace(path, f"{self.root}{path}")
        environment = {
            "PATH": f"{self.root}/bin:{os.environ['PATH']}",
            "LOG": str(self.root / "log"),
            "DISK": str(self.root / "disk"),
            "TMPDIR": str(self.root),
        }
        done = subprocess.run(
            ["/bin/sh", "-s"], input=script, text=True, env=environment, capture_output=True
        )
        return done.returncode

    def calls(self) -> list[str]:
        """What was called, without what has another name each time."""
        lines = (self.root / "log").read_text().replace(str(self.root), "").splitlines()
        return [line.split(" /tmp.")[0] for line in lines]

    def test_what_is_there_moves_while_containerd_stands_still(self) -> None:
        self.assertEqual(0, self.run_script())
        self.assertEqual(
            [
                "systemctl mask --runtime containerd.service",
                "systemctl stop --job-mode=ignore-dependencies containerd.service",
                "mount LABEL=containerd",
                "umount",
                "mount /var/lib/containerd",
                "systemctl unmask --runtime containerd.service",
                "systemctl daemon-reload",
                "systemctl start containerd.service",
            ],
            self.calls(),
        )
        moved = {str(one.relative_to(self.root / "disk")) for one in self.root.glob("disk/**/*")}
        self.assertEqual({"images", "images/pause", ".hidden"}, moved)
        self.assertEqual([], list(self.kept.iterdir()))

    def test_it_is_mounted_before_containerd_at_every_boot(self) -> None:
        self.run_script()
        disk, place, kind, options, *_ = (self.root / "etc/fstab").read_text().split()
        self.assertEqual(("LABEL=containerd", str(self.kept), "ext4"), (disk, place, kind))
        for option in ("x-systemd.before", "x-systemd.required-by"):
            self.assertIn(f"{option}=containerd.service", options.split(","))

    def test_containerd_does_not_start_where_it_fails(self) -> None:
        for broken in ("mount", "umount"):
            with self.subTest(broken=broken):
                self.put(broken, "exit 1")
                self.assertNotEqual(0, self.run_script())
                self.assertNotIn("unmask", (self.root / "log").read_text())
                self.assertTrue((self.kept / "images" / "pause").exists())


class WhereTest(unittest.TestCase):
    def test_on_the_machines_that_ask_for_it(self) -> None:
        disk = {"size": 40, "volumeType": "fast"}
        for change, wanted in (
            ({"controlPlane__containerdBlockDevice": disk}, [True, False]),
            ({"nodeGroupDefaults__containerdBlockDevice": disk}, [False, True]),
            ({}, [False, False]),
        ):
            objects = machines.plain(**change)
            specs = machines.both(objects)
            with self.subTest(change=change):
                commands = [spec.get("preKubeadmCommands", []) for spec in specs]
                self.assertEqual(wanted, [COMMAND in one for one in commands])
                systems = [spec.get("diskSetup", {}).get("filesystems", []) for spec in specs]
                labels = [[one["label"] for one in found] for found in systems]
                self.assertEqual([["containerd"] if one else [] for one in wanted], labels)
