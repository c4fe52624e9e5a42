# SPDX-License-Identifier: Apache-2.0
"""What a change of values moves: for a group's key its objects only, for a count no machine."""

from __future__ import annotations

from typing import Any
import unittest

import yaml

from magnum.tests.functional.k8s_capi_helm.charts import changes, rendering
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object, Values
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one

GROUP_LABEL = "capi.stackhpc.com/node-group"
#: Another value for every key of a node group, and whether its machines are replaced for it.
GROUP_KEYS: dict[str, tuple[Any, bool]] = {
    "machineFlavor": ("g2.large", True),
    "kubernetesVersion": ("1.33.3", False),  # rolls by the version in the MachineDeployment
    "machineImageId": ("2b8a4d0a-6d3c-4a7f-8d27-3f0f2f4a9b99", True),
    "failureDomain": ("zone-3", False),  # rolls by the zone in the MachineDeployment
    "machineRootVolume": ({"diskSize": 99}, True),
    "machineNetworking": ({"ports": [{}, {"network": {"name": "other"}}]}, True),
    "machineMetadata": ({"tier": "changed"}, True),
    "serverGroupId": ("5f1a7b0e-7d2e-4c2d-9a59-0d5d9d4e0099", True),
    "nodeLabels": ({"example.org/new": "label"}, True),
    "autoscale": (True, False),
    "machineCount": (7, False),
    "machineCountMin": (0, False),
    "machineCountMax": (9, False),
    "nodeDrainTimeout": ("7m0s", False),
    "nodeVolumeDetachTimeout": ("7m0s", False),
    "nodeDeletionTimeout": ("7m0s", False),
    "rolloutStrategy": ({"rollingUpdate": {"maxSurge": 2}}, False),
    "healthCheck": ({"enabled": False}, False),
    "machineImage": ("another", True),
    "serverGroupName": ("apart", True),
    "schedulerHints": ({"different_host": "2b8a4d0a-6d3c-4a7f-8d27-3f0f2f4a9b77"}, True),
    "machineTags": (["other"], True),
    "machineConfigDrive": (True, True),
    "additionalBlockDevices": ({"data": {"size": 5}}, True),
    "containerdBlockDevice": ({"size": 5}, True),
    "kubeletExtraArgs": ({"max-pods": "50"}, True),
    "kubeadmConfigSpec": ({"verbosity": 5}, True),
    "nodeTaints": ([{"key": "example.org/new", "effect": "NoSchedule"}], True),
    "nodeAnnotations": ({"node.cluster.x-k8s.io/new": "annotation"}, False),
    "role": ("other", False),
    "capacity": ({"cpu": 2, "memory": "4Gi"}, False),
    "autoscalingOptions": ({"scaleDownUnneededTime": "7m0s"}, False),
    "minReadySeconds": (7, False),
    "rolloutAfter": ("2026-11-21T18:00:00Z", False),  # rolls by the time in the MachineDeployment
}
#: Keys that only an autoscaled group has use for.
AUTOSCALED = ("machineCountMin", "machineCountMax", "capacity", "autoscalingOptions")
TEMPLATES = ("OpenStackMachineTemplate", "KubeadmConfigTemplate")


def group_of(found: Object) -> str | None:
    """The node group that an object belongs to."""
    name: str | None = found["metadata"]["labels"].get(GROUP_LABEL)
    return name


def without_names(objects: list[Object]) -> list[Object]:
    """The same, with Roles that do not say which objects they are about."""
    return [changes.without_names(found) for found in objects]


def texts(objects: list[Object]) -> dict[tuple[str, str], str]:
    """Objects by identity, each as text."""
    return {rendering.identity(found): yaml.safe_dump(found) for found in objects}


def templates(objects: list[Object]) -> set[tuple[str, str]]:
    """Identities of the immutable templates."""
    return {rendering.identity(one) for one in objects if one["kind"] in TEMPLATES}


class IsolationTest(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.values: Values = {
            **rendering.scenarios(rendering.CLUSTER)["minimal"].values,
            "nodeGroups": [
                {
                    "name": "first",
                    "autoscale": False,
                    "machineCount": 1,
                    "machineCountMin": 1,
                    "machineCountMax": 3,
                },
                {"name": "second", "machineCount": 1},
                # Keeps the autoscaler there whatever the first group does.
                {"name": "third", "autoscale": True, "machineCountMin": 1, "machineCountMax": 2},
            ],
        }
        self.before = rendering.render(rendering.CLUSTER, self.values)

    def after(self, change: dict[str, Any]) -> list[Object]:
        return rendering.render(rendering.CLUSTER, rendering.changed(self.values, change))

    def test_the_table_names_every_key_of_a_group(self) -> None:
        schema = yaml.safe_load((rendering.CLUSTER / "values.schema.json").read_text())
        keys = schema["properties"]["nodeGroups"]["items"]["properties"]
        self.assertEqual(set(keys) - {"name"}, set(GROUP_KEYS))

    def test_a_groups_key_changes_only_that_groups_objects(self) -> None:
        bounded = rendering.changed(self.values, {"nodeGroups.0.autoscale": True})
        for key, (value, _) in GROUP_KEYS.items():
            with self.subTest(key=key):
                start = bounded if key in AUTOSCALED else self.values
                before = rendering.render(rendering.CLUSTER, start)
                after = rendering.render(
                    rendering.CLUSTER, rendering.changed(start, {f"nodeGroups.0.{key}": value})
                )
                self.assertNotEqual(texts(before), texts(after))
                for one, other in ((before, after), (after, before)):
                    if key == "autoscale":  # the autoscaler's Role names the groups
                        one, other = map(without_names, (one, other))
                    unchanged = texts(other)
                    for found in one:
                        if group_of(found) != "first":
                            name = rendering.identity(found)
                            self.assertEqual(yaml.safe_dump(found), unchanged.get(name), name)

    def test_only_what_must_makes_a_new_template(self) -> None:
        for key, (value, replaces) in GROUP_KEYS.items():
            with self.subTest(key=key):
                after = self.after({f"nodeGroups.0.{key}": value})
                self.assertEqual(replaces, templates(self.before) != templates(after))

    def test_false_and_zero_of_a_group_undo_a_default(self) -> None:
        objects = self.after(
            {
                "nodeGroupDefaults.autoscale": True,
                "nodeGroupDefaults.healthCheck": {"enabled": True},
                "nodeGroupDefaults.machineRootVolume": {"diskSize": 20},
                "nodeGroups.0.healthCheck": {"enabled": False},
                "nodeGroups.0.machineRootVolume": {"diskSize": 0},
                "nodeGroups.0.machineCount": 0,
                "nodeGroups.1.autoscale": "false",
            }
        )
        mine = [found for found in objects if group_of(found) == "first"]
        self.assertEqual(0, rendering.only(mine, "MachineDeployment")["spec"]["replicas"])
        self.assertEqual([], rendering.by_kind(mine, "MachineHealthCheck"))
        machine = rendering.only(mine, "OpenStackMachineTemplate")["spec"]["template"]["spec"]
        self.assertNotIn("rootVolume", machine)

    def test_metadata_of_a_group_stays_with_it(self) -> None:
        objects = self.after(
            {"machineMetadata": {"a": "all"}, "nodeGroups.1.machineMetadata": {"b": "2"}}
        )
        found = {
            group_of(one): one["spec"]["template"]["spec"]["serverMetadata"]
            for one in rendering.by_kind(objects, "OpenStackMachineTemplate")
        }
        self.assertEqual([{"key": "a", "value": "all"}], found[None])
        self.assertEqual([{"key": "a", "value": "all"}], found["first"])
        self.assertEqual(
            [{"key": "a", "value": "all"}, {"key": "b", "value": "2"}], found["second"]
        )

    def test_a_group_more_or_less_moves_no_other(self) -> None:
        after = self.after({"nodeGroups": self.values["nodeGroups"][1:]})
        kept = texts(after)
        for found in at_least_one(self.before):
            name = rendering.identity(found)
            if group_of(found) == "first":
                self.assertNotIn(name, kept)
            else:
                self.assertEqual(yaml.safe_dump(found), kept[name], name)

    def test_the_order_of_groups_does_not_matter(self) -> None:
        after = self.after({"nodeGroups": self.values["nodeGroups"][::-1]})
        self.assertEqual(texts(self.before), texts(after))

    def test_a_resize_of_the_control_plane_changes_only_its_number(self) -> None:
        before, after = texts(self.before), texts(self.after({"controlPlane.machineCount": 5}))
        changed = {name for name in before if before[name] != after[name]}
        self.assertEqual({("KubeadmControlPlane", "demo-control-plane")}, changed)

    def test_the_credentials_name_replaces_no_machine(self) -> None:
        after = self.after({"cloudCredentialsSecretName": "another"})
        self.assertEqual(templates(self.before), templates(after))
