# SPDX-License-Identifier: Apache-2.0
"""What Nodes carry: labels, annotations and taints, and who puts them there."""

from __future__ import annotations

from typing import Any
import unittest

import yaml

from magnum.tests.functional.k8s_capi_helm.charts import rendering
from magnum.tests.functional.k8s_capi_helm.charts.one_group import (
    GROUP,
    kubelet_labels,
    machine_labels,
    of_group,
    registration,
    rendered,
    templates,
)
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object


class LabelTest(unittest.TestCase):
    def test_role_and_name_of_the_group(self) -> None:
        self.assertEqual(
            {"node-role.kubernetes.io/worker": "", "node.cluster.x-k8s.io/node-group": "g"},
            machine_labels(rendered()),
        )
        for role, key in (
            ("gpu", "node-role.kubernetes.io/gpu"),
            ("Infra_1.x", "node-role.kubernetes.io/Infra_1.x"),
        ):
            self.assertIn(key, machine_labels(rendered({"role": role})))
            self.assertNotIn(
                "node-role.kubernetes.io/worker", machine_labels(rendered({"role": role}))
            )
        self.assertEqual(
            {"node.cluster.x-k8s.io/node-group": "g"}, machine_labels(rendered({"role": ""}))
        )

    def test_a_label_that_is_no_text_is_written_as_one(self) -> None:
        plain = {"a": True, "b": 10000000, "node.cluster.x-k8s.io/c": False}
        text = {"a": "true", "b": "10000000", "node.cluster.x-k8s.io/c": "false"}
        bounds = {"autoscale": True, "machineCountMin": 0, "machineCountMax": 2}
        self.assertEqual(
            rendered({"nodeLabels": text, **bounds}), rendered({"nodeLabels": plain, **bounds})
        )

    def test_a_label_stands_in_one_place(self) -> None:
        kept = {
            "node-role.kubernetes.io/db": "",
            "node.cluster.x-k8s.io/a": "1",
            "sub.node.cluster.x-k8s.io/a": "1",
            "node-restriction.kubernetes.io/a": "1",
            "sub.node-restriction.kubernetes.io/a": "1",
        }
        others = {
            "a": "1",
            "node.cluster.x-k8s.io": "1",
            "xnode.cluster.x-k8s.io/a": "1",
            "example.org/a-.b..c": "1",
            "example.org/node.cluster.x-k8s.io": "1",
            "node.kubernetes.io/instance-type": "m1",
            "topology.kubernetes.io/zone": "z",
        }
        objects = rendered({"nodeLabels": {**kept, **others}})
        self.assertEqual({GROUP: "g", **others}, kubelet_labels(objects))
        self.assertLessEqual(kept.items(), machine_labels(objects).items())
        metadata = of_group(objects, "MachineDeployment")["spec"]["template"]["metadata"]
        self.assertEqual(set(), set(others) & set(metadata["labels"]))

    def test_only_labels_of_kubelets_replace_machines(self) -> None:
        before = rendered({"nodeLabels": {"node.cluster.x-k8s.io/a": "1", "a": "1"}})
        in_place = rendered({"nodeLabels": {"node.cluster.x-k8s.io/a": "2", "a": "1"}})
        replaced = rendered({"nodeLabels": {"node.cluster.x-k8s.io/a": "1", "a": "2"}})
        self.assertEqual(templates(before), templates(in_place))
        self.assertNotEqual(before, in_place)
        self.assertEqual(
            {"KubeadmConfigTemplate"},
            {kind for kind, _ in templates(before) ^ templates(replaced)},
        )

    def test_what_cluster_api_is_started_to_keep_changes_in_place(self) -> None:
        change: dict[str, Any] = {
            "clusterApi__additionalSyncMachineLabels": ["^example[.]org/", "^a$"]
        }
        first = rendered({"nodeLabels": {"example.org/x": "1", "a": "1", "ab": "1"}}, **change)
        second = rendered({"nodeLabels": {"example.org/x": "2", "a": "2", "ab": "1"}}, **change)
        self.assertEqual(templates(first), templates(second))
        self.assertEqual({GROUP: "g", "ab": "1"}, kubelet_labels(second))
        labels = of_group(second, "MachineDeployment")["spec"]["template"]["metadata"]["labels"]
        self.assertLessEqual({"example.org/x": "2", "a": "2"}.items(), labels.items())

    def test_where_everything_is_kept_no_label_stands_twice(self) -> None:
        objects = rendered(
            {"nodeLabels": {"a": "1"}}, clusterApi__additionalSyncMachineLabels=[".*"]
        )
        labels = of_group(objects, "MachineDeployment")["spec"]["template"]["metadata"]["labels"]
        self.assertEqual(("g", "1"), (labels[GROUP], labels["a"]))

    def test_the_control_planes_labels_are_split_alike(self) -> None:
        objects = rendered(
            controlPlane__nodeLabels={"node.cluster.x-k8s.io/a": "1", "example.org/a": "2"}
        )
        spec = rendering.only(objects, "KubeadmControlPlane")["spec"]
        labels = spec["machineTemplate"]["metadata"]["labels"]
        self.assertEqual("1", labels["node.cluster.x-k8s.io/a"])
        self.assertNotIn("example.org/a", labels)
        text = yaml.safe_dump(spec["kubeadmConfigSpec"])
        self.assertIn("example.org/a=2", text)
        self.assertNotIn("node.cluster.x-k8s.io/a", text)

    def test_annotations_change_in_place(self) -> None:
        def annotated(value: str) -> list[Object]:
            return rendered({"nodeAnnotations": {"node.cluster.x-k8s.io/a": value}})

        self.assertEqual(templates(annotated("1")), templates(annotated("a: b")))
        found = of_group(annotated("a: b"), "MachineDeployment")
        self.assertEqual(
            {"node.cluster.x-k8s.io/a": "a: b"},
            found["spec"]["template"]["metadata"]["annotations"],
        )


class TaintTest(unittest.TestCase):
    taints = [
        {"key": "example.org/a", "value": "1e3", "effect": "NoSchedule"},
        {"key": "b", "effect": "NoExecute"},
    ]

    def test_by_default_the_kubelet_gives_them_and_a_change_replaces_machines(self) -> None:
        objects = rendered({"nodeTaints": self.taints})
        self.assertEqual(self.taints, registration(objects)["taints"])
        self.assertNotIn(
            "taints", of_group(objects, "MachineDeployment")["spec"]["template"]["spec"]
        )
        self.assertNotEqual(templates(objects), templates(rendered({"nodeTaints": []})))
        self.assertNotIn("taints", registration(rendered()))

    def test_with_the_gate_they_change_in_place(self) -> None:
        gate: dict[str, Any] = {"clusterApi__machineTaintPropagation": True}
        for core, release in (("v1beta2", ""), ("v1beta2", "1.12"), ("v1beta1", "1.13")):
            change = {**gate, "apiVersions": {"core": core, "clusterApi": release}}
            objects = rendered({"nodeTaints": self.taints}, **change)
            with self.subTest(core=core, release=release):
                self.assertEqual(
                    [{**taint, "propagation": "Always"} for taint in self.taints],
                    of_group(objects, "MachineDeployment")["spec"]["template"]["spec"]["taints"],
                )
                self.assertNotIn("taints", registration(objects))
                self.assertEqual(templates(objects), templates(rendered(**change)))

    def test_the_choice_moves_no_group_without_taints(self) -> None:
        self.assertEqual(
            templates(rendered()), templates(rendered(clusterApi__machineTaintPropagation=True))
        )
