# SPDX-License-Identifier: Apache-2.0
"""Which API versions are rendered, and that both core versions mean the same."""

from __future__ import annotations

import unittest

from magnum.tests.functional.k8s_capi_helm.charts import rendering
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object, Values
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one


def version(objects: list[Object], kind: str) -> str:
    """API version of the first object of a kind, without its group."""
    text: str = rendering.by_kind(objects, kind)[0]["apiVersion"]
    return text.rpartition("/")[2]


def values(**api: str) -> Values:
    """A small cluster with explicit API versions."""
    return {**rendering.scenarios(rendering.CLUSTER)["minimal"].values, "apiVersions": api}


class ChoiceTest(unittest.TestCase):
    def core(self, *served: str, **api: str) -> str:
        objects = rendering.render(rendering.CLUSTER, values(**api), served=served)
        found = {
            version(objects, kind)
            for kind in (
                "Cluster",
                "MachineDeployment",
                "KubeadmControlPlane",
                "MachineHealthCheck",
            )
        }
        self.assertEqual({"v1beta1"}, {version(objects, "OpenStackCluster")})
        self.assertEqual(1, len(found))
        return found.pop()

    def test_the_newest_where_nobody_can_be_asked(self) -> None:
        self.assertEqual("v1beta2", self.core())

    def test_what_the_management_cluster_serves(self) -> None:
        old, new = "cluster.x-k8s.io/v1beta1", "cluster.x-k8s.io/v1beta2"
        self.assertEqual("v1beta1", self.core(old))
        self.assertEqual("v1beta2", self.core(old, new))

    def test_a_release_has_what_it_knows(self) -> None:
        for served in ((), ("cluster.x-k8s.io/v1beta1", "cluster.x-k8s.io/v1beta2")):
            self.assertEqual("v1beta1", self.core(*served, clusterApi="1.10"))
            self.assertEqual("v1beta2", self.core(*served, clusterApi="1.11"))

    def test_the_value_wins(self) -> None:
        self.assertEqual("v1beta1", self.core("cluster.x-k8s.io/v1beta2", core="v1beta1"))


class SameMeaningTest(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        given = rendering.scenarios(rendering.CLUSTER)["every-key"].values
        self.old, self.new = (
            rendering.render(
                rendering.CLUSTER, rendering.changed(given, {"apiVersions.core": core})
            )
            for core in ("v1beta1", "v1beta2")
        )

    def test_another_version_renames_nothing(self) -> None:
        self.assertEqual(
            [rendering.identity(found) for found in self.old],
            [rendering.identity(found) for found in self.new],
        )

    def test_control_plane(self) -> None:
        old = rendering.only(self.old, "KubeadmControlPlane")["spec"]
        new = rendering.only(self.new, "KubeadmControlPlane")["spec"]
        self.assertEqual("1h0m30s", old["machineTemplate"]["nodeDrainTimeout"])
        self.assertEqual(
            {
                "nodeDrainTimeoutSeconds": 3630,
                "nodeVolumeDetachTimeoutSeconds": 600,
                "nodeDeletionTimeoutSeconds": 45,
            },
            new["machineTemplate"]["spec"]["deletion"],
        )
        self.assertEqual(old["rolloutBefore"], new["rollout"]["before"])
        self.assertEqual(old["rolloutStrategy"], new["rollout"]["strategy"])
        self.assertEqual(
            {"maxRetry": 5, "retryPeriodSeconds": 600, "minHealthyPeriodSeconds": 7200},
            new["remediation"],
        )

    def test_arguments(self) -> None:
        def arguments(objects: list[Object]) -> object:
            spec = rendering.only(objects, "KubeadmControlPlane")["spec"]["kubeadmConfigSpec"]
            return spec["clusterConfiguration"]["etcd"]["local"]["extraArgs"]

        old, new = arguments(self.old), arguments(self.new)
        self.assertEqual(old, {one["name"]: one["value"] for one in new})  # type: ignore[attr-defined]

    def test_workers(self) -> None:
        for old, new in at_least_one(
            zip(
                rendering.by_kind(self.old, "MachineDeployment"),
                rendering.by_kind(self.new, "MachineDeployment"),
                strict=True,
            )
        ):
            strategy = old["spec"]["strategy"]
            self.assertEqual(strategy["type"], new["spec"]["rollout"]["strategy"]["type"])
            self.assertEqual(
                strategy["rollingUpdate"]["deletePolicy"], new["spec"]["deletion"]["order"]
            )
            self.assertEqual(old["spec"].get("replicas"), new["spec"].get("replicas"))
            self.assertEqual(old["spec"]["selector"], new["spec"]["selector"])

    def test_only_the_newer_version_heals_a_server_that_never_came_up(self) -> None:
        old = rendering.by_kind(self.old, "MachineHealthCheck")[0]["spec"]
        new = rendering.by_kind(self.new, "MachineHealthCheck")[0]["spec"]
        self.assertNotIn("unhealthyMachineConditions", old)
        self.assertEqual(
            [{"type": "InfrastructureReady", "status": "False", "timeoutSeconds": 1200}],
            new["checks"]["unhealthyMachineConditions"],
        )
        self.assertEqual(
            old["maxUnhealthy"], new["remediation"]["triggerIf"]["unhealthyLessThanOrEqualTo"]
        )
