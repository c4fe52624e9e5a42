# SPDX-License-Identifier: Apache-2.0
"""The steps of the driver's upgrade, rendered: which machines are replaced at which."""

from __future__ import annotations

from typing import Any
import unittest

from magnum.drivers.k8s_capi_helm.values.upgrade import deferred, upgrade
from magnum.tests.functional.k8s_capi_helm.charts import rendering

OLD = {
    "cloudCredentialsSecretName": "demo-cloud-credentials",
    "kubernetesVersion": "1.34.4",
    "machineImageId": "11111111-2222-4333-8444-555555555555",
    "osDistro": "ubuntu",
    "controlPlane": {"machineFlavor": "small"},
    "nodeGroupDefaults": {"healthCheck": {"enabled": True}},
    "nodeGroups": [
        {"name": "default-worker", "machineFlavor": "small", "machineCount": 2},
        {
            "name": "gpu",
            "machineFlavor": "large",
            "machineCount": 1,
            "kubernetesVersion": "1.34.4",
            "machineImageId": "22222222-2222-4333-8444-555555555555",
        },
    ],
    "addons": {"enabled": False},
}
#: A render with the old labels and the new image, and one with the new labels.
BASE = {
    **OLD,
    "kubernetesVersion": "1.35.2",
    "machineImageId": "33333333-2222-4333-8444-555555555555",
}
THEIRS: dict[str, Any] = {
    **BASE,
    "controlPlane": {"machineFlavor": "small", "machineRootVolume": {"diskSize": 50}},
    "nodeGroupDefaults": {
        "healthCheck": {"enabled": False},
        "machineRootVolume": {"diskSize": 50},
        "kubeadmConfigSpec": {
            "joinConfiguration": {"nodeRegistration": {"kubeletExtraArgs": {"max-pods": "64"}}}
        },
    },
}


class UpgradeRollTest(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.first = upgrade.initial_values(OLD, BASE, THEIRS)
        self.owing = deferred.of_upgrade("1", OLD, BASE, THEIRS)

    def test_no_worker_moves_before_the_control_plane_is_through(self) -> None:
        self.assertEqual(_workers(OLD), _workers(self.first))
        self.assertNotEqual(
            _templates(OLD, "control-plane"), _templates(self.first, "control-plane")
        )

    def test_workers_move_once_and_those_that_are_left_out_never(self) -> None:
        after = upgrade.unpin_nodegroups(
            self.first, ["default-worker"], 1, [self.owing], include_shared=True
        )
        self.assertEqual(_templates(OLD, "gpu"), _templates(after, "gpu"))
        self.assertNotEqual(_templates(OLD, "default-worker"), _templates(after, "default-worker"))
        whole = {**THEIRS, "nodeGroups": [OLD["nodeGroups"][0]]}
        self.assertEqual(_templates(whole, "default-worker"), _templates(after, "default-worker"))

    def test_who_was_left_out_moves_by_its_name(self) -> None:
        after = upgrade.unpin_nodegroups(
            self.first, ["default-worker"], 1, [self.owing], include_shared=True
        )
        left = deferred.left_over([self.owing], ["default-worker"], after, include_shared=True)
        last = upgrade.upgrade_nodegroup(after, "gpu", "1.35.2", BASE["machineImageId"], 1, left)
        self.assertEqual(_templates(after, "default-worker"), _templates(last, "default-worker"))
        gpu = {"name": "gpu", "machineFlavor": "large", "machineCount": 1}
        whole = {**THEIRS, "nodeGroups": [OLD["nodeGroups"][0], gpu]}
        self.assertEqual(_templates(whole, "gpu"), _templates(last, "gpu"))


def _workers(values: dict[str, Any]) -> list[Any]:
    """Everything that a release has for its nodegroups."""
    kinds = ("MachineDeployment", "MachineHealthCheck", "KubeadmConfigTemplate")
    found = [
        one
        for one in rendering.render(rendering.CLUSTER, values)
        if one["kind"] in (*kinds, "OpenStackMachineTemplate")
        and "control-plane" not in one["metadata"]["name"]
    ]
    return sorted(found, key=lambda one: (one["kind"], one["metadata"]["name"]))


def _templates(values: dict[str, Any], group: str) -> list[str]:
    """Names of the templates that the machines of a group are made of."""
    return sorted(
        one["metadata"]["name"]
        for one in rendering.render(rendering.CLUSTER, values)
        if one["kind"].endswith("Template") and one["metadata"]["name"].startswith(f"demo-{group}-")
    )
