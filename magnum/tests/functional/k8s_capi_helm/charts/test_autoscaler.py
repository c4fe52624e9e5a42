# SPDX-License-Identifier: Apache-2.0
"""The cluster autoscaler: what it is told of a group, what it may do, which release it is."""

from __future__ import annotations

from typing import Any
import unittest

from magnum.tests.functional.k8s_capi_helm.charts import rendering
from magnum.tests.functional.k8s_capi_helm.charts.one_group import (
    CAPACITY,
    GROUP,
    kubelet_labels,
    machine_labels,
    of_group,
    rendered,
)
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one


class ScaleFromZeroTest(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.objects = rendering.scenarios(rendering.CLUSTER)["scaled-to-zero"].objects

    def annotations(self, group: str) -> dict[str, str]:
        found = of_group(self.objects, "MachineDeployment", group)
        annotations: dict[str, str] = found["metadata"].get("annotations", {})
        return annotations

    def test_the_autoscaler_knows_what_a_node_will_have(self) -> None:
        capacity = {
            key.removeprefix(f"{CAPACITY}/"): value
            for key, value in self.annotations("gpu").items()
            if key.startswith(CAPACITY)
        }
        self.assertEqual(
            {
                "cpu": "7500m",
                "memory": "68719476736",
                "ephemeral-disk": "100Gi",
                "maxPods": "60",
                "gpu-type": "amd.com/gpu",
                "gpu-count": "2",
            },
            {key: capacity[key] for key in capacity if key not in ("labels", "taints")},
        )

    def test_the_autoscaler_knows_all_labels_that_a_node_will_have(self) -> None:
        for scenario in ("scaled-to-zero", "changes-in-place", "long-names", "ovn-autoscaled"):
            objects = rendering.scenarios(rendering.CLUSTER)[scenario].objects
            annotated = (
                (found, found["metadata"].get("annotations", {}).get(f"{CAPACITY}/labels"))
                for found in rendering.by_kind(objects, "MachineDeployment")
            )
            for found, text in at_least_one(pair for pair in annotated if pair[1] is not None):
                group = found["metadata"]["labels"][GROUP]
                labels = dict(pair.split("=", 1) for pair in text.split(","))
                labels.pop("topology.kubernetes.io/zone", None)
                machine = found["spec"]["template"]["metadata"]["labels"]
                kubelet = kubelet_labels(objects, group)
                with self.subTest(scenario=scenario, group=group):
                    self.assertLessEqual(kubelet.items(), labels.items())
                    self.assertLessEqual(machine_labels(objects, group).items(), labels.items())
                    self.assertLessEqual(labels.items(), {**machine, **kubelet}.items())

    def test_a_zone_is_what_the_cloud_controller_makes_of_it(self) -> None:
        for group, zone in (("burst", "zone-1"), ("gpu", "Z-rich-1")):
            labels = self.annotations(group)[f"{CAPACITY}/labels"].split(",")
            self.assertIn(f"topology.kubernetes.io/zone={zone}", labels)
        group = {"autoscale": True, "machineCountMin": 0, "machineCountMax": 2}
        for zone, label in (
            ("_a zone_", "a-zone"),
            ("a" * 70, "a" * 63),
            (f"{'a' * 62}-b", None),
            ("ü", None),
        ):
            objects = rendered({**group, "failureDomain": zone})
            annotations = of_group(objects, "MachineDeployment")["metadata"]["annotations"]
            found = dict(
                pair.split("=", 1) for pair in annotations[f"{CAPACITY}/labels"].split(",")
            )
            with self.subTest(zone=zone):
                self.assertEqual(label, found.get("topology.kubernetes.io/zone"))

    def test_the_autoscaler_knows_the_taints_wherever_they_stand(self) -> None:
        self.assertEqual(
            "example.org/gpu=2:NoSchedule,dear:PreferNoSchedule",
            self.annotations("gpu")[f"{CAPACITY}/taints"],
        )
        in_place = rendering.scenarios(rendering.CLUSTER)["changes-in-place"].objects
        found = of_group(in_place, "MachineDeployment", "grown")
        self.assertEqual(
            "example.org/grown:NoExecute", found["metadata"]["annotations"][f"{CAPACITY}/taints"]
        )

    def test_the_autoscaler_knows_the_taints_of_ones_own_registration(self) -> None:
        group: dict[str, Any] = {"autoscale": True, "machineCountMin": 0, "machineCountMax": 2}
        own = {"key": "own", "value": "1", "effect": "NoSchedule"}
        group["nodeTaints"] = [{"key": "chart", "effect": "NoExecute"}]
        for taints, propagated, wanted in (
            (None, False, "chart:NoExecute"),
            ([own], False, "own=1:NoSchedule"),
            ([own], True, "chart:NoExecute,own=1:NoSchedule"),
            ([], None, None),
        ):
            spec = {"joinConfiguration": {"nodeRegistration": {"taints": taints}}}
            objects = rendered(
                {**group, "kubeadmConfigSpec": spec},
                clusterApi__machineTaintPropagation=propagated,
            )
            annotations = of_group(objects, "MachineDeployment")["metadata"]["annotations"]
            with self.subTest(taints=taints, propagated=propagated):
                self.assertEqual(wanted, annotations.get(f"{CAPACITY}/taints"))

    def test_options_of_one_group(self) -> None:
        prefix = "cluster.x-k8s.io/autoscaling-options-"
        self.assertEqual(
            {
                "scaledownutilizationthreshold": "0.25",
                "scaledowngpuutilizationthreshold": "1",
                "scaledownunneededtime": "5m0s",
                "scaledownunreadytime": "10m0s",
                "maxnodeprovisiontime": "45m0s",
            },
            {
                key.removeprefix(prefix): value
                for key, value in self.annotations("gpu").items()
                if key.startswith(prefix)
            },
        )

    def test_nothing_of_it_where_nobody_asks(self) -> None:
        self.assertEqual({}, self.annotations("later"))


class AutoscalerTest(unittest.TestCase):
    group = {"autoscale": True, "machineCountMin": 0, "machineCountMax": 2}

    def container(self, **change: Any) -> Any:
        objects = rendered(self.group, **change)
        return rendering.only(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]

    def test_its_release_goes_with_the_clusters(self) -> None:
        repository = "registry.k8s.io/autoscaling/cluster-autoscaler"
        for version, tag in (
            ("1.29.1", "v1.35.1"),
            ("v1.35.3", "v1.35.1"),
            ("1.36.0", "v1.36.1"),
            ("1.41.0", "v1.36.1"),
        ):
            found = self.container(kubernetesVersion=version)
            self.assertEqual(f"{repository}:{tag}", found["image"], version)
        found = self.container(controlPlane__kubernetesVersion="1.36.1")
        self.assertEqual(f"{repository}:v1.36.1", found["image"])
        found = self.container(autoscaler__image={"tag": "v1.30.4"})
        self.assertEqual(f"{repository}:v1.30.4", found["image"])

    def test_its_image_is_not_the_clusters(self) -> None:
        """It runs on the management cluster, so what a tenant can set does not reach it."""
        prefix = {"global": {"imageRegistryPrefix": "mirror.example.org:5000/a"}}
        found = self.container(**prefix)
        self.assertEqual("registry.k8s.io/autoscaling/cluster-autoscaler:v1.35.1", found["image"])
        repository = "mirror.example.org:5000/b/cluster-autoscaler"
        found = self.container(**prefix, autoscaler__image={"repository": repository})
        self.assertEqual(f"{repository}:v1.35.1", found["image"])

    def test_flags_are_text_however_they_are_written(self) -> None:
        flags = {"v": 2, "a": 0.5, "b": True, "c": 10000000, "d": "x y"}
        flags |= {"expander": None, "not-of-this-chart": None}
        given = self.container(autoscaler__extraArgs=flags)["args"]
        for flag in ("--v=2", "--a=0.5", "--b=true", "--c=10000000", "--d=x y"):
            self.assertIn(flag, given)
        self.assertFalse([one for one in given if one.startswith(("--expander", "--not-of"))])

    def test_it_may_do_what_it_does_and_no_more(self) -> None:
        rules = rendering.only(rendered(self.group), "Role")["rules"]
        may = {
            (resource, verb)
            for rule in rules
            for resource in rule["resources"]
            for verb in rule["verbs"]
        }
        looked_at = (
            *("machinedeployments", "machinesets", "machinepools", "machines"),
            "openstackmachinetemplates",
        )
        self.assertEqual(
            {
                *((one, verb) for one in looked_at for verb in ("get", "list", "watch")),
                ("machines", "update"),
                *(("machinedeployments/scale", verb) for verb in ("get", "patch", "update")),
            },
            may,
        )

    def test_its_pod_waits_for_the_kubeconfig(self) -> None:
        pod = rendering.only(rendered(self.group), "Deployment")["spec"]["template"]["spec"]
        self.assertEqual(
            [{"name": "kubeconfig", "secret": {"secretName": "demo-kubeconfig"}}], pod["volumes"]
        )
        self.assertEqual("FallbackToLogsOnError", pod["containers"][0]["terminationMessagePolicy"])
