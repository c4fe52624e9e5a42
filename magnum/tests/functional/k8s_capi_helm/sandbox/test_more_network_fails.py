# SPDX-License-Identifier: Apache-2.0
"""A load balancer that is in ERROR: what Magnum says, word for word, and what helps."""

from __future__ import annotations

from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step

_FAULT = "load-balancer-fails"
#: Seconds until a cluster that is new has a load balancer.
_LATER = 600.0


class NetworkFails(Life):
    """Octavia fails at a cluster's birth."""

    name = "network"

    @step
    def balancer_in_error(self) -> None:
        """Cluster API waits for minutes without a word: Octavia's is told, and what helps."""
        self.fault(_FAULT, True, "^k8s-clusterapi-cluster-.*-network-[^-]+-[^-]+-kubeapi$")
        self.customer.create().begun()
        said = (
            f"network: Octavia has load balancer {self._balancer()} in ERROR; delete it for a new "
            "one; the network and the API load balancer are being made"
        )
        rows = self.cluster.says(said, limit=_LATER)
        assert rows.status == "CREATE_IN_PROGRESS", rows

    @step
    def balancer_anew(self) -> None:
        """The tenant does what the sentence says."""
        self.fault(_FAULT, False)
        balancers = self.customer.tenant.connection.load_balancer
        found = balancers.find_load_balancer(self._balancer())
        balancers.delete_load_balancer(found, cascade=True)
        self.cluster.complete("CREATE")

    @ending
    def delete(self) -> None:
        self.fault(_FAULT, False)
        self.customer.delete()
        self.customer.leave()

    def _balancer(self) -> str:
        """Name that Cluster API gives to the API's load balancer."""
        namespace = self.customer.tenant.namespace
        return f"k8s-clusterapi-cluster-{namespace}-{self.cluster.release}-kubeapi"


class TestNetworkFails(LifeCase, life=NetworkFails):
    """A load balancer in ERROR, a new one; delete."""
