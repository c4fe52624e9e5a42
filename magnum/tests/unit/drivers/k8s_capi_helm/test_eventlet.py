# SPDX-License-Identifier: Apache-2.0
"""Conductors of Magnum 20 to 22, where eventlet makes threads take turns in one native thread.

Each test has a process of its own: what eventlet replaces, it replaces for ever.
"""

from __future__ import annotations

import importlib.util
import json
import pathlib
import subprocess
import sys
import unittest

import testtools

_PACKAGE = "magnum.tests.unit.drivers.k8s_capi_helm"
#: Tests of what starts processes and threads, opens connections, or waits.
MODULES = (
    *("test_helm_client", "test_helm_fair_queue", "test_helm_process", "test_process"),
    *("test_informers", "test_kube_client", "test_kube_tls", "test_tenant_api"),
    *("test_lock_holder", "test_release_lease"),
)


@unittest.skipUnless(importlib.util.find_spec("eventlet"), "eventlet is not installed")
class TestEventlet(testtools.TestCase):
    def run_process(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        program = pathlib.Path(__file__).with_name("under_eventlet.py")
        command = [sys.executable, "-W", "ignore", str(program), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)

    def test_the_same_suites_pass(self) -> None:
        ended = self.run_process(*(f"{_PACKAGE}.{name}" for name in MODULES))
        self.assertEqual(0, ended.returncode, ended.stderr[-6000:])

    def test_runs_of_helm_do_not_wait_for_each_other(self) -> None:
        """asyncio has one running loop in a native thread, and a pipe may make it wait."""
        ended = self.run_process("at-once")
        self.assertEqual("", ended.stderr.partition("Traceback")[2])
        seen = json.loads(ended.stdout)
        self.assertEqual(["ran", "ran"], seen["found"])
        self.assertEqual(["begin", "begin", "end", "end"], seen["order"])
        # Others had their turns in the meantime.
        self.assertGreater(seen["turns"], 10)
