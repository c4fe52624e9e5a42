# SPDX-License-Identifier: Apache-2.0
"""A real kube-apiserver encrypts by the real barbican-kms-plugin, as the chart starts them.

Barbican is the test's own (key_manager); tox -e cloud-programs has a life with the real one.
"""

from __future__ import annotations

from pathlib import Path
import tempfile
import unittest

from magnum.tests.functional.k8s_capi_helm.envtest import key_machine, key_manager
from magnum.tests.functional.k8s_capi_helm.envtest.key_machine import KeyMachine, WRITTEN
from magnum.tests.functional.k8s_capi_helm.envtest.key_manager import KeyManager


class BarbicanKeyTest(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.keys = KeyManager()
        self.addCleanup(self.keys.stop)
        self.machine = KeyMachine(Path(self.enterContext(tempfile.TemporaryDirectory())))
        self.addCleanup(self.machine.stack.close)
        self.machine.keys["clouds.yaml"] = self.keys.clouds()

    def test_a_cluster_moves_to_a_key_in_barbican_and_away_from_it(self) -> None:
        """Each step reads what the steps before it have written."""
        machine, made = self.machine, list[str]()
        for name, encryption, prefix in (
            ("plain", {"enabled": False}, b""),
            ("first-step", {"writePlain": True}, b""),
            ("encrypted", {}, WRITTEN),
            ("both", {"otherProviders": {"secretbox": ["key1"]}}, WRITTEN),
            ("away", {"provider": "secretbox"}, b"k8s:enc:secretbox:v1:key1:"),
        ):
            paths = key_machine.values(key_manager.KEY_ID, encryption)
            with self.subTest(step=name), machine.server(paths):
                machine.make_secret(name)
                made.append(name)
                self.assertEqual([f"it-is-{one}" for one in made], list(map(machine.says, made)))
                self.assertEqual(not prefix, f"it-is-{name}".encode() in machine.stored())
                self.assertIn(prefix, machine.stored())
        self.assertTrue(self.keys.readers)

    def test_without_the_key_no_api_server_is_ready(self) -> None:
        """Not one Secret can be read, and it begins with reading all of them."""
        paths = key_machine.values(key_manager.KEY_ID)
        with self.machine.server(paths):
            self.machine.make_secret("lost")
        self.keys.key, self.machine.patience = None, 20.0
        with self.assertRaises(AssertionError), self.machine.server(paths):
            pass
        log = (self.machine.place / "kube-apiserver.log").read_text()
        self.assertTrue([line for line in log.splitlines() if "unable to transform key" in line])
