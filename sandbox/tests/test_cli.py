# SPDX-License-Identifier: Apache-2.0
"""The commands say what is wrong, and what the shell needs to know."""

import contextlib
import io
import os
from unittest import mock

from sandbox import cli, faults, inventory, processes, stack
from sandbox.cloud.conductor_layout import Layout
from sandbox.management import releases
from sandbox.management.releases import Providers
from sandbox.state import SandboxError
from sandbox.tests.test_state import StateCase


class TestCommands(StateCase):
    def run_command(self, *arguments: str) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = cli.main(["--dir", str(self.place / "one"), *arguments])
        return status, out.getvalue(), err.getvalue()

    def test_env_before_up_says_what_to_do(self) -> None:
        status, _, said = self.run_command("env")
        self.assertEqual(1, status)
        self.assertIn("run `python -m sandbox up`", said)

    def test_env_quotes_for_the_shell(self) -> None:
        self.sandbox().record(bin_dir="/a b")
        with mock.patch.dict(os.environ, PATH="/usr/bin"):
            status, out, _ = self.run_command("env")
        self.assertEqual(0, status)
        self.assertIn("export OS_CLOUD=demo\n", out)
        self.assertIn("export PATH='/a b:", out)
        self.assertIn(f"export KUBECONFIG={self.place}/one/management/kubeconfig\n", out)

    def test_several_conductors_need_a_broker(self) -> None:
        status, _, said = self.run_command("up", "--conductors", "2")
        self.assertEqual(1, status)
        self.assertIn("--conductors 2: the transport memory has one", said)
        self.assertIn("add --transport rabbit", said)

    def test_no_conductor_is_none(self) -> None:
        status, _, said = self.run_command("up", "--transport", "rabbit", "--workers", "0")
        self.assertEqual(1, status)
        self.assertIn("--workers 0: it must be 1 or more", said)

    def test_a_layout_that_runs_is_not_changed_under_it(self) -> None:
        box = self.sandbox()
        processes.record(box, "magnum", os.getpid())
        status, _, said = self.run_command("up", "--transport", "rabbit")
        self.assertEqual(1, status)
        self.assertIn("Magnum runs with --transport memory --conductors 1 --workers 1", said)
        self.assertEqual(Layout(), Layout.of(box))

    def test_a_database_goes_back_to_no_earlier_release(self) -> None:
        box = self.sandbox()
        Layout("rabbit", magnum="22.0.0").record(box)
        box.record(cloud_ready=True)
        status, _, said = self.run_command("up", "--magnum", "20")
        self.assertEqual(1, status)
        self.assertIn("Magnum's database is that of --transport rabbit", said)
        self.assertIn("reset --transport rabbit --conductors 1 --workers 1 --magnum 20.0.2", said)

    def test_providers_that_cannot_work_together_are_refused_before_anything_starts(self) -> None:
        for command in ("up", "reset", "build"):
            status, _, said = self.run_command(command, "--capi", "1.10.10")
            self.assertEqual(1, status)
            self.assertIn("--capi 1.10.10 --capo 0.14.7: this OpenStack provider reads", said)
        self.assertEqual([], processes.owned(self.sandbox()))

    def test_a_new_sandbox_has_nothing_of_what_the_old_one_was_told(self) -> None:
        box = self.sandbox()
        Providers(releases.CLUSTER_API[0], releases.CAPO[0]).record(box)
        Layout("rabbit", conductors=2).record(box)
        box.record(certificates="x509keypair", tenant_api="real", addon_provider="real")
        started = []
        with mock.patch.object(stack, "up", lambda state, *choices: started.append(choices)):
            self.assertEqual(0, self.run_command("reset")[0])
        [choices] = started
        self.assertEqual((None, None, Providers(), None, None), choices)
        known = ("certificates", "layout", "providers", "tenant_api", "addon_provider")
        self.assertEqual([], [name for name in known if box.get(name)])

    def test_logs_of_nobody(self) -> None:
        status, _, said = self.run_command("logs", "heat")
        self.assertEqual(1, status)
        self.assertIn("heat.log does not exist", said)

    def test_logs_lists_names(self) -> None:
        self.sandbox().log("nova").write_text("x" * 2048)
        self.assertRegex(self.run_command("logs")[1], r"nova +2 KiB")

    def test_an_unknown_fault_shows_the_known_ones(self) -> None:
        status, _, said = self.run_command("fault", "earthquake", "on")
        self.assertEqual(1, status)
        self.assertRegex(said, "there is no fault earthquake; choose one of quota")

    def test_a_fault_needs_a_sandbox_that_runs(self) -> None:
        status, _, said = self.run_command("fault", "quota", "on")
        self.assertEqual(1, status)
        self.assertIn("run `python -m sandbox up` first", said)

    def test_a_place_that_cannot_be_used_is_said(self) -> None:
        (self.place / "one").write_text("a file")
        status, _, said = self.run_command("status")
        self.assertEqual(1, status)
        self.assertIn(f"{self.place}/one", said)

    def test_faults_are_listed(self) -> None:
        self.assertRegex(self.run_command("fault")[1], r"(?m)^quota +off ")

    def test_a_quota_is_a_number(self) -> None:
        with self.assertRaisesRegex(SandboxError, "'many' is not a number of servers"):
            faults.quota_number("many")


class TestLeftovers(StateCase):
    def test_only_what_is_new_is_left_over(self) -> None:
        before = {"ports": {"a"}, "servers": {"s"}}
        now = {"ports": {"a", "b"}, "servers": {"s"}, "volumes": set[str]()}
        self.assertEqual({"ports": {"b"}}, inventory.added(before, now))
