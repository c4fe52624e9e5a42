# SPDX-License-Identifier: Apache-2.0
"""The proxy of machines: who reads it, and what is reached without it."""

from __future__ import annotations

from pathlib import Path
import tempfile
import unittest

from magnum.tests.functional.k8s_capi_helm.charts import machines, rendering
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one


class ProxyTest(unittest.TestCase):
    def environment(self, spec: Object) -> dict[str, str]:
        text = machines.files(spec)["/etc/kubernetes/proxy.env"].decode()
        return dict(line.split("=", 1) for line in text.splitlines())

    def test_containerd_and_kubelet_read_one_environment(self) -> None:
        for spec in at_least_one(machines.both(machines.rendered())):
            written = machines.files(spec)
            for unit in ("containerd", "kubelet"):
                self.assertEqual(
                    b"[Service]\nEnvironmentFile=-/etc/kubernetes/proxy.env\n",
                    written[f"/etc/systemd/system/{unit}.service.d/proxy.conf"],
                )
            found = self.environment(spec)
            for name in ("HTTP_PROXY", "HTTPS_PROXY"):
                self.assertEqual("http://proxy.example.org:3128", found[name])
            for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
                self.assertEqual(found[name], found[name.lower()])

    def test_the_clusters_own_is_reached_without_it(self) -> None:
        (found,) = {
            self.environment(spec)["NO_PROXY"] for spec in machines.both(machines.rendered())
        }
        self.assertEqual(
            "localhost,127.0.0.1,::1,169.254.169.254,.svc,cluster.local,.cluster.local,"
            "172.16.0.0/13,172.24.0.0/13,192.168.3.0/24,"
            "registry.example.org,.example.org,192.0.2.0/24",
            found,
        )

    def test_the_network_of_machines_is_named_if_the_values_know_it(self) -> None:
        both_subnets = [{"cidr": "10.20.0.0/16"}, {"cidr": "fd00:20::/64"}]
        for network, expected in (
            ({"subnetFilter": {"id": rendering.openstack_id(1)}}, set()),
            ({"networkFilter": {"id": rendering.openstack_id(1)}}, set()),
            ({"subnetFilter": {"cidr": "10.20.0.0/16"}}, {"10.20.0.0/16"}),
            ({"subnetFilters": both_subnets}, {"10.20.0.0/16", "fd00:20::/64"}),
            ({"nodeCidr": "10.30.0.0/16"}, {"10.30.0.0/16"}),
        ):
            with self.subTest(network=network):
                objects = machines.rendered(clusterNetworking={"internalNetwork": network})
                found = self.environment(machines.worker(objects))["NO_PROXY"].split(",")
                known = {"10.20.0.0/16", "fd00:20::/64", "10.30.0.0/16", "192.168.3.0/24"}
                self.assertEqual(expected, known & set(found))
                self.assertNotIn("", found)

    def test_one_proxy_alone_will_do(self) -> None:
        found = self.environment(machines.worker(machines.rendered(proxy__http=None)))
        self.assertEqual({"HTTPS_PROXY", "NO_PROXY"}, {name for name in found if name.isupper()})

    def test_apt_uses_it_but_for_named_hosts(self) -> None:
        objects = machines.rendered(
            proxy__noProxy=["a.example.org", ".b.org", "10.0.0.0/8", "*.c", "d:1"]
        )
        text = machines.files(machines.worker(objects))["/etc/apt/apt.conf.d/90proxy"].decode()
        self.assertEqual(
            'Acquire::http::Proxy "http://proxy.example.org:3128";\n'
            'Acquire::https::Proxy "http://proxy.example.org:3128";\n'
            'Acquire::http::Proxy::a.example.org "DIRECT";\n'
            'Acquire::https::Proxy::a.example.org "DIRECT";\n',
            text,
        )

    def test_addresses_of_ipv6_keep_their_brackets(self) -> None:
        url, exempt = "http://[2001:db8::1]:3128", ["2001:db8::/32", "[fd00::1]:5000", "fd00::2"]
        objects = machines.rendered(proxy__http=url, proxy__https=url, proxy__noProxy=exempt)
        for spec in at_least_one(machines.both(objects)):
            found = self.environment(spec)
            self.assertEqual({url}, {found[name] for name in ("HTTP_PROXY", "https_proxy")})
            self.assertLessEqual(set(exempt), set(found["NO_PROXY"].split(",")))
            text = machines.files(spec)["/etc/apt/apt.conf.d/90proxy"].decode()
            self.assertIn(f'Acquire::http::Proxy "{url}";', text)

    def test_commands_come_in_the_order_that_they_need(self) -> None:
        for spec in at_least_one(machines.both(machines.rendered())):
            commands = [" ".join(one.split(" -o ")[:1]) for one in spec["preKubeadmCommands"]]
            self.assertEqual(
                [
                    "update-ca-certificates",
                    "sh /opt/openstack-cluster/proxy.sh",
                    "systemctl daemon-reload",
                    machines.RESTART,
                    "apt-get",
                    "DEBIAN_FRONTEND=noninteractive apt-get",
                ],
                commands[:6],
            )

    def test_the_machine_adds_the_api_servers_address(self) -> None:
        for path, line, expected in (
            ("run/kubeadm/kubeadm.yaml", "controlPlaneEndpoint: 203.0.113.4:6443", "203.0.113.4"),
            (
                "run/kubeadm/kubeadm-join-config.yaml",
                "    apiServerEndpoint: api.example.org:443",
                "api.example.org",
            ),
            ("etc/kubeadm.yml", '  apiServerEndpoint: "[2001:db8::4]:6443"', "2001:db8::4"),
        ):
            with self.subTest(path=path), tempfile.TemporaryDirectory() as directory:
                root = Path(directory)
                config, environment = root / path, root / "etc/kubernetes/proxy.env"
                for one in (config, environment):
                    one.parent.mkdir(parents=True, exist_ok=True)
                config.write_text(f"kind: X\n{line}\nname: a\n")
                environment.write_text("HTTP_PROXY=http://p\nNO_PROXY=a,b\nno_proxy=a,b\n")
                machines.run(machines.PROXY.read_text(), root)
                self.assertEqual(
                    f"HTTP_PROXY=http://p\nNO_PROXY=a,b,{expected}\nno_proxy=a,b,{expected}\n",
                    environment.read_text(),
                )
