# SPDX-License-Identifier: Apache-2.0
"""The live release is the record: what was not asked for stays, whatever the cloud says today."""

from magnum.tests.unit.drivers.k8s_capi_helm import driver_case
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import NAMESPACE, RELEASE


class TestRecord(driver_case.DriverCase):
    def entries(self):
        return {one["name"]: one for one in self.helm.live(NAMESPACE, RELEASE).values["nodeGroups"]}

    def scale_by_default(self):
        group = "capi_helm_cluster_labels"
        self.config(group=group, auto_scaling_enabled=True, min_node_count=1, max_node_count=5)

    def test_a_new_default_makes_no_group_autoscaled(self):
        self.made(workers=2)
        before = self.entries()["default-worker"]
        self.scale_by_default()
        self.add_group("extra", 1)
        self.assertEqual(before, self.entries()["default-worker"])
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    def test_a_group_of_fixed_size_is_resized_under_a_new_default(self):
        self.made(workers=2)
        self.scale_by_default()
        self.resize(3)
        self.assertEqual("UPDATE_IN_PROGRESS", self.cluster().status)
        entry = self.entries()["default-worker"]
        self.assertEqual((3, None), (entry["machineCount"], entry.get("autoscale")))

    def test_an_autoscaled_group_keeps_its_bounds_without_the_default(self):
        self.scale_by_default()
        cluster = self.create(workers=2)
        cluster.status = "CREATE_COMPLETE"
        cluster.save()
        before = self.entries()["default-worker"]
        self.assertEqual(5, before["machineCountMax"])
        self.config(group="capi_helm_cluster_labels", auto_scaling_enabled=False)
        self.resize(3, "default-master")
        self.assertEqual(before, self.entries()["default-worker"])
        self.resize(6)
        self.assertIn("between 1 and 5", self.cluster().status_reason)

    def test_a_new_group_needs_its_flavor_and_server_group_of_the_cloud_and_no_more(self):
        self.made()
        before = self.entries()
        self.cloud.images.clear()
        self.add_group("extra", 2)
        self.assertEqual("CREATE_IN_PROGRESS", self.group("extra").status)
        extra = {
            "name": "extra",
            "machineFlavor": "small",
            "machineCount": 2,
            "serverGroupId": self.cloud.openstack.ids()[f"{driver_case.RELEASE}.extra"],
        }
        self.assertEqual({**before, "extra": extra}, self.entries())

    def test_a_new_group_with_a_flavor_that_is_too_small_fails_in_a_sentence(self):
        self.made()
        self.config(group="capi_helm", minimum_flavor_ram=8192)
        self.add_group("extra")
        self.status_task()
        self.assertEqual("CREATE_FAILED", self.group("extra").status)
        self.assertIn("8192 MiB", self.group("extra").status_reason)
        self.assertNotIn("extra", self.entries())
