# SPDX-License-Identifier: Apache-2.0
"""A conductor in a container whose root is read-only, and that has no directory to write at all.

The mounts are real: a process in a mount namespace of its own makes all of them read-only.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import fixtures
import testtools
import yaml

from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm import test_kube_tls
from magnum.tests.unit.drivers.k8s_capi_helm.suites import helm, http_server

#: What a user without rights has to be root of a user namespace for.
UNSHARE = ("unshare", "--mount", *(() if os.geteuid() == 0 else ("--map-root-user",)))


class TestReadOnlyRoot(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        try:
            subprocess.run([*UNSHARE, "true"], capture_output=True, check=True, timeout=30)
        except (OSError, subprocess.CalledProcessError) as error:
            self.skipTest(f"this user may not have a mount namespace here ({error})")
        self.place = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.chart = helm.write_chart(self.place / "charts" / names.CLUSTER_CHART)
        program = self.place / "helm"
        program.write_text("#!/bin/sh\necho v3.22.0\n")
        program.chmod(0o755)
        self.write_kubeconfig()

    def write_kubeconfig(self) -> None:
        """One that has everything in it, also the private key."""
        ours = test_kube_tls.write_identity(self.place / "ours.pem")
        self.server = http_server.Server(
            http_server.one_after_another((404, http_server.GONE)), ours, clients=ours
        )
        self.addCleanup(self.server.close)
        user = test_kube_tls.parts(ours)
        path = http_server.write_kubeconfig(self.place / "kubeconfig", self.server.url, user)
        config = yaml.safe_load(path.read_text())
        authority = user["client-certificate-data"]
        config["clusters"][0]["cluster"]["certificate-authority-data"] = authority
        path.write_text(yaml.safe_dump(config))

    def run_there(self, **variables: str) -> Any:
        program = pathlib.Path(__file__).with_name("under_read_only_root.py")
        command = [*UNSHARE, sys.executable, "-W", "ignore", str(program), str(self.place)]
        ended = subprocess.run(
            command,
            capture_output=True,
            check=False,
            cwd="/",
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **variables},
            text=True,
            timeout=300,
        )
        if "cannot be made read-only here" in ended.stderr:
            self.skipTest(ended.stderr.strip())
        self.assertEqual(0, ended.returncode, ended.stderr[-4000:])
        return json.loads(ended.stdout)

    def test_only_charts_of_others_need_a_directory_and_it_is_named(self) -> None:
        found = self.run_there()
        self.assertIn("No usable temporary directory", found["temporary"])
        self.assertEqual({"ours"}, {seen.client for seen in self.server.seen})
        self.assertEqual((None, "3.22.0"), (found["lease"], found["helm"]))
        self.assertEqual(self.chart.path, found["bundled"])
        sentence, detail = found["other"]
        self.assertEqual(
            "This Magnum conductor cannot store the chart of this cluster. Ask the operator to "
            "check the option [capi_helm] chart_directory.",
            sentence,
        )
        self.assertIn(f"{self.place}/cache, whose parent {self.place} is a directory of ", detail)
        self.assertRegex(detail, r"with mode 0700; this process runs as \S+$")

    def test_a_directory_for_temporary_files_is_enough_and_the_operator_reads_so(self) -> None:
        temporary = self.place / "temporary"
        temporary.mkdir()
        found = self.run_there(TMPDIR=str(temporary))
        self.assertNotIn("temporary", found)
        self.assertTrue(found["bundled"].startswith(f"{temporary}/k8s-capi-helm-charts-"))
        [line] = [line for line in found["lines"] if line.startswith("Charts cannot be cached in ")]
        self.assertIn(f"{self.place}/cache, whose parent {self.place} is a directory of ", line)
        self.assertIn("(option [capi_helm] chart_directory): Read-only file system. ", line)
        self.assertIn("Set the option to a directory that the user of magnum-conductor can", line)
