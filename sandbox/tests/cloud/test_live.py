# SPDX-License-Identifier: Apache-2.0
"""The cloud as it runs: what Cluster API asks of it, and what a kill does to it."""

from collections.abc import Callable
import os
from pathlib import Path
import shutil
import signal
import tempfile
import time
from typing import Any
import unittest

from sandbox import cloud, faults, processes
from sandbox.cloud import seed
from sandbox.cloud.services import COMPUTE_HOSTS
from sandbox.state import State

WAIT_SECONDS = 120


def wait(what: str, check: Callable[[], bool]) -> None:
    """Wait until ``check()``.

    :raises TimeoutError: it never came true.
    """
    deadline = time.monotonic() + WAIT_SECONDS
    while not check():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.2)


class TestCloud(unittest.TestCase):
    """One story in one test, as the start takes longer than all the rest."""

    def setUp(self) -> None:
        self.box = State(Path(tempfile.mkdtemp()))
        self.addCleanup(shutil.rmtree, self.box.root)
        self.addCleanup(processes.stop_all, self.box)
        cloud.up(self.box)
        self.tenant = seed.connect(self.box, seed.TENANT)
        self.made: list[Any] = []

    def test_a_cluster_s_worth_of_resources_comes_and_goes(self) -> None:
        self.assertEqual(
            set(COMPUTE_HOSTS), {zone.name for zone in self.tenant.compute.availability_zones()}
        )
        subnet = self.network()
        balancer = self.load_balancer(subnet)
        server = self.server("zone-2", subnet.network_id)
        self.quota_refuses(subnet.network_id)
        self.nova_survives_a_kill(server)
        self.tenant.compute.delete_server(server)
        self.tenant.load_balancer.delete_load_balancer(balancer, cascade=True)
        wait("server gone", lambda: self.tenant.compute.find_server(server.id) is None)
        wait(
            "load balancer gone",
            lambda: self.tenant.load_balancer.find_load_balancer(balancer.id) is None,
        )
        self.assertEqual(
            [],
            [
                port.name
                for port in self.tenant.network.ports()
                if port.device_owner not in ("network:router_interface",)
            ],
        )
        cloud.down(self.box)
        self.assertEqual([], processes.owned(self.box))

    def network(self) -> Any:
        net = self.tenant.network.create_network(name="c")
        subnet = self.tenant.network.create_subnet(
            network_id=net.id, ip_version=4, cidr="10.6.0.0/24"
        )
        public = self.tenant.network.find_network(seed.EXTERNAL_NETWORK)
        router = self.tenant.network.create_router(
            name="c", external_gateway_info={"network_id": public.id}
        )
        self.tenant.network.add_interface_to_router(router, subnet_id=subnet.id)
        return subnet

    def load_balancer(self, subnet: Any) -> Any:
        api = self.tenant.load_balancer
        balancer = api.create_load_balancer(name="c", vip_subnet_id=subnet.id)

        def active() -> bool:
            return bool(api.get_load_balancer(balancer.id).provisioning_status == "ACTIVE")

        wait("load balancer", active)
        listener = api.create_listener(
            name="l",
            protocol="TCP",
            protocol_port=6443,
            loadbalancer_id=balancer.id,
            allowed_cidrs=["192.0.2.0/24"],
        )
        wait("listener", active)
        pool = api.create_pool(
            name="p", protocol="TCP", lb_algorithm="ROUND_ROBIN", listener_id=listener.id
        )
        wait("pool", active)
        api.create_health_monitor(type="TCP", delay=5, timeout=3, max_retries=3, pool_id=pool.id)
        wait("monitor", active)
        self.floating_ip(api.get_load_balancer(balancer.id).vip_port_id)
        return balancer

    def floating_ip(self, port: str) -> None:
        public = self.tenant.network.find_network(seed.EXTERNAL_NETWORK)
        address = self.tenant.network.create_ip(floating_network_id=public.id, port_id=port)
        wait("floating IP", lambda: self.tenant.network.get_ip(address).status == "ACTIVE")
        first_two = self.box.external_network.split(".")[:2]
        self.assertEqual(first_two, address.floating_ip_address.split(".")[:2])

    def server(self, zone: str, network: str) -> Any:
        image = self.tenant.image.find_image("ubuntu-kube-v1.34.4").id
        server = self.tenant.compute.create_server(
            name="s",
            image_id=image,
            flavor_id=self.tenant.compute.find_flavor("m1.small").id,
            networks=[{"uuid": network}],
            availability_zone=zone,
        )
        self.server_is(server, "ACTIVE")
        return server

    def server_is(self, server: Any, status: str) -> None:
        wait(status, lambda: self.tenant.compute.get_server(server).status == status)

    def quota_refuses(self, network: str) -> None:
        self.assertIn("has 1", faults.QUOTA.on(self.box, None))
        with self.assertRaisesRegex(Exception, "Quota exceeded for instances"):
            self.server("zone-1", network)
        faults.QUOTA.off(self.box)

    def nova_survives_a_kill(self, server: Any) -> None:
        entry = processes.recorded(self.box, "nova")
        assert entry is not None
        os.kill(entry.pid, signal.SIGKILL)
        wait("death", lambda: not entry.running)
        self.assertIn(("nova", "stopped"), cloud.status(self.box))
        cloud.up(self.box)
        self.server_is(server, "ACTIVE")
        self.tenant.compute.stop_server(server)
        self.server_is(server, "SHUTOFF")
