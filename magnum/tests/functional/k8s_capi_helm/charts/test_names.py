# SPDX-License-Identifier: Apache-2.0
"""Names hold for every release and every group: valid, at most 63 characters, never two alike."""

from __future__ import annotations

import functools
import string
import unittest

import hypothesis
from hypothesis import strategies as st

from magnum.tests.functional.k8s_capi_helm.charts import kubernetes_kinds, rendering
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one

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
KINDS = (
    "MachineDeployment",
    "MachineHealthCheck",
    "OpenStackMachineTemplate",
    "KubeadmConfigTemplate",
)
_ENDS = st.sampled_from(string.ascii_lowercase[:3] + "019")
_MIDDLES = st.text(st.sampled_from("ab0-"), max_size=61)


def labels() -> st.SearchStrategy[str]:
    """DNS labels, often long, alike, or with dashes where a name would be cut."""
    free = st.builds(lambda first, middle, last: first + middle + last, _ENDS, _MIDDLES, _ENDS)
    alike = st.builds(
        lambda length, tail: (SHARED * 2)[:length] + tail,
        st.integers(1, 61),
        st.text(_ENDS, min_size=1, max_size=2),
    )
    dashes = st.builds(
        lambda before, dashes, after: before * "x" + dashes * "-" + after,
        *(st.integers(1, 50), st.integers(1, 12), _ENDS),
    )
    known = st.sampled_from(["control-plane", "autoscaler", "a", "0", "null", "1e3", "true"])
    return st.one_of(free, alike, dashes, known)


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
        for release, objects in at_least_one(self.releases.items()):
            for found in objects:
                with self.subTest(release=release, found=rendering.identity(found)):
                    self.assertEqual([], kubernetes_kinds.metadata_faults(found))

    def test_no_two_objects_share_kind_and_name(self) -> None:
        for release, objects in at_least_one(self.releases.items()):
            with self.subTest(release=release):
                names = [rendering.identity(found) for found in objects]
                self.assertCountEqual(set(names), names)

    def test_each_group_has_its_objects_under_its_whole_name(self) -> None:
        for release, objects in at_least_one(self.releases.items()):
            for kind in KINDS:
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
        for release, objects in at_least_one(self.releases.items()):
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
        for release, objects in at_least_one(self.releases.items()):
            selectors = [
                tuple(sorted(found["spec"]["selector"]["matchLabels"].items()))
                for found in rendering.by_kind(objects, "MachineDeployment")
            ]
            with self.subTest(release=release):
                self.assertCountEqual(set(selectors), selectors)

    def test_sources_of_addons_fit_into_the_operators_annotations(self) -> None:
        for release, objects in at_least_one(self.releases.items()):
            names = {rendering.identity(found) for found in objects}
            for found in rendering.by_kind(objects, "HelmRelease"):
                for source in found["spec"]["valuesSources"]:
                    with self.subTest(release=release, source=source):
                        self.assertLessEqual(len(source["secret"]["name"]), 63)
                        self.assertIn(("Secret", source["secret"]["name"]), names)


class AnyNameTest(unittest.TestCase):
    """Names of any groups under any release name that the driver can send."""

    @hypothesis.settings(
        database=None,
        deadline=None,
        derandomize=True,
        max_examples=40,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
    @hypothesis.given(
        release=labels().map(lambda name: f"r{name}"[:43].rstrip("-")),
        groups=st.lists(labels(), min_size=1, max_size=12, unique=True),
    )
    def test_valid_bounded_and_injective(self, release: str, groups: list[str]) -> None:
        objects = self.render(release, groups)
        names = [rendering.identity(found) for found in objects]
        self.assertCountEqual(set(names), names)
        for found in objects:
            self.assertEqual([], kubernetes_kinds.metadata_faults(found))
            self.assertLessEqual(len(found["metadata"]["name"]), 63)
        for kind in KINDS:
            found_groups = {
                found["metadata"]["labels"]["capi.stackhpc.com/node-group"]
                for found in rendering.by_kind(objects, kind)
                if "capi.stackhpc.com/node-group" in found["metadata"]["labels"]
            }
            self.assertEqual(set(groups), found_groups)

    def test_a_groups_names_do_not_hang_on_its_neighbours(self) -> None:
        alone = {
            rendering.identity(found)
            for group in GROUPS
            for found in self.render("r" * 43, [group])
        }
        together = {rendering.identity(found) for found in self.render("r" * 43, GROUPS)}
        self.assertEqual(together, alone)

    def test_what_fits_is_left_alone(self) -> None:
        for release, group in (("r", "g" * 61), ("r" * 43, "g" * 19), ("demo", "a--b")):
            names = {rendering.identity(found) for found in self.render(release, [group])}
            self.assertIn(("MachineDeployment", f"{release}-{group}"), names)
            self.assertIn(("MachineHealthCheck", f"{release}-{group}"), names)
        for release, group in (("r", "g" * 62), ("r" * 43, "g" * 20)):
            names = {rendering.identity(found) for found in self.render(release, [group])}
            (name,) = (name for kind, name in names if kind == "MachineDeployment")
            self.assertRegex(name, f"^{release}-g+-[0-9a-f]{{8}}$")

    def render(self, release: str, groups: list[str]) -> list[Object]:
        values = {
            **rendering.scenarios(rendering.CLUSTER)["minimal"].values,
            "addons": {"enabled": False},
            "nodeGroups": [{"name": name, "machineCount": 1} for name in groups],
        }
        return rendering.render(rendering.CLUSTER, values, release=release)
