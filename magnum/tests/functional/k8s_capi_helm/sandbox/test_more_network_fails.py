# SPDX-License-Identifier: Apache-2.0
"""A load balancer that is in ERROR, and what keeps a network from going: word for word."""

from __future__ import annotations

from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.sandbox.management import management

_FAULT = "load-balancer-fails"
#: Seconds until a cluster that is new has a load balancer, or one that is deleted no machines.
_LATER = 600.0


class NetworkFails(Life):
    """Octavia fails at a cluster's birth and at its end; a tenant's own port is in the way."""

    name = "network"

    @step
    def balancer_in_error(self) -> None:
        """Cluster API waits for minutes without a word: Octavia's is told, and what helps."""
        self.fault(_FAULT, True, "^k8s-clusterapi-cluster-.*-network-[^-]+-[^-]+-kubeapi$")
        self.customer.create().begun()
        said = (
            f"network: load balancer {self._balancer()} is in ERROR; delete it and Cluster API "
            "creates a new "
            "one; the network and the API load balancer are being created"
        )
        rows = self.cluster.says(said, limit=_LATER)
        assert rows.status == "CREATE_IN_PROGRESS", rows
        self.explained(_FAULT, f"load balancer {self._balancer()} is in ERROR")

    @step
    def balancer_anew(self) -> None:
        """The tenant does what the sentence says."""
        self.fault(_FAULT, False)
        balancers = self.customer.tenant.connection.load_balancer
        found = balancers.find_load_balancer(self._balancer())
        balancers.delete_load_balancer(found, cascade=True)
        self.cluster.complete("CREATE")

    @step
    def delete_with_balancer(self) -> None:
        """A Service's load balancer does not go: it is named, with Octavia's status."""
        release, tenant = self.cluster.release, self.customer.tenant
        cloud = tenant.connection
        (subnet,) = cloud.network.subnets(project_id=tenant.project_id)
        self.port = cloud.network.create_port(network_id=subnet.network_id, name="mine").id
        name = f"kube_service_{release}_default_web"
        cloud.load_balancer.create_load_balancer(name=name, vip_subnet_id=subnet.id)
        self.cluster.until(lambda _: tenant.load_balancers()[name] == "ACTIVE", "the Service's")
        self.fault(_FAULT, True, f"^{name}$")
        self.customer.magnum.delete(self.cluster.uuid)
        said = f"{self._in_use('2 ports')}; still there: load balancer {name} (ERROR)"
        self.cluster.says(said, limit=_LATER)

    @step
    def delete_with_port(self) -> None:
        """Then it goes; what only the tenant may delete is left, and named."""
        self.fault(_FAULT, False)
        tenant = self.customer.tenant
        self.cluster.until(lambda _: not tenant.load_balancers(), "no load balancer")
        self._look_again()
        said = (
            f"{self._in_use(f'port {self.port}')}; still there: port {self.port} (without an owner)"
        )
        rows = self.cluster.says(said, limit=_LATER)
        assert rows.status == "DELETE_IN_PROGRESS", rows

    @ending
    def delete(self) -> None:
        """When the tenant has done so all is gone by itself."""
        self.fault(_FAULT, False)
        network = self.customer.tenant.connection.network
        for one in list(network.ports(project_id=self.customer.tenant.project_id, name="mine")):
            network.delete_port(one)
        self._look_again()
        self.customer.delete()
        self.customer.leave()

    def _look_again(self) -> None:
        """CAPO waits minutes at last after a failure; at what changes it looks at once."""
        namespace, change = self.customer.tenant.namespace, {"example.org/look": "again"}
        for one in management().objects("OpenStackCluster", namespace):
            name = one["metadata"]["name"]
            patch = {"metadata": {"annotations": change}}
            management().patch("OpenStackCluster", namespace, name, patch)

    def _balancer(self) -> str:
        """Name that Cluster API gives to the API's load balancer."""
        namespace = self.customer.tenant.namespace
        return f"k8s-clusterapi-cluster-{namespace}-{self.cluster.release}-kubeapi"

    def _in_use(self, by: str) -> str:
        """What is said of the network itself: Neutron's word as CAPO had it at its last try."""
        release = self.cluster.release
        return f"waiting: deletion of OpenStackCluster {release}: its network is in use by {by}"


class TestNetworkFails(LifeCase, life=NetworkFails):
    """A load balancer in ERROR, one that does not go, a port in the way; delete."""
