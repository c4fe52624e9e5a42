# SPDX-License-Identifier: Apache-2.0
"""What single values do to the cluster's objects, beyond what the record of scenarios shows."""

from __future__ import annotations

from typing import Any
import unittest

import yaml

from magnum.tests.functional.k8s_capi_helm.charts import rendering
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one

KEEP = "helm.sh/resource-policy"
KEPT = {
    "OpenStackCluster",
    "KubeadmControlPlane",
    "OpenStackMachineTemplate",
    "KubeadmConfigTemplate",
}


def rendered(scenario: str = "minimal", **change: Any) -> list[Object]:
    """A scenario with other values at some paths ("__" for a dot)."""
    values = rendering.scenarios(rendering.CLUSTER)[scenario].values
    paths = {path.replace("__", "."): value for path, value in change.items()}
    return rendering.render(rendering.CLUSTER, rendering.changed(values, paths))


def cluster_spec(scenario: str = "minimal", **change: Any) -> Any:
    """Spec of the OpenStackCluster."""
    return rendering.only(rendered(scenario, **change), "OpenStackCluster")["spec"]


class ClusterObjectsTest(unittest.TestCase):
    def test_an_annotation_has_any_key_that_kubernetes_takes(self) -> None:
        given = {"Example.ORG/Foo": "bar", "a": "b", "example.org/A_b.c": ""}
        found = rendering.only(rendered(clusterAnnotations=given), "Cluster")
        self.assertLessEqual(given.items(), found["metadata"]["annotations"].items())

    def test_helm_keeps_what_cluster_api_deletes_in_order(self) -> None:
        for scenario in at_least_one(rendering.scenarios(rendering.CLUSTER).values()):
            for found in scenario.objects:
                kept = found["metadata"].get("annotations", {}).get(KEEP) == "keep"
                with self.subTest(scenario=scenario.name, found=rendering.identity(found)):
                    credential = found["metadata"]["name"].endswith("-cloud-credentials")
                    self.assertEqual(found["kind"] in KEPT or credential, kept)

    def test_fate_of_volumes_is_always_said(self) -> None:
        for policy in ("keep", "delete"):
            found = rendering.only(rendered(volumesPolicy=policy), "OpenStackCluster")
            self.assertEqual(
                policy,
                found["metadata"]["annotations"]["janitor.capi.stackhpc.com/volumes-policy"],
            )

    def test_both_spellings_of_allowed_networks(self) -> None:
        networks: Any = ["198.51.100.0/24"]
        for spelling in ("allowedCIDRs", "allowedCidrs"):
            change = {f"apiServer__{spelling}": networks}
            spec = cluster_spec("minimal", **change)
            self.assertEqual(networks, spec["apiServerLoadBalancer"]["allowedCIDRs"])

    def test_node_ports_are_open_behind_ovn_once(self) -> None:
        self.assertNotIn("workerNodesSecurityGroupRules", cluster_spec()["managedSecurityGroups"])
        spec = cluster_spec(apiServer__loadBalancerProvider="ovn")
        rules = spec["managedSecurityGroups"]["workerNodesSecurityGroupRules"]
        self.assertEqual(["tcp", "udp"], [rule["protocol"] for rule in rules])
        again = cluster_spec(
            apiServer__loadBalancerProvider="ovn",
            clusterNetworking__workerNodesSecurityGroupRules=rules,
        )
        self.assertEqual(rules, again["managedSecurityGroups"]["workerNodesSecurityGroupRules"])

    def test_name_servers_of_the_newer_key_win(self) -> None:
        old, new = ["192.0.2.1"], ["192.0.2.2"]
        spec = cluster_spec(clusterNetworking__dnsNameservers=old)
        self.assertEqual(old, spec["managedSubnets"][0]["dnsNameservers"])
        spec = cluster_spec(
            clusterNetworking__dnsNameservers=old,
            clusterNetworking__internalNetwork={"dnsNameservers": new},
        )
        self.assertEqual(new, spec["managedSubnets"][0]["dnsNameservers"])

    def test_name_servers_may_have_addresses_of_ipv6(self) -> None:
        servers = ["2001:db8::53", "192.0.2.53"]
        spec = cluster_spec(clusterNetworking__internalNetwork={"dnsNameservers": servers})
        self.assertEqual(servers, spec["managedSubnets"][0]["dnsNameservers"])

    def test_the_autoscaler_comes_with_the_first_group_that_wants_it(self) -> None:
        kinds = {"Deployment", "ServiceAccount", "Role", "RoleBinding"}
        self.assertEqual(set(), kinds & {found["kind"] for found in rendered()})
        for wanted in (True, "true"):
            group = {"name": "a", "autoscale": wanted, "machineCountMin": 0, "machineCountMax": 2}
            objects = rendered(nodeGroups=[group])
            self.assertLessEqual(kinds, {found["kind"] for found in objects})
            deployment = rendering.only(objects, "MachineDeployment")
            self.assertNotIn("replicas", deployment["spec"])
            prefix = "cluster.x-k8s.io/cluster-api-autoscaler-node-group"
            self.assertLessEqual(
                {f"{prefix}-min-size": "0", f"{prefix}-max-size": "2"}.items(),
                deployment["metadata"]["annotations"].items(),
            )

    def test_the_autoscaler_may_see_machine_templates(self) -> None:
        role = rendering.only(rendered("ovn-autoscaled"), "Role")
        self.assertIn(
            {
                "apiGroups": ["infrastructure.cluster.x-k8s.io"],
                "resources": ["openstackmachinetemplates"],
                "verbs": ["get", "list", "watch"],
            },
            role["rules"],
        )

    def test_a_server_that_never_came_up_is_healed_unless_switched_off(self) -> None:
        def conditions(**change: Any) -> object:
            (found,) = (
                one
                for one in rendering.by_kind(rendered(**change), "MachineHealthCheck")
                if one["metadata"]["name"] == "demo-md-0"
            )
            return found["spec"]["checks"].get("unhealthyMachineConditions")

        self.assertEqual(
            [{"type": "InfrastructureReady", "status": "False", "timeoutSeconds": 1200}],
            conditions(),
        )
        self.assertIsNone(conditions(nodeGroupDefaults__healthCheck={"neverCameUpTimeout": ""}))

    def test_an_etcd_disk_is_formatted_and_mounted_on_the_control_plane_only(self) -> None:
        objects = rendered(etcd__blockDevice={"size": 10})
        spec = rendering.only(objects, "KubeadmControlPlane")["spec"]["kubeadmConfigSpec"]
        self.assertEqual([["LABEL=etcd_disk", "/var/lib/etcd"]], spec["mounts"])
        for phase in ("initConfiguration", "joinConfiguration"):
            self.assertEqual(
                ["DirAvailable--var-lib-etcd"],
                spec[phase]["nodeRegistration"]["ignorePreflightErrors"],
            )
        machines = [
            found["spec"]["template"]["spec"]
            for found in rendering.by_kind(objects, "OpenStackMachineTemplate")
        ]
        self.assertEqual(1, sum("additionalBlockDevices" in machine for machine in machines))

    def test_keystone_files_are_valid_and_agree(self) -> None:
        spec = rendering.only(rendered("ovn-autoscaled"), "KubeadmControlPlane")["spec"][
            "kubeadmConfigSpec"
        ]
        files = {one["path"]: yaml.safe_load(one["content"]) for one in spec["files"]}
        server = spec["clusterConfiguration"]["apiServer"]
        given = {one["name"]: one["value"] for one in server["extraArgs"]}
        authorization = files[given["authorization-config"]]
        webhook = authorization["authorizers"][-1]["webhook"]
        self.assertEqual(
            ["Node", "RBAC", "Webhook"], [x["type"] for x in authorization["authorizers"]]
        )
        self.assertEqual("NoOpinion", webhook["failurePolicy"])
        self.assertIn(webhook["connectionInfo"]["kubeConfigFile"], files)
        self.assertIn(given["authentication-token-webhook-config-file"], files)
        (volume,) = server["extraVolumes"]
        self.assertTrue(all(path.startswith(volume["mountPath"]) for path in files))

    def test_release_notes_of_a_chart_are_its_own(self) -> None:
        for chart in (rendering.CLUSTER, rendering.ADDONS):
            about = yaml.safe_load((chart / "Chart.yaml").read_text())
            self.assertEqual(
                "k8s-capi-helm", about["annotations"]["k8s-capi-helm.openstack.org/family"]
            )
