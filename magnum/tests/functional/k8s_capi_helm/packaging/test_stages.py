# SPDX-License-Identifier: Apache-2.0
"""The closing line of a test run tells the truth, whatever a stage did."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
from pathlib import Path
import signal
import sys
import tempfile
import unittest
from unittest import mock

TOOL = Path(__file__).resolve().parents[5] / "tools" / "stages.py"
spec = importlib.util.spec_from_file_location("stages", TOOL)
assert spec is not None and spec.loader is not None
stages = importlib.util.module_from_spec(spec)
sys.modules["stages"] = stages
spec.loader.exec_module(stages)

STESTR = """
======
Totals
======
Ran: {0} tests in 1.2 sec.
 - Passed: {1}
 - Skipped: {2}
 - Expected Fail: 0
 - Unexpected Success: {3}
 - Failed: {4}
"""


def children_of_mark(stage: str) -> list[int]:
    """Processes that any run of a stage of this process has started."""
    mark = f"{stages.MARK}={stage}-{os.getpid()}-".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if mark in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
    return found


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be collected does not."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


class TestInterpreter(unittest.TestCase):
    """The Python of a release of Magnum."""

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name)
        self.ours = {"PYENV_ROOT": str(self.root / "pyenv"), "PATH": str(self.root / "bin")}

    def interpreter(self, path: str, script: str = "#!/bin/sh\nexit 0\n") -> str:
        program = self.root / path
        program.parent.mkdir(parents=True)
        program.write_text(script)
        program.chmod(0o755)
        return str(program)

    def test_none(self) -> None:
        self.assertIsNone(stages.interpreter("3.10", self.ours))
        self.assertIsNone(stages.interpreter("3.10", {}))

    def test_one_in_path(self) -> None:
        found = self.interpreter("bin/python3.10")
        self.assertEqual(found, stages.interpreter("3.10", self.ours))

    def test_pyenvs_own_before_its_name_in_path(self) -> None:
        self.interpreter("bin/python3.10", "#!/bin/sh\necho not chosen; exit 127\n")
        found = self.interpreter("pyenv/versions/3.10.13/bin/python3.10")
        self.assertEqual(found, stages.interpreter("3.10", self.ours))

    def test_what_cannot_be_started_is_none(self) -> None:
        self.interpreter("pyenv/versions/3.10.13/bin/python3.10", "no program\n")
        self.interpreter("bin/python3.10", "#!/bin/sh\nexit 127\n")
        self.assertIsNone(stages.interpreter("3.10", self.ours))


class TestCheckouts(unittest.TestCase):
    """``--real`` runs nothing unless each program that has no package has its checkout."""

    def test_each_one_that_is_missing_is_named_with_what_to_do(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            checkout = Path(directory) / "checkout"
            checkout.mkdir()
            (checkout / "requirements.txt").touch()
            ours = {"ADDON_PROVIDER": str(checkout), "JANITOR": directory}
            self.assertEqual(
                [f"JANITOR={directory} has to name a checkout of {stages.CHECKOUTS['JANITOR']}"],
                stages.lacking(ours),
            )
            self.assertEqual([], stages.lacking(dict.fromkeys(stages.CHECKOUTS, str(checkout))))
        self.assertEqual(
            [
                f"{variable}, which is not set, has to name a checkout of {address}"
                for variable, address in stages.CHECKOUTS.items()
            ],
            stages.lacking({"JANITOR": ""}),
        )

    def test_nothing_runs_without_one(self) -> None:
        said = io.StringIO()
        with (
            mock.patch.dict(os.environ, dict.fromkeys(stages.CHECKOUTS, "")),
            contextlib.redirect_stderr(said),
            self.assertRaises(SystemExit) as caught,
        ):
            stages.main(["--real", "pep8"])
        self.assertEqual(2, caught.exception.code)
        self.assertIn("ADDON_PROVIDER, which is not set,", said.getvalue())


class TestTally(unittest.TestCase):
    """(output, exit status, does it run tests) -> passed, failed, skipped."""

    CASES = (
        ("a check that passes", "", 0, False, (1, 0, 0)),
        ("a check that fails", "", 2, False, (0, 1, 0)),
        ("tests that pass", STESTR.format(5, 4, 1, 0, 0), 0, True, (4, 0, 1)),
        ("tests that fail", STESTR.format(5, 3, 0, 0, 2), 1, True, (3, 2, 0)),
        ("two runs in one stage", STESTR.format(1, 1, 0, 0, 0) * 2, 0, True, (2, 0, 0)),
        ("an unexpected success", STESTR.format(2, 1, 0, 1, 0), 1, True, (1, 1, 0)),
        ("tests pass, then it fails", STESTR.format(1, 1, 0, 0, 0), 1, True, (1, 1, 0)),
        ("it could not start", "no such environment", 1, True, (0, 1, 0)),
        ("no test was found", STESTR.format(0, 0, 0, 0, 0), 0, True, (0, 1, 0)),
        ("everything was skipped", STESTR.format(2, 0, 2, 0, 0), 0, True, (0, 1, 2)),
    )

    def test_a_stage_that_may_skip_says_so_in_the_sum(self) -> None:
        skipped = "Not tested on MariaDB: there is no apt-get\n - Skipped: 1"
        for log, status, expected in (
            (skipped, 0, (0, 0, 1)),
            (skipped, 1, (0, 1, 1)),
            (STESTR.format(0, 0, 0, 0, 0), 0, (0, 1, 0)),
            (STESTR.format(5, 4, 1, 0, 0), 0, (4, 0, 1)),
        ):
            with self.subTest(log):
                self.assertEqual(stages.Tally(*expected), stages.tally(log, status, True, True))
        self.assertEqual(
            ["Not tested on MariaDB: there is no apt-get"], stages.NOT_TESTED.findall(skipped)
        )

    def test_what_each_stage_comes_to(self) -> None:
        for title, log, status, counts, expected in self.CASES:
            with self.subTest(title):
                self.assertEqual(stages.Tally(*expected), stages.tally(log, status, counts))


class TestRun(unittest.TestCase):
    """A run of stages that are small programs of this test."""

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        for name, place in (("LOGS", "stages"), ("CLOSING", "stages/closing")):
            self.addCleanup(setattr, stages, name, getattr(stages, name))
            setattr(stages, name, Path(directory.name) / place)

    @staticmethod
    def stage(name: str, program: str, *, counts: bool = True, minutes: float = 1.0) -> object:
        class Program(stages.Stage):  # type: ignore[misc]
            def command(self) -> list[str]:
                return [sys.executable, "-c", program]

        return Program(name, name, minutes, counts=counts)

    def run_stages(self, *chosen: object) -> tuple[int, str]:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            status = stages.Runner(chosen).run()
        return status, out.getvalue()

    def test_the_sum_stands_alone_at_the_end(self) -> None:
        good = self.stage("good", f"print({STESTR.format(3, 2, 1, 0, 0)!r})")
        check = self.stage("check", "pass", counts=False)
        status, out = self.run_stages(good, check)
        self.assertEqual((0, "3 passed, 0 failed, 1 skipped"), (status, out.splitlines()[-1]))
        self.assertEqual("3 passed, 0 failed, 1 skipped\n", stages.CLOSING.read_text())

    def test_a_check_alone_has_a_sum_too(self) -> None:
        status, out = self.run_stages(self.stage("check", "raise SystemExit(1)", counts=False))
        self.assertEqual((1, "0 passed, 1 failed, 0 skipped"), (status, out.splitlines()[-1]))

    def test_a_failure_is_shown_with_its_log_and_the_rest_runs(self) -> None:
        bad = self.stage("bad", "print('the reason'); raise SystemExit(3)", counts=False)
        good = self.stage("good", f"print({STESTR.format(1, 1, 0, 0, 0)!r})")
        status, out = self.run_stages(bad, good)
        self.assertEqual((1, "1 passed, 1 failed, 0 skipped"), (status, out.splitlines()[-1]))
        self.assertIn("bad: FAILED (3)", out)
        self.assertIn("the end of", out)
        self.assertIn("the reason", out)

    def test_a_failed_test_is_named(self) -> None:
        lines = "{0} some.test_of.ours [0.001234s] ... FAILED" + "\\n" * 99
        program = f"print('{lines}'); print({STESTR.format(1, 0, 0, 0, 1)!r}); raise SystemExit(1)"
        status, out = self.run_stages(self.stage("tests", program))
        self.assertEqual(1, status)
        self.assertIn("\nsome.test_of.ours\n", out)

    def test_a_stage_that_takes_too_long_is_stopped_with_its_daemons(self) -> None:
        program = (
            "import subprocess; subprocess.Popen(['sleep', '601'], start_new_session=True);"
            "subprocess.run(['sleep', '600'])"
        )
        status, out = self.run_stages(self.stage("long", program, minutes=0.02))
        self.assertEqual(1, status)
        self.assertIn("it took longer than", out)
        self.assertEqual([], [pid for pid in children_of_mark("long") if alive(pid)])

    def test_what_has_ended_in_time_may_be_waited_for_later(self) -> None:
        """The build runs beside other stages, and all of these may take longer than it may."""
        stages.LOGS.mkdir(exist_ok=True)
        run = stages.Run("early", [sys.executable, "-c", "print('built')"], 0.1, live=False)
        run._timer.join(60.0)
        self.assertEqual(0, run.wait())
        self.assertEqual("built\n", run.log.read_text())

    def test_an_end_from_outside_stops_the_stage(self) -> None:
        stage = self.stage("asked", "import os, signal; os.kill(os.getppid(), signal.SIGTERM)")
        previous = signal.signal(signal.SIGTERM, stages._end)
        self.addCleanup(signal.signal, signal.SIGTERM, previous)
        status, out = self.run_stages(stage)
        self.assertEqual(1, status)
        self.assertIn("Interrupted", out)
