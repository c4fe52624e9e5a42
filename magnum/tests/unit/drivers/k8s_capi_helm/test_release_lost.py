# SPDX-License-Identifier: Apache-2.0
"""A release that is gone while its objects are there: taken over as they are, or refused.

Whether objects really stay as they are is asked of the real Helm, by a functional test of the same
name.
"""

from __future__ import annotations

from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.helm import manifest_diff
from magnum.drivers.k8s_capi_helm.model import Json, LiveRelease, names
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase, NAMESPACE, RELEASE

DEPLOYMENT = f"{RELEASE}-default-worker"


class LostRecordCase(DriverCase):
    def setUp(self) -> None:
        super().setUp()
        self.made(workers=1)
        self.live = self.helm.live(NAMESPACE, RELEASE)
        self.before = self.live.values
        self.helm.releases.clear()
        self.helm.runs.clear()

    def runs(self) -> list[str]:
        return [verb for verb, _, _ in self.helm.runs]

    def change(self, **fields: Any) -> None:
        """Change the Cluster object as somebody else does."""
        kind = names.CLUSTER
        self.kube.patch(kind, NAMESPACE, RELEASE, fields)

    def rendered(self, kind: names.Kind, name: str, **spec: Any) -> Json:
        """An object as the chart would make it: the one that is there, with other fields."""
        found = self.kube.get(kind, NAMESPACE, name)
        return {**found, "spec": {**found["spec"], **spec}}


class TestTakenOver(LostRecordCase):
    def test_first_as_it_is_and_then_as_it_is_wanted(self) -> None:
        self.resize(3)
        self.assertEqual(["adopt", "apply"], self.runs())
        self.assertEqual(self.before, self.helm.runs[0][2])
        self.assertEqual(3, self.helm.runs[1][2]["nodeGroups"][0]["machineCount"])
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    def test_nothing_is_wanted_besides(self) -> None:
        self.resize(1)
        self.assertEqual(["adopt"], self.runs())

    def test_a_helm_that_was_killed_over_it_is_not_its_end(self) -> None:
        def killed(live: LiveRelease) -> None:
            self.helm.midway = None
            raise errors.HelmInterrupted("It was killed.")

        self.helm.midway = killed
        self.resize(3)
        self.assertEqual("pending-install", self.helm.live(NAMESPACE, RELEASE).status)
        self.status_task()
        self.assertEqual(["adopt", "adopt"], self.runs())
        self.assertEqual(3, self.helm.runs[1][2]["nodeGroups"][0]["machineCount"])

    def test_a_nodegroup_that_is_not_there_yet_comes_after_it(self) -> None:
        self.add_group("more", 2)
        self.assertEqual(["adopt", "apply"], self.runs())
        self.assertEqual(self.before, self.helm.runs[0][2])

    def test_where_the_lease_was_not_moved_along(self) -> None:
        self.kube.remove(names.LEASE, NAMESPACE, names.lease(RELEASE))
        self.resize(1)
        self.assertEqual(["adopt"], self.runs())
        self.assertEqual(
            self.cluster().uuid, self.ports.leases.read(NAMESPACE, RELEASE).cluster_uuid
        )

    def test_nothing_is_there_any_more(self) -> None:
        self.capi_deletes()
        self.resize(2)
        self.assertEqual(["apply"], self.runs())

    def test_an_upgrade_says_what_leads_to_it(self) -> None:
        self.assertIn("Resize it to its current size", self.upgrade(self.template))
        self.assertEqual([], self.runs())

    def test_the_autoscaler_is_the_operators_of_today(self) -> None:
        """Another image, or limits that it had not, keep nothing from being taken over."""
        about = {
            "name": f"{RELEASE}-autoscaler",
            "namespace": NAMESPACE,
            "labels": {names.LABEL_CHART_COMPONENT: names.AUTOSCALER},
        }
        old = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": about, "spec": {"a": 1}}
        self.kube.put(names.DEPLOYMENT, old)
        self.helm.renders = lambda values: [{**old, "spec": {"a": 2}}]
        self.resize(1)
        self.assertEqual(["adopt"], self.runs())

    def test_the_health_says_so(self) -> None:
        self.health_task()
        notice = self.cluster().health_status_reason["notice"]
        self.assertIn("does not exist on the management cluster any more", notice)


class TestCreation(DriverCase):
    """A helm that is killed at its first run leaves objects, and its revision is forgotten."""

    def test_its_objects_are_its_own(self) -> None:
        self.create()
        self.capi_converges()
        self.helm.releases.clear()
        self.helm.runs.clear()
        self.status_task()
        self.assertEqual(["apply"], [verb for verb, _, _ in self.helm.runs])


class TestRefused(LostRecordCase):
    def refused(self, words: str) -> None:
        before = list(self.kube.everything())
        self.resize(3)
        # Magnum has overwritten the status after the driver.
        self.status_task()
        self.assertEqual([], self.runs())
        cluster = self.cluster()
        self.assertEqual("UPDATE_FAILED", cluster.status)
        self.assertIn(words, cluster.status_reason)
        kinds = [one for one in before if one["kind"] != "Lease"]
        self.assertEqual(kinds, [one for one in self.kube.everything() if one["kind"] != "Lease"])

    def test_an_object_that_would_become_another(self) -> None:
        found = self.rendered(names.MACHINE_DEPLOYMENT, DEPLOYMENT, clusterName="other")
        self.helm.renders = lambda values: [found]
        self.refused(f"spec.clusterName of MachineDeployment '{DEPLOYMENT}' would change")

    def test_a_control_plane_that_is_not_there(self) -> None:
        found = self.rendered(names.CLUSTER, RELEASE)
        found["metadata"] = {**found["metadata"], "name": "another"}
        self.helm.renders = lambda values: [found]
        self.refused("Cluster 'another' would change")

    def test_a_nodegroup_without_a_row(self) -> None:
        found = self.rendered(names.MACHINE_DEPLOYMENT, DEPLOYMENT)
        marks = {**found["metadata"]["labels"], names.LABEL_NODE_GROUP: "extra"}
        found["metadata"] = {"name": "extra", "namespace": NAMESPACE, "labels": marks}
        self.kube.put(names.MACHINE_DEPLOYMENT, found)
        self.refused("MachineDeployment 'extra' belongs to no nodegroup in Magnum")

    def test_an_object_of_another_release(self) -> None:
        found = self.rendered(names.CLUSTER, RELEASE)
        self.helm.renders = lambda values: [found]
        notes = {"annotations": {manifest_diff.RELEASE_NAME: "theirs"}}
        self.change(metadata=notes)
        self.refused(f"belongs to another release, {NAMESPACE}/theirs")

    def test_an_object_of_another_cluster(self) -> None:
        found = self.rendered(names.CLUSTER, RELEASE)
        self.helm.renders = lambda values: [found]
        marks = {"labels": {names.LABEL_UUID: "another"}}
        self.change(metadata=marks)
        self.refused("of the Magnum cluster 'another'")

    def test_a_cluster_that_is_being_deleted(self) -> None:
        found = self.kube.get(names.CLUSTER, NAMESPACE, RELEASE)
        found["metadata"] = {**found["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
        self.kube.put(names.CLUSTER, found)
        self.refused("being deleted on the management cluster")

    def test_a_pause_is_waited_for(self) -> None:
        self.change(spec={"paused": True})
        self.resize(3)
        self.status_task()
        self.assertEqual(([], "UPDATE_IN_PROGRESS"), (self.runs(), self.cluster().status))
        self.assertIn("is paused on the management cluster", self.cluster().status_reason)
        self.change(spec={"paused": None})
        self.status_task()
        self.assertEqual(["adopt", "apply"], self.runs())
