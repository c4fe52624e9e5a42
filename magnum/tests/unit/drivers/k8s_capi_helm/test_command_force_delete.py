# SPDX-License-Identifier: Apache-2.0
"""``force-delete`` shows what is left by id, and ends a deletion only where nothing runs."""

from __future__ import annotations

from typing import Any

from openstack import exceptions as sdk_exceptions

from magnum.common import exception
from magnum.drivers.k8s_capi_helm.lease import codec
from magnum.drivers.k8s_capi_helm.model import names
from magnum.drivers.k8s_capi_helm.reconcile.deletion import forced_deletion
from magnum.tests.unit.drivers.k8s_capi_helm.command_case import (
    CommandCase,
    OK,
    UNKNOWN,
    WARNING,
)
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import NAMESPACE, RELEASE
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one

BALANCER = f"kube_service_{RELEASE}_default_web"


class ForceDeleteCase(CommandCase):
    def setUp(self) -> None:
        super().setUp()
        self.made()

    def hold(self) -> None:
        """Cluster API's controllers hold every object, and the deletion is requested."""
        for kind in forced_deletion.KINDS:
            for obj in self.kube.list(kind, NAMESPACE):
                obj["metadata"]["finalizers"] = ["cluster.x-k8s.io/held"]
                obj["metadata"].setdefault("labels", {})[names.LABEL_CLUSTER_NAME] = RELEASE
                self.kube.put(kind, obj)
        self.delete()
        self.status_task()

    def rows(self, *argv: str, status: int = WARNING) -> list[dict[str, Any]]:
        printed = self.command("force-delete", "demo", "-f", "json", *argv)
        self.assertEqual(status, printed.status, printed.out + printed.error)
        return printed.rows()

    def refused(self, text: str, *argv: str) -> None:
        before = self.world()
        printed = self.command("force-delete", "demo", *argv)
        self.assertEqual((UNKNOWN, ""), (printed.status, printed.out))
        self.assertIn(text, printed.error)
        self.assertEqual(before, self.world())

    def world(self) -> list[str]:
        return sorted(map(str, self.kube.everything()))

    def objects(self) -> list[str]:
        return [
            obj["metadata"]["name"]
            for kind in forced_deletion.KINDS
            for obj in self.kube.list(kind, NAMESPACE)
        ]


class TestShow(ForceDeleteCase):
    def test_what_is_left_is_shown_and_stays(self) -> None:
        self.hold()
        balancer = self.cloud.openstack.leave("load_balancers", name=BALANCER)
        before = self.world()
        rows = self.rows()
        self.assertEqual(before, self.world())
        self.assertIn(
            {
                "Where": "Octavia",
                "Resource": f"load balancer {BALANCER}",
                "ID": str(balancer.id),
                "State": balancer.provisioning_status,
            },
            rows,
        )
        listed = [row["Resource"].split()[1] for row in rows if row["Where"] != "Octavia"]
        self.assertEqual(sorted(self.objects()), sorted(listed))
        [cluster] = [row for row in rows if row["Resource"] == f"Cluster {RELEASE}"]
        self.assertEqual("deleting, held by cluster.x-k8s.io/held", cluster["State"])

    def test_what_holds_the_network_is_shown(self) -> None:
        self.hold()
        [network] = self.kube.list(names.OPENSTACK_CLUSTER, NAMESPACE)
        network["spec"]["managedSubnets"] = [{"cidr": "10.0.0.0/24"}]
        network["status"]["network"] = {"id": "net"}
        self.kube.put(names.OPENSTACK_CLUSTER, network)
        port = self.cloud.openstack.leave("ports", network_id="net", device_owner="")
        self.cloud.openstack.leave("ports", network_id="another", device_owner="")
        shown = [row for row in self.rows() if row["Where"] == "Neutron"]
        expected = {"Where": "Neutron", "Resource": "port", "ID": port.id}
        self.assertEqual([{**expected, "State": "without an owner"}], shown)
        del network["spec"]["managedSubnets"]
        self.kube.put(names.OPENSTACK_CLUSTER, network)
        self.assertNotIn(port.id, str(self.rows()), "the project's own network stays")

    def test_nothing_of_another_cluster_is_shown(self) -> None:
        self.hold()
        self.cloud.openstack.leave("load_balancers", name=BALANCER, project_id="p2")
        other = self.kube.list(names.MACHINE, NAMESPACE)[0]
        other["metadata"]["name"] = "other-machine"
        other["metadata"]["labels"][names.LABEL_CLUSTER_NAME] = f"{RELEASE}-other"
        self.kube.put(names.MACHINE, other)
        shown = str(self.rows())
        self.assertNotIn("other-machine", shown)
        self.assertNotIn("Octavia", shown)

    def test_a_service_that_does_not_answer_is_not_nothing(self) -> None:
        self.hold()
        self.cloud.openstack.failing = sdk_exceptions.HttpException("away", http_status=503)
        rows = self.rows(status=UNKNOWN)
        self.assertEqual("unknown", rows[0]["Resource"])

    def test_a_cluster_of_another_driver(self) -> None:
        cluster = self.cluster()
        cluster.stack_id = "kube-abcde"
        cluster.save()
        self.refused("was not created by this driver")


class TestRelease(ForceDeleteCase):
    def test_objects_are_released_and_the_deletion_ends_by_itself(self) -> None:
        self.hold()
        at_least_one(self.objects())
        self.assertEqual([], self.rows("--release-objects", status=OK))
        self.assertEqual([], self.objects())
        self.status_task(3)
        self.assertRaises(exception.ClusterNotFound, self.cluster)

    def test_not_while_a_server_runs(self) -> None:
        self.hold()
        self.cloud.openstack.leave("servers", name=f"{RELEASE}-control-plane-x2k9v")
        self.refused("Servers of the cluster run", "--release-objects")

    def test_not_while_that_is_unknown(self) -> None:
        self.hold()
        self.cloud.openstack.failing = sdk_exceptions.HttpException("away", http_status=503)
        self.refused("is unknown, so its objects stay", "--release-objects")

    def test_not_without_a_requested_deletion(self) -> None:
        for option in ("--release-objects", "--confirm-cloud-cleared"):
            self.refused("request the deletion first", option)

    def test_not_without_a_proof(self) -> None:
        self.hold()
        self.kube.remove(names.LEASE, NAMESPACE, names.lease(RELEASE))
        self.refused("No Lease proves", "--release-objects")


class TestConfirm(ForceDeleteCase):
    def note(self) -> str | None:
        lease = self.kube.get(names.LEASE, NAMESPACE, names.lease(RELEASE))
        note: str | None = lease["metadata"]["annotations"].get(codec.CLEARED)
        return note

    def test_a_service_that_is_gone_is_not_asked_any_more(self) -> None:
        self.hold()
        self.cloud.openstack.failing = sdk_exceptions.HttpException("away", http_status=503)
        rows = self.rows("--confirm-cloud-cleared", "--release-objects", status=UNKNOWN)
        self.assertEqual(["unknown"], [row["Resource"] for row in rows])
        self.assertEqual("true", self.note())
        self.assertEqual([], self.objects())
        self.status_task(3)
        self.assertRaises(exception.ClusterNotFound, self.cluster)

    def test_not_against_what_openstack_says(self) -> None:
        self.hold()
        balancer = self.cloud.openstack.leave("load_balancers", name=BALANCER)
        self.refused(str(balancer.id), "--confirm-cloud-cleared")
        self.assertIsNone(self.note())
