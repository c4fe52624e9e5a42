# SPDX-License-Identifier: Apache-2.0
"""A resize that names the nodes which are to go."""

from __future__ import annotations

from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase, NAMESPACE, RELEASE

MARK = "cluster.x-k8s.io/delete-machine"
FIRST, SECOND, THIRD = (f"{RELEASE}-default-worker-m{number}" for number in range(3))


class TestRemoval(DriverCase):
    def marked(self) -> set[str]:
        """The Machines that Cluster API would take first."""
        return {
            one["metadata"]["name"]
            for one in self.kube.list(names.MACHINE, NAMESPACE)
            if MARK in (one["metadata"].get("annotations") or {})
        }

    def server_id(self, name: str) -> str:
        server = self.kube.get(names.OPENSTACK_SERVER, NAMESPACE, name)
        return str(server["status"]["instanceID"])

    def wanted(self) -> int:
        (entry,) = self.helm.live(NAMESPACE, RELEASE).values["nodeGroups"]
        return int(entry["machineCount"])

    def refused(self, count: int, *nodes: str) -> str:
        """The reason of a refusal, which has marked nothing and put the count back."""
        self.resize(count, remove=list(nodes))
        cluster = self.cluster()
        self.assertEqual("UPDATE_FAILED", cluster.status)
        self.assertEqual((3, 3, set()), (self.wanted(), self.group().node_count, self.marked()))
        return str(cluster.status_reason)

    def test_by_id_and_by_name(self) -> None:
        self.made(workers=3)
        self.resize(1, remove=[self.server_id(FIRST), THIRD])
        self.assertEqual(({FIRST, THIRD}, 1), (self.marked(), self.wanted()))
        self.assertEqual("UPDATE_IN_PROGRESS", self.cluster().status)

    def test_cluster_api_chooses_the_rest(self) -> None:
        self.made(workers=3)
        self.resize(1, remove=[SECOND])
        self.assertEqual(({SECOND}, 1), (self.marked(), self.wanted()))

    def test_a_node_of_the_control_plane(self) -> None:
        self.made(masters=3)
        name = f"{RELEASE}-control-plane-m1"
        self.resize(1, "default-master", remove=[name])
        self.assertEqual({name}, self.marked())

    def test_a_node_that_is_not_there(self) -> None:
        self.made(workers=3)
        reason = self.refused(2, FIRST, "somebody-else")
        self.assertIn("names a node that this nodegroup does not have", reason)
        self.assertIn("'somebody-else'", reason)
        self.assertIn(SECOND, reason)

    def test_a_node_of_another_group(self) -> None:
        self.made(workers=3)
        self.assertIn("control-plane-m0", self.refused(2, f"{RELEASE}-control-plane-m0"))

    def test_more_nodes_than_the_count_takes_away(self) -> None:
        self.made(workers=3)
        self.assertIn("names 2 nodes", self.refused(2, FIRST, SECOND))

    def test_while_machines_are_being_replaced(self) -> None:
        self.made(workers=3)
        (newest,) = self.kube.list(names.MACHINE_SET, NAMESPACE)
        newest["metadata"]["name"] += "-old"
        self.kube.put(names.MACHINE_SET, newest)
        self.assertIn("being replaced", self.refused(2, FIRST))

    def test_a_management_cluster_that_is_away(self) -> None:
        self.made(workers=3)
        self.kube.unreachable = True
        self.resize(2, remove=[FIRST])
        cluster = self.cluster()
        self.assertEqual("UPDATE_FAILED", cluster.status)
        self.assertIn("management cluster", cluster.status_reason)
        self.kube.unreachable = False
        self.assertEqual(set(), self.marked())
