# SPDX-License-Identifier: Apache-2.0
"""The OpenStackCluster: its versions, clean-up, networks and endpoint."""

from __future__ import annotations

from typing import Any
import unittest

from magnum.tests.functional.k8s_capi_helm.charts import infrastructure, rendering
from magnum.tests.functional.k8s_capi_helm.charts.infrastructure import (
    cluster,
    machines,
    rendered,
    small,
    VERSIONS,
)
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one

GROUP = "infrastructure.cluster.x-k8s.io"
JANITOR = "janitor.capi.stackhpc.com"


class VersionTest(unittest.TestCase):
    def version(self, *served: str, **api: str) -> str:
        objects = rendering.render(
            rendering.CLUSTER,
            small(apiVersions=api),
            served=[one if "/" in one else f"{GROUP}/{one}" for one in served],
        )
        (found,) = {
            one["apiVersion"] for one in objects if one["kind"].startswith("OpenStack")
        }  # all alike
        return str(found).removeprefix(f"{GROUP}/")

    def test_the_version_that_every_provider_takes(self) -> None:
        self.assertEqual("v1beta1", self.version())
        self.assertEqual("v1beta1", self.version("v1beta1"))
        self.assertEqual("v1beta1", self.version("v1beta1", "v1beta2"))

    def test_the_newer_version_where_the_older_is_gone(self) -> None:
        self.assertEqual("v1beta2", self.version("v1beta2"))
        self.assertEqual("v1beta1", self.version("cluster.x-k8s.io/v1beta2"))

    def test_the_value_wins(self) -> None:
        self.assertEqual("v1beta1", self.version("v1beta2", infrastructure="v1beta1"))
        self.assertEqual("v1beta2", self.version("v1beta1", infrastructure="v1beta2"))

    def test_references_of_core_v1beta1_name_the_version(self) -> None:
        for version in VERSIONS:
            objects = rendered(apiVersions={"core": "v1beta1", "infrastructure": version})
            found = rendering.only(objects, "Cluster")["spec"]["infrastructureRef"]
            self.assertEqual(f"{GROUP}/{version}", found["apiVersion"])

    def test_both_versions_mean_the_same_in_every_scenario(self) -> None:
        for scenario in at_least_one(rendering.scenarios(rendering.CLUSTER).values()):
            old, new = (
                rendering.render(
                    scenario.chart,
                    rendering.changed(
                        scenario.values,
                        {"apiVersions.infrastructure": version, "addons.enabled": False},
                    ),
                )
                for version in VERSIONS
            )
            with self.subTest(scenario=scenario.name):
                self.assertEqual(
                    [rendering.identity(found) for found in old],
                    [rendering.identity(found) for found in new],
                )
                self.assertEqual(
                    rendering.only(old, "OpenStackCluster")["spec"],
                    infrastructure.cluster_in_v1beta1(
                        rendering.only(new, "OpenStackCluster")["spec"]
                    ),
                )
                self.assertEqual(
                    machines(old),
                    {
                        name: infrastructure.machine_in_v1beta1(spec)
                        for name, spec in machines(new).items()
                    },
                )


class CleanUpTest(unittest.TestCase):
    def test_the_janitor_finds_the_cluster_by_its_label_from_the_beginning(self) -> None:
        found = cluster()["metadata"]
        self.assertEqual(found["name"], found["labels"]["cluster.x-k8s.io/cluster-name"])

    def test_a_prefix_of_the_operators_is_on_labels_and_not_on_the_janitors_annotation(
        self,
    ) -> None:
        for found in rendered(projectPrefix="example.org"):
            with self.subTest(found=rendering.identity(found)):
                self.assertEqual("demo", found["metadata"]["labels"]["example.org/cluster"])
                self.assertNotIn("capi.stackhpc.com", str(found["metadata"]["labels"]))
        self.assertIn(
            f"{JANITOR}/volumes-policy", cluster(projectPrefix="a.b")["metadata"]["annotations"]
        )

    def test_machines_are_selected_by_the_same_prefix(self) -> None:
        for kind in ("MachineDeployment", "MachineHealthCheck"):
            for found in at_least_one(
                rendering.by_kind(rendered(projectPrefix="example.org"), kind)
            ):
                self.assertEqual(
                    "demo", found["spec"]["selector"]["matchLabels"]["example.org/cluster"]
                )


class NetworkTest(unittest.TestCase):
    def test_an_id_is_enough(self) -> None:
        spec = cluster(
            clusterNetworking__internalNetwork__networkFilter={
                "id": rendering.openstack_id(1),
                "name": "a",
            },
            clusterNetworking__externalNetworkFilter={"name": "public"},
        )["spec"]
        self.assertEqual({"id": rendering.openstack_id(1)}, spec["network"])
        self.assertEqual({"filter": {"name": "public"}}, spec["externalNetwork"])
        self.assertNotIn("managedSubnets", spec)

    def test_one_subnet_in_either_key(self) -> None:
        for key, value in (
            ("subnetFilter", {"id": rendering.openstack_id(1)}),
            ("subnetFilters", [{"id": rendering.openstack_id(1)}]),
        ):
            change: Any = {f"clusterNetworking__internalNetwork__{key}": value}
            spec = cluster(**change)["spec"]
            self.assertEqual([{"id": rendering.openstack_id(1)}], spec["subnets"])
            self.assertNotIn("primarySubnet", spec)

    def test_the_first_of_many_subnets_has_the_load_balancer(self) -> None:
        subnets: Any = [
            {"id": rendering.openstack_id(1)},
            {"name": "b"},
            {"id": rendering.openstack_id(3)},
        ]
        spec = cluster(clusterNetworking__internalNetwork__subnetFilters=subnets[:2])["spec"]
        self.assertNotIn("primarySubnet", spec, "the provider knows it from 0.15 on")
        spec = cluster(clusterNetworking__internalNetwork__subnetFilters=subnets)["spec"]
        self.assertEqual({"id": rendering.openstack_id(1)}, spec["primarySubnet"])
        self.assertEqual(
            [
                {"id": rendering.openstack_id(1)},
                {"filter": {"name": "b"}},
                {"id": rendering.openstack_id(3)},
            ],
            spec["subnets"],
        )

    def test_tags_in_one_text_are_a_list(self) -> None:
        found = {"tags": "a,b", "notTagsAny": ["c"], "name": "tags"}
        spec = cluster(clusterNetworking__internalNetwork__networkFilter=found)["spec"]
        self.assertEqual(
            {"tags": ["a", "b"], "notTagsAny": ["c"], "name": "tags"}, spec["network"]["filter"]
        )

    def test_ipv6_is_let_through_where_the_provider_thinks_of_ipv4_only(self) -> None:
        networks = {
            "pods": {"cidrBlocks": ["10.1.0.0/16", "fd01::/64"]},
            "services": {"cidrBlocks": ["10.2.0.0/16", "fd02::/112"]},
        }

        def open_ports(**change: Any) -> dict[str, set[Any]]:
            groups = cluster(kubeNetwork=networks, **change)["spec"]["managedSecurityGroups"]
            return {
                name: {
                    (rule.get("portRangeMin"), rule.get("remoteIPPrefix"))
                    for rule in rules
                    if rule["etherType"] == "IPv6"
                }
                for name, rules in groups.items()
                if name != "allowAllInClusterTraffic"
            }

        api = {(6443, None), (2379, None)}
        ports = {(30000, None)}
        self.assertEqual(
            {
                "allNodesSecurityGroupRules": {(None, None)},
                "controlPlaneNodesSecurityGroupRules": api,
                "workerNodesSecurityGroupRules": ports,
            },
            open_ports(),
        )
        self.assertEqual(
            {(10250, None)},
            open_ports(clusterNetworking__allowAllInClusterTraffic=False)[
                "allNodesSecurityGroupRules"
            ],
        )
        self.assertEqual(
            {(30000, "::/0")},
            open_ports(apiServer__loadBalancerProvider="ovn")["workerNodesSecurityGroupRules"],
        )
        self.assertNotIn(
            "IPv6", str(cluster(apiServer__loadBalancerProvider="ovn")["spec"]), "IPv4 alone"
        )

    def test_another_port_of_the_api_is_opened_and_listened_to(self) -> None:
        objects = rendered(apiServer__port=443)
        groups = rendering.only(objects, "OpenStackCluster")["spec"]["managedSecurityGroups"]
        (rule,) = groups["controlPlaneNodesSecurityGroupRules"]
        self.assertEqual(
            (443, 443, "tcp"), (rule["portRangeMin"], rule["portRangeMax"], rule["protocol"])
        )
        spec = rendering.only(objects, "KubeadmControlPlane")["spec"]["kubeadmConfigSpec"]
        self.assertEqual({"bindPort": 443}, spec["initConfiguration"]["localAPIEndpoint"])
        self.assertEqual(
            {"bindPort": 443}, spec["joinConfiguration"]["controlPlane"]["localAPIEndpoint"]
        )
        self.assertNotIn("localAPIEndpoint", str(rendered()))

    def test_the_chart_adds_no_rule_that_is_there(self) -> None:
        rule = {"name": "a", "direction": "ingress", "etherType": "IPv6"}
        for key in ("allNodes", "controlPlaneNodes", "workerNodes"):
            change: Any = {f"clusterNetworking__{key}SecurityGroupRules": [rule]}
            groups = cluster(**change)["spec"]["managedSecurityGroups"]
            self.assertEqual(
                {"allowAllInClusterTraffic": True, f"{key}SecurityGroupRules": [rule]}, groups
            )

    def test_a_rule_with_the_name_of_one_of_the_charts_takes_its_place(self) -> None:
        for port, rule in ((443, "Kubernetes API IPv4"), (6443, "another")):
            mine = {"name": rule, "direction": "ingress", "remoteIPPrefix": "10.0.0.0/8"}
            groups = cluster(
                apiServer__port=port, clusterNetworking__controlPlaneNodesSecurityGroupRules=[mine]
            )["spec"]["managedSecurityGroups"]
            told = {**mine, "etherType": "IPv4"}
            self.assertEqual([told], groups["controlPlaneNodesSecurityGroupRules"])

    def test_a_rule_is_told_as_neutron_has_it(self) -> None:
        """Otherwise the provider cannot make it, or makes it anew each time that it looks."""
        for given, told in (
            ({}, {"etherType": "IPv4"}),
            ({"remoteIPPrefix": "10.0.0.0/8"}, {"etherType": "IPv4"}),
            (
                {"remoteIPPrefix": "2001:DB8::/32"},
                {"etherType": "IPv6", "remoteIPPrefix": "2001:db8::/32"},
            ),
            ({"etherType": "IPv6"}, {}),
            ({"protocol": "TCP"}, {"etherType": "IPv4", "protocol": "tcp"}),
            (
                {"protocol": "tcp", "portRangeMin": 80},
                {"etherType": "IPv4", "portRangeMax": 80},
            ),
            (
                {"protocol": "udp", "portRangeMin": 80, "portRangeMax": 90},
                {"etherType": "IPv4"},
            ),
            # A type without a code is one with any code.
            ({"protocol": "icmp", "portRangeMin": 8}, {"etherType": "IPv4"}),
            ({"protocol": "1", "portRangeMin": 8}, {"etherType": "IPv4"}),
            ({"protocol": "58", "portRangeMin": 128}, {"etherType": "IPv6"}),
            ({"protocol": "ipv6-icmp"}, {"etherType": "IPv6"}),
            (
                {"protocol": "icmp", "portRangeMin": 11, "portRangeMax": 1},
                {"etherType": "IPv4"},
            ),
        ):
            rule = {"name": "a", "direction": "ingress", **given}
            self.assertEqual([{**rule, **told}], self.rules(rule))
        self.assertEqual(
            [{"name": "a", "direction": "egress", "etherType": "IPv4"}],
            self.rules({"name": "a", "direction": "egress", "protocol": "any"}),
        )

    def rules(self, rule: rendering.Object) -> list[rendering.Object]:
        """What becomes of a rule of workers."""
        groups = cluster(clusterNetworking__workerNodesSecurityGroupRules=[rule])["spec"]
        found: list[rendering.Object] = groups["managedSecurityGroups"][
            "workerNodesSecurityGroupRules"
        ]
        return found

    def test_what_does_nothing_for_a_running_cluster_does_not_stop_it(self) -> None:
        """Its fields cannot be changed, and whoever scales it asks for something else."""
        for change in (
            {"loadBalancerProvider": "ovn", "allowedCIDRs": ["192.0.2.0/24"]},
            {"allowedCIDRs": ["2001:db8::/32"]},
            {"fixedIP": "10.9.9.9"},
        ):
            values = small(**{f"apiServer__{key}": value for key, value in change.items()})
            with self.assertRaises(rendering.HelmRefused):
                rendering.render(rendering.CLUSTER, values)
            rendering.render(rendering.CLUSTER, values, upgrade=True)

    def test_pods_are_given_addresses_by_somebody_else(self) -> None:
        found = cluster(
            kubeNetwork__pods__cidrBlocks=["10.0.0.0/26"],
            controllerManager={"extraArgs": {"allocate-node-cidrs": "false"}},
        )
        self.assertIn("spec", found)

    def test_a_bastion_is_said_to_be_off_before_it_may_be_left_out(self) -> None:
        self.assertNotIn("bastion", cluster()["spec"])
        self.assertEqual({"enabled": False}, cluster(bastion={"enabled": False})["spec"]["bastion"])

    def test_a_cluster_that_lives_with_networks_that_overlap_may_be_upgraded(self) -> None:
        values = small(clusterNetworking__internalNetwork__nodeCidr="172.16.0.0/24")
        with self.assertRaisesRegex(rendering.HelmRefused, "overlap"):
            rendering.render(rendering.CLUSTER, values)
        rendering.render(rendering.CLUSTER, values, upgrade=True)

    def test_networks_that_only_touch_are_fine(self) -> None:
        found = cluster(
            kubeNetwork={
                "pods": {"cidrBlocks": ["10.0.0.0/17"]},
                "services": {"cidrBlocks": ["10.0.128.0/17"]},
            },
            clusterNetworking__internalNetwork__nodeCidr="10.1.0.0/16",
        )
        self.assertIn("spec", found)


class EndpointTest(unittest.TestCase):
    def test_an_address_for_the_load_balancer_or_somebody_elses_name(self) -> None:
        for host, change in (
            ("203.0.113.9", {}),
            ("2001:db8::9", {"apiServer__associateFloatingIP": False}),
            (
                "api.example.org",
                {
                    "apiServer__associateFloatingIP": False,
                    "apiServer__enableLoadBalancer": False,
                },
            ),
        ):
            endpoint = {"host": host, "port": 6443}
            with self.subTest(host=host):
                spec = cluster(controlPlaneEndpoint=endpoint, **change)["spec"]
                self.assertEqual(endpoint, spec["controlPlaneEndpoint"])

    def test_somebody_elses_load_balancer_may_have_another_port_than_machines(self) -> None:
        spec = cluster(
            controlPlaneEndpoint={"host": "api.example.org", "port": 443},
            apiServer__associateFloatingIP=False,
            apiServer__enableLoadBalancer=False,
        )["spec"]
        self.assertEqual((443, 6443), (spec["controlPlaneEndpoint"]["port"], spec["apiServerPort"]))

    def test_one_machine_may_have_an_address_that_goes_with_it(self) -> None:
        spec = cluster(apiServer__enableLoadBalancer=False, controlPlane__machineCount=1)["spec"]
        self.assertIs(False, spec["disableAPIServerFloatingIP"])

    def test_the_provider_of_service_load_balancers_may_be_said_without_one_for_the_api(
        self,
    ) -> None:
        spec = cluster(
            apiServer__enableLoadBalancer=False,
            apiServer__floatingIP="203.0.113.10",
            apiServer__loadBalancerProvider="ovn",
        )["spec"]
        self.assertNotIn("apiServerLoadBalancer", spec)
        self.assertIn("workerNodesSecurityGroupRules", spec["managedSecurityGroups"])
