# SPDX-License-Identifier: Apache-2.0
"""Helm: the promises in memory, the words of its stderr, its Secrets, its process."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import os
import pathlib
import tempfile
import threading
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
import testtools

from magnum.drivers.k8s_capi_helm import errors, names
from magnum.drivers.k8s_capi_helm.helm_client import client, command, failures, HelmClient, releases
from magnum.drivers.k8s_capi_helm.model import Json
from magnum.drivers.k8s_capi_helm.supervisor import End, Finished
from magnum.tests.unit.drivers.k8s_capi_helm.fakes import FakeHelm, FakeKube
from magnum.tests.unit.drivers.k8s_capi_helm.suites import helm_client as suite

NAMESPACE = "magnum-p"

#: What Helm 3.21.4 wrote to stderr against a real API server, and what it means.
WORDS: tuple[tuple[str, type[errors.DriverError], str], ...] = (
    (
        "Error: values don't meet the specifications of the schema(s) in the following chart(s):\n"
        "openstack-cluster:\n- at '/text': got number, want string\n",
        errors.HelmRefused,
        "at '/text': got number, want string",
    ),
    (
        "Error: execution error at (openstack-cluster/templates/validate.yaml:1:27): why it is",
        errors.HelmRefused,
        "why it is",
    ),
    (
        "Error: unable to build kubernetes objects from release manifest: resource mapping not "
        'found for name: "w" namespace: "" from "": no matches for kind "Absent" in version '
        '"absent.example.org/v1"\nensure CRDs are installed first',
        errors.HelmRefused,
        "'Absent'",
    ),
    (
        'I1121 13:58:02 2871 warnings.go:107] "Warning: unknown field"\nError: 1 error occurred:\n'
        '\t* Deployment.apps "w2" is invalid: [spec.selector: Required value]\n',
        errors.HelmRefused,
        "spec.selector: Required value",
    ),
    (
        'Error: UPGRADE FAILED: cannot patch "x" with kind Cluster: admission webhook '
        '"validation.cluster.x-k8s.io" denied the request: Cluster.cluster.x-k8s.io "x" is '
        "invalid: spec.topology: Forbidden: not allowed",
        errors.HelmRefused,
        "spec.topology: Forbidden: not allowed",
    ),
    (
        "Error: configmaps \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' "
        "denied request: machines may not be named so",
        errors.HelmRefused,
        "machines may not be named so",
    ),
    (
        "Error: YAML parse error on openstack-cluster/templates/config.yaml: error converting "
        "YAML to JSON: yaml: line 2: did not find expected ',' or ']'",
        errors.HelmRefused,
        "templates/config.yaml",
    ),
    ('Error: create: failed to create: namespaces "n" not found', errors.HelmRefused, "'n'"),
    (
        'Error: query: failed to query with labels: secrets is forbidden: User "plain" cannot '
        'list resource "secrets" in API group "" in the namespace "t2"',
        errors.HelmRefused,
        "role of the driver",
    ),
    (
        'Error: Kubernetes cluster unreachable: Get "https://localhost:8080/version": dial tcp '
        "127.0.0.1:8080: connect: connection refused",
        errors.HelmInterrupted,
        "did not answer",
    ),
    (
        "Error: UPGRADE FAILED: Internal error occurred: failed calling webhook "
        '"default.cluster.x-k8s.io": failed to call webhook: Post "https://x": context deadline '
        "exceeded",
        errors.HelmInterrupted,
        "did not answer",
    ),
    (
        "Error: UPGRADE FAILED: etcdserver: request timed out",
        errors.HelmInterrupted,
        "did not answer",
    ),
    (
        "Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress",
        errors.Busy,
        "come in between",
    ),
    (
        'Error: create: failed to create: secrets "sh.helm.release.v1.x.v3" already exists',
        errors.Busy,
        "come in between",
    ),
    ("Error: UPGRADE FAILED: release: already exists", errors.Busy, "come in between"),
    (
        'Error: Unable to continue with install: ConfigMap "x" in namespace "n" exists and '
        "cannot be imported into the current release: invalid ownership metadata; label "
        'validation error: missing key "app.kubernetes.io/managed-by"',
        errors.HelmRefused,
        "belongs to something else",
    ),
    ('Error: path "/nonexist" not found', errors.ChartNotFound, "capi_helm_chart_version"),
    (
        'Error: chart "openstack-cluster" version "9.9.9" not found in https://x repository',
        errors.ChartNotFound,
        "capi_helm_chart_version",
    ),
    (
        'Error: failed to perform "FetchReference" on source: registry/x:1.0.0: not found',
        errors.ChartNotFound,
        "capi_helm_chart_version",
    ),
    ("/opt/helm: Exec format error", errors.HelmUnusable, "install Helm"),
    ("something that nobody has seen before", errors.HelmRefused, "log of the Magnum conductor"),
)


class TestFakeHelm(suite.HelmTests, testtools.TestCase):
    """Helm in memory keeps the promises of the real one."""

    def setUp(self) -> None:
        super().setUp()
        self.kube, self.helm = FakeKube(), FakeHelm()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.chart = suite.write_chart(pathlib.Path(directory.name) / "chart")


class TestWords(testtools.TestCase):
    """Families of stderr texts."""

    def test_known_words(self) -> None:
        for words, kind, sentence in WORDS:
            error = failures.meaning(words, "detail")
            self.assertIs(kind, type(error), words)
            self.assertIn(sentence, str(error))
            self.assertEqual("detail", error.detail)

    def test_a_release_that_is_not_there_stays_in_the_house(self) -> None:
        error = failures.meaning("Error: uninstall: Release not loaded: x: release: not found", "")
        self.assertIsInstance(error, failures.ReleaseAbsent)

    @given(st.text())
    def test_any_words_are_an_error_with_a_bounded_line(self, words: str) -> None:
        sentence = str(failures.meaning(f"denied the request: {words}", words))
        self.assertLess(len(sentence), 700)
        self.assertNotIn("\n", sentence)

    def test_how_a_run_ended(self) -> None:
        for end, code, kind in (
            (End.STOPPED, -9, errors.HelmInterrupted),
            (End.TIMED_OUT, 1, errors.HelmInterrupted),
            (End.TIMED_OUT, 0, errors.HelmInterrupted),
            (End.EXITED, -9, errors.HelmInterrupted),
            (End.EXITED, 1, errors.HelmRefused),
        ):
            error = self.assertRaises(
                kind, failures.output, ["upgrade", "x"], Finished(end, code, b"", b"words")
            )
            self.assertIn("helm upgrade x", error.detail)
            self.assertIn("words", error.detail)
        self.assertEqual(b"out", failures.output([], Finished(End.EXITED, 0, b"out", b"w")))


class TestVersion(testtools.TestCase):
    """Which versions of Helm can be used."""

    def test_supported(self) -> None:
        for text, plain in (
            ("v3.17.0", "3.17.0"),
            ("v3.21.4\n", "3.21.4"),
            ("v4.1.1", "4.1.1"),
            ("v4.2.4+g123", "4.2.4"),
        ):
            self.assertEqual(plain, client.supported(text))

    def test_not_supported(self) -> None:
        for text in ("v2.17.0", "v3.16.4", "v4.0.0", "v4.1.0", "v5.0.0", "", "nonsense"):
            error = self.assertRaises(errors.HelmUnusable, client.supported, text)
            self.assertIn(text or "unknown version", str(error))
            self.assertIn("3.17", str(error))


class TestReleaseSecrets(testtools.TestCase):
    """A revision as Helm keeps it."""

    def test_what_it_says(self) -> None:
        live = releases.decode(secret(7, "deployed", {"a": 1}))
        self.assertEqual(
            (suite.RELEASE, NAMESPACE, 7, "deployed", {"a": 1}),
            (live.name, live.namespace, live.revision, live.status, live.values),
        )
        self.assertEqual(
            ("openstack-cluster", "1.0.0", names.CHART_FAMILY),
            (live.chart_name, live.chart_version, live.chart_family),
        )

    def test_no_values_are_empty_values(self) -> None:
        self.assertEqual({}, releases.decode(secret(1, "deployed", None)).values)

    def test_a_foreign_chart_has_no_family(self) -> None:
        self.assertEqual(
            "", releases.decode(secret(1, "deployed", {}, annotations={})).chart_family
        )

    def test_an_uncompressed_one(self) -> None:
        self.assertEqual(2, releases.decode(secret(2, "deployed", {}, pack=bytes)).revision)

    def test_the_newest_is_by_number(self) -> None:
        found = releases.newest(secret(number, "superseded", {}) for number in (2, 11, 9))
        self.assertEqual(11, releases.revision(found or {}))
        self.assertIsNone(releases.newest([]))

    @given(st.binary())
    def test_garbage_is_refused_without_quoting_it(self, garbage: bytes) -> None:
        broken = secret(1, "deployed", {})
        broken["data"]["release"] = base64.b64encode(base64.b64encode(garbage)).decode()
        error = self.assertRaises(errors.HelmRefused, releases.decode, broken)
        self.assertIn("sh.helm.release.v1", error.detail)

    def test_other_garbage(self) -> None:
        for data in ({}, {"release": "&"}, {"release": None}):
            broken = {**secret(1, "deployed", {}), "data": data}
            self.assertRaises(errors.HelmRefused, releases.decode, broken)


class TestEnvironment(testtools.TestCase):
    """What helm sees of the conductor's environment."""

    def test_what_would_mislead_helm_is_gone(self) -> None:
        own = {
            "PATH": "/bin",
            "HOME": "/h",
            "HELM_CACHE_HOME": "/c",
            "HELM_NAMESPACE": "x",
            "HELM_KUBECONTEXT": "x",
            "HELM_KUBETOKEN": "x",
            "HELM_DRIVER": "memory",
            "KUBECONFIG": "/other",
        }
        kept = {"PATH": "/bin", "HOME": "/h", "HELM_CACHE_HOME": "/c"}
        self.assertEqual({**kept, "KUBECONFIG": "/k"}, command.environment(own, "/k"))
        self.assertEqual(kept, command.environment(own, None))


class TestProcess(testtools.TestCase):
    """How helm is run: a stand-in for the binary writes down what it got."""

    def setUp(self) -> None:
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.chart = suite.write_chart(self.directory / "chart")
        self.kube = FakeKube()
        self.kube.kubeconfig_path = "/the/kubeconfig"
        self.kube.apply(names.NAMESPACE, {"metadata": {"name": NAMESPACE}})
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
                self.kube.put(names.SECRET, secret(revision, status, values))

        self.kube.before = appear

    def test_values_go_by_stdin_and_nothing_secret_by_argv(self) -> None:
        self.writes(1, {"key": "value"})
        done = self.helm().apply(NAMESPACE, suite.RELEASE, self.chart, {"key": "value"})
        self.assertEqual(1, done.revision)
        arguments = self.written("argv").splitlines()
        self.assertEqual(["upgrade", suite.RELEASE, self.chart.path], arguments[:3])
        for flag, value in (
            ("--namespace", NAMESPACE),
            ("--values", "-"),
            ("--timeout", "20s"),
            ("--history-max", "10"),
        ):
            self.assertEqual(value, arguments[arguments.index(flag) + 1])
        self.assertIn("--install", arguments)
        self.assertIn("--reset-values", arguments)
        for unwanted in ("--wait", "--atomic", "--rollback-on-failure", "--create-namespace"):
            self.assertNotIn(unwanted, arguments)
        self.assertEqual({"key": "value"}, json.loads(self.written("stdin")))
        self.assertIn("KUBECONFIG=/the/kubeconfig", self.written("env"))

    def test_a_missing_helm(self) -> None:
        for executable in ("no-such-helm", str(self.directory / "nothing")):
            error = self.assertRaises(
                errors.HelmUnusable,
                self.helm(executable).apply,
                NAMESPACE,
                suite.RELEASE,
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
            lambda: self.helm().apply(NAMESPACE, suite.RELEASE, self.chart, {}),
            lambda: self.helm().pull("x", repository=None, version="1", into=self.directory),
        ):
            error = self.assertRaises(errors.HelmUnusable, call)
            self.assertIn("v3.16.0", str(error))
        self.assertFalse((self.directory / "argv").exists())

    def test_a_helm_that_hangs_is_ended(self) -> None:
        self.stand_in("exec sleep 100")
        slow = command.SupervisedCommand(
            str(self.executable), kubeconfig=None, timeout=0.5 - command.MARGIN
        )
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
            NAMESPACE,
            suite.RELEASE,
            self.chart,
            {},
            hold=Lost(begun.exists),
        )
        self.assertIn("lock was lost", error.detail)
        self.assertFalse((self.directory / "ended").exists())

    def test_a_lock_that_was_lost_before_starts_nothing(self) -> None:
        self.assertRaises(
            errors.Busy,
            self.helm().apply,
            NAMESPACE,
            suite.RELEASE,
            self.chart,
            {},
            hold=Lost(lambda: True),
        )
        self.assertFalse((self.directory / "argv").exists())

    def test_an_interrupted_revision_is_forgotten_and_no_other(self) -> None:
        self.kube.put(names.SECRET, secret(1, "superseded", {}))
        self.kube.put(names.SECRET, secret(2, "deployed", {"a": 1}))
        self.kube.put(names.SECRET, secret(3, "pending-upgrade", {"a": 2}))
        self.writes(3, {"a": 3})
        done = self.helm().apply(NAMESPACE, suite.RELEASE, self.chart, {"a": 3})
        self.assertEqual((3, {"a": 3}), (done.revision, done.values))
        deleted = [name for verb, _, _, name in self.kube.calls if verb == "delete"]
        self.assertEqual([f"sh.helm.release.v1.{suite.RELEASE}.v3"], deleted)

    def test_healthy_and_failed_revisions_are_kept(self) -> None:
        for status in ("deployed", "failed", "superseded", "uninstalled"):
            (self.directory / "ended").unlink(missing_ok=True)
            self.kube.put(names.SECRET, secret(4, status, {}))
            self.writes(5, {})
            self.helm().apply(NAMESPACE, suite.RELEASE, self.chart, {})
            self.kube.remove(names.SECRET, NAMESPACE, f"sh.helm.release.v1.{suite.RELEASE}.v5")
        self.assertEqual([], [call for call in self.kube.calls if call[0] == "delete"])

    def test_a_revision_of_somebody_else_is_not_taken_for_ours(self) -> None:
        for revision, values in ((2, {"a": 1}), (1, {"a": 2})):
            (self.directory / "ended").unlink(missing_ok=True)
            self.writes(revision, values)
            self.assertRaises(
                errors.Busy, self.helm().apply, NAMESPACE, suite.RELEASE, self.chart, {"a": 1}
            )
            name = f"sh.helm.release.v1.{suite.RELEASE}.v{revision}"
            self.kube.remove(names.SECRET, NAMESPACE, name)

    def test_a_release_that_vanished_is_interrupted(self) -> None:
        self.assertRaises(
            errors.HelmInterrupted,
            self.helm().apply,
            NAMESPACE,
            suite.RELEASE,
            self.chart,
            {},
        )

    def test_output_that_is_not_json(self) -> None:
        for output in ("nonsense", "{", ""):
            self.stand_in(f"echo '{output}'")
            self.assertRaises(
                errors.HelmInterrupted,
                self.helm().apply,
                NAMESPACE,
                suite.RELEASE,
                self.chart,
                {},
            )

    def test_uninstall_of_what_went_meanwhile(self) -> None:
        self.kube.put(names.SECRET, secret(1, "deployed", {}))
        self.stand_in(
            "echo 'Error: uninstall: Release not loaded: x: release: not found' >&2; exit 1"
        )
        self.helm().uninstall(NAMESPACE, suite.RELEASE)
        self.assertEqual(["uninstall", suite.RELEASE], self.written("argv").splitlines()[:2])

    def test_no_release_needs_no_helm(self) -> None:
        self.helm("no-such-helm").uninstall(NAMESPACE, suite.RELEASE)
        self.assertIsNone(self.helm("no-such-helm").live(NAMESPACE, suite.RELEASE))

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
        done = self.helm().apply(NAMESPACE, suite.RELEASE, self.chart, values)
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


class Lost:
    """A hold that is lost when something has happened."""

    def __init__(self, happened: Any) -> None:
        self.lost = happened


def secret(
    revision: int,
    status: str,
    values: Json | None,
    *,
    annotations: Json | None = None,
    pack: Any = gzip.compress,
) -> Json:
    """The Secret of a revision, as Helm writes it."""
    if annotations is None:
        annotations = {names.CHART_FAMILY_ANNOTATION: names.CHART_FAMILY}
    release = {
        "name": suite.RELEASE,
        "namespace": NAMESPACE,
        "version": revision,
        "info": {"status": status},
        "config": values,
        "chart": {
            "metadata": {
                "name": "openstack-cluster",
                "version": "1.0.0",
                "annotations": annotations,
            }
        },
    }
    packed = base64.b64encode(pack(json.dumps(release).encode()))
    return {
        "type": "helm.sh/release.v1",
        "metadata": {
            "name": f"sh.helm.release.v1.{suite.RELEASE}.v{revision}",
            "namespace": NAMESPACE,
            "labels": {
                "owner": "helm",
                "name": suite.RELEASE,
                "status": status,
                "version": str(revision),
            },
        },
        "data": {"release": base64.b64encode(packed).decode()},
    }
