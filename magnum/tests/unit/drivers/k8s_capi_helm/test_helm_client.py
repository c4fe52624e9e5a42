# SPDX-License-Identifier: Apache-2.0
"""Helm: the promises in memory, the words of its stderr, its Secrets, its process."""

from __future__ import annotations

import base64
from collections.abc import Callable
import pathlib
import tempfile
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
import testtools

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.helm import (
    cli,
    client,
    failures,
    recovery,
    release_secret,
    versions,
)
from magnum.drivers.k8s_capi_helm.helm.process import ProcessOutcome, ProcessResult
from magnum.drivers.k8s_capi_helm.model import LiveRelease, names
from magnum.drivers.k8s_capi_helm.status.texts import issue
from magnum.tests.unit.drivers.k8s_capi_helm.fakes import FakeHelm, FakeKube
from magnum.tests.unit.drivers.k8s_capi_helm.suites import helm as suites_helm

#: What Helm 3.21.4 and 4.2.4 wrote to stderr against a real API server, and what it means.
WORDS: tuple[tuple[str, type[errors.DriverError], str], ...] = (
    (
        "Error: values don't meet the specifications of the schema(s) in the following chart(s):\n"
        "openstack-cluster:\n- at '/text': got number, want string\n",
        errors.ValuesRefused,
        "cluster. It reports: text: got number, want string",
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
        "'default.cluster.x-k8s.io'",
    ),
    (
        "Error: UPGRADE FAILED: etcdserver: request timed out",
        errors.HelmInterrupted,
        "did not answer",
    ),
    (
        "Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress",
        errors.Busy,
        "came in between",
    ),
    (
        'Error: create: failed to create: secrets "sh.helm.release.v1.x.v3" already exists',
        errors.Busy,
        "came in between",
    ),
    ("Error: UPGRADE FAILED: release: already exists", errors.Busy, "came in between"),
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
    (
        "Error: server-side apply failed for object n/x apps/v1, Kind=Deployment: failed to create "
        "typed patch object (n/x; apps/v1, Kind=Deployment): .data: field not declared in schema",
        errors.HelmRefused,
        "refused a part of this cluster. It answered: .data: field not declared in schema",
    ),
    (
        'level=WARN msg="upgrade failed" name=x error="failed to create resource: Deployment.apps '
        '\\"x\\" is invalid: [spec.selector: Required value]"\nError: UPGRADE FAILED: failed to '
        'create resource: Deployment.apps "x" is invalid: [spec.selector: Required value]',
        errors.HelmRefused,
        'It answered: Deployment.apps "x" is invalid: [spec.selector: Required value]',
    ),
    (
        "Error: unable to detect chart at /tmp/Chart.yaml: open /tmp/Chart.yaml: no such file or "
        "directory",
        errors.ChartNotFound,
        "capi_helm_chart_version",
    ),
    ("/opt/helm: Exec format error", errors.HelmUnusable, "install Helm"),
    ("something that nobody has seen before", errors.HelmRefused, "log of the Magnum conductor"),
)


class TestFakeHelm(suites_helm.HelmTests, testtools.TestCase):
    """Helm in memory keeps the promises of the real one."""

    def setUp(self) -> None:
        super().setUp()
        self.kube, self.helm = FakeKube(), FakeHelm()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.chart = suites_helm.write_chart(pathlib.Path(directory.name) / "chart")

    def lose(self, namespace: str, revision: int) -> None:
        kept = dict.fromkeys(range(1, revision), "superseded")
        self.helm.show(namespace, suites_helm.RELEASE, kept)


class TestWords(testtools.TestCase):
    """Families of stderr texts."""

    def test_known_words(self) -> None:
        for words, kind, sentence in WORDS:
            error = failures.error_of(words, "detail")
            self.assertIs(kind, type(error), words)
            self.assertIn(sentence, str(error))
            self.assertEqual("detail", error.detail)

    def test_what_is_waited_for_fits_a_reason(self) -> None:
        checked = 0
        for words, kind, _ in WORDS:
            error = failures.error_of(words, "detail")
            if kind.retryable:
                line = issue.Issue(str(error), error.cause).line()
                self.assertTrue(line.endswith(str(error)), line)
                checked += 1
        self.assertGreater(checked, 5)

    def test_a_release_that_is_not_there_stays_in_the_house(self) -> None:
        error = failures.error_of("Error: uninstall: Release not loaded: x: release: not found", "")
        self.assertIsInstance(error, failures.ReleaseAbsent)

    def test_keys_that_a_schema_refuses(self) -> None:
        head = (
            "Error: values don't meet the specifications of the schema(s) in the following "
            "chart(s):\n"
        )
        newer = (
            "openstack-cluster:\n- at '/apiServer': validation failed\n"
            "  - at '/apiServer/port': got string, want integer\n"
            "  - at '/apiServer': additional properties 'por' not allowed\n"
            "- at '': additional properties 'foo', 'bar' not allowed\n"
            "addons:\n- at '/cni': additional properties 'typ' not allowed\n"
        )
        older = (
            "openstack-cluster:\n- (root): Additional property foo is not allowed\n"
            "- apiServer.port: Invalid type. Expected: integer, given: string\n"
        )
        for words, keys in (
            (
                newer,
                "apiServer.port apiServer.por foo bar addons.cni.typ",
            ),
            (older, "foo apiServer.port"),
        ):
            error = failures.error_of(head + words, "")
            self.assertIsInstance(error, errors.ValuesRefused)
            self.assertEqual(keys, " ".join(".".join(path) for path in error.keys))
            self.assertIn("apiServer.port: ", str(error))

    @given(st.text())
    def test_any_words_are_an_error_with_a_bounded_line(self, words: str) -> None:
        sentence = str(failures.error_of(f"denied the request: {words}", words))
        self.assertLess(len(sentence), 700)
        self.assertNotIn("\n", sentence)

    def test_the_password_of_a_repository_is_not_told(self) -> None:
        url = "https://me:pa:ss@charts.example.org/a"
        words = f'Error: looks like "{url}" is not a valid chart repository'.encode()
        finished = ProcessResult(ProcessOutcome.EXITED, 1, b"", words)
        error = self.assertRaises(errors.DriverError, failures.output, ["pull", "a"], finished)
        self.assertNotIn("pa:ss", f"{error} {error.detail}")
        self.assertIn("https://charts.example.org/a", error.detail)
        self.assertEqual(
            "pull a --repo https://b/c@d",
            failures.without_passwords("pull a --repo https://e:f@b/c@d"),
        )
        self.assertEqual("https://b/c", failures.without_passwords("https://e:f@g@b/c"))

    def test_how_a_run_ended(self) -> None:
        for end, code, kind in (
            (ProcessOutcome.STOPPED, -9, errors.HelmInterrupted),
            (ProcessOutcome.TIMED_OUT, 1, errors.HelmInterrupted),
            (ProcessOutcome.TIMED_OUT, 0, errors.HelmInterrupted),
            (ProcessOutcome.EXITED, -9, errors.HelmInterrupted),
            (ProcessOutcome.EXITED, 1, errors.HelmRefused),
        ):
            error = self.assertRaises(
                kind, failures.output, ["upgrade", "x"], ProcessResult(end, code, b"", b"words")
            )
            self.assertIn("helm upgrade x", error.detail)
            self.assertIn("words", error.detail)
        self.assertEqual(
            b"out", failures.output([], ProcessResult(ProcessOutcome.EXITED, 0, b"out", b"w"))
        )

    def test_a_change_that_took_too_long_names_the_option(self) -> None:
        late = ProcessResult(ProcessOutcome.TIMED_OUT, -15, b"", b"")
        for verb, is_named in (("upgrade", True), ("uninstall", True), ("pull", False)):
            error = self.assertRaises(errors.HelmInterrupted, failures.output, [verb, "x"], late)
            self.assertEqual(is_named, "[capi_helm] helm_timeout" in error.detail)


class TestVersion(testtools.TestCase):
    """Which versions of Helm can be used."""

    def test_supported(self) -> None:
        for text, plain in (
            ("v3.17.0", "3.17.0"),
            ("v3.21.4\n", "3.21.4"),
            ("v4.1.1", "4.1.1"),
            ("v4.2.4+g123", "4.2.4"),
        ):
            self.assertEqual(plain, versions.supported_version(text))

    def test_not_supported(self) -> None:
        for text in ("v2.17.0", "v3.16.4", "v4.0.0", "v4.1.0", "v5.0.0", "", "nonsense"):
            error = self.assertRaises(errors.HelmUnusable, versions.supported_version, text)
            self.assertIn(text or "It is unknown", str(error))
            self.assertIn("3.17", str(error))


class TestReleaseSecrets(testtools.TestCase):
    """A revision as Helm keeps it."""

    def test_what_it_says(self) -> None:
        live = release_secret.decode(suites_helm.secret(7, "deployed", {"a": 1}))
        self.assertEqual(
            (suites_helm.RELEASE, suites_helm.NAMESPACE, 7, "deployed", {"a": 1}),
            (live.name, live.namespace, live.revision, live.status, live.values),
        )
        self.assertEqual(
            ("openstack-cluster", "1.0.0", names.CHART_FAMILY),
            (live.chart_name, live.chart_version, live.chart_family),
        )

    def test_no_values_are_empty_values(self) -> None:
        self.assertEqual({}, release_secret.decode(suites_helm.secret(1, "deployed", None)).values)

    def test_a_foreign_chart_has_no_family(self) -> None:
        self.assertEqual(
            "",
            release_secret.decode(
                suites_helm.secret(1, "deployed", {}, annotations={})
            ).chart_family,
        )

    def test_whether_a_tenants_registry_reaches_its_autoscaler(self) -> None:
        hole = "{{ .Values.global.imageRegistryPrefix }}/"
        for place, text, expected in (
            ("templates/autoscaler/_wanted.tpl", hole, True),
            ("templates/autoscaler/_wanted.tpl", "{{ .Values.autoscaler.image }}", False),
            ("templates/machines/_containerd.tpl", hole, False),
        ):
            secret = suites_helm.secret(1, "deployed", {}, templates={place: text})
            self.assertEqual(expected, release_secret.decode(secret).takes_prefix, place)

    def test_an_uncompressed_one(self) -> None:
        self.assertEqual(
            2, release_secret.decode(suites_helm.secret(2, "deployed", {}, pack=bytes)).revision
        )

    def test_the_newest_is_by_number(self) -> None:
        found = release_secret.newest_revision(
            suites_helm.secret(number, "superseded", {}) for number in (2, 11, 9)
        )
        self.assertEqual(11, release_secret.revision(found or {}))
        self.assertIsNone(release_secret.newest_revision([]))

    def test_the_newest_that_was_applied_as_a_whole(self) -> None:
        kube, place = FakeKube(), (suites_helm.NAMESPACE, suites_helm.RELEASE)
        helm = client.HelmClient(kube, timeout=1.0)
        statuses = ("superseded", "deployed", "failed", "superseded")
        for number, status, whole in zip(range(1, 5), statuses, (1, 2, 2, 4), strict=True):
            kube.put(names.SECRET, suites_helm.secret(number, status, {}))
            live = helm.live(*place)
            assert live is not None
            self.assertEqual((status, number, whole), (live.status, live.revision, live.whole))

    @given(st.binary())
    def test_garbage_is_refused_without_quoting_it(self, garbage: bytes) -> None:
        broken = suites_helm.secret(1, "deployed", {})
        broken["data"]["release"] = base64.b64encode(base64.b64encode(garbage)).decode()
        error = self.assertRaises(errors.HelmRefused, release_secret.decode, broken)
        self.assertIn("sh.helm.release.v1", error.detail)

    def test_other_garbage(self) -> None:
        for data in ({}, {"release": "&"}, {"release": None}):
            broken = {**suites_helm.secret(1, "deployed", {}), "data": data}
            self.assertRaises(errors.HelmRefused, release_secret.decode, broken)


class TestHistory(testtools.TestCase):
    """Of a long history only the newest revision is read as a whole."""

    PLACE = (suites_helm.NAMESPACE, suites_helm.RELEASE)

    def setUp(self) -> None:
        super().setUp()
        self.kube = FakeKube()
        self.helm = client.HelmClient(self.kube, timeout=1.0)
        for number in range(1, 11):
            self.put(number, "deployed" if number == 10 else "superseded")

    def put(self, number: int, status: str) -> None:
        self.kube.put(names.SECRET, suites_helm.secret(number, status, {"n": number}))

    def name(self, number: int) -> str:
        return f"sh.helm.release.v1.{suites_helm.RELEASE}.v{number}"

    def requests(self) -> list[tuple[str, str]]:
        """What was asked of Secrets since the last time."""
        found = [(verb, name) for verb, kind, _, name in self.kube.calls if kind == "Secret"]
        self.kube.calls.clear()
        return found

    def meanwhile(self, act: Callable[[], None], *, once: bool = True) -> None:
        """Let somebody change the release between both requests."""

        def before(verb: str, kind: names.Kind, name: str) -> None:
            if (verb, kind) == ("get", names.SECRET):
                if once:
                    self.kube.before = None
                act()

        self.kube.before = before

    def test_the_newest_is_read_by_its_name(self) -> None:
        for _ in range(2):
            live = self.helm.live(*self.PLACE)
            assert live is not None
            self.assertEqual((10, "deployed", 10), (live.revision, live.status, live.whole))
            self.assertEqual({"n": 10}, live.values)
            self.assertEqual([("list metadata", ""), ("get", self.name(10))], self.requests())

    def test_a_short_history_is_one_request(self) -> None:
        for number in range(1, 9):
            self.kube.remove(names.SECRET, suites_helm.NAMESPACE, self.name(number))
        first = self.helm.live(*self.PLACE)
        self.assertEqual([("list metadata", ""), ("get", self.name(10))], self.requests())
        self.assertEqual(first, self.helm.live(*self.PLACE))
        self.assertEqual([("list", "")], self.requests())
        self.put(11, "failed")
        live = self.helm.live(*self.PLACE)
        assert live is not None
        self.assertEqual((11, "failed", 10), (live.revision, live.status, live.whole))
        self.requests()
        self.assertEqual(live, self.helm.live(*self.PLACE))
        self.assertEqual([("list metadata", ""), ("get", self.name(11))], self.requests())

    def test_both_requests_tell_of_one_moment(self) -> None:
        def end() -> None:
            self.put(10, "superseded")
            self.put(11, "deployed")

        self.meanwhile(end)
        live = self.helm.live(*self.PLACE)
        assert live is not None
        self.assertEqual((11, "deployed", 11), (live.revision, live.status, live.whole))

    def test_one_that_goes_meanwhile_is_not_the_newest(self) -> None:
        def lose() -> None:
            self.kube.remove(names.SECRET, suites_helm.NAMESPACE, self.name(10))

        self.meanwhile(lose)
        live = self.helm.live(*self.PLACE)
        assert live is not None
        self.assertEqual((9, "superseded", 9), (live.revision, live.status, live.whole))

    def test_one_that_changes_each_time_is_read_with_all(self) -> None:
        self.meanwhile(lambda: self.put(10, "deployed"), once=False)
        live = self.helm.live(*self.PLACE)
        assert live is not None
        self.assertEqual((10, "deployed", 10), (live.revision, live.status, live.whole))
        self.assertEqual(("list", ""), self.requests()[-1])

    def test_an_older_one_that_is_marked_counts(self) -> None:
        marked = suites_helm.secret(8, "failed", {})
        marked["metadata"]["annotations"] = {recovery.MARK: "pending-upgrade"}
        self.kube.put(names.SECRET, marked)
        live = self.helm.live(*self.PLACE)
        assert live is not None
        self.assertEqual((10, recovery.HALF_DONE), (live.revision, live.status))

    def other(self, release: str, number: int, status: str) -> dict[str, Any]:
        """The Secret of another release of the namespace."""
        found = suites_helm.secret(number, status, {"of": release}, release_name=release)
        self.kube.put(names.SECRET, found)
        return found

    def test_all_deployed_ones_of_a_namespace_are_two_requests(self) -> None:
        for number in (1, 2, 3):
            self.other("second", number, "deployed" if number == 3 else "superseded")
        self.other("upgrading", 1, "deployed")
        self.other("upgrading", 2, "pending-upgrade")
        self.other("late", 1, "deployed")
        self.other("late", 2, "deployed")
        found = self.helm.deployed_releases(suites_helm.NAMESPACE)
        self.assertEqual([("list metadata", ""), ("list", "")], self.requests())
        self.assertEqual({suites_helm.RELEASE, "second", "late"}, set(found))
        for release, live in found.items():
            self.assertEqual(self.helm.live(suites_helm.NAMESPACE, release), live)
        self.assertEqual((3, 3, {"of": "second"}), self.said(found["second"]))
        self.assertEqual(recovery.HALF_DONE, found["late"].status)

    @staticmethod
    def said(live: LiveRelease) -> tuple[int, int, Any]:
        return live.revision, live.whole, live.values

    def test_one_that_changes_between_both_lists_is_left_out(self) -> None:
        self.other("second", 1, "deployed")
        for status in ("deployed", "superseded"):

            def change(verb: str, kind: names.Kind, name: str) -> None:
                if (verb, kind) == ("list", names.SECRET):
                    self.kube.before = None
                    self.put(10, status)  # noqa: B023

            self.kube.before = change
            self.assertEqual({"second"}, set(self.helm.deployed_releases(suites_helm.NAMESPACE)))

    def test_one_that_cannot_be_read_is_left_out(self) -> None:
        broken = self.other("broken", 1, "deployed")
        self.kube.put(names.SECRET, {**broken, "data": {"release": "AAAA"}})
        found = self.helm.deployed_releases(suites_helm.NAMESPACE)
        self.assertEqual({suites_helm.RELEASE}, set(found))

    def test_whether_there_is_a_release_needs_no_data(self) -> None:
        self.kube.restore()
        self.helm.uninstall(*self.PLACE)
        self.assertEqual([("list metadata", "")], self.requests())
        self.assertIsNone(self.helm.live(*self.PLACE))
        self.assertEqual([("list metadata", "")], self.requests())


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
        found = cli.environment(own, "/k")
        found.pop("GOGC")
        self.assertEqual({**kept, "KUBECONFIG": "/k"}, found)
        self.assertNotIn("KUBECONFIG", cli.environment(own, None))

    def test_an_operators_garbage_collector_stays(self) -> None:
        self.assertGreater(int(cli.environment({}, None)["GOGC"]), 100)
        self.assertEqual("50", cli.environment({"GOGC": "50"}, None)["GOGC"])
