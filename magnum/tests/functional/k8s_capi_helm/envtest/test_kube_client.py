# SPDX-License-Identifier: Apache-2.0
"""The client of the management cluster on a real kube-apiserver."""

from __future__ import annotations

import threading
import time
import uuid

import testtools

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.model import Json, names
from magnum.tests.functional.k8s_capi_helm import envtest
from magnum.tests.unit.drivers.k8s_capi_helm.suites import kube_client as suite


class TestKubeClient(suite.KubeClientTests, testtools.TestCase):
    """The promises, kept by the real client."""

    def setUp(self) -> None:
        super().setUp()
        self.kube = KubeClient(envtest.kubeconfig())


CRD = names.Kind(
    "apiextensions.k8s.io",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    ("v1",),
    namespaced=False,
)


class TestVersions(suite.KubeClientSuite, testtools.TestCase):
    """A kind whose served versions change under the client, as with an update of a provider."""

    def setUp(self) -> None:
        super().setUp()
        self.kube = KubeClient(envtest.kubeconfig())
        group = f"t{uuid.uuid4().hex[:8]}.example.org"
        self.kind = names.Kind(group, "Widget", "widgets", ("v2", "v1"))

    def serve(self, *versions: str) -> None:
        """Serve these versions of the kind, and wait until that is so."""
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        definition: Json = {
            "metadata": {"name": f"widgets.{self.kind.group}"},
            "spec": {
                "group": self.kind.group,
                "scope": "Namespaced",
                "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
                "versions": [
                    {
                        "name": version,
                        "served": version in versions,
                        "storage": version == "v1",
                        "schema": {"openAPIV3Schema": schema},
                    }
                    for version in self.kind.versions
                ],
            },
        }
        self.kube.apply(CRD, definition)
        self.addCleanup(self.kube.delete, CRD, None, f"widgets.{self.kind.group}")
        self.until(lambda: self.looks(KubeClient(envtest.kubeconfig())) == versions)

    def looks(self, kube: KubeClient) -> tuple[str, ...]:
        """The versions that the server shows to a client that has never asked before."""
        found = []
        for version in self.kind.versions:
            only = names.Kind(self.kind.group, "Widget", "widgets", (version,))
            try:
                kube.list(only, "default")
                found.append(version)
            except errors.ManagementRefused:
                continue
        return tuple(found)

    def until(self, happened: object, limit: float = 60) -> None:
        end = time.monotonic() + limit
        while not happened():  # type: ignore[operator]
            if time.monotonic() > end:
                self.fail("the API server does not serve the versions")
            threading.Event().wait(0.1)

    def test_a_client_follows_what_is_served(self) -> None:
        namespace = self.make_namespace()
        manifest = {"metadata": {"name": "one", "namespace": namespace}, "spec": {"a": 1}}
        self.serve("v1")
        self.assertEqual("v1", self.kube.served_version(self.kind))
        made = self.kube.apply(self.kind, manifest)
        self.assertEqual(f"{self.kind.group}/v1", made["apiVersion"])
        self.serve("v2")
        found = self.kube.get(self.kind, namespace, "one")
        self.assertEqual(f"{self.kind.group}/v2", found["apiVersion"])
        self.assertEqual({"a": 1}, found["spec"])
        self.assertEqual("v2", self.kube.served_version(self.kind))
        self.serve("v2", "v1")
        [listed] = self.kube.list(self.kind, namespace)
        self.assertEqual(("Widget", "one"), (listed["kind"], listed["metadata"]["name"]))

    def test_an_update_behind_ones_back_is_a_conflict(self) -> None:
        namespace = self.make_namespace()
        self.serve("v1")
        manifest = {"metadata": {"name": "one", "namespace": namespace}, "spec": {"a": 1}}
        stale = self.kube.create(self.kind, manifest)
        self.kube.apply(self.kind, {**manifest, "spec": {"a": 2}})
        self.assertRaises(errors.Conflict, self.kube.replace, self.kind, stale)
