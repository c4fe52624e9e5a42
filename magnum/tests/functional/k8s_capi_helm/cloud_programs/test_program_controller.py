# SPDX-License-Identifier: Apache-2.0
"""The real openstack-cloud-controller-manager in a cluster: Nodes, Services, and the cluster's end.

It has the values, cloud.conf, credential and permissions that the charts and its own chart give it.
"""

from __future__ import annotations

import functools
import ssl
from typing import Any
import urllib.request
import uuid

from magnum.tests.functional.k8s_capi_helm.cloud_programs import machine_node
from magnum.tests.functional.k8s_capi_helm.cloud_programs.pod_process import PodProcess
from magnum.tests.functional.k8s_capi_helm.cloud_programs.program_life import ProgramLife, workload
from magnum.tests.functional.k8s_capi_helm.cloud_programs.tenant_api import Object
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.sandbox.management import management
from magnum.tests.functional.k8s_capi_helm.waiting import until
from sandbox.cloud.services import REGION
from sandbox.management import cloud_programs

_SERVICES = "/api/v1/namespaces/default/services"
_ZONE, _REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
_TYPE = "node.kubernetes.io/instance-type"


class CloudController(ProgramLife):
    """A cluster of three machines whose users have Services.

    :ivar workers: the servers of its workers.
    """

    name = "cloud-controller"
    controller: PodProcess
    workers: tuple[Any, ...]

    @step
    def create(self) -> None:
        """A cluster whose kubelets report their addresses."""
        template = self.customer.template(labels={"kubelet_options": "--node-ip=0.0.0.0"})
        self.customer.create(workers=2, template=template).complete("CREATE")
        (group,) = management().objects("KubeadmConfigTemplate", self.customer.tenant.namespace)
        node = group["spec"]["template"]["spec"]["joinConfiguration"]["nodeRegistration"]
        flags = {one["name"]: one["value"] for one in node["kubeletExtraArgs"]}
        assert flags["node-ip"] == "0.0.0.0", flags  # noqa: S104

    @step
    def install_controller(self) -> None:
        """The controller starts with the addon's flags, Secret and role, and is the leader."""
        self.start_api()
        program, release = cloud_programs.CONTROLLER, cloud_programs.CONTROLLER_RELEASE
        objects = self.install("ccm-openstack", release, program.name)
        self.controller = PodProcess(self.api, workload(objects, program), program)
        arguments = self.controller.arguments()
        assert f"--cluster-name={self.cluster.release}" in arguments, arguments
        port = self.api.state.port("cloud-controller")
        self.controller.start(
            f"--kubeconfig={self.controller.kubeconfig()}",
            f"--secure-port={port}",
            ready=functools.partial(_is_healthy, port),
        )

    @step
    def nodes(self) -> None:
        """Nodes get what Nova knows of their servers, and the taint goes."""
        self.workers = tuple(machine_node.servers(self.customer.tenant, workers=True))
        (control_plane,) = machine_node.servers(self.customer.tenant, workers=False)
        for server in (control_plane, self.workers[0]):
            machine_node.register(self.api, server)
            found = self._initialized(server)
            assert found["spec"]["providerID"] == f"openstack:///{server.id}", found["spec"]
            labels = found["metadata"]["labels"]
            zone, flavor = server.availability_zone, server.flavor["original_name"]
            wanted = {_ZONE: zone, _REGION: REGION, _TYPE: flavor}
            assert wanted.items() <= labels.items(), (wanted, labels)
            told = {(one["type"], one["address"]) for one in found["status"]["addresses"]}
            wanted_addresses = {*machine_node.addresses(server), ("Hostname", server.name)}
            assert told == wanted_addresses, (told, wanted_addresses)

    @step
    def balancer(self) -> None:
        """A Service gets its load balancer, with the workers' port as members, and its address."""
        self._create_service("web", {"web": 80})
        address = self._address("web")
        balancer = self._balancer("web")
        assert balancer.provisioning_status == "ACTIVE", balancer
        assert self._listeners(balancer) == {("TCP", 80)}, self._listeners(balancer)
        (pool,) = self._pools(balancer)
        assert (pool.protocol, pool.lb_algorithm) == ("TCP", "ROUND_ROBIN"), pool
        assert pool.health_monitor_id, "the default of the label octavia_lb_healthcheck is true"
        self._has_members("web", self.workers[0])
        (floating,) = self.customer.tenant.connection.network.ips(
            floating_ip_address=address, project_id=self.customer.tenant.project_id
        )
        assert floating.port_id == balancer.vip_port_id, floating

    @step
    def follow(self) -> None:
        """An annotation makes members of Nodes that are new, another port another listener."""
        machine_node.register(self.api, self.workers[1])
        self._initialized(self.workers[1])
        changed = {"metadata": {"annotations": {"example.org/nodes-changed": "now"}}}
        self.api.request("PATCH", f"{_SERVICES}/web", changed)
        self._has_members("web", *self.workers)
        service = self.api.request("GET", f"{_SERVICES}/web")
        ports = [*service["spec"]["ports"], {"name": "tls", "port": 443, "targetPort": 8443}]
        self.api.request("PATCH", f"{_SERVICES}/web", {"spec": {"ports": ports}})
        balancer, both = self._balancer("web"), {("TCP", 80), ("TCP", 443)}
        until(lambda: self._listeners(balancer) == both, f"{both} are the listeners")
        self._has_members("web", *self.workers)

    @step
    def new_node(self) -> None:
        """A Node that is gone is no member; a new one is, at once if its kubelet has an address.

        The controller looks at the Nodes when one is new, and when it has a provider's id, which is
        before it has an address of the cloud; it does not look when the address comes.
        """
        first, second = self.workers
        self.api.request("DELETE", f"/api/v1/nodes/{second.name}")
        self._has_members("web", first)
        (address,) = _internal(second)
        machine_node.register(self.api, second, address=address)
        self._has_members("web", first, second)

    @step
    def remove(self) -> None:
        """A Service that is deleted loses its load balancer and its address."""
        before = self.customer.tenant.floating_ips()
        address = self._address("web")
        self.api.request("DELETE", f"{_SERVICES}/web")
        until(lambda: self.api.find(f"{_SERVICES}/web") is None, "the Service is gone")
        assert self._name("web") not in self.customer.tenant.load_balancers()
        assert self.customer.tenant.floating_ips() == before - {address}

    @step
    def lost_server(self) -> None:
        """The Node of a server that is gone is deleted; one whose kubelet is silent stays."""
        first = self.workers[0]
        machine_node.report(self.api, first.name, ready=False)
        gone = type(first)(name="no-such-server")
        machine_node.register(self.api, gone, f"openstack:///{uuid.uuid4()}")
        machine_node.report(self.api, gone.name, ready=False)
        path = f"/api/v1/nodes/{gone.name}"
        until(lambda: self.api.find(path) is None, "the Node without a server is gone")
        machine_node.node(self.api, first)
        machine_node.report(self.api, first.name, ready=True)

    @step
    def allowed(self) -> None:
        """Its role allows all that it has asked for."""
        self.check_allowed(self.controller)

    @step
    def keep(self) -> None:
        """The cluster is deleted while a Service has a load balancer and nobody looks after it."""
        self._create_service("left", {"web": 80})
        self._address("left")
        self.controller.stop()
        assert self._balancer("left") is not None

    @ending
    def delete(self) -> None:
        """Load balancer and address go with the cluster."""
        self.customer.delete()

    @ending
    def sweep(self) -> None:
        """The tenant can leave."""
        self.customer.leave()

    def _initialized(self, server: Any) -> Object:
        def answer() -> Object | None:
            found = machine_node.node(self.api, server)
            return found if machine_node.is_initialized(found) else None

        found: Object = until(answer, f"{server.name} is initialised")
        return found

    def _create_service(self, name: str, ports: dict[str, int]) -> None:
        listed = [{"name": key, "port": port, "targetPort": 8080} for key, port in ports.items()]
        spec = {"type": "LoadBalancer", "selector": {"app": name}, "ports": listed}
        document = {"metadata": {"name": name}, "spec": spec}
        self.api.request("POST", _SERVICES, document)

    def _address(self, service: str) -> str:
        """The address that the Service has in its status."""

        def answer() -> str:
            found = self.api.request("GET", f"{_SERVICES}/{service}")
            given = found["status"]["loadBalancer"].get("ingress") or [{}]
            return str(given[0].get("ip", ""))

        return str(until(answer, f"the Service {service} has an address"))

    def _name(self, service: str) -> str:
        return f"kube_service_{self.cluster.release}_default_{service}"

    def _balancer(self, service: str) -> Any:
        found = self.customer.tenant.connection.load_balancer.load_balancers()
        (balancer,) = (one for one in found if one.name == self._name(service))
        return balancer

    def _listeners(self, balancer: Any) -> set[tuple[str, int]]:
        found = self.customer.tenant.connection.load_balancer.listeners()
        return {
            (one.protocol, one.protocol_port)
            for one in found
            if any(above["id"] == balancer.id for above in one.load_balancers)
        }

    def _pools(self, balancer: Any) -> list[Any]:
        octavia = self.customer.tenant.connection.load_balancer
        return list(octavia.pools(loadbalancer_id=balancer.id))

    def _members(self, balancer: Any) -> set[tuple[str, int]]:
        octavia = self.customer.tenant.connection.load_balancer
        return {
            (member.address, member.protocol_port)
            for pool in self._pools(balancer)
            for member in octavia.members(pool)
        }

    def _has_members(self, service: str, *servers: Any) -> None:
        """Wait until these servers are the members for each port of a Service."""
        balancer = self._balancer(service)
        ports = self.api.request("GET", f"{_SERVICES}/{service}")["spec"]["ports"]
        wanted = {
            (address, port["nodePort"])
            for server in servers
            for address in _internal(server)
            for port in ports
        }
        until(lambda: self._members(balancer) == wanted, f"{wanted} are the members")


def _internal(server: Any) -> list[str]:
    return [one for kind, one in machine_node.addresses(server) if kind == "InternalIP"]


def _is_healthy(port: int) -> bool:
    """Whether the controller says that it is well; its certificate is its own."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        url = f"https://127.0.0.1:{port}/healthz"
        handlers = urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        opener = urllib.request.build_opener(*handlers)
        with opener.open(url, timeout=2.0) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


class TestCloudController(LifeCase, life=CloudController):
    """A test for each step."""
