# SPDX-License-Identifier: Apache-2.0
"""The bundled charts on a real kube-apiserver with the webhooks of Cluster API and CAPO.

What CRDs cannot say (CEL rules, defaulting, rules between objects and between old and new) is asked
of the API server itself: each scenario's objects are applied without being stored, and a release is
installed and upgraded from the chart's directory by helm.
"""

from __future__ import annotations

from collections.abc import Iterator
import json
from pathlib import Path
import subprocess
from typing import Any
import unittest
import uuid

from kubernetes import client, config, dynamic

from magnum.tests.functional.k8s_capi_helm.charts import rendering
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object, Scenario, Values
from magnum.tests.functional.k8s_capi_helm.charts.test_crd_releases import Choice
from magnum.tests.functional.k8s_capi_helm.envtest import helm, kubeconfig

TIMEOUT = 60
#: The Cluster API whose CRDs and webhooks this server has.
SERVED = (1, 14)


class ChartCase(unittest.TestCase):
    """An empty namespace of the API server."""

    def setUp(self) -> None:
        super().setUp()
        self.kubeconfig = kubeconfig()
        untyped: Any = config
        self.api = untyped.new_client_from_config(self.kubeconfig)
        self.addCleanup(self.api.close)
        untyped = dynamic
        self.kinds = untyped.DynamicClient(self.api)
        self.namespace = f"charts-{uuid.uuid4().hex[:8]}"
        core = client.CoreV1Api(self.api)
        core.create_namespace(
            client.V1Namespace(metadata=client.V1ObjectMeta(name=self.namespace)),
            _request_timeout=TIMEOUT,
        )
        self.addCleanup(core.delete_namespace, self.namespace, _request_timeout=TIMEOUT)

    def try_out(self, found: Object) -> None:
        """Apply an object strictly without storing it.

        :raises kubernetes.client.ApiException: the API server refuses it.
        """
        kind = self.kinds.resources.get(api_version=found["apiVersion"], kind=found["kind"])
        self.kinds.request(
            "PATCH",
            kind.path(name=found["metadata"]["name"], namespace=self.namespace),
            body=found,
            content_type="application/apply-patch+yaml",
            dry_run="All",
            field_manager="charts",
            force_conflicts=True,
            query_params=[("fieldValidation", "Strict")],
            _request_timeout=TIMEOUT,
        )

    def helm(self, *arguments: str | Path, values: Values | None = None) -> str:
        """Output of helm on the API server.

        :raises subprocess.CalledProcessError: helm failed.
        """
        return subprocess.run(
            [
                helm(),
                *map(str, arguments),
                f"--kubeconfig={self.kubeconfig}",
                f"--namespace={self.namespace}",
            ],
            input=None if values is None else json.dumps(values),
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=True,
        ).stdout

    def upgrade(self, values: Values, release: str = "demo") -> None:
        """Install or upgrade a release from the chart's directory."""
        self.helm("upgrade", "--install", release, rendering.CLUSTER, "--values=-", values=values)

    def live(self, api_version: str, kind: str) -> list[Any]:
        """Objects of a kind in the namespace."""
        found = self.kinds.resources.get(api_version=api_version, kind=kind)
        items: list[Any] = found.get(namespace=self.namespace, _request_timeout=TIMEOUT).items
        return items


class TestObjects(ChartCase):
    """Every object of every scenario is accepted, in both core versions."""

    def test_scenarios(self) -> None:
        tried = 0
        for scenario, change in self.each():
            objects = rendering.render(scenario.chart, rendering.changed(scenario.values, change))
            for found in objects:
                with self.subTest(
                    scenario=scenario.name, found=rendering.identity(found), **change
                ):
                    self.try_out(found)
                    tried += 1
        self.assertGreater(tried, 0)

    def each(self) -> Iterator[tuple[Scenario, dict[str, str]]]:
        """Scenarios, with the API versions that this server has and that they can take."""
        for scenario in rendering.every_scenario():
            if scenario.chart != rendering.CLUSTER:
                yield scenario, {}
                continue
            for core in ("v1beta1", "v1beta2"):
                choice = Choice(core, "v1beta1", SERVED, ())
                if choice.suits(scenario):
                    yield scenario, choice.change

    def test_a_misspelt_field_is_refused(self) -> None:
        found = rendering.only(
            rendering.scenarios(rendering.CLUSTER)["minimal"].objects, "OpenStackCluster"
        )
        with self.assertRaises(client.ApiException) as caught:
            self.try_out(rendering.changed(found, {"spec.managedSubnet": []}))
        self.assertIn("managedSubnet", str(caught.exception.body))


class TestRelease(ChartCase):
    """A release lives: installed, changed, moved to the newer API, taken away."""

    def test_the_newest_served_version_is_taken(self) -> None:
        self.upgrade(rendering.scenarios(rendering.CLUSTER)["minimal"].values)
        manifest = self.helm("get", "manifest", "demo")
        self.assertIn("apiVersion: cluster.x-k8s.io/v1beta2", manifest)

    def test_the_newer_api_makes_no_new_machine(self) -> None:
        values = rendering.scenarios(rendering.CLUSTER)["ovn-autoscaled"].values

        def templates() -> dict[str, tuple[str, str]]:
            return {
                found.metadata.name: (
                    found.spec.template.spec.infrastructureRef.name,
                    found.spec.template.spec.bootstrap.configRef.name,
                )
                for found in self.live("cluster.x-k8s.io/v1beta2", "MachineDeployment")
            }

        self.upgrade(rendering.changed(values, {"apiVersions.core": "v1beta1"}))
        before = templates()
        self.upgrade(values)
        self.assertEqual(before, templates())
        self.assertEqual({"demo-default-worker", "demo-gpu"}, set(before))

    def test_a_resize_touches_only_its_group(self) -> None:
        values: Values = {
            **rendering.scenarios(rendering.CLUSTER)["minimal"].values,
            "nodeGroups": [{"name": "a", "machineCount": 1}, {"name": "b", "machineCount": 1}],
        }

        def generations() -> dict[tuple[str, str], int]:
            return {
                (found.kind, found.metadata.name): found.metadata.generation
                for api_version, kind in (
                    ("cluster.x-k8s.io/v1beta2", "Cluster"),
                    ("cluster.x-k8s.io/v1beta2", "MachineDeployment"),
                    ("cluster.x-k8s.io/v1beta2", "MachineHealthCheck"),
                    ("controlplane.cluster.x-k8s.io/v1beta2", "KubeadmControlPlane"),
                    ("infrastructure.cluster.x-k8s.io/v1beta1", "OpenStackCluster"),
                    ("infrastructure.cluster.x-k8s.io/v1beta1", "OpenStackMachineTemplate"),
                    ("bootstrap.cluster.x-k8s.io/v1beta2", "KubeadmConfigTemplate"),
                )
                for found in self.live(api_version, kind)
            }

        self.upgrade(values)
        before = generations()
        self.upgrade(rendering.changed(values, {"nodeGroups.0.machineCount": 3}))
        after = generations()
        self.assertEqual(set(before), set(after))
        self.assertEqual(
            {("MachineDeployment", "demo-a")},
            {name for name in before if before[name] != after[name]},
        )

    def test_what_helm_leaves_to_cluster_api(self) -> None:
        self.upgrade(rendering.scenarios(rendering.CLUSTER)["minimal"].values)
        self.helm("uninstall", "demo")
        self.assertEqual([], self.live("cluster.x-k8s.io/v1beta2", "MachineDeployment"))
        for api_version, kind in (
            ("controlplane.cluster.x-k8s.io/v1beta2", "KubeadmControlPlane"),
            ("infrastructure.cluster.x-k8s.io/v1beta1", "OpenStackCluster"),
            ("bootstrap.cluster.x-k8s.io/v1beta2", "KubeadmConfigTemplate"),
        ):
            with self.subTest(kind=kind):
                (found,) = self.live(api_version, kind)
                self.assertIsNone(found.metadata.deletionTimestamp)
