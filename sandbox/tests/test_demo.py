# SPDX-License-Identifier: Apache-2.0
"""What the demo shows and when it gives up, with an ``openstack`` that answers from a file."""

import contextlib
import io
import json

from sandbox import demo
from sandbox.state import SandboxError
from sandbox.tests.test_state import StateCase

OPENSTACK = """#!/bin/sh
[ "$3" = show ] || { echo "$*" >&2; exit 2; }
answer=$(head -n 1 "$(dirname "$0")/answers")
sed -i 1d "$(dirname "$0")/answers"
[ "$answer" = gone ] && { echo "Cluster demo could not be found. (HTTP 404)" >&2; exit 1; }
[ "$answer" = away ] && { echo "Unable to establish connection" >&2; exit 1; }
echo "$answer"
"""


def answer(status: str, reason: str | None = None) -> str:
    return json.dumps({"status": status, "status_reason": reason})


class TestDemo(StateCase):
    def setUp(self) -> None:
        super().setUp()
        program = self.sandbox().path("bin", "openstack")
        program.write_text(OPENSTACK)
        program.chmod(0o755)
        self.sandbox().record(bin_dir=str(program.parent))
        self.demo = demo.Demo(self.sandbox(), pause=0)

    def watch(self, verb: str, *answers: str) -> list[str]:
        """The lines that were shown."""
        self.sandbox().path("bin", "answers").write_text("\n".join(answers) + "\n")
        self.out = io.StringIO()
        with contextlib.redirect_stdout(self.out):
            until = demo.complete(verb) if verb else lambda seen: seen is None
            self.demo.watch(until)
        return [line.partition("]")[2].strip() for line in self.out.getvalue().splitlines()]

    def test_a_status_is_shown_when_it_changes(self) -> None:
        waiting = answer("CREATE_IN_PROGRESS", "waiting: the network")
        self.assertEqual(
            ["CREATE_IN_PROGRESS", "CREATE_IN_PROGRESS  waiting: the network", "CREATE_COMPLETE"],
            self.watch(
                "CREATE", answer("CREATE_IN_PROGRESS"), waiting, waiting, answer("CREATE_COMPLETE")
            ),
        )

    def test_another_verbs_complete_is_not_the_end(self) -> None:
        shown = self.watch("UPDATE", answer("CREATE_COMPLETE"), answer("UPDATE_COMPLETE"))
        self.assertEqual(["CREATE_COMPLETE", "UPDATE_COMPLETE"], shown)

    def test_a_failed_cluster_ends_the_demo_with_its_reason(self) -> None:
        with self.assertRaisesRegex(SandboxError, "CREATE_FAILED: no such flavor"):
            self.watch("CREATE", answer("CREATE_FAILED", "no such flavor"))

    def test_a_failure_that_was_shown_before_is_an_earlier_requests(self) -> None:
        self.demo.last = "  UPDATE_FAILED  too much"
        shown = self.watch("UPDATE", answer("UPDATE_FAILED", "too much"), answer("UPDATE_COMPLETE"))
        self.assertEqual(["UPDATE_FAILED  too much", "UPDATE_COMPLETE"], shown)

    def test_a_deleted_cluster_is_gone(self) -> None:
        self.assertEqual("gone", self.watch("", answer("DELETE_IN_PROGRESS"), "gone")[-1])

    def test_an_unreachable_magnum_is_not_a_deleted_cluster(self) -> None:
        with self.assertRaisesRegex(SandboxError, "Unable to establish connection"):
            self.watch("", "away")

    def test_a_refused_command_says_what_was_asked_and_answered(self) -> None:
        with (
            contextlib.redirect_stdout(io.StringIO()),
            self.assertRaisesRegex(SandboxError, "openstack coe cluster delete demo: coe cluster"),
        ):
            self.demo.openstack("coe", "cluster", "delete", "demo")

    def test_the_summary_has_every_step_also_a_failed_one(self) -> None:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            with contextlib.suppress(KeyError), self.demo.step("break"):
                raise KeyError("x")
            self.demo.summary()
        self.assertRegex(out.getvalue(), r"(?s)\nbreak +0\.0\nall +0\.0\n\ndemo FAILED")
