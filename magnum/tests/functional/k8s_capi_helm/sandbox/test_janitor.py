# SPDX-License-Identifier: Apache-2.0
"""The real janitor: with it, killed half-way, and taken away from a cluster that it has claimed.

With a checkout of cluster-api-janitor-openstack in JANITOR (``tox -e functional`` makes what it
needs); without one these tests are skipped. A cluster that never had a janitor is in
``test_more_faults``.
"""

from __future__ import annotations

import os
from typing import Any

from magnum.tests.functional.k8s_capi_helm.sandbox import provider, setting
from magnum.tests.functional.k8s_capi_helm.sandbox.cluster import Cluster
from magnum.tests.functional.k8s_capi_helm.sandbox.customer import Customer
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.sandbox.magnum_api import Rows
from magnum.tests.functional.k8s_capi_helm.sandbox.management import management
from magnum.tests.functional.k8s_capi_helm.sandbox.services import Services
from sandbox.management import janitor

_FINALIZER = "janitor.capi.stackhpc.com"
_FAULT = "load-balancer-fails"
_DELETE = "volumesPolicy: delete\n"
#: The first look at the health of a new cluster, and what is said of a janitor after a minute.
_HEALTH = 200.0
_STEADY = 20.0


class Janitor(Life):
    """Three clusters of one project, all with volumes and a Service: each is deleted otherwise."""

    name = "janitor"
    #: Their users keep volumes; they do not; the janitor is taken away from theirs.
    second: Customer
    third: Customer
    services: dict[str, Services]

    @classmethod
    def missing(cls) -> str:
        if os.environ.get(janitor.CHECKOUT.variable):
            return ""
        return "JANITOR names no checkout of cluster-api-janitor-openstack"

    @step
    def create(self) -> None:
        """The janitor claims each cluster, and the health says no word about a missing one."""
        janitor.start(setting.state())
        self.customer.create().complete("CREATE")
        directory = provider.overlays(site=_DELETE)
        provider.reconfigure({"capi_helm": {"overlay_directory": directory}})
        self.second = Customer(self.customer.tenant, "janitor-second")
        self.third = Customer(self.customer.tenant, "janitor-third")
        for other in (self.second, self.third):
            other.create()
        for other in (self.second, self.third):
            other.cluster.until(lambda rows: rows.status == "CREATE_COMPLETE", "COMPLETE")
        for cluster in self._clusters():
            network = self._network(cluster)
            assert _FINALIZER in network["metadata"]["finalizers"], network["metadata"]
            rows = cluster.until(lambda rows: rows.health == "HEALTHY", "health", _HEALTH)
            reasons = rows.cluster["health_status_reason"]
            assert "janitor" not in reasons.get("notice", ""), reasons

    @step
    def policies(self) -> None:
        """Volumes are kept by default; the operator's overlay says otherwise of later clusters."""
        prefix, key = _FINALIZER, "volumes-policy"
        said = [self._network(one)["metadata"]["annotations"] for one in self._clusters()]
        policies = [annotations[f"{prefix}/{key}"] for annotations in said]
        assert policies == ["keep", "delete", "delete"], policies

    @step
    def use(self) -> None:
        """Users make Services and volumes; one load balancer is shared with the next cluster."""
        tenant = self.customer.tenant
        first, second, third = (cluster.release for cluster in self._clusters())
        self.services = {release: Services(tenant, release) for release in (first, second, third)}
        self.services[first].create(tags=(self.services[second].balancer,))
        for release in (second, third):
            self.services[release].create()

    @step
    def half_way(self) -> None:
        """Octavia fails: the janitor has deleted the floating IP, and Magnum names what is left."""
        own = self.services[self.cluster.release]
        self.fault(_FAULT, True, own.balancer)
        self.customer.magnum.delete(self.cluster.uuid)
        said = f"; {_FINALIZER} has not deleted load balancer {own.balancer}"

        def told(rows: Rows) -> bool:
            kinds = {kind for kind, _ in own.existing()}
            is_half = "floating IP" not in kinds and "load balancer" in kinds
            return is_half and f"{said} (ERROR)" in rows.reason

        rows = self.cluster.until(told, "a floating IP that is gone and a load balancer in ERROR")
        self.say(rows.reason)
        assert rows.status == "DELETE_IN_PROGRESS", rows

    @step
    def killed(self) -> None:
        """Without it nothing goes on, and Magnum says who holds what; the neighbours are whole."""
        janitor.kill(setting.state())
        self.fault(_FAULT, False)
        own = self.services[self.cluster.release]
        before = own.existing()

        def is_held(rows: Rows) -> bool:
            said = f"; {_FINALIZER} has not deleted load balancer {own.balancer} (ERROR)"
            return rows.status == "DELETE_IN_PROGRESS" and said in rows.reason

        rows = self.cluster.steady(is_held, _STEADY)
        self.say(rows.reason)
        assert own.existing() == before, (before, own.existing())
        assert _FINALIZER in self._network(self.cluster)["metadata"]["finalizers"]
        self._check_neighbours()

    @step
    def again(self) -> None:
        """Once it runs the deletion comes to its end; volumes stay, and the neighbours' things.

        It knows a load balancer by its name only: it takes one that another Service shares.
        """
        janitor.start(setting.state())
        self.cluster.forgotten()
        own = self.services[self.cluster.release]
        assert own.existing() == own.volumes, (own.existing(), own.volumes)
        self._check_neighbours()

    @step
    def delete_volumes(self) -> None:
        """Where the policy says so volumes and snapshots go, but for what its user keeps."""
        own = self.services[self.second.cluster.release]
        self.second.magnum.delete(self.second.cluster.uuid)
        self.second.cluster.forgotten()
        assert own.existing() == own.kept, (own.existing(), own.kept)
        self._check_neighbours()

    @step
    def taken_away(self) -> None:
        """The operator has uninstalled it: the cluster is held, until its finalizer is removed."""
        janitor.stop(setting.state())
        cluster, own = self.third.cluster, self.services[self.third.cluster.release]
        self.third.magnum.delete(cluster.uuid)
        # A long name leaves no room for what else there is.
        said = f"; {_FINALIZER} has not deleted load balancer {own.balancer}"
        rows = cluster.until(lambda rows: said in rows.reason, said)
        self.say(rows.reason)
        finalizers = self._network(cluster)["metadata"]["finalizers"]
        others = [one for one in finalizers if one != _FINALIZER]
        change: dict[str, Any] = {"metadata": {"finalizers": others}}
        management().patch(
            "OpenStackCluster", self.customer.tenant.namespace, cluster.release, change
        )
        cluster.forgotten()
        # No janitor, so nobody deletes volumes, whatever the policy says.
        assert own.existing() == own.volumes, (own.existing(), own.volumes)

    @ending
    def leave(self) -> None:
        """Nothing of it is left behind."""
        self.fault(_FAULT, False)
        janitor.stop(setting.state())
        provider.reconfigure({})
        for services in getattr(self, "services", {}).values():
            services.delete()
        self.customer.leave()

    def _clusters(self) -> list[Cluster]:
        return [self.cluster, self.second.cluster, self.third.cluster]

    def _network(self, cluster: Cluster) -> dict[str, Any]:
        namespace = self.customer.tenant.namespace
        return management().named("OpenStackCluster", namespace, cluster.release)

    def _check_neighbours(self) -> None:
        """Of clusters that are not being deleted everything is there."""
        for other in (self.second, self.third):
            if other.magnum.rows(other.cluster.uuid) is not None:
                own = self.services[other.cluster.release]
                assert own.existing() == own.things, (own.things, own.existing())


class TestJanitor(LifeCase, life=Janitor):
    """create, policies, use, half-way, killed, again, delete volumes, taken away, leave."""
