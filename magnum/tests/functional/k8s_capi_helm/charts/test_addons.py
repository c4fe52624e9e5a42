# SPDX-License-Identifier: Apache-2.0
"""What the addon operator gets out of the charts' addons."""

from __future__ import annotations

import base64
import unittest

from magnum.tests.functional.k8s_capi_helm.charts import addon_operator, kubernetes_kinds, rendering
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object


def components(objects: list[Object]) -> set[str]:
    """Names of the addons."""
    return {
        found["metadata"]["labels"]["capi.stackhpc.com/component"]
        for found in objects
        if found["kind"] in ("HelmRelease", "Manifests")
    }


def cloud_conf(objects: list[Object], **given: Object) -> list[str]:
    """Lines of cloud.conf."""
    (secret,) = addon_operator.manifests(objects, "cloud-config", **given)
    text: str = secret["stringData"]["cloud.conf"]
    return text.splitlines()


class ClusterAddonsTest(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        scenarios = rendering.scenarios(rendering.CLUSTER)
        self.small = scenarios["minimal"].objects
        self.wide = scenarios["ovn-autoscaled"].objects
        self.odd = scenarios["odd-text"].objects

    def test_which_addons_there_are(self) -> None:
        usual = {
            "cloud-config",
            "ccm-openstack",
            "csi-cinder",
            "csi-cinder-storageclass",
            "etcd-defrag",
            "metrics-server",
            "node-problem-detector",
        }
        calico = {"cni-calico", "cni-calico-globalnetpolicy"}
        self.assertEqual(usual | calico, components(self.small))
        self.assertEqual(
            usual
            | {
                "blackbox-exporter",
                "blackbox-exporter-monitoring",
                "cni-cilium",
                "k8s-keystone-auth",
                "kube-prometheus-stack",
                "loki-stack",
                "loki-stack-monitoring",
            },
            components(self.wide),
        )
        none = rendering.scenarios(rendering.CLUSTER)["existing-network"].objects
        self.assertEqual(set(), components(none))
        bare = rendering.scenarios(rendering.ADDONS)["bare"].objects
        self.assertEqual({"metrics-server"}, components(bare))

    def test_a_web_page_has_no_right_of_its_own(self) -> None:
        objects = rendering.scenarios(rendering.ADDONS)["air-gapped"].objects
        values = addon_operator.values(objects, "headlamp")
        self.assertIs(False, values["clusterRoleBinding"]["create"])

    def test_probes_are_the_release_that_others_look_for(self) -> None:
        spec = addon_operator.addon(self.wide, "blackbox-exporter")["spec"]
        self.assertEqual("prometheus-blackbox-exporter", spec["releaseName"])

    def test_what_nodes_need_to_become_ready_waits_for_no_node(self) -> None:
        early = {"cni-calico", "cni-cilium", "cloud-config", "ccm-openstack"}
        seen = set()
        for found in (*self.small, *self.wide):
            component = found["metadata"]["labels"].get("capi.stackhpc.com/component")
            if component in early and found["kind"] in ("HelmRelease", "Manifests"):
                seen.add(component)
                self.assertIs(True, found["spec"]["bootstrap"], component)
        self.assertEqual(early, seen)

    def test_calico_takes_the_clusters_pod_networks(self) -> None:
        pools = addon_operator.values(self.small, "cni-calico")["installation"]["calicoNetwork"][
            "ipPools"
        ]
        self.assertEqual(
            [("172.16.0.0/13", 26), ("fd00:100::/64", 122)],
            [(pool["cidr"], pool["blockSize"]) for pool in pools],
        )

    def test_calico_keeps_pods_from_novas_metadata(self) -> None:
        deny, allow = addon_operator.manifests(self.small, "cni-calico-globalnetpolicy")
        self.assertLess(deny["spec"]["order"], allow["spec"]["order"])
        self.assertIn("openstack-system", deny["spec"]["namespaceSelector"])
        self.assertEqual(
            [("Deny", 4, ["169.254.169.254/32"]), ("Deny", 6, ["fe80::a9fe:a9fe/128"])],
            [
                (rule["action"], rule["ipVersion"], rule["destination"]["nets"])
                for rule in deny["spec"]["egress"]
            ],
        )
        self.assertEqual("default.demo-deny-egress", deny["metadata"]["name"])

    def test_calico_without_denied_networks_has_no_policy(self) -> None:
        given = rendering.scenarios(rendering.CLUSTER)["minimal"].values
        path = "addons.cni.calico.globalNetworkPolicy"
        objects = rendering.render(
            rendering.CLUSTER,
            rendering.changed(given, {path: {"denyEgressCidrs": [], "denyv6EgressCidrs": []}}),
        )
        self.assertEqual([], addon_operator.manifests(objects, "cni-calico-globalnetpolicy"))

    def test_cilium_knows_the_api_servers_address(self) -> None:
        values = addon_operator.values(self.wide, "cni-cilium")
        self.assertEqual(("192.0.2.10", 6443), (values["k8sServiceHost"], values["k8sServicePort"]))
        self.assertIs(True, values["kubeProxyReplacement"])

    def test_kube_proxy_goes_only_where_cilium_stands_in(self) -> None:
        given = rendering.scenarios(rendering.CLUSTER)["ovn-autoscaled"].values
        for change, phases in (
            ({}, ["addon/kube-proxy"]),
            ({"addons.cni.cilium.release.values.kubeProxyReplacement": False}, None),
            ({"addons.cni.type": "calico"}, None),
            ({"addons.enabled": False}, None),
        ):
            objects = rendering.render(rendering.CLUSTER, rendering.changed(given, change))
            spec = rendering.only(objects, "KubeadmControlPlane")["spec"]["kubeadmConfigSpec"]
            with self.subTest(change=change):
                self.assertEqual(phases, spec["initConfiguration"].get("skipPhases"))

    def test_cloud_config_holds_credential_and_facts_of_the_cluster(self) -> None:
        (secret,) = addon_operator.manifests(self.wide, "cloud-config")
        self.assertEqual([], kubernetes_kinds.faults(secret))
        self.assertEqual(b"clouds: {}", base64.b64decode(secret["data"]["clouds.yaml"]))
        lines = cloud_conf(self.wide)
        self.assertEqual("[Global]", lines[0])
        for line in (
            'clouds-file = "/etc/config/clouds.yaml"',
            'ca-file = "/etc/config/cacert"',
            'internal-network-name = "k8s \\"demo\\" \\\\ net"',
            'floating-network-id = "ext-id"',
            'lb-provider = "ovn"',
            "create-monitor = true",
            "ignore-volume-az = true",
        ):
            self.assertIn(line, lines)

    def test_verification_of_certificates_is_off_where_clouds_yaml_says_so(self) -> None:
        """The programs that read cloud.conf take all of clouds.yaml but that."""
        bare = {"data": {"clouds.yaml": "e30="}}
        verified = addon_operator.credential({"verify": True})
        for lines in (
            cloud_conf(self.wide),
            cloud_conf(self.wide, identity=bare),
            cloud_conf(self.wide, identity=verified),
        ):
            self.assertNotIn("insecure", "\n".join(lines))
        unverified = addon_operator.credential({"verify": False}, cacert="the authority")
        lines = cloud_conf(self.wide, identity=unverified)
        beginning = lines[: lines.index("tls-insecure = true") + 1]
        self.assertEqual(["[Global]"], [line for line in beginning if line.startswith("[")])
        self.assertIn('ca-file = "/etc/config/cacert"', beginning)

    def test_cloud_config_without_facts(self) -> None:
        lines = cloud_conf(self.small, infra={}, identity={"data": {"clouds.yaml": "e30="}})
        text = "\n".join(lines)
        for absent in ("ca-file", "internal-network-name", "floating-network-id"):
            self.assertNotIn(absent, text)

    def test_the_name_of_a_network_adds_no_line_to_cloud_config(self) -> None:
        usual = len(cloud_conf(self.wide, infra={"status": {"network": {"name": "a"}}}))
        name = 'a"\n[Global]\ntls-insecure = true\n# \\'
        lines = cloud_conf(self.wide, infra={"status": {"network": {"name": name}}})
        self.assertEqual(usual, len(lines))
        self.assertIn(
            'internal-network-name = "a\\"\\n[Global]\\ntls-insecure = true\\n# \\\\"', lines
        )

    def test_a_name_that_cloud_config_cannot_have_is_left_out(self) -> None:
        for name in ("a\rb", "a\r\n", "a\0"):
            lines = cloud_conf(self.wide, infra={"status": {"network": {"name": name}}})
            with self.subTest(name=name):
                self.assertNotIn("internal-network-name", "\n".join(lines))
                self.assertIn("[LoadBalancer]", lines)

    def test_what_was_given_wins_over_what_is_known(self) -> None:
        objects = rendering.scenarios(rendering.ADDONS)["standalone"].objects
        lines = cloud_conf(objects)
        self.assertIn('internal-network-name = "nodes"', lines)
        self.assertIn('[LoadBalancerClass "fast"]', lines)
        self.assertEqual(1, sum(line.startswith("floating-network-id") for line in lines))

    def test_volumes_and_load_balancers_carry_the_clusters_name(self) -> None:
        self.assertEqual("demo", addon_operator.values(self.small, "csi-cinder")["clusterID"])
        ccm = addon_operator.values(self.small, "ccm-openstack")
        self.assertEqual({"name": "demo"}, ccm["cluster"])

    def test_storage_classes(self) -> None:
        classes = addon_operator.manifests(self.wide, "csi-cinder-storageclass")
        self.assertEqual([], [fault for one in classes for fault in kubernetes_kinds.faults(one)])
        self.assertEqual(["fast", "slow"], [one["metadata"]["name"] for one in classes])
        key = "storageclass.kubernetes.io/is-default-class"
        self.assertEqual(
            ["true", "false"], [one["metadata"]["annotations"][key] for one in classes]
        )
        self.assertEqual(
            {"availability": "nova", "type": "fast", "csi.storage.k8s.io/fstype": "ext4"},
            classes[0]["parameters"],
        )

    def test_storage_classes_with_topologies_and_without_parameters(self) -> None:
        objects = rendering.scenarios(rendering.ADDONS)["standalone"].objects
        first, second, third = addon_operator.manifests(objects, "csi-cinder-storageclass")
        self.assertEqual("first.class", first["metadata"]["name"])
        self.assertNotIn("availability", first["parameters"])
        self.assertEqual(
            ["nova"], first["allowedTopologies"][0]["matchLabelExpressions"][0]["values"]
        )
        self.assertEqual(first["allowedTopologies"], second["allowedTopologies"])
        self.assertEqual({"availability": "nova"}, third["parameters"])
        self.assertEqual(
            ("Delete", "WaitForFirstConsumer", True),
            (third["reclaimPolicy"], third["volumeBindingMode"], third["allowVolumeExpansion"]),
        )
        self.assertEqual([], kubernetes_kinds.faults(third))

    def test_a_class_without_any_parameter(self) -> None:
        given = rendering.scenarios(rendering.CLUSTER)["minimal"].values
        objects = rendering.render(
            rendering.CLUSTER,
            rendering.changed(
                given, {"addons.openstack.csiCinder.defaultStorageClass.availabilityZone": ""}
            ),
        )
        (only,) = addon_operator.manifests(objects, "csi-cinder-storageclass")
        self.assertEqual({}, only["parameters"])


class DataNotTemplateTest(unittest.TestCase):
    """What people write reaches Jinja and Go templates as data."""

    def setUp(self) -> None:
        super().setUp()
        self.objects = rendering.scenarios(rendering.CLUSTER)["odd-text"].objects

    def test_values_of_an_addon_arrive_as_they_were_written(self) -> None:
        found = addon_operator.values(self.objects, "k8s-keystone-auth")
        self.assertEqual("{% raw %}{{ 7 * 7 }}", found["openstackAuthUrl"])
        self.assertEqual("0123456789", found["projectId"])

    def test_cloud_config(self) -> None:
        lines = cloud_conf(self.objects)
        self.assertIn('lb-provider = "a \\"b\\" \\\\ c {{ d }} {% e %}"', lines)
        self.assertIn('lb-method = "1e3"', lines)
        self.assertIn("max-shared-lb = 4", lines)

    def test_storage_class(self) -> None:
        (found,) = addon_operator.manifests(self.objects, "csi-cinder-storageclass")
        self.assertEqual(
            {
                "availability": "0123",
                "type": "{{ cloud_identity }}",
                "csi.storage.k8s.io/fstype": "yes",
            },
            found["parameters"],
        )

    def test_cluster_objects(self) -> None:
        machines = {
            found["metadata"]["labels"].get("capi.stackhpc.com/node-group"): found["spec"][
                "template"
            ]["spec"]
            for found in rendering.by_kind(self.objects, "OpenStackMachineTemplate")
        }
        self.assertEqual("4", machines[None]["flavor"])
        self.assertEqual("1e3", machines["1e3"]["flavor"])
        self.assertEqual('größe #1 "quoted" {{ x }}', machines["null"]["flavor"])
        self.assertEqual("yes", machines[None]["sshKeyName"])
        self.assertEqual({"filter": {"name": "a: b"}}, machines[None]["image"])
        self.assertEqual(
            [{"key": "1", "value": "1e3"}, {"key": "null", "value": "~"}],
            machines[None]["serverMetadata"],
        )
        self.assertEqual(
            {
                "sizeGiB": 20,
                "type": "n",
                "availabilityZone": {"from": "Name", "name": "1_000"},
            },
            machines["1e3"]["rootVolume"],
        )
        cluster = rendering.only(self.objects, "OpenStackCluster")["spec"]
        self.assertEqual(["0x10", "1:30"], cluster["controlPlaneAvailabilityZones"])
        self.assertEqual("on", cluster["apiServerLoadBalancer"]["provider"])
        self.assertEqual("123", cluster["identityRef"]["name"])
        deployment = rendering.by_kind(self.objects, "MachineDeployment")[0]
        self.assertEqual("yes", deployment["spec"]["template"]["spec"]["failureDomain"])
        annotations = rendering.only(self.objects, "Cluster")["metadata"]["annotations"]
        self.assertEqual(
            {"example.org/answer": "no", "example.org/when": "2026-11-21"}, annotations
        )
