# SPDX-License-Identifier: Apache-2.0
"""Processes are found, ended and never confused, whatever was killed before."""

import json
import os
import signal
import subprocess
import sys

from sandbox import processes
from sandbox.state import SandboxError, State
from sandbox.tests.test_state import StateCase

FOREVER = [sys.executable, "-c", "import signal; print('up', flush=True); signal.pause()"]
DEAF = [
    sys.executable,
    "-c",
    """import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('up', flush=True)
while True: signal.pause()""",
]
WITH_CHILD = [
    sys.executable,
    "-c",
    """import signal, subprocess
subprocess.Popen(['sleep', '600'])
print('up', flush=True)
signal.pause()""",
]


class ProcessCase(StateCase):
    def setUp(self) -> None:
        super().setUp()
        self.box = self.sandbox()
        self.addCleanup(processes.stop_all, self.box, 1.0)

    def start(self, name: str, argv: list[str], box: State | None = None) -> None:
        where = self.box if box is None else box
        processes.start(where, name, argv, ready=lambda: "up" in where.log(name).read_text())

    def pid(self, name: str) -> int:
        entry = processes.recorded(self.box, name)
        assert entry is not None
        return entry.pid


class TestStart(ProcessCase):
    def test_a_second_start_is_the_same_process(self) -> None:
        self.start("one", FOREVER)
        first = self.pid("one")
        self.start("one", FOREVER)
        self.assertEqual(first, self.pid("one"))

    def test_a_killed_process_is_started_again(self) -> None:
        self.start("one", FOREVER)
        first = self.pid("one")
        os.kill(first, signal.SIGKILL)
        os.waitpid(first, 0)
        self.assertFalse(processes.alive(self.box, "one"))
        self.start("one", FOREVER)
        self.assertNotEqual(first, self.pid("one"))

    def test_death_while_starting_shows_the_log(self) -> None:
        with self.assertRaisesRegex(
            SandboxError, "(?s)broken exited while starting.*no such cloud"
        ):
            processes.start(
                self.box,
                "broken",
                [sys.executable, "-c", "raise SystemExit('no such cloud')"],
                ready=lambda: False,
            )

    def test_a_late_process_is_ended(self) -> None:
        with self.assertRaisesRegex(SandboxError, "late is not ready after 0 s"):
            processes.start(self.box, "late", FOREVER, ready=lambda: False, timeout=0.3)
        self.assertEqual([], processes.owned(self.box))

    def test_a_missing_program_is_named(self) -> None:
        with self.assertRaisesRegex(SandboxError, "etcd cannot be started: /nowhere/etcd"):
            processes.start(self.box, "etcd", ["/nowhere/etcd"])


class TestStop(ProcessCase):
    def test_a_reused_pid_is_left_alone(self) -> None:
        with subprocess.Popen(["sleep", "600"], start_new_session=True) as stranger:
            processes.record(self.box, "old", stranger.pid)
            path = self.box.path("run", "old.pid")
            path.write_text(json.dumps({**json.loads(path.read_text()), "started": 1}))
            self.assertFalse(processes.alive(self.box, "old"))
            processes.stop_all(self.box, 1.0)
            self.assertIsNone(stranger.poll())
            stranger.kill()

    def test_what_ignores_sigterm_is_killed(self) -> None:
        self.start("deaf", DEAF)
        processes.stop(self.box, "deaf", timeout=0.3)
        self.assertEqual([], processes.owned(self.box))

    def test_a_stopped_process_ends_too(self) -> None:
        self.start("frozen", FOREVER)
        os.kill(self.pid("frozen"), signal.SIGSTOP)
        processes.stop(self.box, "frozen")
        self.assertFalse(processes.alive(self.box, "frozen"))

    def test_children_of_a_killed_process_end(self) -> None:
        self.start("parent", WITH_CHILD)
        os.kill(self.pid("parent"), signal.SIGKILL)
        processes.stop(self.box, "parent", timeout=1.0)
        self.assertEqual([], processes.owned(self.box))

    def test_a_process_without_pid_file_is_found(self) -> None:
        self.start("lost", FOREVER)
        pid = self.pid("lost")
        self.box.path("run", "lost.pid").unlink()
        self.assertEqual([pid], processes.owned(self.box))
        processes.stop_all(self.box)
        self.assertEqual([], processes.owned(self.box))

    def test_another_sandbox_is_not_touched(self) -> None:
        other = self.sandbox("two")
        self.addCleanup(processes.stop_all, other, 1.0)
        self.start("one", FOREVER)
        self.start("one", FOREVER, other)
        processes.stop_all(self.box)
        self.assertTrue(processes.alive(other, "one"))

    def test_last_started_is_recorded_last(self) -> None:
        self.start("b", FOREVER)
        self.start("a", FOREVER)
        self.assertEqual(["b", "a"], [entry.name for entry in processes.all_recorded(self.box)])


class TestRun(ProcessCase):
    def run_python(self, code: str, timeout: float = 30) -> None:
        processes.run(
            self.box, "tool", [sys.executable, "-c", code], env=os.environ, timeout=timeout
        )

    def test_its_output_is_in_the_log_and_it_is_forgotten(self) -> None:
        self.run_python("print('made')")
        self.assertIn("made", self.box.log("tool").read_text())
        self.assertIsNone(processes.recorded(self.box, "tool"))

    def test_a_failure_shows_its_log(self) -> None:
        with self.assertRaisesRegex(SandboxError, "(?s)tool exited with status 1.*no such table"):
            self.run_python("raise SystemExit('no such table')")

    def test_what_does_not_end_is_ended(self) -> None:
        with self.assertRaisesRegex(SandboxError, "tool did not exit within 0 s"):
            self.run_python("import signal; signal.pause()", timeout=0.2)
        self.assertEqual([], processes.owned(self.box))


class TestRefusal(ProcessCase):
    def setUp(self) -> None:
        super().setUp()
        self.addCleanup(processes.allow_starts)

    def test_nothing_starts_while_the_sandbox_ends(self) -> None:
        processes.refuse_starts()
        with self.assertRaisesRegex(SandboxError, "the start is cancelled"):
            processes.start(self.box, "one", FOREVER)
        self.assertEqual([], processes.owned(self.box))

    def test_who_waits_gives_up(self) -> None:
        def refuse() -> bool:
            processes.refuse_starts()
            return False

        with self.assertRaisesRegex(SandboxError, "the start is cancelled"):
            processes.start(self.box, "one", FOREVER, ready=refuse)


class TestMemory(ProcessCase):
    def test_a_process_takes_some_and_a_dead_one_none(self) -> None:
        self.start("one", FOREVER)
        pid = self.pid("one")
        self.assertGreater(processes.memory_mib([pid]), 1.0)
        processes.stop(self.box, "one")
        self.assertEqual(0.0, processes.memory_mib([pid]))
