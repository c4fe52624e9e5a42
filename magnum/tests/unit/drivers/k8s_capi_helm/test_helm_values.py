# SPDX-License-Identifier: Apache-2.0
"""Values: the contract of the charts, key by key, and that every label moves them."""

from __future__ import annotations

import dataclasses
import functools
import json
import pathlib
import re
from typing import Any
import uuid

import hypothesis
from hypothesis import strategies as st
import jsonschema
import testtools
import yaml

from magnum.drivers import k8s_capi_helm
from magnum.drivers.k8s_capi_helm import errors, helm_values, labels
from magnum.drivers.k8s_capi_helm.model import (
    CloudFacts,
    ClusterRequest,
    Flavor,
    Json,
    NodeGroupRequest,
)
from magnum.drivers.k8s_capi_helm.values.sections import nodegroups, storage

CHARTS = pathlib.Path(k8s_capi_helm.__file__).parent / "charts"
FACTS = CloudFacts(
    image_id="2b8a4d0a-6d3c-4a7f-8d27-3f0f2f4a9b01",
    kubernetes_version="1.34.4",
    os_distro="ubuntu",
    flavors={
        "ds2G": Flavor("42", "ds2G", 2, 2048, 10),
        "7": Flavor("7", "größer", 4, 8192, 20),
    },
    auth_url="https://keystone.example.org:5000/v3",
    external_network_id="1c2a8a7e-5d8a-4c0f-9a3b-5c1f1f0a8f77",
    volume_types=("__DEFAULT__", "fast"),
    server_groups={
        "default-master": "c0ffee00-0000-4000-8000-000000000000",
        "default-worker": "c0ffee01-0000-4000-8000-000000000000",
    },
)
WORKERS = NodeGroupRequest("default-worker", "7", 2, is_default=True)
REQUEST = ClusterRequest(
    uuid="6a4c4a5b-95a4-4a35-8d2f-0b6c3f5f4a11",
    name="prod",
    release="prod-abcdefghijkl",
    namespace="magnum-1",
    project_id="1",
    user_id="2",
    labels=labels.Labels(),
    control_plane=NodeGroupRequest("default-master", "ds2G", 3),
    node_groups=(WORKERS,),
    image="ubuntu-24.04",
    external_network="public",
)
SIGN_IN = {"oidc_issuer_url": "https://sso.example.org", "oidc_client_id": "kubernetes"}
SNAPSHOTS = {
    "etcd_snapshot_enabled": "true",
    "etcd_snapshot_bucket": "backups",
    "etcd_snapshot_secret": "s3",
}
#: What a label needs beside it to have an effect.
COMPANIONS = {
    "boot_volume_type": {"boot_volume_size": "40"},
    "boot_volume_availability_zone": {"boot_volume_size": "40"},
    "etcd_blockdevice_type": {"etcd_blockdevice_size": "10"},
    **{
        name: {other: text for other, text in SNAPSHOTS.items() if other != name}
        for name in (*SNAPSHOTS, "etcd_snapshot_keep_days", "etcd_snapshot_schedule")
    },
    "etcd_blockdevice_volume_type": {"etcd_blockdevice_size": "10"},
    "etcd_blockdevice_volume_az": {"etcd_blockdevice_size": "10"},
    "min_node_count": {"auto_scaling_enabled": "true", "max_node_count": "4"},
    "max_node_count": {"auto_scaling_enabled": "true", "min_node_count": "1"},
    "auto_scaling_enabled": {"max_node_count": "4"},
    "audit_log_max_age": {"audit_log_enabled": "true"},
    "audit_log_max_backup": {"audit_log_enabled": "true"},
    "audit_log_max_size": {"audit_log_enabled": "true"},
    "k8s_keystone_auth_tag": {"keystone_auth_enabled": "true"},
    "manila_csi_plugin_tag": {"manila_csi_enabled": "true"},
    "manila_csi_share_network_id": {"manila_csi_enabled": "true", "manila_csi_share_type": "x"},
    "manila_csi_share_type": {"manila_csi_enabled": "true"},
    "monitoring_interval_seconds": {"monitoring_enabled": "true"},
    "monitoring_retention_days": {"monitoring_enabled": "true"},
    "monitoring_retention_size": {"monitoring_enabled": "true"},
    "monitoring_storage_class_name": {"monitoring_enabled": "true"},
    "oidc_client_id": {"oidc_issuer_url": "https://sso.example.org"},
    "oidc_groups_claim": SIGN_IN,
    "oidc_groups_prefix": SIGN_IN,
    "oidc_issuer_url": {"oidc_client_id": "kubernetes"},
    "oidc_username_claim": SIGN_IN,
    "oidc_username_prefix": SIGN_IN,
}
#: Magnum's fields without which a label has no effect.
FIELDS: dict[str, dict[str, Any]] = {
    "cilium_hubble_ui_enabled": {"cni": "cilium"},
    "cilium_ipv4pool": {"cni": "cilium"},
    "cilium_tag": {"cni": "cilium"},
    **{name: {"cni": "calico"} for name in ("calico_ipv4pool", "calico_tag", "kubeproxy_options")},
    "docker_volume_type": {
        "control_plane": dataclasses.replace(REQUEST.control_plane, docker_volume=10),
        "node_groups": (dataclasses.replace(WORKERS, docker_volume=10),),
    },
}
BY_NAME = {label.name: label for label in labels.REGISTRY}
#: Labels that choose something else than a value.
NO_VALUE = {
    "capi_helm_chart_version": "the chart itself",
    "capi_helm_chart_name": "the chart itself",
    "capi_helm_chart_repo": "the chart itself",
    "capi_helm_overlay": "a file of the operator's",
    "maintenance_window": "read by the operator's rollouts",
    "auto_upgrade_enabled": "read by the operator's rollouts",
}


def request(texts: dict[str, str] | None = None, **fields: Any) -> ClusterRequest:
    return dataclasses.replace(REQUEST, labels=labels.parse(texts or {}, {}), **fields)


def rendered(texts: dict[str, str] | None = None, facts: CloudFacts = FACTS, **fields: Any) -> Json:
    asked = request(texts, **fields)
    return helm_values.render(asked, seen(asked, facts))


def sample(label: labels.Label) -> str:
    """A text that a label takes in a cluster of these facts: its example, but for the image's."""
    return f"v{FACTS.kubernetes_version}" if label.name == "kube_tag" else label.example


def seen(asked: ClusterRequest, facts: CloudFacts = FACTS) -> CloudFacts:
    """The facts of a cloud that has all further networks that labels name."""
    found = {
        name: (network_id(name),)
        for one in (asked.labels, *(group.labels for group in asked.node_groups))
        for name in (one.extra_network_names if one else ())
    }
    return dataclasses.replace(facts, extra_networks=found)


def network_id(name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{name}.networks.example.org"))


def pair(label: labels.Label) -> tuple[Json, Json]:
    """The values without a label and with its example, but for the record of labels in them."""
    beside, fields = COMPANIONS.get(label.name, {}), FIELDS.get(label.name, {})
    texts = {**beside, label.name: label.example}
    if label.name == "kube_tag":
        silent = dataclasses.replace(FACTS, kubernetes_version="")
        found = rendered({label.name: "v1.34.3"}, silent), rendered(texts, silent)
    else:
        found = rendered(beside, **fields), rendered(texts, **fields)
    for values in found:
        values.pop("clusterAnnotations", None)
    return found


def schema(chart: str) -> Json:
    loaded: Json = json.loads((CHARTS / chart / "values.schema.json").read_text())
    return loaded


class TestContract(testtools.TestCase):
    def test_a_plain_cluster(self) -> None:
        common: Json = {
            "reclaimPolicy": "Retain",
            "allowVolumeExpansion": True,
            "volumeBindingMode": "WaitForFirstConsumer",
            "fstype": "ext4",
            "availabilityZone": "nova",
        }
        name = storage.class_name("__DEFAULT__")
        default: Json = {"enabled": True, "name": name, "isClusterDefault": True, **common}
        self.assertEqual(
            {
                "cloudCredentialsSecretName": "prod-abcdefghijkl-cloud-credentials",
                "kubernetesVersion": "1.34.4",
                "machineImageId": FACTS.image_id,
                "clusterNetworking": {
                    "externalNetworkId": FACTS.external_network_id,
                    "internalNetwork": {"nodeCidr": "10.0.0.0/24"},
                },
                "osDistro": "ubuntu",
                "authWebhook": "none",
                "apiServer": {
                    "enableLoadBalancer": True,
                    "loadBalancerProvider": "amphora",
                    "associateFloatingIP": True,
                },
                "controlPlane": {
                    "machineCount": 3,
                    "machineFlavor": "ds2G",
                    "serverGroupId": "c0ffee00-0000-4000-8000-000000000000",
                    "healthCheck": {"enabled": True},
                },
                "nodeGroupDefaults": {"healthCheck": {"enabled": True}},
                "nodeGroups": [
                    {
                        "name": "default-worker",
                        "machineFlavor": "größer",
                        "machineCount": 2,
                        "serverGroupId": "c0ffee01-0000-4000-8000-000000000000",
                    }
                ],
                "addons": {
                    "cni": {"type": "calico"},
                    "openstack": {
                        "enabled": True,
                        "cloudConfig": {
                            "LoadBalancer": {
                                "lb-provider": "amphora",
                                "lb-method": "ROUND_ROBIN",
                                "create-monitor": True,
                            }
                        },
                        "csiCinder": {
                            "defaultStorageClass": dict(default, volumeType="__DEFAULT__"),
                            "additionalStorageClasses": [
                                {"name": "fast", **common, "volumeType": "fast"}
                            ],
                        },
                        "k8sKeystoneAuth": {"enabled": False},
                    },
                    "metricsServer": {"enabled": True},
                    "monitoring": {"enabled": False},
                    "ingress": {"enabled": False},
                    "nodeProblemDetector": {"enabled": True},
                },
            },
            rendered(),
        )

    def test_every_label_moves_the_values(self) -> None:
        for label in labels.REGISTRY:
            if label.name in NO_VALUE:
                continue
            before, after = pair(label)
            self.assertTrue(
                before != after,
                f"{label.name} changes no value: set one in values/, or name what it needs in "
                "COMPANIONS or FIELDS, or why it has none in NO_VALUE",
            )

    def test_a_label_that_needs_another_one_is_refused_or_says_so_without_it(self) -> None:
        for name in COMPANIONS:
            texts = {name: BY_NAME[name].example}
            try:
                rendered(texts)
            except errors.DriverError:
                continue
            told = " ".join(labels.notices(texts))
            self.assertIn(f"'{name}'", told, "add it to the tables of labels/notices.py")

    def test_a_version_has_to_be_known(self) -> None:
        silent = dataclasses.replace(FACTS, kubernetes_version="")
        self.assertRaises(errors.InvalidRequest, rendered, {}, silent)
        self.assertEqual("1.34.4", rendered({"kube_tag": "v1.34.4"}, silent)["kubernetesVersion"])

    def test_every_key_is_in_the_closed_schemas(self) -> None:
        for label in labels.REGISTRY:
            if label.name == "kube_tag":
                continue
            beside = COMPANIONS.get(label.name, {})
            fields = {**everything(), **FIELDS.get(label.name, {})}
            values = rendered({**beside, label.name: label.example}, **fields)
            self.assertEqual([], faults(values), label.name)

    def test_no_label_makes_values_with_a_blank_or_a_number_that_the_schemas_refuse(self) -> None:
        for label in labels.REGISTRY:
            beside, fields = COMPANIONS.get(label.name, {}), FIELDS.get(label.name, {})
            for text in (" ", "  ", "\t", "\n", "2147483648", "99999999999999999999"):
                try:
                    values = rendered({**beside, label.name: text}, **{**everything(), **fields})
                except errors.DriverError:
                    continue
                self.assertEqual([], faults(values), (label.name, text))

    def test_the_largest_counts_of_magnum_are_in_the_schemas(self) -> None:
        most = 2**31 - 1
        workers = dataclasses.replace(WORKERS, count=most, minimum=1, maximum=most)
        scaled = {"auto_scaling_enabled": "true"}
        for texts in ({}, scaled):
            values = rendered(texts, node_groups=(workers,))
            self.assertEqual([], faults(values))

    def test_the_order_is_that_of_values_yaml(self) -> None:
        known = yaml.safe_load((CHARTS / "openstack-cluster" / "values.yaml").read_text())
        addons = yaml.safe_load((CHARTS / "cluster-addons" / "values.yaml").read_text())
        texts = {label.name: sample(label) for label in labels.REGISTRY}
        del texts["octavia_lb_algorithm"], texts["min_node_count"], texts["cinder_csi_enabled"]
        for cni in ("calico", "cilium"):
            values = rendered(texts, **{**everything(), "cni": cni})
            self.assertEqual([], list(misplaced(values, known)))
            self.assertEqual([], list(misplaced(values["addons"], addons)))

    @hypothesis.given(st.sets(st.sampled_from([label.name for label in labels.REGISTRY])))
    def test_values_are_json_of_the_right_types(self, names: set[str]) -> None:
        texts = {label.name: sample(label) for label in labels.REGISTRY if label.name in names}
        if texts.get("octavia_provider"):
            texts.pop("octavia_lb_algorithm", None)
        if texts.get("monitoring_enabled"):
            texts.pop("cinder_csi_enabled", None)
        values = rendered(texts, **everything())
        self.assertEqual(values, json.loads(json.dumps(values)))
        wrong = [
            (path, leaf)
            for path, leaf in leaves(values)
            if not path.startswith(".clusterAnnotations.")
            and (leaf is None or (isinstance(leaf, str) and leaf.lower() in ("", "true", "false")))
        ]
        self.assertEqual([], wrong)


def defaults(chart: str) -> dict[str, Any]:
    """values.yaml of a chart."""
    found: dict[str, Any] = yaml.safe_load((CHARTS / chart / "values.yaml").read_text())
    return found


def laid_over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Values as Helm lays them over a chart's own."""
    result = dict(below)
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(below.get(key), dict)
        result[key] = laid_over(below[key], value) if both else value
    return result


@functools.cache
def closed(chart: str) -> tuple[Any, dict[str, Any]]:
    """What checks the values of a chart, and its own values."""
    return jsonschema.Draft7Validator(schema(chart)), defaults(chart)


def faults(values: Json) -> list[str]:
    """What the schemas of the charts find wrong with values."""
    (cluster, own), (addons, beneath) = closed("openstack-cluster"), closed("cluster-addons")
    # As Helm does before it looks at the schemas.
    whole = laid_over(own, values)
    found = [
        *cluster.iter_errors(whole),
        *addons.iter_errors(laid_over(beneath, whole["addons"])),
    ]
    return [f"{error.json_path}: {error.message}" for error in found]


def everything() -> dict[str, Any]:
    """Fields of a request that says all it can say."""
    return {
        "keypair": "me",
        "dns_nameservers": ("192.0.2.53", "2001:db8::53"),
        "cni": "cilium",
        "node_groups": (WORKERS, NodeGroupRequest("batch", "ds2G", 0, 0, 5)),
    }


def misplaced(values: Json, known: Json, path: str = "") -> list[str]:
    """Keys that stand before one which values.yaml has earlier."""
    found, order = [], list(known)
    places = [order.index(key) for key in values if key in order]
    if places != sorted(places):
        found.append(f"{path or '.'}: {list(values)}")
    for key, value in values.items():
        if isinstance(value, dict) and isinstance(known.get(key), dict):
            found += misplaced(value, known[key], f"{path}.{key}")
    return found


def leaves(value: Any, path: str = "") -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [leaf for key, inner in value.items() for leaf in leaves(inner, f"{path}.{key}")]
    if isinstance(value, list):
        return [leaf for inner in value for leaf in leaves(inner, f"{path}[]")]
    return [(path, value)]


class TestRequest(testtools.TestCase):
    def test_kubernetes_version(self) -> None:
        same = {"kube_tag": "v1.34.4"}
        self.assertEqual("1.34.4", rendered(same)["kubernetesVersion"])
        error = self.assertRaises(errors.InvalidRequest, rendered, {"kube_tag": "v1.33.1"})
        self.assertIn("v1.33.1", str(error))
        self.assertIn("v1.34.4", str(error))

    def test_existing_network(self) -> None:
        facts = dataclasses.replace(FACTS, fixed_network_id="n", fixed_subnet_id="s")
        self.assertEqual(
            {"networkFilter": {"id": "n"}, "subnetFilter": {"id": "s"}},
            rendered(facts=facts)["clusterNetworking"]["internalNetwork"],
        )

    def test_name_servers(self) -> None:
        values = rendered(dns_nameservers=("192.0.2.53",))
        inner = values["clusterNetworking"]["internalNetwork"]
        self.assertEqual(["192.0.2.53"], inner["dnsNameservers"])

    def test_floating_ip_needs_field_and_label(self) -> None:
        label = "master_lb_floating_ip_enabled"
        for field, text, expected in (
            (True, "true", True),
            (True, "false", False),
            (False, "true", False),
        ):
            values = rendered({label: text}, floating_ip=field)
            self.assertEqual(expected, values["apiServer"]["associateFloatingIP"])

    def test_allowed_cidrs_in_both_spellings(self) -> None:
        server = rendered({"api_master_lb_allowed_cidrs": "10.0.0.0/8,::/0"})["apiServer"]
        self.assertEqual(["10.0.0.0/8", "::/0"], server["allowedCIDRs"])
        self.assertEqual(server["allowedCIDRs"], server["allowedCidrs"])

    def test_a_zone_is_for_all_nodes_and_not_for_storage(self) -> None:
        values = rendered({"availability_zone": "az-2"})
        self.assertEqual(["az-2"], values["controlPlane"]["failureDomains"])
        self.assertIs(False, values["controlPlane"]["omitFailureDomain"])
        self.assertEqual("az-2", values["nodeGroupDefaults"]["failureDomain"])
        classes = values["addons"]["openstack"]["csiCinder"]
        self.assertEqual("nova", classes["defaultStorageClass"]["availabilityZone"])

    def test_etcd_disk(self) -> None:
        texts = {
            "etcd_blockdevice_size": "10",
            "etcd_blockdevice_volume_type": "fast",
            "etcd_blockdevice_volume_az": "az",
        }
        disk = {"size": 10, "type": "Volume", "volumeType": "fast", "availabilityZone": "az"}
        self.assertEqual({"blockDevice": disk}, rendered(texts)["etcd"])
        texts["etcd_blockdevice_type"] = "local"
        self.assertEqual({"blockDevice": {"size": 10, "type": "Local"}}, rendered(texts)["etcd"])

    def test_boot_volume_is_for_all_nodes(self) -> None:
        values = rendered({"boot_volume_size": "40", "boot_volume_type": "fast"})
        volume = {"diskSize": 40, "volumeType": "fast"}
        self.assertEqual(volume, values["controlPlane"]["machineRootVolume"])
        self.assertEqual(volume, values["nodeGroupDefaults"]["machineRootVolume"])

    def test_extra_networks_come_after_the_clusters_own(self) -> None:
        ports = rendered({"extra_network_names": "san lan"})["nodeGroupDefaults"][
            "machineNetworking"
        ]
        self.assertEqual(
            [
                {},
                {"network": {"id": network_id("san")}},
                {"network": {"id": network_id("lan")}},
            ],
            ports["ports"],
        )

    def test_a_network_that_neutron_does_not_tell_of_goes_by_its_name(self) -> None:
        asked = request({"extra_network_names": "san"})
        ports = helm_values.render(asked, FACTS)["nodeGroupDefaults"]["machineNetworking"]["ports"]
        self.assertEqual([{}, {"network": {"filter": {"name": "san"}}}], ports)

    def test_keystone(self) -> None:
        values = rendered({"keystone_auth_enabled": "true"})
        self.assertEqual("k8s-keystone-auth", values["authWebhook"])
        self.assertEqual(
            {
                "enabled": True,
                "values": {"openstackAuthUrl": FACTS.auth_url, "projectId": REQUEST.project_id},
            },
            values["addons"]["openstack"]["k8sKeystoneAuth"],
        )

    def test_a_flavor_that_is_not_there(self) -> None:
        groups = (NodeGroupRequest("batch", "huge", 1),)
        error = self.assertRaises(errors.InvalidRequest, rendered, node_groups=groups)
        self.assertIn("'huge'", str(error))
        self.assertIn("'batch'", str(error))


class TestCounts(testtools.TestCase):
    def group(self, texts: dict[str, str], **fields: Any) -> Json:
        group = dataclasses.replace(WORKERS, **fields)
        return nodegroups.nodegroup_counts(group, labels.parse(texts, {}))

    def test_zero_is_a_number(self) -> None:
        self.assertEqual({"machineCount": 0}, self.group({}, count=0))

    def test_autoscaling(self) -> None:
        on = {"auto_scaling_enabled": "true"}
        bounds = {"min_node_count": "0", "max_node_count": "4"}
        scaled = {"autoscale": True, "machineCountMin": 0, "machineCountMax": 4}
        for texts, fields, expected in (
            ({}, {"minimum": 0, "maximum": 4}, {"machineCount": 2}),
            (on, {"minimum": 0, "maximum": 4}, scaled),
            (on, {"minimum": 2, "maximum": 2}, {"machineCount": 2}),
            (on, {}, {"machineCount": 2}),
            ({**on, **bounds}, {}, scaled),
            ({**on, **bounds}, {"is_default": False}, {"machineCount": 2}),
            (
                {**on, **bounds},
                {"minimum": 1, "maximum": 9},
                {"autoscale": True, "machineCountMin": 1, "machineCountMax": 9},
            ),
            (
                {**on, "max_node_count": "4"},
                {"minimum": 0},
                {"autoscale": True, "machineCountMin": 1, "machineCountMax": 4},
            ),
        ):
            self.assertEqual(expected, self.group(texts, **fields), f"{texts} {fields}")

    def test_counts_are_part_of_the_values(self) -> None:
        wanted = request({"auto_scaling_enabled": "true"}, **everything())
        values, counts = helm_values.render(wanted, FACTS), nodegroups.sizes(wanted)
        self.assertEqual(3, counts["controlPlane"]["machineCount"])
        for whole, part in zip(values["nodeGroups"], counts["nodeGroups"], strict=True):
            fixed = ("machineFlavor", "capacity", "serverGroupId")
            beside = {key: whole[key] for key in fixed if key in whole}
            self.assertEqual(whole, {**part, **beside})
            self.assertEqual("autoscale" in whole, "capacity" in whole)


class TestStorageClasses(testtools.TestCase):
    def classes(self, *types: str, **given: Any) -> Json:
        given = {"default": None, "allowed_topologies": (), **given}
        return storage.classes(labels.Labels(), types, **given)

    def test_the_operator_names_the_default(self) -> None:
        found = self.classes("a", "b", "c", default="b")
        self.assertEqual("b", found["defaultStorageClass"]["name"])
        self.assertEqual(["a", "c"], [one["name"] for one in found["additionalStorageClasses"]])

    def test_a_default_that_cinder_lacks(self) -> None:
        error = self.assertRaises(errors.InvalidRequest, self.classes, "a", default="x")
        self.assertIn("'x'", str(error))
        self.assertIn("csi_cinder_default_volume_type", error.detail)

    def test_no_volume_types(self) -> None:
        found = self.classes()
        self.assertEqual("csi-cinder", found["defaultStorageClass"]["name"])
        self.assertNotIn("volumeType", found["defaultStorageClass"])
        self.assertEqual([], found["additionalStorageClasses"])

    def test_topologies(self) -> None:
        found = self.classes("a", "b", allowed_topologies=["zone = 1", "zone=2", "rack=x"])
        expressions = [{"key": "zone", "values": ["1", "2"]}, {"key": "rack", "values": ["x"]}]
        for one in (found["defaultStorageClass"], *found["additionalStorageClasses"]):
            self.assertEqual([{"matchLabelExpressions": expressions}], one["allowedTopologies"])
        error = self.assertRaises(errors.InvalidRequest, storage.topologies, ["zone"])
        self.assertIn("csi_cinder_allowed_topologies", error.detail)

    def test_good_names_stay(self) -> None:
        for name in ("fast", "ssd.fast-2", "0"):
            self.assertEqual(name, storage.class_name(name))

    def test_other_names_keep_their_head(self) -> None:
        for name, head in (
            ("Fast SSD", "fast-ssd-"),
            ("__DEFAULT__", "default-"),
            ("größe", "gr-e-"),
        ):
            self.assertThat(storage.class_name(name), testtools.matchers.StartsWith(head))

    @hypothesis.given(st.text(max_size=255))
    @hypothesis.example("a" * 255)
    @hypothesis.example("...")
    def test_names_are_valid(self, name: str) -> None:
        found = storage.class_name(name)
        self.assertLessEqual(len(found), 253)
        part = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
        self.assertIsNotNone(re.fullmatch(rf"{part}(\.{part})*", found), found)

    @hypothesis.given(st.sets(st.text("aA-_. ä", max_size=6), min_size=2, max_size=20))
    def test_names_never_collide(self, names: set[str]) -> None:
        everything = names | {storage.class_name(name) for name in names}
        self.assertEqual(len(everything), len({storage.class_name(name) for name in everything}))
