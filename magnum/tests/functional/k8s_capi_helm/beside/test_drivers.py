# SPDX-License-Identifier: Apache-2.0
"""Beside magnum-cluster-api and Magnum's own Heat driver: who builds what, and what is said of it.

All three are their real packages, in one environment with Magnum 22. Which driver Magnum takes is
asked of Magnum itself, in a process for each question, as it remembers what it has loaded.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
import subprocess
import sys
import tempfile
import unittest

OURS, THEIRS, HEAT = "k8s_capi_helm_v1", "k8s_cluster_api_ubuntu", "k8s_fedora_coreos_v1"
KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: a
clusters: [{name: a, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: a, context: {cluster: a, user: a}}]
users: [{name: a, user: {token: t}}]
"""
#: Prints the entry point of the driver that Magnum takes, by distribution and template's driver.
CHOICE = """
import sys
import magnum.conf
magnum.conf.CONF(["--config-file", sys.argv[1]], project="magnum")
from magnum.drivers.common.driver import Driver
found = Driver.get_driver("vm", sys.argv[2], "kubernetes", sys.argv[3] or None)
print([point.name for point, one in Driver.load_entry_points() if one is type(found)][0])
"""


class TestDrivers(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.place = Path(directory.name)
        self.kubeconfig = self.place / "kubeconfig"
        self.kubeconfig.write_text(KUBECONFIG)
        self.kubeconfig.chmod(0o600)
        helm = self.place / "helm"
        helm.write_text('#!/bin/sh\necho "v3.22.0"\n')
        helm.chmod(0o755)

    def run_python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        ours = {"PATH": str(self.place), "HOME": str(self.place), "PYTHONWARNINGS": "ignore"}
        if self.kubeconfig.exists():
            ours["KUBECONFIG"] = str(self.kubeconfig)
        command = [sys.executable, *arguments]
        return subprocess.run(
            command, capture_output=True, check=False, text=True, timeout=120, env=ours
        )

    def conf(self, **drivers: str) -> str:
        path = self.place / "magnum.conf"
        lines = ["[drivers]", *(f"{name} = {value}" for name, value in drivers.items())]
        path.write_text("\n".join([*lines, "[capi_helm]", f"kubeconfig_file = {self.kubeconfig}"]))
        return str(path)

    def chosen(self, distribution: str, driver: str = "", **drivers: str) -> str:
        done = self.run_python("-c", CHOICE, self.conf(**drivers), distribution, driver)
        self.assertEqual(0, done.returncode, done.stderr[-2000:])
        return done.stdout.split()[-1]

    def findings(self, expected: int, **drivers: str) -> dict[str, str]:
        arguments = ("--config-file", self.conf(**drivers), "upgrade", "check", "--json")
        done = self.run_python("-m", "magnum_k8s_capi_helm", *arguments)
        self.assertEqual(expected, done.returncode, done.stdout + done.stderr[-2000:])
        checks = json.loads(done.stdout.splitlines()[-1])["checks"]
        return {one["check"]: one["details"] for one in checks if one["result"]}

    def test_a_template_with_a_driver_gets_that_one(self) -> None:
        for name in (OURS, THEIRS):
            self.assertEqual(name, self.chosen("ubuntu", name))

    def test_what_only_one_builds_is_its_own(self) -> None:
        self.assertEqual(HEAT, self.chosen("fedora-coreos"))
        self.assertEqual("k8s_cluster_api_rockylinux", self.chosen("rockylinux"))

    def test_without_a_driver_it_is_the_one_of_which_the_check_warns(self) -> None:
        said = self.findings(1)["Other drivers"]
        for distribution in ("ubuntu", "flatcar"):
            winner = self.chosen(distribution)
            self.assertIn(f"Clusters of type (vm, {distribution}, kubernetes) are built by ", said)
            self.assertIn(f"templates without a driver use {winner} on this host", said)

    def test_a_driver_that_is_disabled_takes_no_template(self) -> None:
        theirs = ",".join([THEIRS, "k8s_cluster_api_flatcar"])
        self.assertEqual(OURS, self.chosen("ubuntu", disabled_drivers=theirs))
        self.assertEqual(THEIRS, self.chosen("ubuntu", disabled_drivers=OURS))
        said = self.findings(0, disabled_drivers=f"{theirs},k8s_cluster_api_ubuntu_focal")
        self.assertEqual({}, said)

    def test_one_that_cannot_be_created_breaks_them_all_and_is_named(self) -> None:
        """magnum-cluster-api reads a kubeconfig when Magnum asks it what it builds."""
        self.kubeconfig.unlink()
        for distribution, driver in (("fedora-coreos", ""), ("ubuntu", OURS)):
            done = self.run_python("-c", CHOICE, self.conf(), distribution, driver)
            self.assertNotEqual(0, done.returncode)
            self.assertIn("PyKubeError", done.stderr)
        said = self.findings(2)["Other drivers"]
        self.assertIn(f"Driver {THEIRS} of magnum-cluster-api cannot be created", said)
        self.assertIn("add it to [drivers] disabled_drivers", said)


class TestPredecessor(unittest.TestCase):
    """magnum-capi-helm has the same entry point; its real package is put into the path."""

    def test_both_are_said_to_be_there(self) -> None:
        other = os.environ["K8S_CAPI_HELM_PREDECESSOR_SITE"]
        with tempfile.NamedTemporaryFile(suffix=".conf") as conf:
            arguments = ("--config-file", conf.name, "upgrade", "check", "--json")
            done = subprocess.run(
                [sys.executable, "-m", "magnum_k8s_capi_helm", *arguments],
                capture_output=True,
                check=False,
                text=True,
                timeout=120,
                env={"PATH": "", "HOME": other, "PYTHONPATH": other, "PYTHONWARNINGS": "ignore"},
            )
        self.assertEqual(2, done.returncode, done.stdout + done.stderr[-2000:])
        checks = json.loads(done.stdout.splitlines()[-1])["checks"]
        [said] = [one["details"] for one in checks if one["check"] == "Entry point"]
        self.assertIn("pip uninstall magnum-capi-helm.", said)
