# SPDX-License-Identifier: Apache-2.0
"""What a cluster has left is found by its name, and nothing of anybody else's is touched."""

from __future__ import annotations

from openstack import exceptions as sdk_exceptions
import testtools

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.cloud.access.services import Services
from magnum.drivers.k8s_capi_helm.cloud.resources.orphans import Orphans
from magnum.tests.unit.drivers.k8s_capi_helm.fakes import FakeOpenStack

RELEASE, OTHER = "demo-abcdefghijkl", "demo-abcdefghijkl-mnopqrstuvwx"


class Case(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.cloud = FakeOpenStack("p1")
        self.remains = Orphans(Services(self.cloud, is_admin=True))

    def balancer(self, release: str = RELEASE, **more: object) -> str:
        name = f"kube_service_{release}_default_web"
        return str(self.cloud.leave("load_balancers", name=name, **more).id)

    def address(self, release: str = RELEASE, **more: object) -> str:
        words = f"Floating IP for Kubernetes external service default/web from cluster {release}"
        return str(self.cloud.leave("addresses", description=words, **more).id)

    def group(self, release: str = RELEASE) -> str:
        words = f"Security Group for default/web Service LoadBalancer in cluster {release}"
        return str(self.cloud.leave("security_groups", name="lb-sg", description=words).id)

    def clear(self) -> tuple[str, ...]:
        return self.remains.delete_services(RELEASE, "p1")

    def there(self) -> set[str]:
        left = (*self.cloud.left["load_balancers"], *self.cloud.left["security_groups"])
        return {one.id for one in (*left, *self.cloud.addresses)}


class TestServices(Case):
    def test_all_of_a_cluster_and_nothing_of_others(self) -> None:
        kept = {self.balancer(OTHER), self.address(OTHER), self.group(OTHER)}
        kept |= {self.balancer(project_id="p2"), self.address(project_id="p2")}
        kept.add(str(self.cloud.leave("load_balancers", name="the tenant's own").id))
        kept.add(str(self.cloud.leave("addresses", description=None).id))
        self.balancer()
        self.address()
        self.group()
        self.assertIn("kube_service_demo-abcdefghijkl_default_web", self.clear()[0])
        self.assertEqual((), self.clear())
        self.assertEqual(kept, self.there())

    def test_what_is_on_its_way_is_waited_for(self) -> None:
        self.cloud.stuck = {self.balancer()}
        self.assertIn("(ACTIVE)", self.clear()[0])
        self.assertIn("(PENDING_DELETE)", self.clear()[0])
        self.assertEqual(1, self.cloud.asked.count(f"delete load balancer {self.there().pop()}"))

    def test_one_that_another_cluster_uses_stays_with_its_address(self) -> None:
        tags = [f"kube_service_{name}_default_web" for name in (RELEASE, "other-abcdefghijkl")]
        kept = {self.balancer(tags=tags, vip_port_id="port-1"), self.address(port_id="port-1")}
        self.address(port_id="port-2")
        self.assertEqual((), self.clear())
        self.assertEqual(kept, self.there())

    def test_a_security_group_in_use_is_waited_for(self) -> None:
        self.cloud.stuck = {self.group()}
        self.assertEqual(("security group lb-sg (in use)",), self.clear())

    def test_a_cloud_without_octavia_is_no_hindrance(self) -> None:
        self.cloud.has_octavia = False
        self.address()
        self.assertEqual((), self.clear())
        self.assertEqual(set(), self.there())

    def test_a_service_that_is_down_is(self) -> None:
        self.cloud.failing = sdk_exceptions.HttpException("boom", http_status=503)
        self.assertRaises(errors.CloudUnreachable, self.clear)


class TestServers(Case):
    def test_by_name_and_project(self) -> None:
        for name, more in (
            (f"{RELEASE}-default-worker-bcdfg-hjklm", {}),
            (f"{RELEASE}-control-plane-npqrs", {"status": "ERROR"}),
            (f"{RELEASE}-gone-bcdfg", {"status": "SOFT_DELETED"}),
            (f"{RELEASE}-elsewhere-bcdfg", {"project_id": "p2"}),
            (f"{RELEASE}-jump-host", {}),
            ("mine", {}),
        ):
            self.cloud.leave("servers", name=name, **more)
        found = self.remains.servers(RELEASE, "p1", "magnum-p1")
        wanted = (f"{RELEASE}-control-plane-npqrs", f"{RELEASE}-default-worker-bcdfg-hjklm")
        self.assertEqual(wanted, found)

    def test_a_tenant_asks_about_the_own_project_only(self) -> None:
        self.cloud.leave("servers", name=f"{RELEASE}-control-plane-npqrs")
        found = Orphans(Services(self.cloud)).servers(RELEASE, "p1", "magnum-p1")
        self.assertEqual((f"{RELEASE}-control-plane-npqrs",), found)


class TestClusters(Case):
    """Clusters by the security groups that Cluster API's OpenStack provider has made."""

    def test_by_namespace_and_project(self) -> None:
        ids = []
        for name, project in (
            (f"k8s-cluster-magnum-p1-{RELEASE}-secgroup-worker", "p1"),
            (f"k8s-cluster-magnum-p1-{RELEASE}-secgroup-controlplane", "p1"),
            (f"k8s-cluster-magnum-p2-{OTHER}-secgroup-bastion", "p2"),
            # Not one of these projects', another driver's, no release, no such group, no name.
            (f"k8s-cluster-magnum-p1-{RELEASE}-secgroup-worker", "p3"),
            (f"k8s-cluster-magnum-system-{RELEASE}-secgroup-worker", "p1"),
            ("k8s-cluster-magnum-p1-secgroup-worker", "p1"),
            ("k8s-cluster-magnum-p1-mine-secgroup-worker", "p1"),
            (f"k8s-cluster-magnum-p1-{RELEASE}-secgroup-other", "p1"),
            (None, "p1"),
        ):
            fields = {"name": name or "", "project_id": project}
            ids.append(str(self.cloud.leave("security_groups", **fields).id))
        found = self.remains.clusters("magnum")
        self.assertEqual(
            [("p1", RELEASE, set(ids[:2])), ("p2", OTHER, {ids[2]})],
            [
                (one.project_id, one.release, {group.id for group in one.security_groups})
                for one in found
            ],
        )

    def test_neutron_does_not_answer(self) -> None:
        self.cloud.failing = sdk_exceptions.HttpException("boom", http_status=503)
        self.assertRaises(errors.CloudUnreachable, self.remains.clusters, "magnum")


class TestPorts(Case):
    def test_neutrons_own_are_not_told(self) -> None:
        for name, owner in (("a", "network:dhcp"), ("b", "compute:nova"), ("c", "")):
            self.cloud.leave("ports", id=name, network_id="net", device_owner=owner)
        found = [(port.title, port.id, port.state) for port in self.remains.ports("net")]
        self.assertEqual([("port", "b", "compute:nova"), ("port", "c", "without an owner")], found)
