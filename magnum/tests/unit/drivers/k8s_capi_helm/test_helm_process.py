# SPDX-License-Identifier: Apache-2.0
"""How helm is run, and what is made of its end: a stand-in for the binary does as it is told."""

from __future__ import annotations

import asyncio
import json
import os
import pathlib
import tempfile
import threading
from typing import Any

import testtools

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.helm import cli, HelmClient, release_secret
from magnum.drivers.k8s_capi_helm.model import Json, names
from magnum.tests.unit.drivers.k8s_capi_helm.fakes import FakeKube
from magnum.tests.unit.drivers.k8s_capi_helm.suites import helm as suites_helm

REFUSAL = """\
Error: values don't meet the specifications of the schema(s) in the following chart(s):
openstack-cluster:
- at /text: got number, want string"""


class Lost:
    """A hold that is lost when something has happened."""

    def __init__(self, happened: Any) -> None:
        self.is_lost = happened


class TestProcess(testtools.TestCase):
    """Calls of HelmClient, and what the stand-in then finds."""

    def setUp(self) -> None:
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.chart = suites_helm.write_chart(self.directory / "chart")
        self.kube = FakeKube()
        self.kube.kubeconfig_path = "/the/kubeconfig"
        self.kube.apply(names.NAMESPACE, {"metadata": {"name": suites_helm.NAMESPACE}})
        self.executable = self.directory / "helm"
        self.stand_in("echo '{}'")

    def stand_in(self, script: str, version: str = "v3.21.4") -> None:
        """Let helm do this; its version is answered besides."""
        self.executable.write_text(
            "#!/bin/sh\n"
            f'if [ "$1" = version ]; then echo {version}; exit 0; fi\n'
            f'for part; do echo "$part"; done > {self.directory}/argv\n'
            f"env > {self.directory}/env\n"
            f"cat > {self.directory}/stdin\n"
            f"{script}\n"
            f"touch {self.directory}/ended\n"
        )
        self.executable.chmod(0o755)

    def helm(self, executable: str = "", timeout: float = 20) -> HelmClient:
        return HelmClient(self.kube, executable=executable or str(self.executable), timeout=timeout)

    def written(self, name: str) -> str:
        return (self.directory / name).read_text()

    def writes(self, revision: int, values: Json, status: str = "deployed") -> None:
        """Let the Secret of a revision appear when helm has ended."""

        def appear(verb: str, kind: names.Kind, name: str) -> None:
            if (self.directory / "ended").exists():
                self.kube.before = None
                self.kube.put(names.SECRET, suites_helm.secret(revision, status, values))

        self.kube.before = appear

    def test_text_of_any_script_is_not_escaped(self) -> None:
        values = {"zone": "R\u00e9gion-Z\u00fcrich", "type": "\u9ad8\u901f", "tag": "\U0001f680"}
        self.writes(1, values)
        self.helm().apply(suites_helm.NAMESPACE, suites_helm.RELEASE, self.chart, values)
        self.assertNotIn("\\u", self.written("stdin"))
        self.assertEqual(values, json.loads(self.written("stdin")))

    def test_what_yaml_would_take_for_the_end_of_a_line_is_escaped(self) -> None:
        text = "a\x85b\u2028c\u2029d\x7fe\x9ff\ufeffg\uffffh"
        values = {text: text}
        self.writes(1, values)
        self.helm().apply(suites_helm.NAMESPACE, suites_helm.RELEASE, self.chart, values)
        self.assertTrue(self.written("stdin").isascii())
        self.assertEqual(values, json.loads(self.written("stdin")))

    def test_values_go_by_stdin_and_nothing_secret_by_argv(self) -> None:
        self.writes(1, {"key": "value"})
        done = self.helm().apply(
            suites_helm.NAMESPACE, suites_helm.RELEASE, self.chart, {"key": "value"}
        )
        self.assertEqual(1, done.revision)
        arguments = self.written("argv").splitlines()
        self.assertEqual(["upgrade", suites_helm.RELEASE, self.chart.path], arguments[:3])
        for flag, value in (
            ("--namespace", suites_helm.NAMESPACE),
            ("--values", "-"),
            ("--timeout", "20s"),
            ("--history-max", "10"),
        ):
            self.assertEqual(value, arguments[arguments.index(flag) + 1])
        self.assertIn("--install", arguments)
        self.assertIn("--reset-values", arguments)
        self.assertIn("--disable-openapi-validation", arguments)
        label = arguments[arguments.index("--labels") + 1]
        self.assertEqual("clusterctl.cluster.x-k8s.io/move=", label)
        for unwanted in ("--wait", "--atomic", "--rollback-on-failure", "--create-namespace"):
            self.assertNotIn(unwanted, arguments)
        self.assertEqual({"key": "value"}, json.loads(self.written("stdin")))
        self.assertIn("KUBECONFIG=/the/kubeconfig", self.written("env"))

    def test_fields_of_others_are_taken_where_the_server_applies(self) -> None:
        for version, method, taken in (
            ("v3.21.4", None, False),
            ("v3.21.4", "csa", False),
            ("v4.3.1", "", False),
            ("v4.3.1", "csa", False),
            ("v4.3.1", "ssa", True),
            ("v4.3.1", None, True),  # there is no release yet
        ):
            (self.directory / "ended").unlink(missing_ok=True)
            self.stand_in("echo '{}'", version=version)
            for number in (1, 2):
                name = f"sh.helm.release.v1.{suites_helm.RELEASE}.v{number}"
                self.kube.remove(names.SECRET, suites_helm.NAMESPACE, name)
            if method is not None:
                self.kube.put(names.SECRET, suites_helm.secret(1, "deployed", {}, method=method))
            self.writes(1 if method is None else 2, {})
            self.helm().apply(suites_helm.NAMESPACE, suites_helm.RELEASE, self.chart, {})
            arguments = self.written("argv").splitlines()
            self.assertEqual(taken, "--force-conflicts" in arguments, (version, method))

    def test_a_look_ahead_only_renders(self) -> None:
        values = {"key": "value"}
        helm = self.helm()
        helm.check(suites_helm.NAMESPACE, suites_helm.RELEASE, self.chart, values)
        arguments = self.written("argv").splitlines()
        self.assertEqual(["template", suites_helm.RELEASE, self.chart.path], arguments[:3])
        self.assertEqual(values, json.loads(self.written("stdin")))
        self.stand_in(f'echo "{REFUSAL}" >&2; exit 1')
        error = self.assertRaises(
            errors.ValuesRefused,
            helm.check,
            suites_helm.NAMESPACE,
            suites_helm.RELEASE,
            self.chart,
            values,
        )
        self.assertEqual((("text",),), error.keys)

    def test_a_missing_helm(self) -> None:
        for executable in ("no-such-helm", str(self.directory / "nothing")):
            error = self.assertRaises(
                errors.HelmUnusable,
                self.helm(executable).apply,
                suites_helm.NAMESPACE,
                suites_helm.RELEASE,
                self.chart,
                {},
            )
            self.assertIn("Ask the operator to install Helm", str(error))

    def test_a_helm_that_cannot_run(self) -> None:
        self.executable.write_bytes(b"\x7fELF nonsense")
        self.executable.chmod(0o755)
        self.assertRaises(errors.HelmUnusable, self.helm().version)

    def test_an_old_helm_touches_nothing(self) -> None:
        self.stand_in("true", version="v3.16.0")
        for call in (
            lambda: self.helm().apply(suites_helm.NAMESPACE, suites_helm.RELEASE, self.chart, {}),
            lambda: self.helm().pull("x", repository=None, version="1", into=self.directory),
        ):
            error = self.assertRaises(errors.HelmUnusable, call)
            self.assertIn("v3.16.0", str(error))
        self.assertFalse((self.directory / "argv").exists())

    def test_a_helm_that_hangs_is_ended(self) -> None:
        self.stand_in("exec sleep 100")
        slow = cli.HelmCli(str(self.executable), kubeconfig=None, timeout=0.5 - cli.MARGIN)
        error = self.assertRaises(errors.HelmInterrupted, self.run_command, slow)
        self.assertTrue(error.retryable)
        self.assertFalse((self.directory / "ended").exists())

    @staticmethod
    def run_command(run: Any) -> None:
        asyncio.run(run.uninstall("x", namespace="n"))

    def test_a_lost_lock_kills_helm(self) -> None:
        self.stand_in(f"touch {self.directory}/begun; exec sleep 100")
        begun = self.directory / "begun"
        error = self.assertRaises(
            errors.HelmInterrupted,
            self.helm().apply,
            suites_helm.NAMESPACE,
            suites_helm.RELEASE,
            self.chart,
            {},
            held_lock=Lost(begun.exists),
        )
        self.assertIn("lock was lost", error.detail)
        self.assertFalse((self.directory / "ended").exists())

    def test_a_lost_lock_ends_an_uninstall_too(self) -> None:
        self.kube.put(names.SECRET, suites_helm.secret(1, "deployed", {}))
        self.stand_in(f"touch {self.directory}/begun; exec sleep 100")
        hold = Lost((self.directory / "begun").exists)
        error = self.assertRaises(
            errors.HelmInterrupted,
            self.helm().uninstall,
            suites_helm.NAMESPACE,
            suites_helm.RELEASE,
            held_lock=hold,
        )
        self.assertIn("lock was lost", error.detail)
        self.assertFalse((self.directory / "ended").exists())

    def test_a_lock_that_was_lost_before_starts_nothing(self) -> None:
        self.assertRaises(
            errors.Busy,
            self.helm().apply,
            suites_helm.NAMESPACE,
            suites_helm.RELEASE,
            self.chart,
            {},
            held_lock=Lost(lambda: True),
        )
        self.assertFalse((self.directory / "argv").exists())

    def test_an_interrupted_revision_has_failed_and_keeps_its_number(self) -> None:
        self.kube.put(names.SECRET, suites_helm.secret(1, "superseded", {}))
        self.kube.put(names.SECRET, suites_helm.secret(2, "deployed", {"a": 1}))
        self.kube.put(names.SECRET, suites_helm.secret(3, "pending-upgrade", {"a": 2}))
        self.writes(4, {"a": 3})
        done = self.helm().apply(suites_helm.NAMESPACE, suites_helm.RELEASE, self.chart, {"a": 3})
        self.assertEqual((4, {"a": 3}), (done.revision, done.values))
        found = self.kube.list(names.SECRET, suites_helm.NAMESPACE, {"version": "3"})
        self.assertEqual(["failed"], [release_secret.decode(one).status for one in found])
        self.assertEqual([], [call for call in self.kube.calls if call[0] == "delete"])

    def test_healthy_and_failed_revisions_are_kept(self) -> None:
        for status in ("deployed", "failed", "superseded", "uninstalled"):
            (self.directory / "ended").unlink(missing_ok=True)
            self.kube.put(names.SECRET, suites_helm.secret(4, status, {}))
            self.writes(5, {})
            self.helm().apply(suites_helm.NAMESPACE, suites_helm.RELEASE, self.chart, {})
            self.kube.remove(
                names.SECRET, suites_helm.NAMESPACE, f"sh.helm.release.v1.{suites_helm.RELEASE}.v5"
            )
        self.assertEqual([], [call for call in self.kube.calls if call[0] == "delete"])

    def test_a_revision_of_somebody_else_is_not_taken_for_ours(self) -> None:
        for revision, values in ((2, {"a": 1}), (1, {"a": 2})):
            (self.directory / "ended").unlink(missing_ok=True)
            self.writes(revision, values)
            self.assertRaises(
                errors.Busy,
                self.helm().apply,
                suites_helm.NAMESPACE,
                suites_helm.RELEASE,
                self.chart,
                {"a": 1},
            )
            name = f"sh.helm.release.v1.{suites_helm.RELEASE}.v{revision}"
            self.kube.remove(names.SECRET, suites_helm.NAMESPACE, name)

    def test_a_release_that_vanished_is_interrupted(self) -> None:
        self.assertRaises(
            errors.HelmInterrupted,
            self.helm().apply,
            suites_helm.NAMESPACE,
            suites_helm.RELEASE,
            self.chart,
            {},
        )

    def test_output_that_is_not_json(self) -> None:
        for output in ("nonsense", "{", ""):
            self.stand_in(f"echo '{output}'")
            self.assertRaises(
                errors.HelmInterrupted,
                self.helm().apply,
                suites_helm.NAMESPACE,
                suites_helm.RELEASE,
                self.chart,
                {},
            )

    def test_uninstall_of_what_went_meanwhile(self) -> None:
        self.kube.put(names.SECRET, suites_helm.secret(1, "deployed", {}))
        self.stand_in(
            "echo 'Error: uninstall: Release not loaded: x: release: not found' >&2; exit 1"
        )
        self.helm().uninstall(suites_helm.NAMESPACE, suites_helm.RELEASE)
        self.assertEqual(["uninstall", suites_helm.RELEASE], self.written("argv").splitlines()[:2])

    def test_no_release_needs_no_helm(self) -> None:
        self.helm("no-such-helm").uninstall(suites_helm.NAMESPACE, suites_helm.RELEASE)
        self.assertIsNone(
            self.helm("no-such-helm").live(suites_helm.NAMESPACE, suites_helm.RELEASE)
        )

    def test_another_binary_is_asked_for_its_version(self) -> None:
        helm = self.helm()
        self.assertEqual("3.21.4", helm.version())
        self.stand_in("true", version="v3.17.12")
        self.assertEqual("3.17.12", helm.version())
        self.executable.unlink()
        self.assertRaises(errors.HelmUnusable, helm.version)

    def test_numbers_that_helm_rounds_are_the_same(self) -> None:
        self.writes(1, {"n": float(2**53), "m": 1})
        values = {"n": 2**53 + 1, "m": 1.0}
        done = self.helm().apply(suites_helm.NAMESPACE, suites_helm.RELEASE, self.chart, values)
        self.assertEqual(1, done.revision)

    def test_threads_do_not_disturb_each_other(self) -> None:
        helm, found = self.helm(), []
        threads = [threading.Thread(target=lambda: found.append(helm.version())) for _ in "1234"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual(["3.21.4"] * 4, found)
        self.assertTrue(os.path.exists(self.executable))
