# SPDX-License-Identifier: Apache-2.0
"""What the network addons are told of the cluster's pod networks."""

from __future__ import annotations

import unittest

from magnum.tests.functional.k8s_capi_helm.charts import addon_operator, rendering
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object


class PodNetworkTest(unittest.TestCase):
    """Pod networks of either IP version, or both."""

    def values(self, kind: str, *networks: str) -> Object:
        given = rendering.scenarios(rendering.ADDONS)["ingress-and-monitoring"].values
        objects = rendering.render(
            rendering.ADDONS, rendering.changed(given, {"cni": {"type": kind}})
        )
        cluster = rendering.changed(
            addon_operator.CLUSTER, {"spec.clusterNetwork.pods.cidrBlocks": list(networks)}
        )
        found: Object = addon_operator.values(objects, f"cni-{kind}", cluster=cluster)
        return found

    def test_calico(self) -> None:
        v4, v6 = "nodeAddressAutodetectionV4", "nodeAddressAutodetectionV6"
        for networks, wanted in (
            (["10.0.0.0/8"], {v4}),
            (["fd00::/48"], {v6}),
            (["10.0.0.0/8", "fd00::/48"], {v4, v6}),
        ):
            network = self.values("calico", *networks)["installation"]["calicoNetwork"]
            with self.subTest(networks=networks):
                self.assertEqual(wanted, network.keys() & {v4, v6})
                for key in wanted:
                    self.assertEqual({"kubernetes": "NodeInternalIP"}, network[key])
                self.assertEqual(networks, [pool["cidr"] for pool in network["ipPools"]])

    def test_cilium(self) -> None:
        for networks, wanted in (
            (["10.0.0.0/8"], (True, False)),
            (["fd00::/48"], (False, True)),
            (["10.0.0.0/8", "fd00::/48"], (True, True)),
        ):
            values = self.values("cilium", *networks)
            with self.subTest(networks=networks):
                self.assertEqual(wanted, (values["ipv4"]["enabled"], values["ipv6"]["enabled"]))

    def test_calicos_policy_can_be_null(self) -> None:
        given = rendering.scenarios(rendering.ADDONS)["ingress-and-monitoring"].values
        change = {"cni": {"calico": {"globalNetworkPolicy": None}}}
        objects = rendering.render(rendering.ADDONS, rendering.changed(given, change))
        self.assertEqual([], addon_operator.manifests(objects, "cni-calico-globalnetpolicy"))
