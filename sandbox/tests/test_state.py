# SPDX-License-Identifier: Apache-2.0
"""What a sandbox remembers, and that two sandboxes never share a port or a network."""

from pathlib import Path
import shutil
import socket
import tempfile
import threading
import unittest
from unittest import mock

from sandbox import state


class StateCase(unittest.TestCase):
    """A directory for sandboxes with separate claims."""

    def setUp(self) -> None:
        self.place = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.place)
        claims = mock.patch.object(tempfile, "tempdir", str(self.place / "tmp"))
        claims.start()
        self.addCleanup(claims.stop)

    def sandbox(self, name: str = "one") -> state.State:
        return state.State(self.place / name)


class TestPorts(StateCase):
    def test_a_port_stays_the_same_for_every_later_reader(self) -> None:
        chosen = self.sandbox().port("keystone")
        self.assertEqual(chosen, self.sandbox().port("keystone"))
        self.assertEqual({"keystone": chosen}, self.sandbox().ports())

    def test_names_and_sandboxes_have_different_ports(self) -> None:
        ports = [self.sandbox(box).port(name) for box in ("one", "two") for name in ("a", "b")]
        self.assertEqual(len(ports), len(set(ports)))

    def test_a_port_in_use_is_not_chosen(self) -> None:
        box = self.sandbox()
        first = state.FIRST_PORT + box.slot * state.PORTS_PER_SANDBOX
        with socket.create_server(("127.0.0.1", first)):
            self.assertNotEqual(first, box.port("keystone"))

    def test_threads_that_ask_at_once_get_different_ports(self) -> None:
        box, answers = self.sandbox(), []
        threads = [
            threading.Thread(target=lambda name=name: answers.append(box.port(name)))
            for name in "abcdefgh"
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(8, len(set(answers)))


class TestSlots(StateCase):
    def test_external_networks_differ_and_stay(self) -> None:
        one, two = self.sandbox("one").external_network, self.sandbox("two").external_network
        self.assertNotEqual(one, two)
        self.assertRegex(one, r"^127\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.0\.0/16$")
        self.assertEqual(one, self.sandbox("one").external_network)

    def test_a_removed_sandbox_frees_its_slot(self) -> None:
        for number in range(state.SLOTS):
            box = self.sandbox(f"box{number}")
            with mock.patch.object(state, "_bindable", return_value=True):
                taken = box.slot
        shutil.rmtree(box.root)
        with mock.patch.object(state, "_bindable", return_value=True):
            self.assertEqual(taken, self.sandbox("later").slot)
            with self.assertRaisesRegex(state.SandboxError, "64 sandboxes exist"):
                _ = self.sandbox("one too many").slot


class TestFacts(StateCase):
    def test_facts_add_up_and_none_forgets(self) -> None:
        self.sandbox().record(certificates="barbican", version="1")
        self.sandbox().record(version=None)
        self.assertEqual("barbican", self.sandbox().get("certificates"))
        self.assertEqual("?", self.sandbox().get("version", "?"))

    def test_a_damaged_file_is_named(self) -> None:
        box = self.sandbox()
        box.path("state.json").write_text("{")
        with self.assertRaisesRegex(state.SandboxError, "state.json is not JSON"):
            box.get("slot")

    def test_parents_of_a_path_are_made(self) -> None:
        self.sandbox().path("a", "b", "c").write_text("x")
        self.assertEqual("x", (self.place / "one" / "a" / "b" / "c").read_text())
