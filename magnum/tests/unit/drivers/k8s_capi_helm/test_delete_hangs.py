# SPDX-License-Identifier: Apache-2.0
"""Deletions that hang, and management clusters that are not what they were."""

from __future__ import annotations

import datetime
import itertools
from typing import Any

from openstack import exceptions as sdk_exceptions

from magnum import objects
from magnum.drivers.k8s_capi_helm import errors, lease
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm import builders, fakes
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase, NAMESPACE, RELEASE

SERVER = f"{RELEASE}-control-plane-bcdfg"
BALANCER = f"kube_service_{RELEASE}_default_web"


class Case(DriverCase):
    def setUp(self) -> None:
        super().setUp()
        self.openstack = self.cloud.openstack

    def rows(self) -> list[Any]:
        found: list[Any] = objects.Cluster.list(self.context)
        return found

    def state(self) -> tuple[str, str]:
        cluster = self.cluster()
        return cluster.status, cluster.status_reason or ""

    def begin(self) -> None:
        """A deletion that Cluster API has begun."""
        self.delete()
        self.status_task()

    def only_network(self, **more: Any) -> dict[str, Any]:
        """All machines are gone; Cluster and OpenStackCluster go on being deleted."""
        self.capi_deletes()
        for kind, one in (
            (names.CLUSTER, builders.cluster()),
            (names.OPENSTACK_CLUSTER, builders.openstack_cluster()),
        ):
            one["metadata"]["deletionTimestamp"] = "2026-11-21T11:00:00Z"
            one["metadata"]["finalizers"] = more.pop("finalizers", ["some.io/finalizer"])
            one["spec"].update(more.get("spec") or {})
            one["status"].update(more.get("status") or {})
            self.kube.put(kind, one)
        return one


class TestManagementClusters(Case):
    """A wrong, empty, restored or moved one never deletes a row; a moved one goes on."""

    def move(self) -> fakes.FakeKube:
        """What ``clusterctl move`` does: objects and labelled Secrets go, the Lease stays."""
        old, new = self.kube, fakes.FakeKube()
        new.put(names.NAMESPACE, {"metadata": {"name": NAMESPACE}})
        for one in list(old.everything()):
            labels = one["metadata"].get("labels") or {}
            kind = next((kind for kind in MOVED if kind.name == one["kind"]), None)
            if kind is None or (kind is names.SECRET and names.LABEL_MOVE not in labels):
                continue
            new.put(kind, one)
            old.remove(kind, NAMESPACE, one["metadata"]["name"])
        return new

    def use(self, kube: fakes.FakeKube) -> None:
        """The operator gives the driver another kubeconfig."""
        self.kube = kube
        self.helm.releases.clear()
        self.ports = self.clients_of(
            kube=kube,
            leases=lease.ReleaseLeases(kube, holder="test", lease_duration=60),
            helm=self.helm,
            charts=self.ports.charts,
        )

    def test_one_that_was_moved_away_keeps_the_row(self) -> None:
        self.made()
        self.openstack.leave("servers", name=SERVER)
        self.move()
        self.helm.releases.clear()
        self.begin()
        self.status_task(2)
        status, reason = self.state()
        self.assertEqual("DELETE_IN_PROGRESS", status)
        self.assertIn(SERVER, reason)
        self.assertIn("does not count as deleted", reason)
        self.assertIn(f"id-magnum-{RELEASE}", self.cloud.credentials)

    def test_where_it_was_moved_to_the_deletion_goes_on(self) -> None:
        self.made()
        self.begin()
        self.use(self.move())
        self.status_task()
        self.assertIn("waiting: ", self.state()[1])
        self.capi_deletes()
        self.status_task()
        self.assertEqual([], self.rows())
        self.assertEqual({}, self.cloud.credentials)

    def test_where_it_was_moved_to_it_is_healthy(self) -> None:
        self.made()
        self.use(self.move())
        self.health_task()
        self.assertEqual("HEALTHY", self.cluster().health_status)

    def test_one_that_is_half_restored_keeps_the_row(self) -> None:
        """Secrets and Lease are back, the objects are not yet."""
        self.made()
        self.openstack.leave("servers", name=SERVER)
        self.capi_deletes()
        self.begin()
        self.status_task()
        self.assertEqual("DELETE_IN_PROGRESS", self.state()[0])
        self.assertIsNotNone(
            self.kube.get(names.SECRET, NAMESPACE, names.credential_secret(RELEASE))
        )
        self.openstack.left["servers"].clear()
        self.status_task()
        self.assertEqual([], self.rows())

    def test_while_nova_does_not_answer_nothing_is_gone(self) -> None:
        self.made()
        self.begin()
        self.capi_deletes()
        self.openstack.failing = sdk_exceptions.HttpException("boom", http_status=503)
        self.status_task()
        self.assertEqual("DELETE_IN_PROGRESS", self.state()[0])
        self.assertIn("Nova answered HTTP 503", self.state()[1])
        self.openstack.failing = None
        self.status_task()
        self.assertEqual([], self.rows())

    def test_what_a_service_refuses_to_tell_is_not_gone(self) -> None:
        """By each service, and whether it says 401, 403 or 404 of its address."""
        self.made()
        self.begin()
        self.capi_deletes()
        questions = ("servers", "load balancers", "floating IPs", "security groups")
        for code, what in itertools.product((401, 403, 404), questions):
            with self.subTest(code=code, what=what):
                self.refuse(what, code)
                self.status_task(2)
                status, reason = self.state()
                self.assertEqual("DELETE_IN_PROGRESS", status)
                self.assertIn(f"refused a request ({what}).", reason)
                self.assertIn("does not count as deleted", reason)
                self.assertIn(f"id-magnum-{RELEASE}", self.cloud.credentials)
        self.openstack.before = None
        self.status_task()
        self.assertEqual([], self.rows())

    def refuse(self, what: str, code: int) -> None:
        kinds = {401: None, 403: sdk_exceptions.ForbiddenException}
        kinds[404] = sdk_exceptions.NotFoundException
        kind = kinds[code] or sdk_exceptions.HttpException

        def before(asked: str) -> None:
            if asked == f"list {what}":
                raise kind("no", http_status=code)

        self.openstack.before = before

    def test_the_operators_word_ends_it_without_the_cloud(self) -> None:
        self.made()
        self.begin()
        self.capi_deletes()
        self.openstack.failing = sdk_exceptions.ForbiddenException("no", http_status=403)
        self.status_task(2)
        self.assertIn("Nova refused a request (servers)", self.state()[1])
        self.give_the_operators_word()
        self.status_task()
        self.assertEqual(([], []), (self.rows(), self.left()))

    def test_the_operators_word_leaves_no_credential_that_is_known(self) -> None:
        """Keystone may let Magnum delete what it does not list to it."""
        self.made()
        self.begin()
        self.capi_deletes()

        def refused(user_id: str, project_id: str) -> Any:
            raise errors.CloudRefused("Keystone refused the application credentials.", "403")

        self.cloud.credential_names = refused
        self.status_task(2)
        self.assertIn("Keystone refused", self.state()[1])
        self.give_the_operators_word()
        self.status_task()
        self.assertEqual(([], []), (self.rows(), self.left()))
        self.assertEqual({}, self.cloud.credentials)

    def test_a_deletion_that_nobody_carried_out_is_not_believed(self) -> None:
        """A proxy may answer for Keystone or Nova; a list that has it still is the truth."""
        self.made()
        self.begin()
        self.capi_deletes()
        self.cloud.delete_credential = lambda user_id, credential_id: None
        self.status_task(2)
        self.assertIn("It still has application credential", self.state()[1])
        self.assertIn(f"id-magnum-{RELEASE}", self.cloud.credentials)
        del self.cloud.delete_credential
        self.openstack.stuck = {one.id for one in self.openstack.groups}
        self.status_task(2)
        self.assertIn("It still has server group", self.state()[1])
        self.openstack.stuck = set()
        self.status_task()
        self.assertEqual([], self.rows())

    def test_proof_that_comes_back_puts_a_failed_deletion_back_to_work(self) -> None:
        self.made()
        right, self.kube.unreachable = self.kube, False
        self.begin()
        self.use(fakes.FakeKube())
        self.status_task()
        self.assertEqual("DELETE_FAILED", self.state()[0])
        self.health_task()
        self.assertEqual("DELETE_FAILED", self.state()[0])
        self.use(right)
        self.health_task()
        self.assertEqual(("DELETE_IN_PROGRESS", "waiting: the deletion is starting"), self.state())
        self.capi_deletes()
        self.status_task()
        self.assertEqual([], self.rows())

    def test_on_a_wrong_one_a_change_waits_for_the_operator(self) -> None:
        """It is not the tenant's, and is as good as before once the right one is back."""
        self.made()
        right = self.kube
        self.use(fakes.FakeKube())
        cluster = self.cluster()
        cluster.status = "UPDATE_IN_PROGRESS"
        cluster.save()
        self.status_task(2)
        status, reason = self.state()
        self.assertEqual("UPDATE_IN_PROGRESS", status)
        self.assertTrue(reason.startswith("management: Nothing on the management cluster"), reason)
        self.assertEqual([], list(self.kube.everything()))
        self.use(right)
        self.status_task()
        self.assertNotIn("Nothing on", self.state()[1])

    def test_on_a_wrong_one_a_create_waits_as_long_as_it_may_take(self) -> None:
        self.create()
        self.use(fakes.FakeKube())
        self.status_task()
        status, reason = self.state()
        self.assertEqual("CREATE_IN_PROGRESS", status)
        self.assertTrue(reason.startswith("management: Nothing on the management cluster"), reason)


class TestServicesOfTheCluster(Case):
    """Without a janitor the driver clears what the cluster's Services have left."""

    def test_after_the_last_machine_and_before_the_network_goes(self) -> None:
        self.made()
        self.openstack.leave("load_balancers", name=BALANCER)
        self.begin()
        self.status_task()
        self.assertEqual(1, len(self.openstack.left["load_balancers"]))
        self.only_network()
        self.status_task()
        self.assertEqual([], self.openstack.left["load_balancers"])
        self.assertIn(f"still there: load balancer {BALANCER}", self.state()[1])

    def test_a_janitor_goes_first(self) -> None:
        self.made()
        self.openstack.leave("load_balancers", name=BALANCER)
        self.begin()
        self.only_network(finalizers=[names.JANITOR_FINALIZER])
        network = self.kube.get(names.OPENSTACK_CLUSTER, NAMESPACE, RELEASE)
        network["metadata"]["finalizers"] = [names.JANITOR_FINALIZER]
        self.kube.put(names.OPENSTACK_CLUSTER, network)
        self.status_task(2)
        self.assertEqual(1, len(self.openstack.left["load_balancers"]))
        network["metadata"]["finalizers"] = ["openstackcluster.infrastructure.cluster.x-k8s.io"]
        self.kube.put(names.OPENSTACK_CLUSTER, network)
        self.status_task()
        self.assertEqual([], self.openstack.left["load_balancers"])

    def test_what_a_janitor_has_not_deleted_is_named(self) -> None:
        """It stopped half-way, or a service refuses it: the driver deletes none of it, and says."""
        self.made()
        self.openstack.leave("load_balancers", name=BALANCER, provisioning_status="ERROR")
        address = f"Floating IP for Kubernetes external service default/web from cluster {RELEASE}"
        self.openstack.leave("addresses", description=address, floating_ip_address="203.0.113.9")
        self.begin()
        network = self.only_network()
        network["metadata"]["finalizers"] = [names.JANITOR_FINALIZER]
        self.kube.put(names.OPENSTACK_CLUSTER, network)
        self.status_task(2)
        status, reason = self.state()
        self.assertEqual("DELETE_IN_PROGRESS", status)
        ending = f"{names.JANITOR_FINALIZER} has not deleted load balancer {BALANCER} (ERROR), "
        self.assertTrue(reason.startswith("waiting: deletion of OpenStackCluster"), reason)
        self.assertIn(f"; {ending}floating IP", reason)
        kept = (self.openstack.left["load_balancers"], self.openstack.addresses)
        self.assertEqual([1, 1], [len(resources) for resources in kept])

    def test_long_words_do_not_hide_the_janitor(self) -> None:
        self.made()
        self.openstack.leave("load_balancers", name=BALANCER)
        self.begin()
        network = self.only_network()
        network["metadata"]["finalizers"] = [f"{'x' * 60}.io/held", names.JANITOR_FINALIZER]
        self.kube.put(names.OPENSTACK_CLUSTER, network)
        self.status_task(2)
        ending = f"; {names.JANITOR_FINALIZER} has not deleted load balancer {BALANCER} (ACTIVE)"
        self.assertTrue(self.state()[1].endswith(ending), self.state()[1])

    def test_the_row_goes_when_the_last_one_has(self) -> None:
        self.made()
        stuck = self.openstack.leave("load_balancers", name=BALANCER)
        self.openstack.stuck = {stuck.id}
        self.begin()
        self.capi_deletes()
        self.status_task(2)
        self.assertEqual(
            (
                "DELETE_IN_PROGRESS",
                f"waiting: deletion of load balancer {BALANCER} (PENDING_DELETE)",
            ),
            self.state(),
        )
        self.openstack.left["load_balancers"].clear()
        self.status_task()
        self.assertEqual([], self.rows())

    def test_the_port_that_keeps_the_network_is_named(self) -> None:
        self.made()
        self.openstack.leave("ports", id="port-7", network_id="net-7", device_owner="compute:nova")
        self.begin()
        self.only_network(
            spec={"managedSubnets": [{"cidr": "10.0.0.0/24"}]},
            status={"network": {"id": "net-7"}},
        )
        self.status_task()
        self.assertIn("OpenStackCluster", self.state()[1])
        self.assertIn("still there: port port-7 (compute:nova)", self.state()[1])

    def test_long_words_do_not_hide_the_port(self) -> None:
        self.made()
        self.openstack.leave("ports", id="port-7", network_id="net-7", device_owner="compute:nova")
        self.begin()
        self.only_network(
            spec={"managedSubnets": [{"cidr": "10.0.0.0/24"}]},
            status={"network": {"id": "net-7"}},
        )
        now = datetime.datetime.now(datetime.timezone.utc)
        words = "very long " * 50
        told = builders.event("OpenStackCluster", RELEASE, "Faileddeletesubnet", words, now)
        self.kube.put(names.EVENT, told)
        self.status_task()
        reason = self.state()[1]
        self.assertIn("deletion of OpenStackCluster demo-abcdefghijkl: very long very long", reason)
        self.assertTrue(reason.endswith("...; still there: port port-7 (compute:nova)"), reason)
        self.assertLessEqual(len(reason), 250)

    def test_on_the_tenants_own_network_nobody_is_accused(self) -> None:
        self.made()
        self.openstack.leave("ports", id="port-7", network_id="net-7", device_owner="compute:nova")
        self.begin()
        self.only_network(status={"network": {"id": "net-7"}})
        self.status_task()
        self.assertNotIn("port-7", self.state()[1])

    def test_that_there_is_no_janitor_is_said_from_the_beginning(self) -> None:
        self.create()
        self.capi_converges()
        self.health_task()
        self.assertIn(
            "management cluster runs no janitor", self.cluster().health_status_reason["notice"]
        )
        network = self.kube.get(names.OPENSTACK_CLUSTER, NAMESPACE, RELEASE)
        network["metadata"]["finalizers"] = [names.JANITOR_FINALIZER]
        self.kube.put(names.OPENSTACK_CLUSTER, network)
        self.health_task()
        self.assertNotIn("notice", self.cluster().health_status_reason)


class TestOwnersWhoAreGone(Case):
    def test_a_dead_credential_is_the_reason(self) -> None:
        self.made()
        self.cloud.dead = set(self.cloud.credentials)
        self.after(2)
        self.begin()
        status, reason = self.state()
        self.assertEqual("DELETE_IN_PROGRESS", status)
        self.assertTrue(reason.startswith("credential: Keystone does not accept"), reason)
        self.assertIn(f"credential rotate {self.cluster().uuid}", reason)

    def test_a_secret_that_somebody_deleted_is_the_reason(self) -> None:
        self.made()
        self.kube.remove(names.SECRET, NAMESPACE, names.credential_secret(RELEASE))
        self.after(2)
        self.begin()
        self.assertTrue(self.state()[1].startswith("credential: the Secret with"))

    def test_when_an_operator_has_let_the_objects_go_the_row_goes(self) -> None:
        """The user and the project are gone from Keystone: it knows neither of them."""

        def forgotten(user_id: str, credential_id: str) -> None:
            self.cloud.credentials.pop(credential_id, None)

        self.made()
        self.cloud.dead = set(self.cloud.credentials)
        self.begin()
        self.cloud.delete_credential = forgotten
        self.capi_deletes()
        self.status_task()
        self.assertEqual([], self.rows())
        self.assertEqual([], self.left())

    def test_what_is_left_in_nova_after_that_keeps_the_row(self) -> None:
        self.made()
        self.begin()
        self.openstack.leave("servers", name=SERVER)
        self.capi_deletes()
        self.status_task()
        self.assertIn(SERVER, self.state()[1])
        self.openstack.left["servers"].clear()
        self.status_task()
        self.assertEqual([], self.rows())


class TestRefusals(Case):
    def test_what_the_management_cluster_refuses_is_no_end(self) -> None:
        def refuse(verb: str, kind: Any, name: str) -> None:
            if verb == "delete" and kind is names.CLUSTER:
                raise errors.ManagementRefused("Deleting the Cluster was refused.")

        self.made()
        self.kube.before = refuse
        self.begin()
        self.assertEqual(("DELETE_IN_PROGRESS", "Deleting the Cluster was refused."), self.state())


MOVED = (
    names.CLUSTER,
    names.OPENSTACK_CLUSTER,
    names.CONTROL_PLANE,
    names.MACHINE_DEPLOYMENT,
    names.MACHINE_SET,
    names.MACHINE,
    names.OPENSTACK_SERVER,
    names.HELM_RELEASE,
    names.CONFIG_MAP,
    names.SECRET,
)


class TestTemplates(Case):
    """Helm keeps templates for machines that still stand; Cluster API need not have seen them."""

    def setUp(self) -> None:
        super().setUp()
        self.made()
        for kind in (names.MACHINE_TEMPLATE, names.BOOTSTRAP_TEMPLATE):
            for release in (RELEASE, "other-abcdefghijkl"):
                labels = {names.LABEL_CHART_CLUSTER: release}
                self.kube.put(kind, builders.thing(kind, f"{release}-group", labels=labels))

    def templates(self) -> list[str]:
        return [one for one in self.left() if "Template/" in one]

    def test_they_stay_as_long_as_there_are_machines(self) -> None:
        self.begin()
        self.assertEqual(4, len(self.templates()))

    def test_they_go_with_their_cluster_and_no_other(self) -> None:
        self.begin()
        self.capi_deletes()
        self.status_task(2)
        self.assertEqual([], self.rows())
        other = "other-abcdefghijkl-group"
        expected = [f"KubeadmConfigTemplate/{other}", f"OpenStackMachineTemplate/{other}"]
        self.assertEqual(expected, self.templates())

    def test_a_cluster_whose_templates_cannot_be_removed_is_not_gone(self) -> None:
        def refuse(verb: str, kind: names.Kind, name: str) -> None:
            if (verb, kind) == ("delete", names.BOOTSTRAP_TEMPLATE):
                raise errors.ManagementUnreachable("The management cluster does not answer.")

        self.begin()
        self.capi_deletes()
        self.kube.before = refuse
        self.status_task(3)
        self.assertEqual("DELETE_IN_PROGRESS", self.state()[0])
        self.kube.before = None
        self.status_task(2)
        self.assertEqual([], self.rows())
