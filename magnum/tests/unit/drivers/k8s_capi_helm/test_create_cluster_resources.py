# SPDX-License-Identifier: Apache-2.0
"""Server groups and API address of a cluster: who has them, and that nothing is left of them."""

from __future__ import annotations

from typing import Any

from openstack import exceptions as sdk_exceptions

from magnum import objects
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase, NAMESPACE, RELEASE

MASTERS, WORKERS = f"{RELEASE}.default-master", f"{RELEASE}.default-worker"
DOWN = sdk_exceptions.HttpException("boom", http_status=503)


class Case(DriverCase):
    def setUp(self) -> None:
        super().setUp()
        self.openstack = self.cloud.openstack

    def values(self) -> dict[str, Any]:
        found = self.helm.live(NAMESPACE, RELEASE)
        assert found is not None
        values: dict[str, Any] = found.values
        return values

    def entry(self, name: str) -> dict[str, Any]:
        return next(one for one in self.values()["nodeGroups"] if one["name"] == name)

    def take_away(self) -> None:
        self.delete()
        self.status_task()
        self.capi_deletes()
        self.status_task()
        self.assertEqual([], objects.Cluster.list(self.context))


class TestServerGroups(Case):
    def test_a_new_cluster_has_one_for_each_group(self) -> None:
        self.made(workers=2)
        self.assertEqual(
            {MASTERS: "soft-anti-affinity", WORKERS: "soft-anti-affinity"},
            self.openstack.policies(),
        )
        ids = self.openstack.ids()
        self.assertEqual(ids[MASTERS], self.values()["controlPlane"]["serverGroupId"])
        self.assertEqual(ids[WORKERS], self.entry("default-worker")["serverGroupId"])

    def test_the_label_says_how_or_that_there_are_none(self) -> None:
        self.create(labels={"server_group_policies": "Anti-Affinity"})
        self.assertEqual({"anti-affinity"}, set(self.openstack.policies().values()))

    def test_none(self) -> None:
        self.made(labels={"server_group_policies": "none"})
        self.add_group("extra")
        self.assertEqual({}, self.openstack.policies())
        self.assertNotIn("serverGroupId", str(self.values()))

    def test_nothing_is_asked_of_nova_without_need(self) -> None:
        self.made(labels={"server_group_policies": "none"})
        self.resize(3)
        self.status_task()
        self.assertEqual([], self.openstack.asked)

    def test_a_new_nodegroup_has_its_own(self) -> None:
        self.made()
        before = self.values()
        self.add_group("extra", 2)
        name = f"{RELEASE}.extra"
        self.assertEqual(self.openstack.ids()[name], self.entry("extra")["serverGroupId"])
        self.assertEqual(before["nodeGroups"], self.values()["nodeGroups"][:-1])
        self.assertEqual(before["controlPlane"], self.values()["controlPlane"])

    def test_a_nodegroup_may_have_it_otherwise(self) -> None:
        self.made()
        self.add_group("tight", labels={"server_group_policies": "affinity"})
        self.add_group("loose", labels={"server_group_policies": "none"})
        self.assertEqual("affinity", self.openstack.policies()[f"{RELEASE}.tight"])
        self.assertNotIn(f"{RELEASE}.loose", self.openstack.policies())
        self.assertNotIn("serverGroupId", self.entry("loose"))
        self.assertIn("serverGroupId", self.entry("tight"))

    def test_it_goes_with_the_nodegroups_last_machine(self) -> None:
        self.made()
        self.add_group("extra", 2)
        self.capi_converges()
        self.status_task(2)
        before = set(self.openstack.ids())
        self.drop_group("extra")
        self.status_task()
        self.assertEqual(before, set(self.openstack.ids()))
        self.capi_converges()
        self.status_task(2)
        self.assertEqual({MASTERS, WORKERS}, set(self.openstack.ids()))
        self.assertEqual(2, len(self.cluster().nodegroups))
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    def test_a_nodegroup_stays_until_nova_has_answered(self) -> None:
        self.made()
        self.add_group("extra", 2)
        self.capi_converges()
        self.status_task(2)
        self.drop_group("extra")
        self.capi_converges()
        self.openstack.failing = DOWN
        self.status_task(2)
        self.health_task()
        self.assertEqual("DELETE_IN_PROGRESS", self.group("extra").status)
        self.openstack.failing = None
        self.health_task()
        self.status_task(2)
        self.assertEqual({MASTERS, WORKERS}, set(self.openstack.ids()))
        self.assertEqual(2, len(self.cluster().nodegroups))
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    def test_what_nova_refuses_refuses_the_nodegroup_alone(self) -> None:
        self.made()
        self.openstack.quota = 2
        self.add_group("extra")
        extra = self.group("extra")
        self.assertEqual("CREATE_FAILED", extra.status)
        self.assertIn("too many server groups", extra.status_reason)
        self.assertEqual(["default-worker"], [one["name"] for one in self.values()["nodeGroups"]])
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    def test_a_nova_that_is_away_refuses_only_who_is_to_have_one(self) -> None:
        self.made()
        self.openstack.failing = DOWN
        self.add_group("grouped")
        self.add_group("alone", labels={"server_group_policies": "none"})
        self.openstack.failing = None
        grouped = self.group("grouped")
        self.assertEqual("CREATE_FAILED", grouped.status)
        self.assertIn("server group cannot be created. Nova", grouped.status_reason)
        self.assertIn("Delete the nodegroup and create it again", grouped.status_reason)
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("CREATE_COMPLETE", self.group("alone").status)

    def test_what_nova_refuses_refuses_the_cluster_and_nothing_stays(self) -> None:
        self.openstack.quota = 1
        cluster = self.create()
        self.assertEqual("CREATE_FAILED", cluster.status)
        self.assertIn("too many server groups", cluster.status_reason)
        self.assertEqual({}, self.cloud.credentials)
        self.take_away()
        self.assertEqual(({}, []), (self.openstack.ids(), self.left()))

    def test_a_cluster_that_goes_takes_all_of_them(self) -> None:
        self.made()
        self.add_group("extra", 2)
        self.assertEqual(3, len(self.openstack.groups))
        self.take_away()
        self.assertEqual({}, self.openstack.ids())

    def test_they_are_there_while_a_machine_may_be(self) -> None:
        self.made()
        self.delete()
        self.status_task(3)
        self.assertEqual({MASTERS, WORKERS}, set(self.openstack.ids()))

    def test_a_cluster_stays_until_nova_has_answered(self) -> None:
        self.made()
        self.delete()
        self.status_task()
        self.capi_deletes()
        self.openstack.failing = DOWN
        self.status_task(2)
        self.assertEqual("DELETE_IN_PROGRESS", self.cluster().status)
        self.assertIn("Nova", self.cluster().status_reason)
        self.openstack.failing = None
        self.status_task()
        self.assertEqual(([], {}), (objects.Cluster.list(self.context), self.openstack.ids()))

    def test_nobody_makes_one_for_a_cluster_that_goes(self) -> None:
        self.made()
        self.delete()
        self.add_group("extra")
        self.assertEqual("CREATE_FAILED", self.group("extra").status)
        self.assertNotIn(f"{RELEASE}.extra", self.openstack.ids())


class TestClustersThatExist(Case):
    """Made by another driver, or by this one before it knew of server groups."""

    def setUp(self) -> None:
        super().setUp()
        self.made(labels={"server_group_policies": "none"})
        cluster = self.cluster()
        cluster.labels = {}
        cluster.save()
        self.openstack.asked.clear()

    def test_never_get_one(self) -> None:
        before = self.values()
        self.status_task()
        self.health_task()
        self.resize(2)
        self.capi_converges()
        self.status_task(2)
        before["nodeGroups"][0]["machineCount"] = 2
        self.assertEqual((before, []), (self.values(), self.openstack.asked))

    def test_not_by_an_upgrade_either(self) -> None:
        self.cloud.images["newer"] = ("image-2", "1.35.0")
        template = self._template(uuid="22222222-2222-4333-8444-555555555555", image_id="newer")
        self.assertEqual("", self.upgrade(template))
        self.assertNotIn("serverGroupId", str(self.values()))
        self.assertEqual({}, self.openstack.ids())

    def test_not_when_the_release_has_to_be_made_again(self) -> None:
        self.helm.releases.clear()
        self.resize(2)
        self.assertEqual(2, self.entry("default-worker")["machineCount"])
        self.assertNotIn("serverGroupId", str(self.values()))
        self.assertEqual({}, self.openstack.ids())


class TestRecovery(Case):
    def test_a_release_that_is_made_again_has_the_same_groups(self) -> None:
        self.made(master_lb_enabled=False)
        before = self.values()
        self.helm.releases.clear()
        self.resize(2)
        before["nodeGroups"][0]["machineCount"] = 2
        self.assertEqual(before, self.values())
        self.assertEqual((2, 1), (len(self.openstack.groups), len(self.openstack.addresses)))


class TestApiAddress(Case):
    """A control plane without load balancer, which is what Magnum makes unless told otherwise."""

    def test_made_and_given_to_the_chart(self) -> None:
        self.made(master_lb_enabled=False)
        [there] = self.openstack.addresses
        self.assertEqual("net-1", there.floating_network_id)
        server = self.values()["apiServer"]
        self.assertEqual(
            (False, True, there.floating_ip_address),
            (server["enableLoadBalancer"], server["associateFloatingIP"], server["floatingIP"]),
        )

    def test_one_that_the_tenant_brings_is_used_and_never_deleted(self) -> None:
        network = self.openstack.neutron()
        own = network.create_ip(floating_network_id="net-1", description="").floating_ip_address
        self.made(master_lb_enabled=False, labels={"api_server_floating_ip": own})
        self.assertEqual(own, self.values()["apiServer"]["floatingIP"])
        self.take_away()
        self.assertEqual([own], [one.floating_ip_address for one in self.openstack.addresses])

    def test_a_load_balancer_needs_none(self) -> None:
        self.made()
        self.assertEqual([], self.openstack.addresses)
        self.assertNotIn("floatingIP", self.values()["apiServer"])

    def test_it_goes_at_the_very_end_and_no_other_does(self) -> None:
        self.made(master_lb_enabled=False)
        mine = names.api_floating_ip(RELEASE)
        self.openstack.neutron().create_ip(floating_network_id="net-1", description="a tenant's")
        self.delete()
        self.status_task(3)
        self.assertIn(mine, [one.description for one in self.openstack.addresses])
        self.capi_deletes()
        self.status_task()
        self.assertEqual(["a tenant's"], [one.description for one in self.openstack.addresses])
        self.assertEqual([], objects.Cluster.list(self.context))

    def test_a_full_quota_refuses_the_cluster(self) -> None:
        self.openstack.quota = 0
        cluster = self.create(master_lb_enabled=False, labels={"server_group_policies": "none"})
        self.assertEqual("CREATE_FAILED", cluster.status)
        self.assertIn("--master-lb-enabled", cluster.status_reason)

    def test_an_api_that_would_lose_its_address_is_refused(self) -> None:
        for fields in (
            {"floating_ip_enabled": False},
            {"labels": {"master_lb_floating_ip_enabled": "false"}},
        ):
            with self.subTest(fields):
                cluster = self.create(master_lb_enabled=False, **fields)
                self.assertEqual("CREATE_FAILED", cluster.status)
                self.assertIn("neither a load balancer nor a floating IP", cluster.status_reason)
                self.assertEqual(([], []), (self.left(), self.openstack.asked))
                self.take_away()
