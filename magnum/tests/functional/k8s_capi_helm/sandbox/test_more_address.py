# SPDX-License-Identifier: Apache-2.0
"""A cluster without a load balancer: its address outlives the machine that answers there."""

from __future__ import annotations

import time

from magnum.tests.functional.k8s_capi_helm.sandbox.customer import VERSION
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.sandbox.management import management

_OLD = "v1.33.8"
#: The OpenStack provider looks at everything again after ten minutes at the latest.
_GONE_OVER_AFTER = 660.0


class Address(Life):
    """One control plane machine with a floating IP of Magnum's, and its replacement."""

    name = "address"
    address = ""

    @step
    def create(self) -> None:
        """The floating IP leads to the machine; there is no load balancer."""
        template = self.customer.template(_OLD, master_lb_enabled=False)
        self.customer.create(template=template, version=_OLD)
        self.cluster.complete("CREATE")
        own = self.customer.tenant
        assert not own.load_balancers(), own.load_balancers()
        (self.address,) = own.floating_ips()
        assert own.holder(self.address) == self._master(), own.holder(self.address)

    @step
    def roll(self) -> None:
        """The control plane is replaced, and the address is the same, in Magnum and in Neutron."""
        old = self._master()
        self.customer.upgrade(VERSION, master_lb_enabled=False)
        rows = self.cluster.complete()
        assert rows.cluster["api_address"] == f"https://{self.address}:6443", rows.cluster
        own, new = self.customer.tenant, self._master()
        assert (own.floating_ips(), new != old) == ({self.address}, True), own.floating_ips()
        begin = time.monotonic()
        self.cluster.until(
            lambda _: own.holder(self.address) == new, "the address", _GONE_OVER_AFTER
        )
        self.say(f"the address went over {time.monotonic() - begin:.0f} s after UPDATE_COMPLETE")

    @step
    def reach(self) -> None:
        """Old and new certificates open the cluster under its address."""
        for workload in (self.cluster.workload(), self.cluster.new_workload()):
            versions = {one["status"]["nodeInfo"]["kubeletVersion"] for one in workload.nodes()}
            assert versions == {VERSION}, versions

    @step
    def refuse_more(self) -> None:
        """Several control plane machines need a load balancer: refused, and nothing changes."""
        before = set(self.customer.tenant.servers())
        self.customer.magnum.resize(self.cluster.uuid, 3, nodegroup="default-master")
        self.cluster.refused("need a load balancer", 1, "default-master")
        assert before == set(self.customer.tenant.servers())

    @ending
    def delete(self) -> None:
        """The address goes with the cluster."""
        self.customer.delete()
        self.customer.leave()

    def _master(self) -> str:
        """Id of the one control plane machine's server."""
        namespace = self.customer.tenant.namespace
        (machine,) = (
            one
            for one in management().objects("Machine", namespace)
            if "cluster.x-k8s.io/control-plane" in one["metadata"]["labels"]
        )
        return str(machine["spec"]["providerID"]).rpartition("/")[2]


class TestAddress(LifeCase, life=Address):
    """Create, upgrade, reach, refuse three control plane machines, delete."""
