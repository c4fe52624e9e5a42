# SPDX-License-Identifier: Apache-2.0
"""The driver's own role is enough for what the ports do, and is no more than that.

The identity is a service account with the rights of ``manifests/rbac.yaml``; namespaces are made as
the driver makes them. The promises of the Lease and of Helm are then kept under that identity.
"""

from __future__ import annotations

import logging
import pathlib
import tempfile
import time
import types
from typing import Any
import uuid

import fixtures
import kubernetes.client
import kubernetes.config
import testtools
import yaml

from magnum.drivers import k8s_capi_helm
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.helm import HelmClient
from magnum.drivers.k8s_capi_helm.kube.watch import informers
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.lease import ReleaseLeases
from magnum.drivers.k8s_capi_helm.model import conditions, names
from magnum.drivers.k8s_capi_helm.reconcile.process.caches import Cache
from magnum.drivers.k8s_capi_helm.reconcile.process.controller_check import ControllerCheck
from magnum.drivers.k8s_capi_helm.reconcile.release import project_namespace
from magnum.tests.functional.k8s_capi_helm import envtest
from magnum.tests.unit.drivers.k8s_capi_helm.suites import controller_check, helm, release_lease

RBAC = pathlib.Path(k8s_capi_helm.__file__).parent / "manifests" / "rbac.yaml"
CLUSTER_ROLE = names.Kind(
    "rbac.authorization.k8s.io", "ClusterRole", "clusterroles", ("v1",), namespaced=False
)
CLUSTER_ROLE_BINDING = names.Kind(
    "rbac.authorization.k8s.io",
    "ClusterRoleBinding",
    "clusterrolebindings",
    ("v1",),
    namespaced=False,
)
SERVICE_ACCOUNT = names.Kind("", "ServiceAccount", "serviceaccounts", ("v1",))


class LeastPrivilegeCase(testtools.TestCase):
    """``kube`` is the driver's identity, ``admin`` the one that installed its rights."""

    admin: KubeClient
    account: str
    token: str

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.admin = KubeClient(envtest.kubeconfig())
        cls.account = f"driver-{uuid.uuid4().hex[:12]}"
        account = {"metadata": {"name": cls.account, "namespace": "default"}}
        cls.admin.apply(SERVICE_ACCOUNT, account)
        cls.addClassCleanup(cls.admin.delete, SERVICE_ACCOUNT, "default", cls.account)
        cls.install_rights()
        cls.token = cls.ask_for_token()

    def setUp(self) -> None:
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.kube = KubeClient(str(self.write_kubeconfig()))

    @classmethod
    def install_rights(cls) -> None:
        """As the operator does, for the account of these tests."""
        for document in yaml.safe_load_all(RBAC.read_text()):
            if document["kind"] == "ClusterRole":
                cls.admin.apply(CLUSTER_ROLE, document)
                continue
            document["metadata"]["name"] = cls.account
            document["subjects"] = [
                {"kind": "ServiceAccount", "name": cls.account, "namespace": "default"}
            ]
            cls.admin.apply(CLUSTER_ROLE_BINDING, document)
            cls.addClassCleanup(cls.admin.delete, CLUSTER_ROLE_BINDING, None, cls.account)

    @classmethod
    def ask_for_token(cls) -> str:
        """A token of the account, as a pod of it has one."""
        api = kubernetes.config.new_client_from_config(envtest.kubeconfig())
        with api:
            answer = kubernetes.client.CoreV1Api(api).create_namespaced_service_account_token(
                cls.account,
                "default",
                {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
                _request_timeout=(5, 30),
            )
        token: str = answer.status.token
        return token

    def write_kubeconfig(self) -> pathlib.Path:
        """The administrator's kubeconfig with the token of the account in it."""
        here = pathlib.Path(envtest.kubeconfig())
        config = yaml.safe_load(here.read_text())
        for user in config["users"]:
            user["user"] = {"token": self.token}
        for cluster in config["clusters"]:
            authority = cluster["cluster"].get("certificate-authority")
            if authority:
                cluster["cluster"]["certificate-authority"] = str(here.parent / authority)
        path = self.directory / "kubeconfig"
        path.write_text(yaml.safe_dump(config))
        return path

    def make_namespace(self) -> str:
        """A namespace as the driver makes it for a project."""
        name = f"suite-{uuid.uuid4().hex[:12]}"
        ports: Any = types.SimpleNamespace(kube=self.kube, pause=time.sleep)
        project_namespace.create_namespace(ports, name, "project-1", "restricted")
        project_namespace.bind_role(ports, name)
        self.addCleanup(self.admin.delete, names.NAMESPACE, None, name)
        # The driver's first act there, too, is to make a Lease: that waits until the role holds.
        first = {"metadata": {"name": "first", "namespace": name}}
        group = f"{names.LEASE.group}/{names.LEASE.versions[0]}"
        self.kube.create(names.LEASE, {"apiVersion": group, "kind": names.LEASE.name, **first})
        return name


class TestRecord(LeastPrivilegeCase, release_lease.RecordTests):
    """The record in the Lease."""

    def test_without_a_namespace_there_is_a_conflict_in_the_end(self) -> None:
        # Where the role is not bound, the driver is not even told that there is nothing.
        self.assertRaises(
            errors.ManagementRefused,
            self.conductor().open,
            "no-such-namespace",
            release_lease.RELEASE,
            cluster_uuid="u",
            project_id="p",
        )


class TestHelm(LeastPrivilegeCase, helm.HelmTests):
    """Releases."""

    def setUp(self) -> None:
        super().setUp()
        self.helm = HelmClient(self.kube, executable=envtest.helm(), timeout=60)
        self.chart = helm.write_chart(self.directory / "chart")

    def test_no_release_is_none(self) -> None:
        for namespace in (self.make_namespace(), "no-such-namespace"):
            self.assertIsNone(self.helm.live(namespace, helm.RELEASE))


class TestControllers(LeastPrivilegeCase, controller_check.ControllersTests):
    """The Leases of Cluster API's controllers, and no others of theirs."""

    def setUp(self) -> None:
        super().setUp()
        self.owner = self.admin

    def test_other_leases_stay_theirs(self) -> None:
        namespace, _, _ = self.capi.partition("/")
        self.renew(f"{namespace}/other", controller_check.NOW)
        error = self.assertRaises(
            errors.ManagementRefused, self.kube.get, names.LEASE, namespace, "other"
        )
        self.assertIn("role of the driver", str(error))
        silent = ControllerCheck([f"{namespace}/other"], controller_check.PATIENCE)
        self.assertEqual((), silent.stale_controllers(self.kube))


class TestWatches(LeastPrivilegeCase):
    """All that a verdict rests on is watched, in all namespaces at once."""

    def test_a_lease_that_changes_is_another_version(self) -> None:
        namespace = self.make_namespace()
        watching = informers.Informers(
            self.kube,
            staleness=30,
            covers=lambda name: name == namespace,
            seconds=1,
            spawn=lambda name, run: None,
        )
        watching.start()

        def versions() -> object:
            for watch in watching.watches:
                self.assertEqual(0.0, watch.list_and_watch())
            return watching.view().versions(namespace, release_lease.RELEASE)

        before = versions()
        self.assertIsNotNone(before)
        leases = ReleaseLeases(self.kube, holder="one", lease_duration=60)
        leases.open(namespace, release_lease.RELEASE, cluster_uuid="u", project_id="p")
        after = versions()
        self.assertNotEqual(before, after)
        self.assertEqual(after, versions())


class TestNamespaces(LeastPrivilegeCase):
    """A project's namespace goes with its last cluster, by the optional rules of the role."""

    def setUp(self) -> None:
        super().setUp()
        self.ports: Any = types.SimpleNamespace(kube=self.kube, namespace_refusal=Cache(60.0))

    def unused(self) -> str:
        """A namespace whose last Lease has gone."""
        name = self.make_namespace()
        self.kube.delete(names.LEASE, name, "first")
        return name

    def is_deleted(self, name: str) -> bool:
        obj = self.admin.get(names.NAMESPACE, None, name)
        return obj is None or conditions.is_terminating(obj)

    def test_one_with_nothing_in_it_goes(self) -> None:
        name = self.unused()
        project_namespace.delete_unused(self.ports, name, "project-1")
        self.assertTrue(self.is_deleted(name))

    def test_one_with_anything_in_it_stays(self) -> None:
        """Also of kinds that the driver knows nothing of."""
        foreign = (
            (names.SECRET, {}),
            (names.LEASE, {}),
            (names.Kind("", "ResourceQuota", "resourcequotas", ("v1",)), {"spec": {}}),
            (
                names.Kind("networking.k8s.io", "NetworkPolicy", "networkpolicies", ("v1",)),
                {"spec": {"podSelector": {}, "policyTypes": ["Ingress"]}},
            ),
            (names.OPENSTACK_SERVER, None),
        )
        for kind, body in foreign:
            with self.subTest(kind=kind.name):
                name = self.unused()
                self.assertIn(
                    (kind.group, kind.plural),
                    [(one.group, one.plural) for one in self.kube.namespaced_kinds()],
                )
                if body is None:
                    continue
                metadata = {"name": "foreign", "namespace": name}
                self.admin.apply(kind, {"metadata": metadata, **body})
                project_namespace.delete_unused(self.ports, name, "project-1")
                self.assertFalse(self.is_deleted(name))

    def test_one_that_was_changed_since_it_was_read_stays(self) -> None:
        """The API server compares the version; a create makes another one."""
        name = self.unused()
        read = self.kube.get(names.NAMESPACE, None, name)
        assert read is not None
        merge = {"metadata": {"annotations": {names.NEWEST_RELEASE: "demo-abcdefghijkl"}}}
        self.kube.patch(names.NAMESPACE, None, name, merge)
        self.assertRaises(
            errors.Conflict,
            self.kube.delete,
            names.NAMESPACE,
            None,
            name,
            uid=read["metadata"]["uid"],
            version=read["metadata"]["resourceVersion"],
        )
        self.assertFalse(self.is_deleted(name))

    def test_namespaces_of_others_stay_theirs(self) -> None:
        self.make_namespace()
        self.assertRaises(errors.NotAllowed, self.kube.delete, names.NAMESPACE, None, "default")

    def test_without_the_rules_it_stays_and_nothing_fails(self) -> None:
        """The role as an operator has it who does not want this."""
        name, role = f"suite-{uuid.uuid4().hex[:12]}", f"{self.account}-smaller"
        documents = yaml.safe_load_all(RBAC.read_text())
        document = next(one for one in documents if one["metadata"]["name"].endswith("capi-helm"))
        rules = [one for one in document["rules"] if one["verbs"] not in (["delete"], ["list"])]
        self.assertEqual(2, len(document["rules"]) - len(rules))
        self.admin.apply(CLUSTER_ROLE, {"metadata": {"name": role}, "rules": rules})
        self.addCleanup(self.admin.delete, CLUSTER_ROLE, None, role)
        metadata = {
            "name": name,
            "labels": {names.LABEL_PROJECT: "project-1"},
            "annotations": {names.CREATED_NAMESPACE: "true"},
        }
        self.admin.apply(names.NAMESPACE, {"metadata": metadata})
        self.addCleanup(self.admin.delete, names.NAMESPACE, None, name)
        binding = {
            "metadata": {"name": project_namespace.ROLE, "namespace": name},
            "roleRef": {
                "apiGroup": CLUSTER_ROLE.group,
                "kind": CLUSTER_ROLE.name,
                "name": role,
            },
            "subjects": [{"kind": "ServiceAccount", "name": self.account, "namespace": "default"}],
        }
        self.admin.create(names.ROLE_BINDING, binding)
        log = self.useFixture(fixtures.FakeLogger(level=logging.INFO))
        for _ in range(2):
            project_namespace.delete_unused(self.ports, name, "project-1")
        self.assertFalse(self.is_deleted(name))
        self.assertEqual(1, log.output.count("optional rules of the role"), log.output)


class TestLimits(LeastPrivilegeCase):
    """What the driver may not do."""

    def test_a_namespace_can_be_opened_twice(self) -> None:
        name = self.make_namespace()
        ports: Any = types.SimpleNamespace(kube=self.kube, pause=time.sleep)
        project_namespace.create_namespace(ports, name, "project-1", "restricted")
        project_namespace.bind_role(ports, name)
        secret = {"metadata": {"name": "one", "namespace": name}, "stringData": {"a": "b"}}
        self.assertTrue(self.kube.apply(names.SECRET, secret)["metadata"]["uid"])

    def test_secrets_of_others_stay_theirs(self) -> None:
        self.make_namespace()
        for call in (
            lambda: self.kube.list(names.SECRET, None),
            lambda: self.kube.list(names.SECRET, "default"),
            lambda: self.kube.get(names.SECRET, "kube-system", "one"),
        ):
            error = self.assertRaises(errors.ManagementRefused, call)
            self.assertIn("role of the driver", str(error))

    def test_on_another_management_cluster_it_sees_that_nothing_is_there(self) -> None:
        """A kubeconfig that names the wrong one is no trouble with the role."""
        self.assertIsNone(self.kube.get(names.LEASE, "no-such-namespace", "one"))
        self.assertEqual([], self.kube.list(names.SECRET, "no-such-namespace"))

    def test_it_gives_itself_no_more_rights(self) -> None:
        binding = {
            "metadata": {"name": "too-much", "namespace": self.make_namespace()},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "cluster-admin",
            },
        }
        self.assertRaises(errors.ManagementRefused, self.kube.create, names.ROLE_BINDING, binding)
