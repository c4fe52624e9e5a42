# SPDX-License-Identifier: Apache-2.0
"""A cluster's everyday life: create, kubectl, resize 1 -> 3 -> 0, delete."""

from __future__ import annotations

import kubernetes

from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.sandbox.workload import Workload


class Everyday(Life):
    """What most clusters are asked for."""

    name = "everyday"

    @step
    def create(self) -> None:
        """COMPLETE is true, and all that belongs to a cluster is there."""
        self.customer.create().complete("CREATE")
        self.cluster.check_release()
        self.cluster.check_openstack()

    @step
    def reach(self) -> None:
        """A certificate that Magnum signs opens the cluster; without one it stays shut."""
        assert len(self.cluster.workload().nodes()) == 2
        address = self.cluster.rows().cluster["api_address"]
        stranger = Workload(self.customer.magnum, self.cluster.uuid, address, certificate=False)
        try:
            nodes = stranger.nodes()
        except kubernetes.client.ApiException as refusal:
            assert refusal.status in (401, 403), refusal
        else:
            raise AssertionError(f"without a certificate there are {len(nodes)} nodes to be seen")

    @step
    def grow(self) -> None:
        """1 -> 3."""
        self.customer.resize(3)
        self.cluster.complete()
        self.cluster.check_release()

    @step
    def shrink(self) -> None:
        """3 -> 0: an empty worker group is a group."""
        self.customer.resize(0)
        self.cluster.complete()
        self.cluster.check_release()

    @ending
    def delete(self) -> None:
        """When Magnum forgets the cluster nothing of it is left."""
        self.customer.delete()

    @ending
    def sweep(self) -> None:
        """The last trace goes too, and the tenant can leave."""
        self.customer.leave()


class TestEveryday(LifeCase, life=Everyday):
    """create, reach, grow, shrink, delete, sweep."""
