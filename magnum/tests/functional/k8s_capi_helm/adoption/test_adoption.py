# SPDX-License-Identifier: Apache-2.0
"""A cluster of magnum-capi-helm, taken over by this driver, and given back."""

from __future__ import annotations

import json

from magnum.drivers.k8s_capi_helm.lease import codec
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.functional.k8s_capi_helm.adoption import facts
from magnum.tests.functional.k8s_capi_helm.adoption.objects import (
    changes,
    Key,
    lasting,
    Snapshot,
    told,
    versions,
)
from magnum.tests.functional.k8s_capi_helm.adoption.setting import (
    CONTRACT,
    GROUP,
    HandoverCase,
    PREDECESSOR,
    SUCCESSOR,
)
from magnum.tests.functional.k8s_capi_helm.charts import reference

#: Labels that do something in both drivers, under old names too, and some that neither knows.
LABELS = {
    "etcd_volume_size": "10",
    "etcd_volume_type": "fast",
    "boot_volume_size": "40",
    "monitoring_enabled": "true",
    "fixed_subnet_cidr": "10.8.0.0/24",
    "api_master_lb_allowed_cidrs": "192.0.2.0/24,198.51.100.0/24",
    "csi_cinder_reclaim_policy": "Delete",
    "heapster_enabled": "true",
}


class Adoption:
    """The steps of a handover; what is below says with which chart."""

    def settled(self: HandoverCase) -> None:
        # A server group, which the predecessor does not know, would go when a group is given back.
        self.configure(capi_helm_cluster_labels={"server_group_policies": "none"})
        self.found(PREDECESSOR, labels=LABELS)

    def test_handover(self: HandoverCase) -> None:
        """One life: made there, looked at, resized and extended here, given back, deleted here."""
        self.settled()
        release, made = self.release(), self.objects()
        revision = self.store.revision(release)
        self.assertIn(("Cluster", release), made)

        # The first look, at a cluster that is complete and at one that seems in progress.
        self.ask(SUCCESSOR, "look")
        self.assertEqual(versions(made), versions(self.objects()))
        self.ask(SUCCESSOR, "look")
        self.assertEqual(revision, self.store.revision(release))
        notice = self.row()["health_reason"]["notice"]
        for word in ("etcd_volume_size", "etcd_blockdevice_size", "heapster_enabled"):
            self.assertIn(word, notice)
        values = self.store.values(release)
        self.assertEqual(10, values["etcd"]["blockDevice"]["size"])

        # The operator's command predicts the first resize object by object, and writes nothing.
        before = versions(self.objects())
        plan = self.ask(SUCCESSOR, "predict")
        self.assertEqual("unchanged", plan["state"], plan)
        self.assertEqual(
            [
                "Magnum's records ask for: resize default-worker",
                f"MachineDeployment {release}-default-worker: spec.replicas",
            ],
            self.ask(SUCCESSOR, "predict", count=3)["changes"],
        )
        self.assertEqual(before, versions(self.objects()))

        # The first resize makes the Lease, and moves replicas.
        self.ask(SUCCESSOR, "resize", count=3)
        self.only_replicas("first resize", made, {f"{release}-default-worker"}, new=_lease(release))
        self.ask(SUCCESSOR, "look")
        self.assertEqual(revision + 1, self.store.revision(release))
        self.ask(SUCCESSOR, "settle")

        # A nodegroup adds its own objects.
        before = lasting(self.objects())
        self.ask(SUCCESSOR, "add_group", name="more", node_count=1, **GROUP)
        extended = lasting(self.objects())
        found = changes(before, extended)
        found.pop(_lease(release))
        self.show("nodegroup create", found)
        self.assertEqual({"new"}, {listed[0][2] for listed in found.values()})
        self.assertLessEqual(_MACHINES, {kind for kind, _ in found})
        self.ask(SUCCESSOR, "look")
        self.ask(SUCCESSOR, "settle")

        # The predecessor takes it back.
        before = self.objects()
        self.ask(PREDECESSOR, "look")
        self.ask(PREDECESSOR, "resize", count=2)
        self.only_replicas("given back", before, {f"{release}-default-worker"})
        self.ask(PREDECESSOR, "settle")

        # And again: the Lease notes the predecessor's revision, and that is all.
        before = self.objects()
        self.ask(SUCCESSOR, "look")
        after = self.objects()
        moved = [(key, path) for key, one in changes(before, after).items() for path, _, _ in one]
        # Where the conductor is still there, it has seen the revision by itself.
        self.assertIn(moved, ([], [(_lease(release), f".metadata.annotations.{codec.REVISIONS}")]))
        noted = json.loads(after[_lease(release)]["metadata"]["annotations"][codec.REVISIONS])
        self.assertEqual(self.store.revision(release), noted["newest"])
        self.ask(SUCCESSOR, "resize", count=4, group="more")
        self.only_replicas("second resize", before, {f"{release}-more"})
        self.ask(SUCCESSOR, "settle")
        self.ask(SUCCESSOR, "drop_group", name="more")
        left = lasting(self.objects())
        self.assertEqual([], [key for key in left if key[1].endswith("-more")])
        self.deleted()

    def test_control_plane(self: HandoverCase) -> None:
        self.settled()
        release, before = self.release(), self.objects()
        self.ask(SUCCESSOR, "resize", count=3, group="default-master")
        self.only_replicas(
            "control plane", before, {f"{release}-control-plane"}, new=_lease(release)
        )

    def test_nodegroups_of_the_predecessor(self: HandoverCase) -> None:
        """One whose name the predecessor had to change, and one that was autoscaled."""
        self.settled()
        release = self.release()
        self.ask(PREDECESSOR, "add_group", name="GPU_Pool", node_count=1, **GROUP)
        self.ask(PREDECESSOR, "settle")
        before = self.objects()
        self.assertIn(("MachineDeployment", f"{release}-gpu-pool"), before)
        self.ask(SUCCESSOR, "look")
        self.assertEqual(versions(before), versions(self.objects()))
        self.ask(SUCCESSOR, "resize", count=2, group="GPU_Pool")
        self.only_replicas("renamed", before, {f"{release}-gpu-pool"}, new=_lease(release))
        self.ask(SUCCESSOR, "settle")
        self.ask(SUCCESSOR, "drop_group", name="GPU_Pool")
        left = lasting(self.objects())
        self.assertNotIn(("MachineDeployment", f"{release}-gpu-pool"), left)
        self.assertIn(("MachineDeployment", f"{release}-default-worker"), left)

    def test_autoscaled(self: HandoverCase) -> None:
        self.configure()
        scaled = {"auto_scaling_enabled": "true", "min_node_count": "1", "max_node_count": "4"}
        self.found(PREDECESSOR, labels=scaled)
        release, before = self.release(), self.objects()
        self.assertEqual("true", self.store.values(release)["nodeGroups"][0]["autoscale"])
        self.ask(SUCCESSOR, "look")
        self.assertEqual(versions(before), versions(self.objects()))
        plan = self.ask(SUCCESSOR, "predict")
        self.assertEqual("unchanged", plan["state"], plan)
        self.ask(SUCCESSOR, "add_group", name="more", node_count=1, **GROUP)
        found = changes(lasting(before), lasting(self.objects()))
        self.show("a second group", found)
        self.assertEqual({"new"}, {listed[0][2] for listed in found.values()}, told(found))

    def test_taken_over_in_the_middle(self: HandoverCase) -> None:
        """A create and a deletion that the predecessor had begun are carried on."""
        self.settled()
        release, before = self.release(), self.objects()
        self.ask(PREDECESSOR, "begin", status="CREATE_IN_PROGRESS")
        self.ask(SUCCESSOR, "look")
        found = changes(before, self.objects())
        self.assertEqual(
            {_lease(release)}, {key for key in found if not _is_copy(key)}, told(found)
        )
        self.ask(PREDECESSOR, "delete")
        self.ask(SUCCESSOR, "look")
        self.ask(SUCCESSOR, "look")
        self.gone()

    def test_rotated_credential(self: HandoverCase) -> None:
        """A credential of the predecessor is replaced here, and both go in the end."""
        self.settled()
        (first,) = facts.read()["credentials"]
        self.ask(SUCCESSOR, "rotate")
        self.assertEqual(2, len(facts.read()["credentials"]))
        self.assertIn(first, facts.read()["credentials"])
        self.deleted()

    # ----------------------------------------------------------------------------------------------
    def only_replicas(
        self: HandoverCase,
        what: str,
        before: Snapshot,
        moved: set[str],
        *,
        new: Key | None = None,
    ) -> None:
        """Of all objects only these have changed, and of these only the number of replicas."""
        found = changes(lasting(before), lasting(self.objects()))
        self.show(what, found)
        release = self.release()
        its = found.pop(_lease(release), None)
        if new is not None:
            self.assertEqual([("", None, "new")], its)
        for copy in [key for key in found if _is_copy(key)]:
            self.assertEqual([("", None, "new")], found.pop(copy))
        self.assertEqual(moved, {name for _, name in found})
        for key, listed in found.items():
            self.assertEqual([".spec.replicas"], [path for path, _, _ in listed], key)

    def deleted(self: HandoverCase) -> None:
        """Delete the cluster here, and find nothing left."""
        self.ask(SUCCESSOR, "delete")
        for _ in range(3):
            self.ask(SUCCESSOR, "look")
        self.gone()

    def gone(self: HandoverCase) -> None:
        self.assertEqual([], self.rows())
        self.assertEqual({}, facts.read()["credentials"])
        everything = self.objects()
        self.assertEqual([], [key for key in everything if _is_copy(key)])
        self.assertEqual([], [key for key in everything if key[0] not in _FURNITURE])


#: What every nodegroup has.
_MACHINES = {"MachineDeployment", "KubeadmConfigTemplate", "OpenStackMachineTemplate"}
#: What every namespace has.
_FURNITURE = ("ConfigMap", "ServiceAccount", "RoleBinding", "Role")


def _lease(release: str) -> Key:
    return "Lease", f"{release}-magnum"


def _is_copy(key: Key) -> bool:
    """Whether it is a copy of a chart, for conductors that do not have it."""
    return key[0] == "ConfigMap" and key[1].startswith(names.chart_copy(""))


class OwnChartTest(Adoption, HandoverCase):
    """With the chart of this project."""


class ContractChartTest(Adoption, HandoverCase):
    """With another chart that takes the same values."""

    def setUp(self) -> None:
        super().setUp()
        self.chart = CONTRACT


class ReferenceChartTest(Adoption, HandoverCase):
    """With the reference chart, where a checkout is given."""

    def setUp(self) -> None:
        super().setUp()
        try:
            self.chart = self.enterContext(reference.chart())
        except reference.NotGiven as error:
            self.skipTest(str(error))
