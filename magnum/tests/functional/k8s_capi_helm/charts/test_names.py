# SPDX-License-Identifier: Apache-2.0
"""Names hold for every release and every group: valid, at most 63 characters, never two alike."""

from __future__ import annotations

import functools
import unittest

from magnum.tests.functional.k8s_capi_helm.charts import kubernetes_kinds, rendering
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object

SHARED = "a" * 56
GROUPS = [
    "a",
    "1",
    "a-b",
    "a--b",
    "md-0",
    "control-plane",
    "control-plane-2",
    "autoscaler",
    "default-worker",
    f"{SHARED}-one",
    f"{SHARED}-two",
    "b" * 63,
    "b" * 62,
    "b" * 54,
    "x" * 30 + "-" * 10 + "x" * 23,
]
RELEASES = ["c", "demo-cluster", "x" * 30 + "-abcdef012345", "y" * 53]


@functools.cache
def rendered(release: str) -> list[Object]:
    """A cluster with all of the groups, one of them autoscaled, and all addons."""
    values = rendering.scenarios(rendering.CLUSTER)["ovn-autoscaled"].values
    groups = [{"name": name, "machineFlavor": "m1", "machineCount": 1} for name in GROUPS]
    groups[0].update(autoscale=True, machineCountMin=0, machineCountMax=1)
    return rendering.render(
        rendering.CLUSTER, rendering.changed(values, {"nodeGroups": groups}), release=release
    )


class NameTest(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.releases = {release: rendered(release) for release in RELEASES}

    def test_names_and_labels_are_valid_and_bounded(self) -> None:
        for release, objects in self.releases.items():
            for found in objects:
                with self.subTest(release=release, found=rendering.identity(found)):
                    self.assertEqual([], kubernetes_kinds.metadata_faults(found))

    def test_no_two_objects_share_kind_and_name(self) -> None:
        for release, objects in self.releases.items():
            with self.subTest(release=release):
                names = [rendering.identity(found) for found in objects]
                self.assertCountEqual(set(names), names)

    def test_each_group_has_its_objects_under_its_whole_name(self) -> None:
        for release, objects in self.releases.items():
            for kind in (
                "MachineDeployment",
                "MachineHealthCheck",
                "OpenStackMachineTemplate",
                "KubeadmConfigTemplate",
            ):
                labels = [
                    found["metadata"]["labels"].get("capi.stackhpc.com/node-group")
                    for found in rendering.by_kind(objects, kind)
                ]
                with self.subTest(release=release, kind=kind):
                    self.assertCountEqual(GROUPS, [label for label in labels if label])

    def test_short_names_are_the_ones_that_others_look_for(self) -> None:
        objects = self.releases["demo-cluster"]
        self.assertEqual("demo-cluster", rendering.only(objects, "Cluster")["metadata"]["name"])
        self.assertEqual(
            "demo-cluster-control-plane",
            rendering.only(objects, "KubeadmControlPlane")["metadata"]["name"],
        )
        names = {one["metadata"]["name"] for one in rendering.by_kind(objects, "MachineDeployment")}
        self.assertIn("demo-cluster-default-worker", names)

    def test_references_name_objects_that_are_there(self) -> None:
        for release, objects in self.releases.items():
            names = {rendering.identity(found) for found in objects}
            for found in rendering.by_kind(objects, "MachineDeployment"):
                template = found["spec"]["template"]["spec"]
                for reference in (
                    template["infrastructureRef"],
                    template["bootstrap"]["configRef"],
                ):
                    with self.subTest(release=release, reference=reference):
                        self.assertIn((reference["kind"], reference["name"]), names)
            control_plane = rendering.only(objects, "KubeadmControlPlane")
            reference = control_plane["spec"]["machineTemplate"]["spec"]["infrastructureRef"]
            self.assertIn((reference["kind"], reference["name"]), names)

    def test_machine_selectors_do_not_overlap(self) -> None:
        for release, objects in self.releases.items():
            selectors = [
                tuple(sorted(found["spec"]["selector"]["matchLabels"].items()))
                for found in rendering.by_kind(objects, "MachineDeployment")
            ]
            with self.subTest(release=release):
                self.assertCountEqual(set(selectors), selectors)

    def test_sources_of_addons_fit_into_the_operators_annotations(self) -> None:
        for release, objects in self.releases.items():
            names = {rendering.identity(found) for found in objects}
            for found in rendering.by_kind(objects, "HelmRelease"):
                for source in found["spec"]["valuesSources"]:
                    with self.subTest(release=release, source=source):
                        self.assertLessEqual(len(source["secret"]["name"]), 63)
                        self.assertIn(("Secret", source["secret"]["name"]), names)
