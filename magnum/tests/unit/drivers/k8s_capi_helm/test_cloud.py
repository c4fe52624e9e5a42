# SPDX-License-Identifier: Apache-2.0
"""The cloud port through the real openstacksdk: what it asks, finds and translates."""

from __future__ import annotations

import time
import types
from typing import Any

import fixtures
from keystoneauth1 import exceptions as ka_exceptions

from magnum.drivers.k8s_capi_helm import cloud, deadline, errors, labels
from magnum.drivers.k8s_capi_helm.cloud.access import endpoints
from magnum.drivers.k8s_capi_helm.cloud.access.services import translate_errors
from magnum.drivers.k8s_capi_helm.cloud.catalogue import compute
from magnum.drivers.k8s_capi_helm.cloud.preflight import quota_usage
from magnum.drivers.k8s_capi_helm.model import (
    ApplicationCredential,
    CloudCapability,
    ClusterRequest,
    FloatingIp,
    NodeGroupRequest,
    Quota,
    QuotaResource,
)
from magnum.tests import base
from magnum.tests.unit.drivers.k8s_capi_helm.fakes import apis, FakeApis

UUID = "0a0a0a0a-1111-4111-8111-000000000001"
LIMITED = {"load_balancer": 3, "listener": 5, "pool": -1}


def request(**changes: Any) -> ClusterRequest:
    fields: dict[str, Any] = {
        "uuid": "c1",
        "name": "demo",
        "release": "demo-abcdefghijkl",
        "namespace": "magnum-p1",
        "project_id": "p1",
        "user_id": "u1",
        "labels": labels.parse({}, {}),
        "control_plane": NodeGroupRequest("default-master", "small", 1),
        "node_groups": (NodeGroupRequest("default-worker", "small", 1),),
        "image": "ubuntu-kube",
        "external_network": "public",
    }
    return ClusterRequest(**{**fields, **changes})


class CloudCase(base.TestCase):
    """A fake cloud and the port to it."""

    def setUp(self) -> None:
        super().setUp()
        # The libraries wait before they try again.
        self.useFixture(fixtures.MonkeyPatch("keystoneauth1.session.time.sleep", lambda s: None))
        self.openstack = FakeApis()
        self.cloud = cloud.Cloud(cloud.Services(self.openstack.clients(self.context)))


class TestFacts(CloudCase):
    def test_everything_a_render_needs(self) -> None:
        facts = self.cloud.facts(request(fixed_network="mine"), interface="internal")
        self.assertEqual(UUID, facts.image_id)
        self.assertEqual(("1.34.4", "ubuntu"), (facts.kubernetes_version, facts.os_distro))
        self.assertEqual(("net-1", "net-2"), (facts.external_network_id, facts.fixed_network_id))
        self.assertEqual(("fast", "slow"), facts.volume_types)
        self.assertEqual((2, 4096, 20), self.sizes(facts.flavors["small"]))
        self.assertEqual("http://cloud.example/identity/v3", facts.auth_url)
        self.assertEqual((), facts.refusals)

    @staticmethod
    def sizes(flavor: Any) -> tuple[int, int, int]:
        return flavor.vcpus, flavor.ram, flavor.disk

    def test_what_an_upgrade_needs_is_the_image_and_what_labels_name(self) -> None:
        wanted = request(labels=labels.Labels(availability_zone="zone-1"), external_network="gone")
        facts = self.cloud.software(wanted)
        self.assertEqual((UUID, "1.34.4"), (facts.image_id, facts.kubernetes_version))
        self.assertEqual(("zone-1", "zone-2"), facts.capabilities[CloudCapability.SERVER_ZONE])
        self.assertEqual({"small"}, set(facts.flavors))
        self.assertFalse([one for one in self.openstack.asked if "network" in one])

    def test_by_id_as_well(self) -> None:
        net = "0a0a0a0a-1111-4111-8111-000000000002"
        self.openstack.networks[0]["id"] = net
        worker = NodeGroupRequest("default-worker", "f-2", 1)
        facts = self.cloud.facts(
            request(image=UUID, external_network=net, fixed_subnet="sub-1", node_groups=(worker,))
        )
        self.assertEqual((UUID, net), (facts.image_id, facts.external_network_id))
        self.assertEqual("large", facts.flavors["f-2"].name)

    def test_an_image_whose_name_looks_like_an_id(self) -> None:
        name = "0a0a0a0a-1111-4111-8111-00000000000f"
        self.openstack.images[0]["name"] = name
        self.assertEqual(UUID, self.cloud.facts(request(image=name)).image_id)

    def test_a_hidden_image_is_found_and_two_of_a_name_are_refused(self) -> None:
        self.openstack.images[0]["os_hidden"] = True
        self.assertEqual(UUID, self.cloud.facts(request()).image_id)
        self.openstack.images.append(dict(self.openstack.images[0], id="other"))
        error = self.assertRaises(errors.CloudRefused, self.cloud.facts, request())
        self.assertIn("not unique", str(error))

    def test_what_an_image_needs(self) -> None:
        for size, virtual, least, disk in (
            (1, None, 0, 1),
            (3 * 1024**3, 10 * 1024**3, 0, 10),
            (1024**3 + 1, None, 0, 2),
            (1024**3, None, 15, 15),
            (None, None, 0, 0),
        ):
            changes = {"size": size, "virtual_size": virtual, "min_disk": least, "min_ram": 512}
            self.openstack.images[0].update(changes)
            image = self.cloud.facts(request()).images["ubuntu-kube"]
            self.assertEqual((disk, 512), (image.disk, image.ram))

    def test_what_is_missing_is_missing_in_the_facts(self) -> None:
        worker = NodeGroupRequest("default-worker", "tiny", 1)
        facts = self.cloud.facts(
            request(
                image="gone",
                node_groups=(worker,),
                external_network="mine",
                fixed_subnet="none",
                keypair="theirs",
            ),
            new=True,
        )
        self.assertEqual(("", None, False), (facts.image_id, facts.external_network_id, False))
        self.assertEqual({"small"}, set(facts.flavors))
        self.assertEqual((), facts.subnets)
        self.assertIs(False, facts.has_keypair)

    def test_the_keypair_is_looked_for_only_where_its_owner_asks(self) -> None:
        self.assertIs(True, self.cloud.facts(request(keypair="mine"), new=True).has_keypair)
        self.assertIsNone(self.cloud.facts(request(keypair="mine")).has_keypair)

    def test_the_floating_ip_is_looked_for_only_when_a_cluster_is_made(self) -> None:
        self.openstack.floatingips = [
            {"id": "1", "floating_ip_address": "192.0.2.10", "project_id": "p1", "port_id": None},
            {"id": "2", "floating_ip_address": "192.0.2.11", "project_id": "p1", "port_id": "x"},
        ]
        for address, wanted in (
            ("192.0.2.10", (FloatingIp("192.0.2.10", "p1"),)),
            ("192.0.2.11", (FloatingIp("192.0.2.11", "p1", in_use=True),)),
            ("192.0.2.12", ()),
        ):
            texts = labels.parse({"api_server_floating_ip": address}, {})
            self.assertEqual(wanted, self.cloud.facts(request(labels=texts), new=True).floating_ips)
            self.assertIsNone(self.cloud.facts(request(labels=texts)).floating_ips)
        self.assertIsNone(self.cloud.facts(request(), new=True).floating_ips)

    def test_own_network_wins_over_a_visible_one_of_the_same_name(self) -> None:
        self.openstack.networks.append(self.openstack.network("net-3", "mine", "somebody"))
        self.assertEqual("net-2", self.cloud.facts(request(fixed_network="mine")).fixed_network_id)
        self.openstack.networks.append(self.openstack.network("net-4", "mine", "p1"))
        self.assertIsNone(self.cloud.facts(request(fixed_network="mine")).fixed_network_id)

    def test_what_labels_name_is_asked_for(self) -> None:
        for label, value, offer, known in (
            ("availability_zone", "x", CloudCapability.SERVER_ZONE, ("zone-1", "zone-2")),
            ("etcd_blockdevice_volume_az", "x", CloudCapability.VOLUME_ZONE, ("nova", "storage-1")),
            ("octavia_provider", "ovn", CloudCapability.BALANCER_PROVIDER, ("amphora", "ovn")),
            # By name alone, as Cluster API's provider looks for it.
            ("api_server_lb_flavor", "lb-1", CloudCapability.BALANCER_FLAVOR, ("big",)),
        ):
            facts = self.cloud.facts(request(labels=labels.parse({label: value}, {})))
            self.assertEqual(known, facts.capabilities[offer])
        self.assertEqual(
            {CloudCapability.VOLUME_TYPE}, set(self.cloud.facts(request()).capabilities)
        )

    def test_calls_are_bounded_in_time(self) -> None:
        clients = self.openstack.clients(self.context)
        cloud.Cloud(cloud.Services(clients)).facts(request())
        self.assertEqual(30, clients.keystone().session.timeout)

    def test_all_attempts_together_have_the_time_of_whoever_waits(self) -> None:
        clients = self.openstack.clients(self.context)
        here = cloud.Cloud(cloud.Services(clients))
        with deadline.end_at(time.monotonic() + 15):
            here.facts(request())
            self.assertTrue(4 < clients.keystone().session.timeout <= 5)
        with deadline.end_at(time.monotonic()):
            here.facts(request())
            self.assertEqual(2, clients.keystone().session.timeout)
        here.facts(request())
        self.assertEqual(30, clients.keystone().session.timeout)


class TestErrors(CloudCase):
    def test_a_service_that_does_not_answer_is_nobodys_fault(self) -> None:
        for service in ("image", "compute", "network", "volume"):
            self.openstack.down = {service}
            error = self.assertRaises(errors.CloudUnreachable, self.cloud.facts, request())
            self.assertIn("try again", str(error))

    def test_a_service_that_is_not_in_the_catalogue_is_told_among_the_problems(self) -> None:
        self.openstack.absent = {"block-storage"}
        port = cloud.Cloud(cloud.Services(self.openstack.clients(self.context)))
        self.assertIn("Cinder", port.facts(request()).refusals[0])

    def test_a_service_that_says_no_is_told_among_the_problems(self) -> None:
        for end in ("/types", "/networks"):
            self.openstack.said = {end: (403, {"error": {"message": "not for you"}})}
            facts = self.cloud.facts(request())
            self.assertEqual(1, len(facts.refusals))
            self.assertIn("not for you", facts.refusals[0])
        self.assertIsNone(facts.networks)

    def test_library_errors_do_not_cross(self) -> None:
        for end in ("/detail", "/images"):
            for status, wanted in (
                (503, errors.CloudUnreachable),
                (429, errors.CloudUnreachable),
                (403, errors.CloudRefused),
            ):
                self.openstack.said = {end: (status, {})}
                self.assertRaises(wanted, self.cloud.facts, request())

    def test_an_answer_of_another_shape_is_told_without_a_traceback(self) -> None:
        log = self.useFixture(fixtures.FakeLogger())
        self.openstack.said = {"/images": (200, {"images": 3})}
        self.assertRaises(errors.CloudUnreachable, self.cloud.facts, request())
        self.assertNotIn("Traceback", log.output)

    def test_a_bug_of_the_driver_is_told_with_its_traceback(self) -> None:
        log = self.useFixture(fixtures.FakeLogger())

        nova = types.SimpleNamespace(flavors=lambda **query: [object()])
        services: Any = types.SimpleNamespace(nova=lambda: nova, is_admin=False)
        self.assertRaises(errors.CloudUnreachable, compute.flavors, services, ["small"], "p1")
        self.assertIn("compute.py", log.output)
        self.assertIn("Traceback", log.output)

    def test_what_keystoneauth_raises_is_translated(self) -> None:
        for failure, wanted in (
            (ka_exceptions.ConnectFailure("refused"), errors.CloudUnreachable),
            (ka_exceptions.EndpointNotFound("none"), errors.CloudRefused),
        ):
            error = self.assertRaises(wanted, self.translated, failure)
            self.assertIn("Nova", str(error))
        self.assertEqual("This cloud has no Nova.", str(error))

    @staticmethod
    def translated(failure: Exception) -> None:
        with translate_errors("Nova", "servers"):
            raise failure


class TestQuotas(CloudCase):
    BOOT = {"boot_volume_size": "10", "boot_volume_type": "fast"}

    def quotas(self, **changes: Any) -> dict[Any, Quota]:
        wanted = request(labels=labels.parse(self.BOOT, {}), **changes)
        more = quota_usage.cluster_usage(wanted, self.cloud.facts(wanted).flavors)
        return dict(self.cloud.quotas("p1", more))

    def test_limits_and_what_is_used_or_reserved(self) -> None:
        self.openstack.nova_quota = {
            "instances": {"limit": 10, "in_use": 3, "reserved": 1},
            "server_groups": {"limit": 10, "in_use": 2, "reserved": 0},
            "server_group_members": {"limit": 10, "in_use": 0, "reserved": 0},
        }
        self.openstack.cinder_quota = {
            "volumes": {"limit": 4, "in_use": 3, "reserved": 1},
            "gigabytes": {"limit": 100, "in_use": 30, "reserved": 5},
            "per_volume_gigabytes": {"limit": 50, "in_use": 0, "reserved": 0},
            "volumes_fast": {"limit": 2, "in_use": 1, "reserved": 0},
            "gigabytes_fast": {"limit": -1, "in_use": 10, "reserved": 0},
        }
        self.openstack.neutron_quota = {
            "floatingip": {"limit": 2, "used": 1, "reserved": 1},
            "port": {"limit": 20, "used": 9, "reserved": 0},
        }
        self.openstack.octavia_quota = LIMITED
        self.openstack.balancers = [
            {"id": "a", "listeners": [{"id": "l1"}, {"id": "l2"}], "pools": [{"id": "p"}]},
            {"id": "b", "listeners": [{"id": "l3"}], "pools": []},
        ]
        self.assertEqual(
            {
                QuotaResource.INSTANCES: Quota(10, 4),
                QuotaResource.SERVER_GROUPS: Quota(10, 2),
                QuotaResource.SERVER_GROUP_MEMBERS: Quota(10),
                QuotaResource.VOLUMES: Quota(4, 4),
                QuotaResource.GIGABYTES: Quota(100, 35),
                QuotaResource.VOLUME_GIGABYTES: Quota(50),
                (QuotaResource.VOLUMES, "fast"): Quota(2, 1),
                QuotaResource.FLOATING_IPS: Quota(2, 2),
                QuotaResource.PORTS: Quota(20, 9),
                QuotaResource.LOAD_BALANCERS: Quota(3, 2),
                QuotaResource.LISTENERS: Quota(5, 3),
            },
            self.quotas(),
        )

    def test_a_volume_type_without_a_limit_takes_no_other_away(self) -> None:
        self.openstack.cinder_quota = {
            "volumes": {"limit": 4, "in_use": 3, "reserved": 0},
            "volumes_fast": {"limit": None, "in_use": 1, "reserved": 0},
        }
        found = self.quotas()
        self.assertEqual(Quota(4, 3), found[QuotaResource.VOLUMES])
        self.assertNotIn((QuotaResource.VOLUMES, "fast"), found)

    def test_without_any_limit_nothing_is_counted(self) -> None:
        self.openstack.nova_quota = {}
        self.assertEqual({}, self.quotas())
        self.assertNotIn("GET /load-balancer/v2/lbaas/loadbalancers", self.openstack.asked)

    def test_a_quota_that_cannot_be_read_is_in_nobodys_way(self) -> None:
        ends = ("/quotas/p1/details", "/os-quota-sets/p1/detail", "/quotas/p1", "/os-quota-sets/p1")
        for status in (403, 404, 500, 503):
            self.openstack.said = {end: (status, {}) for end in ends}
            self.assertEqual({}, self.quotas())
        self.openstack.said = {end: (200, {"quota": {}, "quota_set": {}}) for end in ends}
        self.assertEqual({}, self.quotas())

    def test_an_octavia_that_is_away_is_cluster_apis_to_wait_for(self) -> None:
        self.openstack.down = {"load-balancer"}
        self.assertIn(QuotaResource.SERVER_GROUP_MEMBERS, self.quotas())

    def test_a_service_of_which_nothing_is_needed_is_not_asked(self) -> None:
        wanted = request(load_balancer=False, floating_ip=False)
        self.cloud.quotas("p1", quota_usage.cluster_usage(wanted, self.cloud.facts(wanted).flavors))
        for part in ("load-balancer", "volume/v3/os-quota-sets"):
            self.assertFalse([one for one in self.openstack.asked if part in one])


class TestRequests(CloudCase):
    """At most 15 requests per create: facts, quotas, what is made in the project, credentials."""

    LIMIT = 15

    def setUp(self) -> None:
        super().setUp()
        # A process that knows nothing yet.
        self.version_cache: dict[str, Any] = {}

    def count(self, wanted: ClusterRequest, *attempts: str) -> int:
        """Requests of the last one of some creates."""
        self.openstack.octavia_quota = LIMITED
        groups = (wanted.control_plane, *wanted.node_groups)
        for attempt in attempts or ("first", "second"):
            self.openstack.asked.clear()
            port = cloud.Cloud(
                cloud.Services(
                    self.openstack.clients(self.context), version_cache=self.version_cache
                )
            )
            facts = port.facts(wanted, new=True)
            port.quotas("p1", quota_usage.cluster_usage(wanted, facts.flavors))
            policies = dict.fromkeys((one.name for one in groups), "soft-anti-affinity")
            port.belongings.make_server_groups(f"demo-{attempt}", policies)
            for name in ("magnum-x", "magnum-x-inside"):
                port.create_credential("u1", name, "for x", ["member"])
        return len(self.openstack.asked)

    def test_an_everyday_create(self) -> None:
        self.assertLessEqual(self.count(request(keypair="mine")), self.LIMIT)

    def test_the_first_one_of_a_process_whatever_the_catalogue_has(self) -> None:
        for catalogue in (apis.ENDPOINTS, apis.UNVERSIONED, apis.OF_PROJECT):
            self.version_cache.clear()
            self.openstack.endpoints = dict(catalogue)
            self.assertLessEqual(self.count(request(keypair="mine"), "first"), self.LIMIT)

    def test_a_service_is_asked_for_its_versions_where_the_catalogue_has_another(self) -> None:
        self.openstack.endpoints["image"] = "/image/v1"
        self.openstack.said = {"/image/v1": (404, {})}
        self.assertEqual(UUID, self.cloud.facts(request()).image_id)
        self.assertIn("GET /image/v2/images", self.openstack.asked)

    def test_one_that_boots_from_volumes(self) -> None:
        texts = {"boot_volume_size": "20", "boot_volume_type": "fast"}
        wanted = request(labels=labels.parse(texts, {}), keypair="mine")
        self.assertLessEqual(self.count(wanted), self.LIMIT)

    def test_what_labels_name_is_asked_for_once_however_many_groups_there_are(self) -> None:
        texts = {
            "availability_zone": "zone-1",
            "boot_volume_size": "20",
            "boot_volume_type": "fast",
            "etcd_blockdevice_size": "10",
            "etcd_blockdevice_volume_az": "nova",
            "octavia_provider": "ovn",
            "extra_network_names": "storage backup",
        }
        groups = tuple(NodeGroupRequest(f"group-{n}", "large", 3) for n in range(20))
        wanted = request(labels=labels.parse(texts, {}), fixed_network="mine", node_groups=groups)
        self.cloud.facts(wanted)
        self.openstack.asked.clear()
        facts = self.cloud.facts(wanted)
        self.cloud.quotas("p1", quota_usage.cluster_usage(wanted, facts.flavors))
        asked = [one for one in self.openstack.asked if one.count("/") > 2]
        self.assertEqual(len(set(asked)), len(asked))
        self.assertLessEqual(len(asked), self.LIMIT)


class TestAddresses(base.TestCase):
    """Where an API is, by what the catalogue has."""

    def test_a_version_is_there_or_is_added(self) -> None:
        for url, service, wanted in (
            ("http://c/image", "image", "http://c/image/v2"),
            ("http://c:9292", "image", "http://c:9292/v2"),
            ("http://c:9292/", "image", "http://c:9292/v2"),
            ("http://c/image/v2/", "image", "http://c/image/v2"),
            ("http://c:9696", "network", "http://c:9696/v2.0"),
            ("http://c:9696/v2.0", "network", "http://c:9696/v2.0"),
            ("http://c/volume/v3/p1", "block-storage", "http://c/volume/v3/p1"),
            ("http://c/v2.1", "compute", "http://c/v2.1"),
            ("http://c/v1/image", "image", "http://c/v1/image/v2"),
            ("http://c/identity", "identity", "http://c/identity/v3"),
        ):
            self.assertEqual(wanted, endpoints.address(url, service, "p1"))

    def test_what_is_not_known_is_left_to_the_service(self) -> None:
        for url, service in (
            ("http://c/image/v1", "image"),
            ("http://c/volume/v2/p1", "block-storage"),
            ("http://c/volume/p1", "block-storage"),
            ("http://c/identity/v2.0", "identity"),
            ("http://c/image?region=one", "image"),
        ):
            self.assertIsNone(endpoints.address(url, service, "p1"))


class TestCredentialsAndFaults(CloudCase):
    def test_whether_keystone_takes_one(self) -> None:
        made = self.cloud.create_credential("u1", "magnum-x", "for x", ["member"])
        self.assertTrue(self.cloud.accepts(made))
        self.assertFalse(self.cloud.accepts(ApplicationCredential(made.id, "wrong")))
        self.cloud.delete_credential("u1", made.id)
        self.assertFalse(self.cloud.accepts(made))
        self.openstack.down = {"identity"}
        self.assertRaises(errors.CloudUnreachable, self.cloud.accepts, made)

    def test_credential_is_made_and_deleted(self) -> None:
        made = self.cloud.create_credential("u1", "magnum-x", "for x", ["member", "reader"])
        self.assertEqual(("ac-1", "s3cret", "magnum-x"), (made.id, made.secret, made.name))
        wanted = self.openstack.credentials["ac-1"]
        self.assertEqual([{"name": "member"}, {"name": "reader"}], wanted["roles"])
        self.assertIs(False, wanted["unrestricted"])
        self.cloud.delete_credential("u1", "ac-1")
        self.assertEqual({}, self.openstack.credentials)

    def test_credentials_are_told_by_project(self) -> None:
        for name in ("magnum-x", "magnum-y"):
            self.cloud.create_credential("u1", name, "for x", ["member"])
        wanted = {"ac-1": "magnum-x", "ac-2": "magnum-y"}
        self.assertEqual(wanted, self.cloud.credential_names("u1", "p1"))
        self.openstack.credentials["ac-2"]["project_id"] = "p2"
        self.assertEqual({"ac-1": "magnum-x"}, self.cloud.credential_names("u1", "p1"))

    def test_somebody_who_is_gone_has_no_credentials(self) -> None:
        words = {"error": {"code": 404, "message": "Could not find user: u1."}}
        self.openstack.said = {"/application_credentials": (404, words)}
        self.assertEqual({}, self.cloud.credential_names("u1", "p1"))

    def test_a_404_that_is_not_about_that_person_tells_nothing(self) -> None:
        for words in ({}, {"path": "/v3/users/u1/application_credentials"}):
            self.openstack.said = {"/application_credentials": (404, words)}
            self.assertRaises(errors.CloudRefused, self.cloud.credential_names, "u1", "p1")

    def test_credentials_that_may_not_be_listed(self) -> None:
        self.openstack.said = {"/application_credentials": (403, {})}
        self.assertRaises(errors.CloudRefused, self.cloud.credential_names, "u1", "p1")

    def test_a_refused_credential_is_refused_with_what_to_do(self) -> None:
        self.openstack.said = {"/application_credentials": (403, {})}
        error = self.assertRaises(
            errors.CloudRefused, self.cloud.create_credential, "u1", "magnum-x", "", ["member"]
        )
        self.assertIn("log in with your password", str(error))

    def test_a_credential_that_is_gone_is_deleted(self) -> None:
        self.assertIsNone(self.cloud.delete_credential("u1", "ac-1"))

    def test_a_load_balancer_in_error(self) -> None:
        for state, wanted in (("ERROR", True), ("PENDING_CREATE", False), ("ACTIVE", False)):
            one = {"name": "lb", "id": "1", "provisioning_status": state, "project_id": "p1"}
            self.openstack.balancers = [one]
            self.assertIs(wanted, self.cloud.is_balancer_failed("lb", "p1"))
        self.openstack.balancers = []
        self.assertFalse(self.cloud.is_balancer_failed("lb", "p1"))

    def test_novas_words_on_servers(self) -> None:
        self.openstack.faults = {"s-1": " No valid host for s-1 "}
        faults = self.cloud.server_faults(["s-1", "gone"])
        self.assertEqual({"s-1": "No valid host for s-1"}, faults)

    def test_a_fault_of_another_form(self) -> None:
        for fault in (["no"], "no", {"message": ["no"]}):
            self.openstack.said = {"servers/s-1": (200, {"server": {"id": "s-1", "fault": fault}})}
            self.assertRaises(errors.CloudUnreachable, self.cloud.server_faults, ["s-1"])
