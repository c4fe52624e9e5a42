# SPDX-License-Identifier: Apache-2.0
"""Helm on a real kube-apiserver: its promises, its refusals in its own words, its recovery."""

from __future__ import annotations

import base64
from collections.abc import Callable
import gzip
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any
import uuid

import testtools
import yaml

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.helm import HelmClient
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.lease import HeldLease, ReleaseLeases
from magnum.drivers.k8s_capi_helm.model import Json, names
from magnum.tests.functional.k8s_capi_helm import envtest
from magnum.tests.functional.k8s_capi_helm.charts import rendering
from magnum.tests.unit.drivers.k8s_capi_helm.suites import helm as suites_helm

POLICY = names.Kind(
    "admissionregistration.k8s.io",
    "ValidatingAdmissionPolicy",
    "validatingadmissionpolicies",
    ("v1",),
    namespaced=False,
)
BINDING = names.Kind(
    "admissionregistration.k8s.io",
    "ValidatingAdmissionPolicyBinding",
    "validatingadmissionpolicybindings",
    ("v1",),
    namespaced=False,
)


class HelmCase(testtools.TestCase):
    """A real helm, a real API server, and a chart in a directory."""

    def setUp(self) -> None:
        super().setUp()
        self.kube = KubeClient(envtest.kubeconfig())
        self.helm = HelmClient(self.kube, executable=envtest.helm(), timeout=60)
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.chart = suites_helm.write_chart(self.directory / "chart")


class TestHelmClient(suites_helm.HelmTests, HelmCase):
    """The promises, kept by the real Helm."""

    def test_a_field_that_somebody_else_has_set_is_as_the_values_say(self) -> None:
        namespace = self.make_namespace()
        self.helm.apply(namespace, suites_helm.RELEASE, self.chart, {"text": "one"})
        other = {"data": {"text": "theirs"}}
        self.kube.patch(suites_helm.CONFIG_MAP, namespace, suites_helm.RELEASE, other)
        self.helm.apply(namespace, suites_helm.RELEASE, self.chart, {"text": "two"})
        found = self.kube.get(suites_helm.CONFIG_MAP, namespace, suites_helm.RELEASE)
        self.assertEqual({"text": "two"}, found["data"])

    def test_a_preview_is_what_would_be_applied(self) -> None:
        namespace = self.make_namespace()
        text = "\U0001f600 a\u2028b\u2029c\ufeffd"
        (found,) = self.helm.preview(namespace, suites_helm.RELEASE, self.chart, {"text": text})
        self.assertEqual(
            ("ConfigMap", suites_helm.RELEASE, {"text": text}),
            (found["kind"], found["metadata"]["name"], found["data"]),
        )
        self.assertIsNone(self.kube.get(suites_helm.CONFIG_MAP, namespace, suites_helm.RELEASE))

    def test_control_characters_are_kept_or_refused(self) -> None:
        """The parser of Helm 3.17 takes none of them, those of later releases all of these."""
        namespace, text = self.make_namespace(), "a\x85b\x7fc\x9fd"
        try:
            found = self.helm.preview(namespace, suites_helm.RELEASE, self.chart, {"text": text})
        except errors.HelmRefused as error:
            self.assertIn("control characters are not allowed", str(error))
        else:
            self.assertEqual([{"text": text}], [one["data"] for one in found])

    def test_what_is_taken_over_is_the_release_s(self) -> None:
        namespace = self.make_namespace()
        place = {"name": suites_helm.RELEASE, "namespace": namespace}
        self.kube.create(suites_helm.CONFIG_MAP, {"metadata": place, "data": {"text": "one"}})
        self.helm.apply(namespace, suites_helm.RELEASE, self.chart, {"text": "one"}, adopt=True)
        found = self.kube.get(suites_helm.CONFIG_MAP, namespace, suites_helm.RELEASE)
        owner = found["metadata"]["annotations"]["meta.helm.sh/release-name"]
        self.assertEqual(suites_helm.RELEASE, owner)


class TestHelm4(TestHelmClient):
    """The same, kept by the next generation of Helm."""

    def setUp(self) -> None:
        super().setUp()
        self.helm = HelmClient(self.kube, executable=rendering.helm4(), timeout=60)

    def test_a_release_that_helm_3_has_made_stays_what_it_is(self) -> None:
        namespace = self.make_namespace()
        older = HelmClient(self.kube, executable=envtest.helm(), timeout=60)
        older.apply(namespace, suites_helm.RELEASE, self.chart, {"text": "one"})
        self.helm.apply(namespace, suites_helm.RELEASE, self.chart, {"text": "two"})
        done = older.apply(namespace, suites_helm.RELEASE, self.chart, {"text": "three"})
        found = self.kube.get(suites_helm.CONFIG_MAP, namespace, suites_helm.RELEASE)
        self.assertEqual((3, {"text": "three"}), (done.revision, found["data"]))


class TestRefusals(suites_helm.HelmSuite, HelmCase):
    """What Helm and the API server say no to comes out as a sentence."""

    def refused(self, values: Json, kind: type[errors.DriverError] = errors.HelmRefused) -> Any:
        namespace = self.make_namespace()
        return self.assertRaises(
            kind, self.helm.apply, namespace, suites_helm.RELEASE, self.chart, values
        )

    def test_a_value_against_the_schema_is_named(self) -> None:
        error = self.refused({"text": 7})
        # The second one is of Helm 3.17, which has another library for schemas.
        self.assertRegex(
            str(error), ": text: (got number, want string|Invalid type. Expected: string, given: i)"
        )
        self.assertNotIn(str(self.directory), str(error))
        self.assertFalse(error.retryable)

    def test_a_failing_template_says_why(self) -> None:
        self.assertIn("the reason", str(self.refused({"fail": "this is the reason"})))

    def test_a_kind_that_is_not_installed_is_named(self) -> None:
        error = self.refused({"apiVersion": "absent.example.org/v1", "kind": "Absent"})
        self.assertIn("'Absent'", str(error))

    def test_an_invalid_object_says_why(self) -> None:
        error = self.refused({"apiVersion": "apps/v1", "kind": "Deployment", "text": "a"})
        # Helm 3 comes to what is missing, Helm 4 stops at what is too much.
        self.assertRegex(str(error), r"spec\.selector: Required|\.data: field not declared")

    def test_what_an_admission_policy_denies_says_why(self) -> None:
        self.deny("denied-by-policy", "machines may not be named so")
        error = self.refused({"text": "denied-by-policy"})
        self.assertIn("machines may not be named so", str(error))

    def test_an_object_of_somebody_else_is_left_alone(self) -> None:
        namespace = self.make_namespace()
        self.kube.create(
            suites_helm.CONFIG_MAP,
            {
                "metadata": {"name": suites_helm.RELEASE, "namespace": namespace},
                "data": {"text": "x"},
            },
        )
        error = self.assertRaises(
            errors.HelmRefused,
            self.helm.apply,
            namespace,
            suites_helm.RELEASE,
            self.chart,
            {"text": "a"},
        )
        self.assertIn("belongs to something else", str(error))
        found = self.kube.get(suites_helm.CONFIG_MAP, namespace, suites_helm.RELEASE)
        self.assertEqual({"text": "x"}, found["data"])

    def test_a_missing_chart(self) -> None:
        chart = suites_helm.Chart("openstack-cluster", "1.0.0", str(self.directory / "nothing"))
        namespace = self.make_namespace()
        self.assertRaises(
            errors.ChartNotFound, self.helm.apply, namespace, suites_helm.RELEASE, chart, {}
        )

    def test_a_missing_namespace(self) -> None:
        error = self.assertRaises(
            errors.HelmRefused,
            self.helm.apply,
            "no-such-namespace",
            suites_helm.RELEASE,
            self.chart,
            {"text": "a"},
        )
        self.assertIn("'no-such-namespace'", str(error))

    def test_a_repository_that_is_away(self) -> None:
        for reference, repository in (
            ("openstack-cluster", "http://127.0.0.1:9"),
            ("oci://127.0.0.1:9/openstack-cluster", None),
        ):
            error = self.assertRaises(
                errors.HelmInterrupted,
                self.helm.pull,
                reference,
                repository=repository,
                version="1.0.0",
                into=self.directory,
            )
            self.assertIn("repository of the chart does not answer", str(error))

    def deny(self, text: str, message: str) -> None:
        """Let the API server deny ConfigMaps with this text."""
        name = "deny-for-a-test.example.org"
        rule = {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["CREATE", "UPDATE"],
            "resources": ["configmaps"],
        }
        self.kube.apply(
            POLICY,
            {
                "metadata": {"name": name},
                "spec": {
                    "failurePolicy": "Fail",
                    "matchConstraints": {"resourceRules": [rule]},
                    "validations": [
                        {
                            "expression": f"!has(object.data) || object.data.text != '{text}'",
                            "message": message,
                        }
                    ],
                },
            },
        )
        self.addCleanup(self.kube.delete, POLICY, None, name)
        self.kube.apply(
            BINDING,
            {
                "metadata": {"name": name},
                "spec": {"policyName": name, "validationActions": ["Deny"]},
            },
        )
        self.addCleanup(self.kube.delete, BINDING, None, name)
        # A policy holds some moments after it was made: wait until it does.
        namespace = self.make_namespace()
        probe = {"metadata": {"namespace": namespace}, "data": {"text": text}}
        for number in range(200):
            probe["metadata"]["name"] = f"probe-{number}"
            try:
                self.kube.create(suites_helm.CONFIG_MAP, probe)
            except errors.ManagementRefused:
                return
            threading.Event().wait(0.05)
        self.fail("the admission policy did not come into force")


class TestRecovery(suites_helm.HelmSuite, HelmCase):
    """A helm that died half-way leaves nothing that the next run does not finish."""

    def interrupt(self, namespace: str, status: str) -> None:
        """Make the newest revision look like one whose helm was killed."""
        secrets = self.kube.list(
            names.SECRET, namespace, {"owner": "helm", "name": suites_helm.RELEASE}
        )
        newest = max(secrets, key=lambda secret: int(secret["metadata"]["labels"]["version"]))
        packed = base64.b64decode(base64.b64decode(newest["data"]["release"]))
        release = json.loads(gzip.decompress(packed))
        release["info"]["status"] = status
        packed = base64.b64encode(gzip.compress(json.dumps(release).encode()))
        newest["data"]["release"] = base64.b64encode(packed).decode()
        newest["metadata"]["labels"]["status"] = status
        self.kube.replace(names.SECRET, newest)

    def object_uid(self, namespace: str) -> str:
        found = self.kube.get(suites_helm.CONFIG_MAP, namespace, suites_helm.RELEASE)
        uid: str = found["metadata"]["uid"]
        return uid

    def test_an_interrupted_installation_keeps_its_objects(self) -> None:
        namespace = self.make_namespace()
        self.helm.apply(namespace, suites_helm.RELEASE, self.chart, {"text": "a"})
        self.interrupt(namespace, "pending-install")
        before = self.object_uid(namespace)
        done = self.helm.apply(namespace, suites_helm.RELEASE, self.chart, {"text": "b"})
        self.assertEqual((2, "deployed"), (done.revision, done.status))
        self.assertEqual(before, self.object_uid(namespace))
        found = self.kube.get(suites_helm.CONFIG_MAP, namespace, suites_helm.RELEASE)
        self.assertEqual({"text": "b"}, found["data"])

    def test_an_interrupted_upgrade_keeps_objects_and_history(self) -> None:
        for status in ("pending-upgrade", "pending-rollback"):
            namespace = self.make_namespace()
            self.helm.apply(namespace, suites_helm.RELEASE, self.chart, {"text": "a"})
            self.helm.apply(namespace, suites_helm.RELEASE, self.chart, {"text": "b"})
            self.interrupt(namespace, status)
            before = self.object_uid(namespace)
            done = self.helm.apply(namespace, suites_helm.RELEASE, self.chart, {"text": "c"})
            self.assertEqual((3, "deployed"), (done.revision, done.status))
            self.assertEqual(before, self.object_uid(namespace))

    def test_a_failed_first_installation_is_upgraded(self) -> None:
        namespace = self.make_namespace()
        self.assertRaises(
            errors.HelmRefused,
            self.helm.apply,
            namespace,
            suites_helm.RELEASE,
            self.chart,
            {"apiVersion": "apps/v1", "kind": "Deployment"},
        )
        self.assertEqual("failed", self.helm.live(namespace, suites_helm.RELEASE).status)
        done = self.helm.apply(namespace, suites_helm.RELEASE, self.chart, {"text": "a"})
        self.assertEqual("deployed", done.status)

    def test_an_interrupted_release_can_be_taken_away(self) -> None:
        for status in ("pending-install", "uninstalling", "failed"):
            namespace = self.make_namespace()
            self.helm.apply(namespace, suites_helm.RELEASE, self.chart, {"text": "a"})
            self.interrupt(namespace, status)
            self.helm.uninstall(namespace, suites_helm.RELEASE)
            self.assertIsNone(self.helm.live(namespace, suites_helm.RELEASE))
            self.assertIsNone(self.kube.get(suites_helm.CONFIG_MAP, namespace, suites_helm.RELEASE))

    def test_two_at_once_are_not_both_right(self) -> None:
        namespace = self.make_namespace()
        outcomes: list[Any] = []

        def apply(text: str) -> None:
            try:
                outcomes.append(
                    self.helm.apply(namespace, suites_helm.RELEASE, self.chart, {"text": text})
                )
            except errors.DriverError as error:
                outcomes.append(error)

        threads = [threading.Thread(target=apply, args=(text,)) for text in "ab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        wrong = [
            outcome
            for outcome in outcomes
            if isinstance(outcome, errors.DriverError) and not outcome.retryable
        ]
        self.assertEqual([], wrong)
        self.assertEqual(2, len(outcomes))
        last = self.helm.apply(namespace, suites_helm.RELEASE, self.chart, {"text": "c"})
        self.assertEqual(({"text": "c"}, "deployed"), (last.values, last.status))


#: A conductor that is in the middle of a helm run; killed by its test.
CONDUCTOR = """
import sys
from magnum.drivers.k8s_capi_helm.chart_store import archive
from magnum.drivers.k8s_capi_helm.helm import HelmClient
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
import pathlib
config, helm, chart, namespace, release = sys.argv[1:]
HelmClient(KubeClient(config), executable=helm, timeout=300).apply(
    namespace, release, archive.read_chart(pathlib.Path(chart)), {"text": "b", "hang": True}
)
"""


class TestInterruption(suites_helm.HelmSuite, HelmCase):
    """What becomes of a real helm that is in the middle of its run."""

    def status(self, namespace: str) -> str:
        live = self.helm.live(namespace, suites_helm.RELEASE)
        return live.status if live else ""

    def until(self, happened: Callable[[], bool], limit: float = 60) -> None:
        end = time.monotonic() + limit
        while not happened():
            if time.monotonic() > end:
                self.fail("it did not happen in time")
            threading.Event().wait(0.1)

    def helms_of(self, namespace: str) -> list[str]:
        """The processes that have the namespace among their arguments."""
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                arguments = entry.read_bytes().split(b"\0")
            except OSError:
                continue
            if namespace.encode() in arguments and b"upgrade" in arguments:
                found.append(entry.parent.name)
        return found

    def test_a_killed_conductor_takes_its_helm_along_and_the_next_one_goes_on(self) -> None:
        for first in (None, {"text": "a"}):
            namespace = self.make_namespace()
            if first is not None:
                self.helm.apply(namespace, suites_helm.RELEASE, self.chart, first)
            pending = "pending-install" if first is None else "pending-upgrade"
            conductor = subprocess.Popen(
                [
                    *(sys.executable, "-W", "ignore", "-c", CONDUCTOR),
                    *(envtest.kubeconfig(), envtest.helm(), self.chart.path),
                    *(namespace, suites_helm.RELEASE),
                ]
            )
            self.addCleanup(conductor.wait)
            self.addCleanup(conductor.kill)
            self.until(lambda ns=namespace, status=pending: self.status(ns) == status)
            self.assertEqual(1, len(self.helms_of(namespace)))
            conductor.kill()
            self.until(lambda ns=namespace: not self.helms_of(ns))
            self.assertEqual(pending, self.status(namespace))
            done = self.helm.apply(namespace, suites_helm.RELEASE, self.chart, {"text": "c"})
            self.assertEqual("deployed", done.status)
            found = self.kube.get(suites_helm.CONFIG_MAP, namespace, suites_helm.RELEASE)
            self.assertEqual({"text": "c"}, found["data"])

    def test_who_loses_the_lock_loses_helm(self) -> None:
        namespace = self.make_namespace()
        operations = ReleaseLeases(self.kube, holder="one", lease_duration=60)
        operations.open(namespace, suites_helm.RELEASE, cluster_uuid="u", project_id="p")
        failed: list[errors.DriverError] = []

        def work() -> None:
            try:
                with operations.acquire(namespace, suites_helm.RELEASE, wait=0) as hold:
                    holds.append(hold)
                    self.helm.apply(
                        namespace, suites_helm.RELEASE, self.chart, {"hang": True}, held_lock=hold
                    )
            except errors.DriverError as error:
                failed.append(error)

        holds: list[HeldLease] = []
        worker = threading.Thread(target=work)
        worker.start()
        self.until(lambda: self.status(namespace) == "pending-install")
        lease = self.kube.get(names.LEASE, namespace, names.lease(suites_helm.RELEASE))
        lease["spec"]["holderIdentity"] = "two/1"
        self.kube.replace(names.LEASE, lease)
        holds[0].renew()
        worker.join(60)
        self.assertEqual([errors.HelmInterrupted], [type(error) for error in failed])
        self.assertEqual([], self.helms_of(namespace))
        self.assertEqual("two/1", operations.read(namespace, suites_helm.RELEASE).holder)

    def test_helm_ends_by_its_own_timeout(self) -> None:
        namespace = self.make_namespace()
        hasty = HelmClient(self.kube, executable=envtest.helm(), timeout=2)
        error = self.assertRaises(
            errors.HelmInterrupted,
            hasty.apply,
            namespace,
            suites_helm.RELEASE,
            self.chart,
            {"hang": True},
        )
        self.assertTrue(error.retryable)
        done = self.helm.apply(namespace, suites_helm.RELEASE, self.chart, {"text": "a"})
        self.assertEqual("deployed", done.status)


class TestWithoutTheManagementCluster(HelmCase):
    """A management cluster that is away is neither a refusal nor an empty one."""

    def test_it_is_unreachable(self) -> None:
        here = pathlib.Path(envtest.kubeconfig())
        config = yaml.safe_load(here.read_text())
        [cluster] = config["clusters"]
        # Nobody listens on the discard port.
        cluster["cluster"] = {"server": "https://127.0.0.1:9"}
        away = here.with_name(f"{here.name}-of-nobody-{uuid.uuid4().hex[:8]}")
        away.write_text(yaml.safe_dump(config))
        self.addCleanup(away.unlink)
        helm = HelmClient(KubeClient(str(away), pause=0), executable=envtest.helm(), timeout=20)
        for call in (
            lambda: helm.live("n", suites_helm.RELEASE),
            lambda: helm.apply("n", suites_helm.RELEASE, self.chart, {}),
            lambda: helm.uninstall("n", suites_helm.RELEASE),
        ):
            error = self.assertRaises(errors.ManagementUnreachable, call)
            self.assertTrue(error.retryable)
