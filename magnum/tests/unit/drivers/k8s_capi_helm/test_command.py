# SPDX-License-Identifier: Apache-2.0
"""The program of the operator's command: help, completion, formats, exit statuses."""

from __future__ import annotations

import csv
import json
import subprocess
import sys

import yaml

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.app import COMMANDS
from magnum.drivers.k8s_capi_helm.commands.check.check import CHECKS
from magnum.tests.unit.drivers.k8s_capi_helm.command_case import CommandCase, OK, UNKNOWN
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one
from magnum.tests.unit.drivers.k8s_capi_helm.house.sources import CHECKOUT

COMMANDS_PACKAGE = "magnum.drivers.k8s_capi_helm.commands"
#: The pages of the commands.
_PAGES = ("catalogue", "charts", "command", "rollouts")


class TestProgram(CommandCase):
    def test_without_a_command_the_help_lists_all(self) -> None:
        printed = self.command()
        self.assertEqual(OK, printed.status)
        for name in at_least_one(COMMANDS):
            self.assertRegex(printed.out, rf"(?m)^  {name} +[A-Z]")

    def test_the_help_of_each_command_says_its_exit_statuses(self) -> None:
        for name in at_least_one(COMMANDS):
            printed = self.command("help", *name.split())
            self.assertEqual(OK, printed.status)
            self.assertIn("Exit status", " ".join(printed.out.split()), name)

    def test_a_shell_completes_every_command(self) -> None:
        printed = self.command("complete", "--shell", "bash")
        self.assertEqual(OK, printed.status)
        for name in at_least_one(COMMANDS):
            first, _, second = name.partition(" ")
            self.assertRegex(printed.out, rf"cmds='.*\b{first}\b.*'")
            if second:
                self.assertRegex(printed.out, rf"cmds_{first}='.*\b{second}\b.*'")
        self.assertIn("complete -F _k8s_capi_helm k8s-capi-helm", printed.out)

    def test_a_command_loads_none_of_the_others(self) -> None:
        program = f"import {COMMANDS_PACKAGE}.app, {COMMANDS_PACKAGE}.clusters.list_clusters, sys"
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", f"{program}; print(*sys.modules)"],
            capture_output=True,
            check=True,
            text=True,
        )
        loaded = {name.removeprefix(f"{COMMANDS_PACKAGE}.") for name in done.stdout.split()}
        others = {value.partition(":")[0] for value in COMMANDS.values()}
        self.assertEqual({"clusters.list_clusters"}, loaded & others)
        self.assertNotIn("magnum.conductor.api", loaded)

    def test_a_wrong_call_is_no_fault_that_was_found(self) -> None:
        for argv in (("chek",), ("nothing-like-it",), ("check", "--nothing"), ("--nothing",)):
            self.assertEqual(UNKNOWN, self.command(*argv).status, argv)

    def test_a_configuration_that_cannot_be_read_is_said_without_a_traceback(self) -> None:
        self.problem = errors.InvalidConfiguration("It cannot be read.", "/etc/x: no such file")
        printed = self.command("check")
        self.assertEqual((UNKNOWN, ""), (printed.status, printed.out))
        self.assertEqual("It cannot be read. (/etc/x: no such file)\n", printed.error)

    def test_what_is_not_foreseen_is_one_line(self) -> None:
        self.problem = RuntimeError("the first line\nand more")
        printed = self.command("check")
        self.assertEqual(
            (UNKNOWN, "RuntimeError: the first line\n"), (printed.status, printed.error)
        )

    def test_no_password_of_what_is_not_foreseen_is_printed(self) -> None:
        for text in (
            "cannot parse mysql+pymysql://magnum:se@cr:et@db/magnum?ssl=1",
            "{'auth': {'password': 'se@cr:et'}}",
        ):
            self.problem = RuntimeError(text)
            printed = self.command("check")
            self.assertNotIn("cr:et", printed.error)
            self.assertIn("RuntimeError: ", printed.error)

    def test_for_developers_there_is_a_traceback(self) -> None:
        self.problem = RuntimeError("the first line")
        printed = self.command("--debug", "check")
        self.assertIn("Traceback", printed.error)

    def test_every_format_has_the_same_rows(self) -> None:
        argv = ("check", "database", "clocks", "-f")
        rows = self.command(*argv, "json").rows()
        self.assertEqual(["database", "clocks"], [row["Check"] for row in rows])
        self.assertEqual(rows, yaml.safe_load(self.command(*argv, "yaml").out))
        listed = list(csv.DictReader(self.command(*argv, "csv").out.splitlines()))
        self.assertEqual(rows, listed)
        values = [" ".join(row.values()) for row in rows]
        self.assertEqual(values, self.command(*argv, "value").out.splitlines())
        table = self.command("check", "database", "clocks", "--max-width", "0").out
        self.assertTrue(table.startswith("+-"), table)
        for row in at_least_one(rows):
            self.assertIn(row["Finding"], table)

    def test_every_command_and_check_is_documented(self) -> None:
        pages = [CHECKOUT / f"doc/source/admin/{name}.rst" for name in _PAGES]
        page = "".join(path.read_text(encoding="utf-8") for path in pages)
        manual = (CHECKOUT / "debian/k8s-capi-helm.1").read_text(encoding="utf-8")
        for name in at_least_one(COMMANDS):
            self.assertIn(f"\n``{name}``: ", page)
            title = f'"{name}"' if " " in name else name
            self.assertIn(f"\n.BR {title} ", manual)
        for name in CHECKS:
            self.assertIn(f"   * - ``{name}``\n", page)

    def test_columns_are_chosen(self) -> None:
        printed = self.command("check", "database", "-f", "json", "-c", "Status")
        self.assertEqual([{"Status": "OK"}], json.loads(printed.out))
