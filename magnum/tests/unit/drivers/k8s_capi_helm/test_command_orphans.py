# SPDX-License-Identifier: Apache-2.0
"""``orphans``: servers without a machine, and Clusters without a record in Magnum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm.command_case import CommandCase, OK, WARNING
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import NAMESPACE, RELEASE

SERVER = f"{RELEASE}-default-worker-bcdfg-hjklm"


class TestOrphans(CommandCase):
    def setUp(self) -> None:
        super().setUp()
        self.made()
        self.openstack = self.cloud.openstack

    def run_rows(self, *argv: str, status: int) -> list[dict[str, Any]]:
        printed = self.command("orphans", *argv, "-f", "json")
        self.assertEqual(status, printed.status, printed.out + printed.error)
        return printed.rows()

    def server_object(self, **status: str) -> None:
        labels = {names.LABEL_CLUSTER_NAME: RELEASE}
        metadata = {"name": SERVER, "namespace": NAMESPACE, "labels": labels}
        self.kube.put(names.OPENSTACK_SERVER, {"metadata": metadata, "status": status})

    def test_a_cluster_that_is_well_has_none(self) -> None:
        server = self.openstack.leave("servers", name=SERVER)
        self.server_object(instanceID=server.id)
        self.assertEqual([], self.run_rows(status=OK))

    def test_one_that_is_being_created_is_none(self) -> None:
        self.openstack.leave("servers", name=SERVER)
        self.server_object()
        self.assertEqual([], self.run_rows(status=OK))

    def test_a_server_that_no_machine_has(self) -> None:
        server = self.openstack.leave("servers", name=SERVER)
        [row] = self.run_rows("demo", status=WARNING)
        self.assertEqual((f"server {SERVER}", str(server.id)), (row["Resource"], row["ID"]))
        self.assertIn("no machine of the management cluster", row["Finding"])

    def test_a_machine_that_has_another_server(self) -> None:
        self.openstack.leave("servers", name=SERVER)
        self.server_object(instanceID="another")
        [row] = self.run_rows(status=WARNING)
        self.assertEqual(f"server {SERVER}", row["Resource"])

    def test_a_cluster_that_the_management_cluster_does_not_have(self) -> None:
        self.openstack.leave("servers", name=SERVER)
        self.kube.remove(names.CLUSTER, NAMESPACE, RELEASE)
        [row] = self.run_rows(status=WARNING)
        self.assertIn("does not have this cluster", row["Finding"])

    def test_a_cluster_that_magnum_does_not_have(self) -> None:
        other = {"metadata": {"name": "other-abcdefghijkl", "namespace": NAMESPACE}}
        self.kube.put(names.CLUSTER, other)
        elsewhere = {"metadata": {"name": "other-abcdefghijkl", "namespace": "default"}}
        self.kube.put(names.CLUSTER, elsewhere)
        [row] = self.run_rows(status=WARNING)
        self.assertEqual(f"Cluster {NAMESPACE}/other-abcdefghijkl", row["Resource"])
        self.assertEqual("Magnum has no such cluster", row["Finding"])
        self.assertEqual([], self.run_rows("demo", status=OK))

    def test_a_cluster_that_only_openstack_has(self) -> None:
        release, project = "other-abcdefghijkl", self.cluster().project_id
        server = self.openstack.leave("servers", name=f"{release}-control-plane-bcdfg")
        groups = [
            self.openstack.leave(
                "security_groups", name=f"k8s-cluster-{NAMESPACE}-{one}-secgroup-controlplane"
            )
            for one in (release, RELEASE)
        ]
        rows = self.run_rows(status=WARNING)
        self.assertEqual([server.id, groups[0].id], [row["ID"] for row in rows])
        self.assertEqual({release}, {row["Cluster"] for row in rows})
        finding = f"neither Magnum nor a management cluster has this cluster (project {project})"
        self.assertEqual({finding}, {row["Finding"] for row in rows})
        self.kube.put(names.CLUSTER, {"metadata": {"name": release, "namespace": NAMESPACE}})
        [row] = self.run_rows(status=WARNING)
        self.assertEqual("Magnum has no such cluster", row["Finding"])

    def while_servers_are_listed(self, happens: Callable[[], None]) -> None:
        """Let something happen once, when Nova is asked about the clusters that Magnum has."""

        def before(request: str) -> None:
            if request == "list servers":
                self.openstack.before = None
                happens()

        self.openstack.before = before

    def leave_other(self) -> None:
        """A cluster of another user, as it is while Cluster API creates it."""
        name = "other-abcdefghijkl"
        self.kube.put(names.CLUSTER, {"metadata": {"name": name, "namespace": NAMESPACE}})
        group = f"k8s-cluster-{NAMESPACE}-{name}-secgroup-worker"
        self.openstack.leave("security_groups", name=group)

    def test_one_that_is_created_meanwhile(self) -> None:
        """It got its record in Magnum after the records were read."""
        self.while_servers_are_listed(self.leave_other)
        self.assertEqual([], self.run_rows(status=OK))

    def test_one_that_is_deleted_meanwhile(self) -> None:
        self.leave_other()

        def delete() -> None:
            self.kube.remove(names.CLUSTER, NAMESPACE, "other-abcdefghijkl")
            self.openstack.left["security_groups"].clear()

        self.while_servers_are_listed(delete)
        self.assertEqual([], self.run_rows(status=OK))
