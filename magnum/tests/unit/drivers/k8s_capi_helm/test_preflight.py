# SPDX-License-Identifier: Apache-2.0
"""Preflight: every kind of problem in its whole words, several in one line, and what is counted."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import testtools

from magnum.drivers.k8s_capi_helm import errors, labels
from magnum.drivers.k8s_capi_helm.cloud.preflight import (
    capabilities,
    checks,
    machines,
    message,
    quota_usage,
)
from magnum.drivers.k8s_capi_helm.model import (
    CloudCapability,
    CloudFacts,
    ClusterRequest,
    Flavor,
    FloatingIp,
    Image,
    Network,
    NodeGroupRequest,
    Quota,
    QuotaResource,
    Subnet,
)
from magnum.drivers.k8s_capi_helm.values.tree.live import CONTROL_PLANE

TERMS = machines.MachineRequirements(("ubuntu", "flatcar"), ram=2048, vcpus=2)
PUBLIC = Network("n-1", "public", "admin", external=True, subnets=("s-9",))
MINE = Network("n-2", "mine", "p1", subnets=("s-1",))
FACTS = CloudFacts(
    image_id="i-1",
    kubernetes_version="1.34.4",
    os_distro="ubuntu",
    flavors={
        "small": Flavor("f-1", "small", 2, 4096, 20),
        "tiny": Flavor("f-2", "tiny", 1, 1024, 20),
        "diskless": Flavor("f-3", "diskless", 2, 4096, 0),
        "large": Flavor("f-4", "large", 8, 16384, 80),
    },
    auth_url="http://keystone/v3",
    images={"kube": Image("i-1", "1.34.4", "ubuntu", disk=10)},
    networks=(PUBLIC, MINE),
    subnets=(Subnet("s-1", "nodes", "n-2", "p1"), Subnet("s-2", "other", "n-3", "p1")),
    external_network_id="n-1",
    has_keypair=True,
    capabilities={
        CloudCapability.SERVER_ZONE: ("az-1", "az-2"),
        CloudCapability.VOLUME_ZONE: ("nova",),
        CloudCapability.VOLUME_TYPE: ("fast",),
        CloudCapability.BALANCER_PROVIDER: ("amphora", "ovn"),
    },
)


def request(texts: dict[str, str] | None = None, **changes: Any) -> ClusterRequest:
    fields: dict[str, Any] = {
        "uuid": "c1",
        "name": "demo",
        "release": "demo-abcdefghijkl",
        "namespace": "magnum-p1",
        "project_id": "p1",
        "user_id": "u1",
        "labels": labels.parse(texts or {}, {}),
        "control_plane": NodeGroupRequest("default-master", "small", 1),
        "node_groups": (NodeGroupRequest("default-worker", "small", 2),),
        "image": "kube",
        "external_network": "public",
    }
    return ClusterRequest(**{**fields, **changes})


def worker(flavor: str, count: int = 2, **more: Any) -> tuple[NodeGroupRequest, ...]:
    return (NodeGroupRequest("default-worker", flavor, count, **more),)


def image(**changes: Any) -> dict[str, Any]:
    return {"images": {"kube": dataclasses.replace(FACTS.images["kube"], **changes)}}


#: What is asked for, what the cloud says otherwise than FACTS, and the whole problem.
PROBLEMS: tuple[tuple[ClusterRequest, dict[str, Any], str], ...] = (
    (
        request(),
        {"image_id": "", "kubernetes_version": "", "os_distro": "", "images": {}},
        "The image does not exist or is not visible to this project. The image is 'kube': "
        "choose one that 'openstack image list' shows.",
    ),
    (
        request(),
        image(status="queued"),
        "The image is not active. Image 'kube' has the status 'queued': choose another one, or "
        "wait until it is active.",
    ),
    (
        request(),
        {"os_distro": "windows"},
        "The image has an unsupported os_distro. Image 'kube' has 'windows', and this version "
        "of the driver supports ubuntu and flatcar.",
    ),
    (
        request(distro="ubuntu"),
        {"os_distro": "flatcar"},
        "The image has another os_distro than the cluster template. Image 'kube' has 'flatcar', "
        "and the template has 'ubuntu'. Create a template from this image.",
    ),
    (
        request({"etcd_blockdevice_size": "10"}),
        {"os_distro": "flatcar"},
        "Label 'etcd_blockdevice_size' is not supported with Flatcar. The value is '10', and "
        "etcd cannot have its own disk there. Leave the label out, or choose an image of "
        "another distribution.",
    ),
    (
        request(),
        {"kubernetes_version": ""},
        "The image has no property 'kube_version', so its Kubernetes version is not known. Set "
        "it on image 'kube', for example kube_version=v1.36.3, choose another image, or set the "
        "label kube_tag (for an upgrade, in the new template).",
    ),
    (
        request({"kube_tag": "v1.34.4"}),
        {"kubernetes_version": "latest"},
        "Property 'kube_version' of the image is not a full Kubernetes version. Image 'kube' has "
        "'latest': set it to one like v1.36.3, or choose another image.",
    ),
    (
        request(node_groups=worker("gone")),
        {},
        "The flavor does not exist or is not visible to this project. The flavor is 'gone': "
        "choose one that 'openstack flavor list' shows.",
    ),
    (
        request(node_groups=worker("tiny")),
        {},
        "The flavor is too small for a Kubernetes node. Flavor 'tiny' has 1024 MiB of memory "
        "and 1 vCPUs, and this cloud requires at least 2048 MiB and 2 vCPUs.",
    ),
    (
        request(),
        image(ram=8192),
        "The flavor has too little memory for the image. Flavor 'small' has 4096 MiB, and image "
        "'kube' needs 8192 MiB. Choose a larger flavor.",
    ),
    (
        request(node_groups=worker("diskless")),
        {},
        "The flavor has no disk, so its nodes have to boot from a volume. Flavor 'diskless' "
        "needs the label boot_volume_size, or choose another flavor.",
    ),
    (
        request(),
        image(disk=30),
        "The disk of the flavor is too small for the image. Flavor 'small' has 20 GiB, and "
        "image 'kube' needs 30 GiB. Choose a larger flavor, or set the label boot_volume_size.",
    ),
    (
        request({"boot_volume_size": "5"}),
        {},
        "Label 'boot_volume_size' is too small for the image. The value is '5', and image "
        "'kube' needs 10 GiB. Set a larger value.",
    ),
    (
        request(keypair="theirs"),
        {"has_keypair": False},
        "The keypair does not exist or belongs to another user. The keypair is 'theirs': choose "
        "one that 'openstack keypair list' shows.",
    ),
    (
        request(external_network="nowhere"),
        {},
        "The external network does not exist. It is named 'nowhere': give the name or id of an "
        "existing one.",
    ),
    (
        request(external_network="mine"),
        {},
        "The external network of the cluster template is not an external network. The network "
        "is 'mine': choose one that 'openstack network list --external' shows.",
    ),
    (
        request(external_network="public"),
        {"networks": (PUBLIC, dataclasses.replace(PUBLIC, id="n-9"))},
        "The name of the external network is not unique. 2 are named 'public' (n-1, n-9): give "
        "the id.",
    ),
    (
        request(fixed_network="nowhere"),
        {},
        "The network does not exist. It is named 'nowhere': give the name or id of an existing "
        "one.",
    ),
    (
        request(fixed_network="mine"),
        {"networks": (PUBLIC, dataclasses.replace(MINE, subnets=()))},
        "The network has no subnet, so nodes get no address. Create one in network 'mine'.",
    ),
    (
        request(fixed_network="mine"),
        {"networks": (PUBLIC, dataclasses.replace(MINE, subnets=("a", "b", "c")))},
        "The network has 3 subnets, and none is chosen. Name the one for the nodes of network "
        "'mine' with --fixed-subnet.",
    ),
    (
        request(fixed_subnet="nowhere"),
        {},
        "The subnet does not exist. It is named 'nowhere': give the name or id of an existing one.",
    ),
    (
        request(fixed_network="mine", fixed_subnet="other"),
        {"fixed_network_id": "n-2"},
        "The subnet does not belong to the network. The subnet is 'other', and the network "
        "'mine'. Choose a subnet of this network, or name the subnet only.",
    ),
    (
        request({"extra_network_names": "storage"}),
        {"extra_networks": {"storage": ()}},
        "The network of label 'extra_network_names' does not exist. It is named 'storage': give "
        "the name or id of an existing one.",
    ),
    (
        request({"extra_network_names": "mine"}),
        {"extra_networks": {"mine": ("n-2", "n-5")}},
        "The name of the network of label 'extra_network_names' is not unique. 2 are named "
        "'mine' (n-2, n-5): give the id.",
    ),
    (
        request({"availability_zone": "az-9"}),
        {},
        "Label 'availability_zone' names no availability zone of Nova that this project can "
        "use. The value is 'az-9'; this project can use: az-1, az-2.",
    ),
    (
        request({"etcd_blockdevice_size": "10", "etcd_blockdevice_volume_az": "az-9"}),
        {},
        "Label 'etcd_blockdevice_volume_az' names no availability zone of Cinder that this "
        "project can use. The value is 'az-9'; this project can use: nova.",
    ),
    (
        request({"boot_volume_size": "20", "boot_volume_type": "slow"}),
        {},
        "Label 'boot_volume_type' names no volume type that this project can use. The value is "
        "'slow'; this project can use: fast.",
    ),
    (
        request({"control_plane_availability_zones": "az-1,az-9"}),
        {},
        "Label 'control_plane_availability_zones' names no availability zone of Nova that this "
        "project can use. The value is 'az-9'; this project can use: az-1, az-2.",
    ),
    (
        request({"api_server_lb_flavor": "huge"}),
        {"capabilities": {CloudCapability.BALANCER_FLAVOR: ("small", "large")}},
        "Label 'api_server_lb_flavor' names no load balancer flavor that this project can use. "
        "The value is 'huge'; this project can use: large, small.",
    ),
    (
        request({"octavia_provider": "f5"}),
        {},
        "Label 'octavia_provider' names no load balancer provider that this project can use. "
        "The value is 'f5'; this project can use: amphora, ovn.",
    ),
    (
        request(),
        {"refusals": ("Cinder refused volume types: not for you",)},
        "Cinder refused volume types: not for you",
    ),
    (
        request(),
        {"quotas": {QuotaResource.INSTANCES: Quota(10, 8), QuotaResource.CORES: Quota(20, 16)}},
        "The project's quota is too small for servers, vCPUs. servers: 3 needed, 2 free of 10; "
        "vCPUs: 6 needed, 4 free of 20. Delete what is no longer needed, or ask the cloud's "
        "operator for a higher quota.",
    ),
)


class TestProblems(testtools.TestCase):
    def test_nothing_is_wrong(self) -> None:
        self.assertEqual([], checks.problems(request(keypair="mine"), FACTS, TERMS))

    def test_each_in_its_words(self) -> None:
        for asked, changes, words in PROBLEMS:
            facts = dataclasses.replace(FACTS, **changes)
            self.assertEqual([words], checks.problems(asked, facts, TERMS))

    def test_what_nobody_asked_the_cloud_is_no_problem(self) -> None:
        facts = dataclasses.replace(
            FACTS, networks=None, subnets=None, has_keypair=None, capabilities={}
        )
        asked = request(
            {"availability_zone": "x", "boot_volume_type": "x", "extra_network_names": "x"},
            keypair="x",
            fixed_network="x",
            fixed_subnet="x",
        )
        self.assertEqual([], checks.problems(asked, facts, TERMS))

    def test_an_upgrade_looks_at_image_and_labels_only(self) -> None:
        asked = request({"availability_zone": "az-9"}, node_groups=worker("gone"), keypair="x")
        facts = dataclasses.replace(FACTS, has_keypair=False, os_distro="windows")
        found = checks.software_problems(asked, facts, TERMS, [CONTROL_PLANE])
        self.assertEqual(["windows", "az-9"], [words.split("'")[3] for words in found])

    def test_an_upgrade_looks_at_what_it_touches(self) -> None:
        labels_ = labels.Labels(availability_zone="az-9", boot_volume_size=1, boot_volume_type="x")
        asked = request(
            {"availability_zone": "az-9"},
            node_groups=(
                NodeGroupRequest("a", "small", 1),
                NodeGroupRequest("b", "small", 1, labels=labels_),
            ),
        )
        for groups, expected in (
            ((CONTROL_PLANE,), ["'availability_zone'"]),
            ((CONTROL_PLANE, "a"), ["'availability_zone'"]),
            (
                (CONTROL_PLANE, "a", "b"),
                ["'availability_zone'", "'boot_volume_type' of nodegroup 'b'"],
            ),
            (("a",), ["'availability_zone'"]),
            (("b",), ["'availability_zone'", "'boot_volume_type' of nodegroup 'b'"]),
        ):
            found = checks.software_problems(asked, FACTS, TERMS, groups)
            begin = [text.removeprefix("Label ").split(" names")[0] for text in found]
            self.assertEqual(expected, begin, groups)
            for text in found:
                group = "of nodegroup" in text
                self.assertEqual(group, "delete the nodegroup and create another one" in text)
                self.assertEqual(not group, "Choose a template that names another" in text)

    def test_the_usual_provider_is_no_wish(self) -> None:
        facts = dataclasses.replace(
            FACTS, capabilities={CloudCapability.BALANCER_PROVIDER: ("ovn",)}
        )
        self.assertEqual([], checks.problems(request(), facts, TERMS))

    def test_a_cluster_without_balancer_asks_for_no_provider(self) -> None:
        asked = request({"octavia_provider": "f5"}, load_balancer=False)
        self.assertEqual([], capabilities.of_cluster(asked))
        self.assertEqual([], checks.problems(asked, FACTS, TERMS))

    def test_two_subnets_may_be_one_of_each_kind_of_address(self) -> None:
        facts = dataclasses.replace(
            FACTS, networks=(PUBLIC, dataclasses.replace(MINE, subnets=("a", "b")))
        )
        self.assertEqual([], checks.problems(request(fixed_network="mine"), facts, TERMS))


class TestFloatingIp(testtools.TestCase):
    ADDRESS = "192.0.2.10"

    def problems(self, *found: FloatingIp, known: bool = True) -> list[str]:
        asked = request({"api_server_floating_ip": self.ADDRESS})
        facts = dataclasses.replace(FACTS, floating_ips=found if known else None)
        return checks.problems(asked, facts, TERMS)

    def test_a_free_one_of_the_project_and_one_that_nobody_asked_for(self) -> None:
        self.assertEqual([], self.problems(FloatingIp(self.ADDRESS, "p1")))
        self.assertEqual([], self.problems(known=False))

    def test_one_that_is_not_there_or_somebody_elses(self) -> None:
        words = (
            "Label 'api_server_floating_ip' names no floating IP of this project. The value is "
            "'192.0.2.10': give one that 'openstack floating ip list' shows, or leave the label "
            "out to get a new one."
        )
        self.assertEqual([words], self.problems())
        self.assertEqual([words], self.problems(FloatingIp(self.ADDRESS, "p2")))

    def test_one_that_is_taken(self) -> None:
        words = (
            "Label 'api_server_floating_ip' names a floating IP that is in use. The value is "
            "'192.0.2.10': free it with 'openstack floating ip unset --port 192.0.2.10', or give "
            "another one."
        )
        self.assertEqual([words], self.problems(FloatingIp(self.ADDRESS, "p1", in_use=True)))


class TestMessage(testtools.TestCase):
    def told(self, problems: list[str]) -> errors.DoesNotFit:
        return self.assertRaises(errors.DoesNotFit, message.refuse, problems)

    def test_none_is_none(self) -> None:
        self.assertIsNone(message.refuse([]))

    def test_several_come_together(self) -> None:
        facts = dataclasses.replace(
            FACTS,
            has_keypair=False,
            quotas={QuotaResource.FLOATING_IPS: Quota(1, 1), QuotaResource.CORES: Quota(-0, 4)},
        )
        asked = request(keypair="theirs", node_groups=worker("gone"))
        self.assertEqual(
            "3 problems found: The flavor does not exist or is not visible to this project; The "
            "keypair does not exist or belongs to another user; The project's quota is too small "
            "for vCPUs, floating IPs. (1) The flavor does not exist or is not visible to this "
            "project. The flavor is 'gone': choose one that 'openstack flavor list' shows. (2) The "
            "keypair does not exist or belongs to another user. The keypair is 'theirs': choose "
            "one that 'openstack keypair list' shows. (3) The project's quota is too small for "
            "vCPUs, floating IPs. vCPUs: 2 needed, 0 free of 0; floating IPs: 1 needed, 0 free of "
            "1. Delete what is no longer needed, or ask the cloud's operator for a higher quota.",
            str(self.told(checks.problems(asked, facts, TERMS))),
        )

    def test_forty_fit_into_the_limit_and_are_counted(self) -> None:
        groups = tuple(NodeGroupRequest(f"g-{n}", f"flavor-{n}" * 20, 1) for n in range(40))
        error = self.told(checks.problems(request(node_groups=groups), FACTS, TERMS))
        text = str(error)
        self.assertLessEqual(len(text), 2000)
        self.assertTrue(text.startswith("40 problems found: The flavor does not exist"), text)
        told = text.count(") The flavor does not exist")
        self.assertGreater(told, 5)
        self.assertTrue(text.endswith(f"And {40 - told} more. Fix these and try again."), text)
        self.assertEqual(40, error.detail.count(" does not exist"))

    def test_it_is_one_line_whatever_a_name_holds(self) -> None:
        asked = request(node_groups=worker("a\nb\tc"), keypair="k" * 300)
        facts = dataclasses.replace(FACTS, has_keypair=False)
        text = str(self.told(checks.problems(asked, facts, TERMS)))
        self.assertTrue(text.isprintable())
        self.assertIn("The flavor is 'a b c'", text)
        self.assertIn(f"The keypair is '{'k' * 80}...'", text)

    def test_much_to_choose_from_is_counted(self) -> None:
        zones = tuple(f"az-{n:02}" for n in range(1, 40))
        facts = dataclasses.replace(FACTS, capabilities={CloudCapability.SERVER_ZONE: zones})
        [text] = checks.problems(request({"availability_zone": "x"}), facts, TERMS)
        self.assertTrue(text.endswith("az-09, az-10 and 29 more."), text)


class TestNeeds(testtools.TestCase):
    def needs(self, asked: ClusterRequest) -> dict[Any, int]:
        return dict(quota_usage.cluster_usage(asked, FACTS.flavors))

    def test_a_small_cluster(self) -> None:
        self.assertEqual(
            {
                QuotaResource.INSTANCES: 3,
                QuotaResource.CORES: 6,
                QuotaResource.RAM: 12288,
                QuotaResource.SERVER_GROUPS: 2,
                QuotaResource.SERVER_GROUP_MEMBERS: 2,
                QuotaResource.NETWORKS: 1,
                QuotaResource.SUBNETS: 1,
                QuotaResource.ROUTERS: 1,
                QuotaResource.PORTS: 5,
                QuotaResource.SECURITY_GROUPS: 2,
                QuotaResource.FLOATING_IPS: 1,
                QuotaResource.LOAD_BALANCERS: 1,
                QuotaResource.LISTENERS: 1,
                QuotaResource.POOLS: 1,
            },
            self.needs(request()),
        )

    def test_disks_and_their_types(self) -> None:
        texts = {
            "boot_volume_size": "20",
            "boot_volume_type": "fast",
            "etcd_blockdevice_size": "30",
            "etcd_blockdevice_volume_type": "ssd",
        }
        masters = NodeGroupRequest("default-master", "small", 3)
        needs = self.needs(request(texts, control_plane=masters))
        self.assertEqual((8, 190), (needs[QuotaResource.VOLUMES], needs[QuotaResource.GIGABYTES]))
        self.assertEqual(30, needs[QuotaResource.VOLUME_GIGABYTES])
        self.assertEqual(5, needs[QuotaResource.VOLUMES, "fast"])
        self.assertEqual(100, needs[QuotaResource.GIGABYTES, "fast"])
        self.assertEqual(90, needs[QuotaResource.GIGABYTES, "ssd"])

    def test_a_local_disk_of_etcd_is_no_volume(self) -> None:
        texts = {"etcd_blockdevice_size": "30", "etcd_blockdevice_type": "local"}
        self.assertNotIn(QuotaResource.VOLUMES, self.needs(request(texts)))

    def test_a_given_address_is_none_of_the_quotas(self) -> None:
        needs = self.needs(request({"api_server_floating_ip": "192.0.2.10"}))
        self.assertNotIn(QuotaResource.FLOATING_IPS, needs)

    def test_an_own_network_without_balancer_and_address(self) -> None:
        asked = request(fixed_network="mine", load_balancer=False, floating_ip=False)
        needs = self.needs(asked)
        self.assertEqual(3, needs[QuotaResource.PORTS])
        for absent in (QuotaResource.NETWORKS, QuotaResource.ROUTERS, QuotaResource.FLOATING_IPS):
            self.assertNotIn(absent, needs)

    def test_further_networks_are_ports_of_workers(self) -> None:
        needs = self.needs(request({"extra_network_names": "storage backup"}))
        self.assertEqual(9, needs[QuotaResource.PORTS])

    def test_an_autoscaled_group_counts_with_what_it_begins_with(self) -> None:
        texts = {"auto_scaling_enabled": "true"}
        for least, workers in ((1, 3), (5, 5)):
            groups = worker("large", count=3, minimum=least, maximum=9)
            needs = self.needs(request(texts, node_groups=groups))
            self.assertEqual(1 + workers, needs[QuotaResource.INSTANCES])
            self.assertEqual(workers, needs[QuotaResource.SERVER_GROUP_MEMBERS])

    def test_without_server_groups(self) -> None:
        needs = self.needs(request({"server_group_policies": "none"}))
        self.assertNotIn(QuotaResource.SERVER_GROUPS, needs)
        self.assertNotIn(QuotaResource.SERVER_GROUP_MEMBERS, needs)

    def test_an_empty_group_needs_no_machine(self) -> None:
        needs = self.needs(request({"boot_volume_size": "20"}, node_groups=worker("large", 0)))
        self.assertEqual((1, 1), (needs[QuotaResource.INSTANCES], needs[QuotaResource.VOLUMES]))


class TestResized(testtools.TestCase):
    LIVE: ClassVar[dict[str, Any]] = {
        "controlPlane": {
            "machineCount": 1,
            "machineFlavor": "small",
            "machineRootVolume": {"diskSize": 20, "volumeType": "fast"},
        },
        "etcd": {"blockDevice": {"size": 10, "type": "Volume"}},
        "nodeGroupDefaults": {
            "machineRootVolume": {"diskSize": 40},
            "machineNetworking": {"ports": [{}, {"network": {"filter": {"name": "storage"}}}]},
        },
        "nodeGroups": [
            {"name": "default-worker", "machineCount": 2, "machineFlavor": "large"},
            {
                "name": "scaled",
                "autoscale": True,
                "machineCountMin": 1,
                "machineCountMax": 3,
                "machineFlavor": "large",
            },
        ],
    }

    def needs(self, group: str | None, more: int) -> dict[Any, int]:
        growth = quota_usage.resize_demand(self.LIVE, group, 1, more)
        return dict(quota_usage.machine_usage([growth], FACTS.flavors)) if growth else {}

    def test_what_comes_in_addition_is_what_the_release_makes(self) -> None:
        self.assertEqual(
            {
                QuotaResource.INSTANCES: 3,
                QuotaResource.CORES: 24,
                QuotaResource.RAM: 49152,
                QuotaResource.PORTS: 6,
                QuotaResource.VOLUMES: 3,
                QuotaResource.GIGABYTES: 120,
                QuotaResource.VOLUME_GIGABYTES: 40,
            },
            self.needs("default-worker", 3),
        )

    def test_the_control_plane_with_its_disks(self) -> None:
        needs = self.needs(None, 2)
        self.assertEqual((4, 60), (needs[QuotaResource.VOLUMES], needs[QuotaResource.GIGABYTES]))
        self.assertEqual(2, needs[QuotaResource.PORTS])
        self.assertEqual(40, needs[QuotaResource.GIGABYTES, "fast"])

    def test_the_whole_server_group_counts(self) -> None:
        live = {**self.LIVE, "controlPlane": {**self.LIVE["controlPlane"], "serverGroupId": "g"}}
        more = quota_usage.resize_demand(live, None, 1, 4)
        needs = quota_usage.machine_usage([more] if more else [], FACTS.flavors)
        self.assertEqual(5, needs[QuotaResource.SERVER_GROUP_MEMBERS])
        self.assertNotIn(QuotaResource.SERVER_GROUPS, needs)

    def test_fewer_the_same_or_unknown_need_nothing(self) -> None:
        for group, more in (("default-worker", 0), ("default-worker", -2), ("gone", 5)):
            self.assertEqual({}, self.needs(group, more))

    def test_an_autoscaled_group_that_is_resized(self) -> None:
        self.assertEqual(2, self.needs("scaled", 2)[QuotaResource.INSTANCES])
