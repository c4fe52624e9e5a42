# SPDX-License-Identifier: Apache-2.0
"""A database for tests: where it cannot be had that is said, and is no failure."""

import contextlib
import io
import os
from pathlib import Path
from unittest import mock

from sandbox import database
from sandbox.tests.test_state import StateCase
from tools import with_database


class TestWithDatabase(StateCase):
    def test_where_it_cannot_be_had_it_is_skipped_and_counted(self) -> None:
        if Path("/usr/sbin/mariadbd").exists():
            self.skipTest("this machine has MariaDB")
        cache = str(self.place / "cache")
        told = io.StringIO()
        with (
            mock.patch.dict(os.environ, PATH=str(self.place), K8S_CAPI_HELM_CACHE=cache),
            contextlib.redirect_stdout(told),
        ):
            status = with_database.main([str(self.place / "box"), "false"])
        self.assertEqual(0, status)
        first, second = told.getvalue().splitlines()
        self.assertRegex(first, "^Not tested on MariaDB: .*without apt-get and dpkg-deb .*without ")
        self.assertEqual(" - Skipped: 1", second)

    def test_without_a_command_its_use_is_said(self) -> None:
        told = io.StringIO()
        with contextlib.redirect_stderr(told):
            self.assertEqual(2, with_database.main([str(self.place)]))
        self.assertIn("usage", told.getvalue())


class TestServer(StateCase):
    def test_what_is_said_of_a_password_is_one_statement_a_line(self) -> None:
        lines = database._first_statements("pw").splitlines()
        self.assertEqual(3, len(lines))
        self.assertTrue(all(line.endswith(";") for line in lines), lines)
        self.assertIn("utf8mb3", lines[0])

    def test_nobody_answers_where_nothing_listens(self) -> None:
        self.assertFalse(database.answers(1, "pw"))
