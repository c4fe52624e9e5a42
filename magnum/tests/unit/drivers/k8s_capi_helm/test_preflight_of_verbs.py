# SPDX-License-Identifier: Apache-2.0
"""What cannot be built is refused before anything is touched: clusters, machines, nodegroups."""

from __future__ import annotations

from magnum import objects
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import Quota, QuotaResource
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase, NAMESPACE, RELEASE

ADVICE = "Delete what is no longer needed, or ask the cloud's operator for a higher quota."


class TestCreate(DriverCase):
    def test_everything_is_said_at_once_and_nothing_is_left(self) -> None:
        self.cloud.gone = ("small",)
        self.cloud.limits = {
            QuotaResource.INSTANCES: Quota(10, 9),
            QuotaResource.ROUTERS: Quota(1, 1),
        }
        labels = {"boot_volume_size": "20", "boot_volume_type": "slow"}
        cluster = self.create(masters=3, keypair="theirs", labels=labels)
        self.assertEqual("CREATE_FAILED", cluster.status)
        self.assertEqual(
            "4 problems found: "
            "Label 'boot_volume_type' names no volume type that this project can use; "
            "The flavor does not exist or is not visible to this project; "
            "The keypair does not exist or belongs to another user; "
            "The project's quota is too small for servers, routers. "
            "(1) Label 'boot_volume_type' names no volume type that this project can use. The "
            "value is 'slow'; this project can use: fast. "
            "(2) The flavor does not exist or is not visible to this project. The flavor is "
            "'small': choose one that 'openstack flavor list' shows. "
            "(3) The keypair does not exist or belongs to another user. The keypair is 'theirs': "
            "choose one that 'openstack keypair list' shows. "
            "(4) The project's quota is too small for servers, routers. servers: 4 needed, 1 free "
            f"of 10; routers: 1 needed, 0 free of 1. {ADVICE}",
            cluster.status_reason,
        )
        for group in cluster.nodegroups:
            self.assertEqual(cluster.status_reason, group.status_reason)
        self.assertIsNone(cluster.stack_id)
        self.assertEqual([], list(self.kube.everything()))
        self.assertEqual(({}, []), (self.cloud.credentials, self.helm.runs))
        self.assertEqual(([], []), (self.cloud.openstack.groups, self.cloud.openstack.addresses))
        self.delete()
        self.status_task()
        self.assertEqual([], objects.Cluster.list(self.context))

    def test_an_operator_can_switch_quotas_off(self) -> None:
        self.cloud.limits = {QuotaResource.INSTANCES: Quota(0)}
        self.config(group="capi_helm", preflight_quota=False)
        self.made()
        self.resize(5)
        self.add_group("more", 5)
        self.assertEqual("UPDATE_IN_PROGRESS", self.cluster().status)
        self.assertEqual("CREATE_IN_PROGRESS", self.group("more").status)

    def test_a_release_that_is_gone_is_not_held_up_by_the_quota_it_fills(self) -> None:
        self.made(keypair="mine")
        self.cloud.limits = {QuotaResource.INSTANCES: Quota(2, 2)}
        self.cloud.keypairs = ()
        self.helm.releases.clear()
        self.resize(1)
        self.health_task()
        self.assertIsNotNone(self.helm.live(NAMESPACE, RELEASE))


class TestResize(DriverCase):
    def setUp(self) -> None:
        super().setUp()
        self.made(workers=1)
        self.before = self.helm.live(NAMESPACE, RELEASE)

    def refused(self, count: int, words: str, name: str = "default-worker") -> None:
        before = self.group(name).node_count
        self.resize(count, name)
        for row in (self.cluster(), self.group(name)):
            self.assertEqual(("UPDATE_FAILED", words), (row.status, row.status_reason))
        self.assertEqual(before, self.group(name).node_count)
        self.assertEqual(self.before, self.helm.live(NAMESPACE, RELEASE))
        record = self.ports.leases.read(NAMESPACE, RELEASE)
        self.assertEqual((), record.operations)

    def test_what_does_not_fit_is_refused_with_its_numbers(self) -> None:
        self.cloud.limits = {
            QuotaResource.INSTANCES: Quota(4, 2),
            QuotaResource.CORES: Quota(10, 4),
        }
        self.refused(
            5,
            "The project's quota is too small for servers, vCPUs. servers: 4 needed, 2 free of 4; "
            f"vCPUs: 8 needed, 6 free of 10. {ADVICE}",
        )

    def test_what_fits_goes_on_afterwards(self) -> None:
        self.cloud.limits = {QuotaResource.INSTANCES: Quota(4, 2)}
        self.resize(9)
        self.status_task()
        self.resize(3)
        self.assertEqual("UPDATE_IN_PROGRESS", self.cluster().status)
        self.capi_converges()
        self.status_task(2)
        cluster = self.cluster()
        self.assertEqual(("UPDATE_COMPLETE", None), (cluster.status, cluster.status_reason))
        self.assertEqual(3, self.group().node_count)

    def test_the_control_plane(self) -> None:
        self.cloud.limits = {QuotaResource.SERVER_GROUP_MEMBERS: Quota(2)}
        words = f"servers in one server group: 3 needed, 2 free of 2. {ADVICE}"
        short = "The project's quota is too small for servers in one server group."
        self.refused(3, f"{short} {words}", "default-master")

    def test_the_machines_that_the_autoscaler_has_made_are_members_too(self) -> None:
        live = self.helm.releases[NAMESPACE, RELEASE]
        [entry] = live.values["nodeGroups"]
        del entry["machineCount"]
        entry |= {"autoscale": True, "machineCountMin": 1, "machineCountMax": 9}
        self.scale("default-worker", 4)
        self.before = self.helm.live(NAMESPACE, RELEASE)
        self.cloud.limits = {QuotaResource.SERVER_GROUP_MEMBERS: Quota(5)}
        words = f"servers in one server group: 6 needed, 5 free of 5. {ADVICE}"
        short = "The project's quota is too small for servers in one server group."
        self.refused(6, f"{short} {words}")

    def test_a_patch_is_refused_as_well(self) -> None:
        self.cloud.limits = {QuotaResource.RAM: Quota(4096, 4000)}
        cluster, group = self.cluster(), self.group()
        group.node_count = 2
        group.save()
        error = self.assertRaises(
            errors.DoesNotFit, self.driver.update_cluster, self.context, cluster
        )
        self.assertIn("MiB of memory: 4096 needed, 96 free of 4096", str(error))

    def test_fewer_machines_always_fit(self) -> None:
        self.cloud.limits = {QuotaResource.INSTANCES: Quota(0, 2)}
        self.resize(0)
        self.assertEqual("UPDATE_IN_PROGRESS", self.cluster().status)

    def test_a_cloud_that_is_away_or_says_no_holds_nobody_up(self) -> None:
        for refusal in (errors.CloudUnreachable("Nova is away."), errors.CloudRefused("No.")):
            self.cloud.refusal = refusal
            self.resize(self.group().node_count + 1)
            self.assertEqual("UPDATE_IN_PROGRESS", self.cluster().status)
            self.capi_converges()
            self.status_task(2)


class TestNodegroup(DriverCase):
    def test_one_that_does_not_fit_fails_alone(self) -> None:
        self.made()
        self.cloud.limits = {
            QuotaResource.INSTANCES: Quota(4, 2),
            QuotaResource.SERVER_GROUPS: Quota(2, 2),
        }
        self.add_group("more", 3)
        self.assertEqual("CREATE_FAILED", self.group("more").status)
        self.assertEqual(
            "The project's quota is too small for servers, server groups. servers: 3 needed, 2 "
            f"free of 4; server groups: 1 needed, 0 free of 2. {ADVICE}",
            self.group("more").status_reason,
        )
        self.assertEqual(2, len(self.cloud.openstack.groups))
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        entries = self.helm.live(NAMESPACE, RELEASE).values["nodeGroups"]
        self.assertEqual(["default-worker"], [one["name"] for one in entries])

    def test_a_flavor_that_is_not_there_and_a_quota_come_together(self) -> None:
        self.made()
        self.cloud.gone = ("gone",)
        self.cloud.limits = {QuotaResource.INSTANCES: Quota(2, 2)}
        self.add_group("more", 1, flavor_id="gone")
        reason = self.group("more").status_reason
        self.assertIn("(1) The flavor does not exist", reason)
        self.assertIn("(2) The project's quota is too small for servers. servers: 1 needed", reason)

    def test_an_image_that_does_not_go_with_the_cluster_comes_together_with_them(self) -> None:
        self.made()
        self.cloud.images["old"] = ("image-3", "1.30.9")
        self.cloud.limits = {QuotaResource.INSTANCES: Quota(2, 2)}
        self.add_group("more", 1, image_id="old")
        reason = self.group("more").status_reason
        self.assertIn(
            "(1) The Kubernetes version of nodegroup 'more' is too old for the control plane. Its "
            "image has v1.30.9, more than",
            reason,
        )
        self.assertIn("(2) The project's quota is too small for servers. servers: 1 needed", reason)
