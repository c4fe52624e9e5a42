# SPDX-License-Identifier: Apache-2.0
"""What the terminal shows of a step."""

import contextlib
import io
from pathlib import Path
import tempfile
import unittest

from sandbox import progress


class TestStep(unittest.TestCase):
    def shown(self) -> contextlib.redirect_stdout[io.StringIO]:
        return contextlib.redirect_stdout(io.StringIO())

    def test_one_line_with_seconds_and_size(self) -> None:
        with tempfile.NamedTemporaryFile() as file, self.shown() as out:
            file.write(b"0" * 3 * 2**20)
            file.flush()
            with progress.step("building etcd") as step:
                step.size(Path(file.name))
        self.assertRegex(
            out.getvalue(), r"^\[ *\d+\.\d s\] building etcd \.\.\. \d+\.\d s, 3 MiB\n$"
        )

    def test_an_interrupted_line_is_repeated(self) -> None:
        with self.shown() as out, progress.step("outer"), progress.step("inner"):
            pass
        lines = out.getvalue().splitlines()
        self.assertEqual(3, len(lines))
        self.assertRegex(lines[1], r"inner \.\.\. \d")
        self.assertRegex(lines[2], r"outer: \d")

    def test_failure_is_said_and_passed_on(self) -> None:
        with self.shown() as out, self.assertRaises(KeyError), progress.step("seeding"):
            raise KeyError("x")
        self.assertIn("seeding ... FAILED after", out.getvalue())
