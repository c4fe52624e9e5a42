# SPDX-License-Identifier: Apache-2.0
"""What is written down of a test run is what ran, and nothing that did not."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = Path(__file__).resolve().parents[5]
sys.path.insert(0, str(ROOT))
from tools import tested  # noqa: E402

TOTALS = " - Passed: {}\n - Skipped: 0\n - Failed: {}\n"


class TestTested(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.data = Path(directory.name) / "tested.yaml"

    def record(self, passed: int, failed: int, status: int = 0, ran: str = "some tests") -> None:
        tested.record(self.data, ["magnum"], ran, status, TOTALS.format(passed, failed))

    def test_the_versions_that_are_here_are_written_down(self) -> None:
        self.record(3, 0)
        (result,) = tested.read(self.data)
        self.assertEqual(("magnum", "some tests"), (result.table, result.ran))
        self.assertEqual("3 passed, 0 failed, 0 skipped", result.result)
        self.assertEqual(
            f"{sys.version_info[0]}.{sys.version_info[1]}",
            ".".join(result.subject["Python"].split(".")[:2]),
        )
        self.assertIn("kubernetes", result.subject)

    def test_a_later_run_of_the_same_replaces_an_earlier_one_and_no_other(self) -> None:
        self.record(3, 0, ran="others")
        self.record(3, 0)
        self.record(2, 1, status=1)
        found = {result.ran: result.result for result in tested.read(self.data)}
        self.assertEqual(
            {
                "others": "3 passed, 0 failed, 0 skipped",
                "some tests": "2 passed, 1 failed, 0 skipped",
            },
            found,
        )

    def test_a_run_that_ended_badly_without_a_failed_test_has_not_passed(self) -> None:
        self.record(3, 0, status=1)
        (result,) = tested.read(self.data)
        self.assertEqual("3 passed, 1 failed, 0 skipped", result.result)

    def test_what_ran_no_test_leaves_no_result(self) -> None:
        for output in ("", "No such file", TOTALS.format(0, 0)):
            tested.record(self.data, ["magnum"], "some tests", 0, output)
        self.assertEqual([], tested.read(self.data))

    def test_versions_are_in_the_order_of_their_numbers(self) -> None:
        subjects = [{"Cluster API": version} for version in ("1.14.2", "1.9.0", "1.10.10")]
        tested.write(
            self.data,
            [tested.Result("cluster-api", one, "x", "2026-01-01", "passed") for one in subjects],
        )
        found = [result.subject["Cluster API"] for result in tested.read(self.data)]
        self.assertEqual(["1.9.0", "1.10.10", "1.14.2"], found)

    def test_a_command_line_without_a_known_table_is_refused(self) -> None:
        for arguments in ([], ["magnum", "x"], ["heat", "x", "true"]):
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                self.assertEqual(2, tested.main(arguments))
            self.assertIn("tables: magnum, ", printed.getvalue())

    def test_a_program_that_is_no_package_has_the_version_of_its_checkout(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            git = ["git", "-C", directory, "-c", "user.name=a", "-c", "user.email=a@example.org"]
            for command in (["init"], ["commit", "--allow-empty", "-m", "a"], ["tag", "0.14.0"]):
                subprocess.run([*git, *command], check=True, capture_output=True, timeout=60)
            with mock.patch.dict(os.environ, {"ADDON_PROVIDER": directory}):
                tested.record(
                    self.data, ["programs.addon-provider"], "addons", 0, TOTALS.format(1, 0)
                )
        (result,) = tested.read(self.data)
        self.assertEqual(
            ("programs", {"Program": "cluster-api-addon-provider", "Version": "0.14.0"}),
            (result.table, result.subject),
        )

    def test_a_program_that_was_not_given_has_no_row(self) -> None:
        with mock.patch.dict(os.environ, {"ADDON_PROVIDER": ""}):
            tested.record(self.data, ["programs.addon-provider"], "addons", 0, TOTALS.format(1, 0))
        self.assertEqual([], tested.read(self.data))

    def test_without_the_variable_the_command_just_runs(self) -> None:
        before = tested.DATA.read_bytes()
        script = "print(' - Passed: 1'); raise SystemExit(7)"
        done = subprocess.run(
            [sys.executable, "-m", "tools.tested", "magnum", "x", sys.executable, "-c", script],
            cwd=ROOT,
            env={**os.environ, tested.VARIABLE: "0"},
            capture_output=True,
            text=True,
            timeout=120,
        )
        self.assertEqual((7, " - Passed: 1\n"), (done.returncode, done.stdout))
        self.assertEqual(before, tested.DATA.read_bytes())

    def test_the_output_is_seen_while_it_is_read(self) -> None:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            status, output = tested.run(
                [sys.executable, "-c", "print('seen'); raise SystemExit(3)"]
            )
        self.assertEqual((3, "seen\n", "seen\n"), (status, output, printed.getvalue()))
