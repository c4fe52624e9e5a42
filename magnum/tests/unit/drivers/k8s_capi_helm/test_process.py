# SPDX-License-Identifier: Apache-2.0
"""A child process is bounded in time and output, and goes with its parent."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

import testtools

from magnum.drivers.k8s_capi_helm.helm import process
from magnum.drivers.k8s_capi_helm.helm.process import ProcessOutcome

SHELL = "/bin/sh"
#: Seconds within which a shell has set its trap, on a busy machine, too.
_STARTED = 2.0
#: Runs a child under supervision and ends, or is ended, before it.
PARENT = """
import sys
from magnum.drivers.k8s_capi_helm.helm import process
process.run(["/bin/sh", "-c", "echo $$ > $0; exec sleep 100", sys.argv[1]], timeout=100)
"""


def is_running(pid: int) -> bool:
    """Whether a process runs; one that nobody has reaped yet does not."""
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


class SupervisorCase(testtools.TestCase):
    """Children of /bin/sh."""

    def setUp(self) -> None:
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def shell(self, script: str, **settings: object) -> process.ProcessResult:
        settings.setdefault("timeout", 30)
        return process.run([SHELL, "-c", script], **settings)  # type: ignore[arg-type]

    def pid(self, name: str) -> int:
        """A number that a child wrote to a file, as soon as it is there."""
        path = self.directory / name
        self.until(lambda: path.exists() and path.read_text().endswith("\n"))
        return int(path.read_text())

    def until(self, happened: object, limit: float = 20) -> None:
        """Wait until something has happened; fail when it does not."""
        end = time.monotonic() + limit
        while not happened():  # type: ignore[operator]
            if time.monotonic() > end:
                self.fail("it did not happen in time")
            threading.Event().wait(0.01)


class TestRun(SupervisorCase):
    """What a child says comes back."""

    def test_output_and_status(self) -> None:
        done = self.shell("echo out; echo err >&2; exit 3")
        self.assertEqual(
            process.ProcessResult(ProcessOutcome.EXITED, 3, b"out\n", b"err\n"),
            done,
        )

    def test_input(self) -> None:
        text = b"x" * 3_000_000 + b"end"
        self.assertEqual(text, process.run(["/bin/cat"], stdin=text, timeout=30).stdout)

    def test_input_that_nobody_reads(self) -> None:
        done = self.shell("exec 0<&-; echo done", stdin=b"x" * 3_000_000)
        self.assertEqual((0, b"done\n"), (done.code, done.stdout))

    def test_no_input(self) -> None:
        self.assertEqual(b"", process.run(["/bin/cat"], timeout=30).stdout)

    def test_of_much_output_the_end_is_kept(self) -> None:
        limit = process.OUTPUT_LIMIT
        done = self.shell(f"head -c {limit + 1000} /dev/zero; echo end")
        self.assertEqual(limit, len(done.stdout))
        self.assertEqual(b"end\n", done.stdout[-4:])

    def test_environment(self) -> None:
        done = self.shell("echo $A-$HOME", env={"A": "1"})
        self.assertEqual(b"1-\n", done.stdout)

    def test_a_program_that_is_not_there(self) -> None:
        done = process.run(["/nonexistent/helm"], timeout=30)
        self.assertEqual(127, done.code)
        self.assertIn(b"/nonexistent/helm: No such file", done.stderr)

    def test_arguments_are_not_for_a_shell(self) -> None:
        done = process.run(["/bin/echo", "$HOME; exit 1", "*"], timeout=30)
        self.assertEqual(b"$HOME; exit 1 *\n", done.stdout)

    def test_a_signal_of_somebody_else(self) -> None:
        self.assertEqual(-signal.SIGKILL, self.shell("kill -9 $$").code)


class TestEnd(SupervisorCase):
    """Nothing is left behind."""

    def test_too_late(self) -> None:
        began = time.monotonic()
        done = self.shell("trap 'echo asked; exit 7' TERM; sleep 100 & wait", timeout=_STARTED)
        self.assertEqual(
            (ProcessOutcome.TIMED_OUT, 7, b"asked\n"), (done.end, done.code, done.stdout)
        )
        self.assertLess(time.monotonic() - began, 10)

    def test_too_late_and_deaf(self) -> None:
        done = self.shell("trap '' TERM; while :; do sleep 0.1; done", timeout=_STARTED, grace=0.2)
        self.assertEqual((ProcessOutcome.TIMED_OUT, -signal.SIGKILL), (done.end, done.code))

    def test_too_late_and_frozen(self) -> None:
        done = self.shell("trap '' TERM; kill -STOP $$", timeout=_STARTED, grace=0.2)
        self.assertEqual((ProcessOutcome.TIMED_OUT, -signal.SIGKILL), (done.end, done.code))

    def test_stopped_at_once_without_being_asked(self) -> None:
        marker = self.directory / "asked"

        def stopped() -> bool:
            return (self.directory / "pid").exists()

        done = self.shell(
            f"trap 'touch {marker}' TERM; echo $$ > {self.directory}/pid; sleep 100 & wait; wait",
            stop=stopped,
        )
        self.assertEqual((ProcessOutcome.STOPPED, -signal.SIGKILL), (done.end, done.code))
        self.assertFalse(marker.exists())

    def test_what_it_started_goes_too(self) -> None:
        for script, settings in (
            (f"sleep 100 & echo $! > {self.directory}/a", {}),
            (f"sleep 100 & echo $! > {self.directory}/b; wait", {"timeout": 0.3, "grace": 0.1}),
        ):
            self.shell(f"{script}", **settings)
        for name in "ab":
            pid = self.pid(name)
            self.until(lambda pid=pid: not is_running(pid))
            self.assertFalse(is_running(pid))

    def test_it_dies_with_its_parent(self) -> None:
        path = self.directory / "pid"
        parent = subprocess.Popen([sys.executable, "-W", "ignore", "-c", PARENT, str(path)])
        child = self.pid("pid")
        self.assertTrue(is_running(child))
        parent.kill()
        parent.wait()
        self.until(lambda: not is_running(child))
        self.assertFalse(is_running(child))

    def test_an_error_of_the_caller_leaves_no_child(self) -> None:
        path = self.directory / "pid"

        def stop() -> bool:
            if path.exists():
                raise KeyError("of the caller")
            return False

        self.assertRaises(
            KeyError,
            self.shell,
            f"echo $$ > {path}.new; mv {path}.new {path}; sleep 100",
            stop=stop,
        )
        self.assertFalse(is_running(self.pid("pid")))

    def test_no_file_descriptor_is_left_open(self) -> None:
        self.shell("true")
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(5):
            self.shell("echo out; echo err >&2", stdin=b"in")
        self.assertEqual(before, len(os.listdir("/proc/self/fd")))
