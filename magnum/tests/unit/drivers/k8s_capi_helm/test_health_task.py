# SPDX-License-Identifier: Apache-2.0
"""The health poll, through Magnum's own job: what it says, and what it brings back to life."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

import fixtures

from magnum import objects
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import names
from magnum.drivers.k8s_capi_helm.reconcile.process.addon_check import AddonCheck
from magnum.drivers.k8s_capi_helm.reconcile.process.controller_check import ControllerCheck
from magnum.tests.unit.drivers.k8s_capi_helm import builders, fakes
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase, NAMESPACE, RELEASE
from magnum.tests.unit.drivers.k8s_capi_helm.test_tenant_kubeconfig import kubeconfig_secret


class Case(DriverCase):
    def health(self) -> tuple[str, dict[str, str]]:
        self.health_task()
        cluster = self.cluster()
        return cluster.health_status, dict(cluster.health_status_reason or {})


class TestAstray(Case):
    """Somebody changes the number of machines on the management cluster itself."""

    def notice(self) -> str:
        return self.health()[1].get("notice", "")

    def test_a_number_that_nobody_asked_for_is_told(self) -> None:
        self.made(workers=2)
        self.assertNotIn("outside of Magnum", self.notice())
        self.scale("default-worker", 1)
        self.assertIn("'default-worker' has 1 instead of 2", self.notice())
        self.scale("default-worker", 2)
        self.assertNotIn("outside of Magnum", self.notice())

    def test_the_control_plane_too(self) -> None:
        self.made(masters=3)
        owner = self.kube.get(names.CONTROL_PLANE, NAMESPACE, names.kubeadm_control_plane(RELEASE))
        self.kube.put(names.CONTROL_PLANE, {**owner, "spec": {**owner["spec"], "replicas": 1}})
        self.assertIn("'default-master' has 1 instead of 3", self.notice())

    def test_not_what_the_autoscaler_sets_or_is_not_handed_over(self) -> None:
        self.made(labels=TestAutoscaler.LABELS)
        self.scale("default-worker", 3)
        self.assertNotIn("outside of Magnum", self.notice())
        group = self.group("default-master")
        group.node_count = 3
        group.save()
        self.assertNotIn("outside of Magnum", self.notice())


class TestWithheld(Case):
    """What tenants are told a part of, because the rest is the cloud's, is in the log once."""

    TOLD = "no port (request id req-6d0f5a9e-0000-4000-8000-000000000000)"

    def test_it_is_logged_whole_and_once(self) -> None:
        self.made()
        self.resize(2)
        for kind in (names.MACHINE, names.OPENSTACK_SERVER):
            for one in self.kube.list(kind, NAMESPACE):
                for condition in ("Ready", "InstanceReady"):
                    builders.say(one, condition, "False", self.TOLD)
                self.kube.put(kind, one)
        log = self.useFixture(fixtures.FakeLogger())
        for _ in range(3):
            told = self.health()[1]
        self.assertIn("no port", str(told))
        self.assertNotIn("req-6d0f", str(told))
        self.assertEqual(1, log.output.count(self.TOLD), log.output)


class Failing:
    """A port that fails whatever it is asked."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __getattr__(self, name: str) -> Any:
        raise self.error


class TestNeverStale(Case):
    """Magnum swallows what a monitor raises and goes on showing what was true once."""

    def setUp(self) -> None:
        super().setUp()
        self.made()
        self.assertEqual("HEALTHY", self.health()[0])

    def test_whatever_goes_wrong_is_unknown(self) -> None:
        whole = self.ports
        for error, key, text in (
            (errors.ManagementRefused("Reading is not allowed."), "management", "not allowed"),
            (errors.InvalidConfiguration("The operator has to look."), "internal", "has to look"),
            (RuntimeError("a secret"), "internal", "The log of the cloud's operator"),
        ):
            with self.subTest(str(error)):
                self.ports = dataclasses.replace(whole, controller_check=Failing(error))
                health, reasons = self.health()
                self.assertEqual(("UNKNOWN", {key}), (health, set(reasons)))
                self.assertIn(text, reasons[key])
                self.assertNotIn("a secret", reasons[key])

    def test_a_nodegroup_without_a_status_hides_nothing(self) -> None:
        """Its column may be NULL, as in rows of long ago."""
        group = self.group()
        group.status = None
        group.save()
        self.assertEqual("HEALTHY", self.health()[0])

    def test_what_was_seen_is_said_though_nothing_can_be_written(self) -> None:
        machine = self.kube.list(names.MACHINE, NAMESPACE)[0]
        builders.say(machine, "Ready", "False", "* NodeHealthy: gone")
        self.kube.put(names.MACHINE, machine)

        def refuse(verb: str, kind: Any, name: str) -> None:
            if verb in ("replace", "patch", "create"):
                raise errors.ManagementUnreachable("It does not answer.")

        cluster = self.cluster()
        cluster.status, cluster.status_reason = "UPDATE_FAILED", "timeout: not done"
        cluster.save()
        self.kube.before = refuse
        self.assertEqual("UNHEALTHY", self.health()[0])

    def test_since_when_it_cannot_be_read(self) -> None:
        self.kube.unreachable = True
        first = self.health()
        self.assertTrue(first[1]["management"].startswith("unreachable since "))
        self.after(5)
        self.assertEqual(("UNKNOWN", first[1]["management"]), self.told("management"))
        self.kube.unreachable = False
        health, reasons = self.health()
        self.assertEqual("HEALTHY", health)
        self.assertNotIn("management", reasons)

    def told(self, key: str) -> tuple[str, str]:
        health, reasons = self.health()
        return health, reasons[key]


class TestControllers(Case):
    """They are gone, and nothing on the management cluster changes any more."""

    LEASE = "capi-system/controller-leader-election-capi"

    def setUp(self) -> None:
        super().setUp()
        self.ports = dataclasses.replace(self.ports, controller_check=self.watched())
        self.renew()
        self.made()

    def watched(self) -> ControllerCheck:
        return ControllerCheck([self.LEASE], clock=lambda: self.wall_clock().timestamp())

    def renew(self) -> None:
        namespace, _, name = self.LEASE.partition("/")
        spec = {"renewTime": f"{self.wall_clock():%Y-%m-%dT%H:%M:%S.%fZ}"}
        metadata = {"name": name, "namespace": namespace}
        self.kube.put(names.LEASE, {"metadata": metadata, "spec": spec})

    def fall_silent(self) -> None:
        self.after(4)

    def test_health_is_unknown_until_they_are_back(self) -> None:
        self.assertEqual("HEALTHY", self.health()[0])
        self.fall_silent()
        health, reasons = self.health()
        self.assertEqual("UNKNOWN", health)
        self.assertIn("controller capi has not reported since", reasons["management"])
        self.assertNotIn("nodegroup", reasons)
        self.after(5)
        self.renew()
        health, reasons = self.health()
        self.assertEqual(("HEALTHY", "Ready"), (health, reasons["nodegroup"]))
        self.assertNotIn("management", reasons)

    def test_a_conductor_that_has_just_begun_says_so_too(self) -> None:
        self.fall_silent()
        told = self.health()
        self.resize(3)
        self.status_task()
        said = self.cluster().status_reason
        self.ports = dataclasses.replace(self.ports, controller_check=self.watched())
        self.assertEqual("UNKNOWN", told[0])
        self.status_task()
        self.assertIn("controller capi has not reported since", said)
        self.assertEqual(said, self.cluster().status_reason)
        self.ports = dataclasses.replace(self.ports, controller_check=self.watched())
        self.assertEqual(told, self.health())

    def test_a_resize_says_that_it_waits_for_them(self) -> None:
        self.fall_silent()
        self.resize(3)
        self.status_task()
        begin = "management: controller capi has not reported since "
        for row in (self.cluster(), self.group()):
            self.assertEqual("UPDATE_IN_PROGRESS", row.status)
            self.assertTrue(row.status_reason.startswith(begin), row.status_reason)

    def test_a_deletion_says_that_it_waits_for_them(self) -> None:
        self.fall_silent()
        self.delete()
        self.status_task()
        cluster = self.cluster()
        self.assertEqual("DELETE_IN_PROGRESS", cluster.status)
        self.assertIn("management: controller capi has not reported", cluster.status_reason)


class TestInside(Case):
    """The tenant, who is the cluster's administrator, deletes what an addon is made of."""

    CONTROLLER = "/apis/apps/v1/namespaces/openstack-system/daemonsets/occm"

    def setUp(self) -> None:
        super().setUp()
        self.workload = fakes.FakeWorkload(full=True)
        every = datetime.timedelta(minutes=5)
        inspections = AddonCheck(every, jitter=lambda: 1.0, enter=self.workload)
        self.ports = dataclasses.replace(self.ports, addon_check=inspections)
        self.made()
        self.kube.put(names.SECRET, kubeconfig_secret())
        made = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "occm"}
        addon = self.kube.get(names.HELM_RELEASE, NAMESPACE, f"{RELEASE}-ccm-openstack")
        addon["status"]["resources"] = [{**made, "namespace": "openstack-system"}]
        self.kube.put(names.HELM_RELEASE, addon)

    def test_it_is_named_until_it_is_back(self) -> None:
        health, reasons = self.health()
        self.assertEqual(("HEALTHY", "Ready"), (health, reasons["inside"]))
        self.workload.gone = {self.CONTROLLER}
        self.after(6)
        health, reasons = self.health()
        self.assertEqual("UNHEALTHY", health)
        said = "ccm-openstack: DaemonSet openstack-system/occm not found in the cluster"
        self.assertEqual(said, reasons["inside"])
        self.assertEqual("CREATE_COMPLETE", self.cluster().status)
        self.workload.gone = set()
        self.after(8)
        health, reasons = self.health()
        self.assertEqual(("HEALTHY", "Ready"), (health, reasons["inside"]))

    def test_where_nobody_gets_there_nothing_is_said_of_the_cluster(self) -> None:
        self.workload.away = True
        health, reasons = self.health()
        self.assertEqual("HEALTHY", health)
        self.assertIn("Magnum cannot reach the cluster's API", reasons["inside"])

    def test_only_the_health_poll_looks_and_only_at_rest(self) -> None:
        self.resize(3)
        self.status_task()
        self.assertNotIn("inside", self.health()[1])
        self.assertEqual([], self.workload.asked)
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.assertEqual([], self.workload.asked)


class TestCredential(Case):
    def test_a_dead_one_is_named_in_health_and_reason(self) -> None:
        self.made()
        self.health()
        self.cloud.dead = set(self.cloud.credentials)
        self.resize(2)
        self.after(2)
        self.status_task()
        reason = self.cluster().status_reason
        self.assertTrue(reason.startswith("credential: Keystone does not accept"), reason)
        self.assertIn("coe credential rotate", self.group().status_reason or reason)
        health, reasons = self.health()
        self.assertEqual("UNHEALTHY", health)
        self.assertIn("credential rotate", reasons["credential"])
        self.cloud.dead = set()
        self.after(5)
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.assertNotIn("credential", self.health()[1])


class TestLoadBalancer(Case):
    def test_one_in_error_is_told_while_the_api_has_none(self) -> None:
        """Octavia is asked under the name that Cluster API gives it, in the tenant's project."""
        self.create()
        self.capi_converges()
        network = self.kube.get(names.OPENSTACK_CLUSTER, NAMESPACE, RELEASE)
        network["status"] = {}
        network["spec"] = {"apiServerLoadBalancer": {"enabled": True}}
        self.kube.put(names.OPENSTACK_CLUSTER, network)
        self.status_task()
        self.assertTrue(self.cluster().status_reason.startswith("waiting: "))
        name = f"k8s-clusterapi-cluster-{NAMESPACE}-{RELEASE}-kubeapi"
        self.cloud.failed_balancers = {(name, "p1")}
        self.status_task()
        told = self.cluster().status_reason
        self.assertTrue(told.startswith(f"network: load balancer {name} is in ER"), told)
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("CREATE_COMPLETE", self.cluster().status)


class TestAutoscaler(Case):
    LABELS = {"auto_scaling_enabled": "true", "min_node_count": "1", "max_node_count": "5"}

    def test_whether_it_runs(self) -> None:
        self.made(labels=self.LABELS)
        self.assertIn("does not exist", self.health()[1]["autoscaler"])
        marks = {names.LABEL_CHART_CLUSTER: RELEASE, names.LABEL_CHART_COMPONENT: "autoscaler"}
        made = builders.thing(names.DEPLOYMENT, f"{RELEASE}-autoscaler", labels=marks)
        builders.say(made, "Available", "True")
        self.kube.put(names.DEPLOYMENT, made)
        health, reasons = self.health()
        self.assertEqual(("HEALTHY", "Ready"), (health, reasons["autoscaler"]))

    def test_nobody_is_asked_without_one(self) -> None:
        self.made()
        self.kube.calls.clear()
        self.assertNotIn("autoscaler", self.health()[1])
        self.assertNotIn("Deployment", {call[1] for call in self.kube.calls})


class TestUpdateFailed(Case):
    """UPDATE_FAILED is never a dead end: Magnum lets no upgrade through from there."""

    def refused(self) -> None:
        self.made()
        self.resize(0, remove=["nobody"])
        self.assertEqual("UPDATE_FAILED", self.cluster().status)

    def test_a_refused_request_is_shown_and_then_the_cluster_goes_on(self) -> None:
        self.refused()
        said = self.cluster().status_reason
        for minutes in (0, 9):
            self.after(minutes)
            reasons = self.health()[1]
            self.assertEqual("UPDATE_FAILED", self.cluster().status)
            self.assertIn("UPDATE_FAILED since ", reasons["request"])
        self.after(11)
        self.health_task()
        cluster = self.cluster()
        self.assertEqual(("UPDATE_COMPLETE", said), (cluster.status, cluster.status_reason))
        self.assertEqual("UPDATE_COMPLETE", self.group().status)
        self.assertNotIn("request", self.health()[1])

    def test_the_next_request_takes_the_words_away(self) -> None:
        self.refused()
        for minutes in (0, 11):
            self.after(minutes)
            self.health_task()
        self.resize(2)
        self.capi_converges()
        self.status_task(2)
        self.assertEqual(
            ("UPDATE_COMPLETE", None), (self.cluster().status, self.cluster().status_reason)
        )

    def test_not_while_something_is_not_in_place(self) -> None:
        self.refused()
        machine = self.kube.list(names.MACHINE, NAMESPACE)[0]
        builders.say(machine, "Ready", "False", "* NodeHealthy: gone")
        self.kube.put(names.MACHINE, machine)
        for minutes in (0, 11, 30):
            self.after(minutes)
            self.health_task()
        self.assertEqual("UPDATE_FAILED", self.cluster().status)

    def test_not_when_the_rows_ask_for_something_else(self) -> None:
        self.made()
        self.helm.refusal = errors.HelmRefused("The management cluster refused it.")
        self.resize(3)
        self.status_task(2)
        self.assertEqual("UPDATE_FAILED", self.cluster().status)
        for minutes in (0, 11, 30):
            self.after(minutes)
            self.health_task()
        self.assertEqual("UPDATE_FAILED", self.cluster().status)

    def test_a_create_that_was_late_comes_good(self) -> None:
        self.create()
        self.make_late()
        self.status_task()
        self.assertEqual("CREATE_FAILED", self.cluster().status)
        self.capi_converges()
        for _ in range(2):
            self.health_task()
        self.assertEqual(
            ("CREATE_COMPLETE", None), (self.cluster().status, self.cluster().status_reason)
        )
        self.assertEqual("CREATE_COMPLETE", self.group().status)


class TestAddresses(Case):
    def test_the_api_is_known_before_anything_is_complete_and_stays(self) -> None:
        self.create(masters=3, workers=2)
        self.assertIsNone(self.cluster().api_address)
        early = builders.cluster()
        early["status"] = {}
        self.kube.put(names.CLUSTER, early)
        self.status_task()
        cluster = self.cluster()
        self.assertEqual("CREATE_IN_PROGRESS", cluster.status)
        self.assertEqual("https://127.64.0.10:6443", cluster.api_address)
        self.capi_converges()
        self.status_task(2)
        self.kube.remove(names.CLUSTER, NAMESPACE, RELEASE)
        self.health_task()
        self.assertEqual("https://127.64.0.10:6443", self.cluster().api_address)

    def test_an_endpoint_without_a_host_is_none(self) -> None:
        self.create()
        early = builders.cluster("v1beta1")
        early["spec"]["controlPlaneEndpoint"] = {"host": "", "port": 0}
        self.kube.put(names.CLUSTER, early)
        self.status_task()
        self.assertIsNone(self.cluster().api_address)

    def test_masters_and_nodes_each_have_theirs(self) -> None:
        cluster = self.made(masters=3, workers=2)
        self.assertEqual((3, 2), (len(cluster.master_addresses), len(cluster.node_addresses)))
        self.assertEqual(set(), set(cluster.master_addresses) & set(cluster.node_addresses))
        self.assertEqual(f"v{builders.VERSION}", cluster.coe_version)


class TestNeverCreated(DriverCase):
    """A cluster whose creation Helm refused, and requests about nodegroups that came after that."""

    def setUp(self) -> None:
        super().setUp()
        self.helm.refusal = errors.HelmRefused("Helm refused it: no.", "")
        self.create()

    def test_the_status_says_what_to_do(self) -> None:
        self.add_group("extra-1")
        self.resize(3)
        self.status_task()
        self.helm.refusal = None
        self.health_task()
        cluster = self.cluster()
        self.assertEqual("CREATE_FAILED", cluster.status)
        self.assertIn("was not created, so", cluster.status_reason)
        self.assertIn("Helm refused it: no.", cluster.status_reason)
        self.assertIn("create it again", cluster.status_reason)
        statuses = {nodegroup.name: nodegroup.status for nodegroup in cluster.nodegroups}
        names = ("default-master", "default-worker", "extra-1")
        self.assertEqual(dict.fromkeys(names, "CREATE_FAILED"), statuses)

    def test_it_stays_so_and_can_be_deleted(self) -> None:
        self.add_group("extra-1")
        for _ in range(3):
            self.health_task()
            self.assertEqual("CREATE_FAILED", self.cluster().status)
        self.helm.refusal = None
        self.delete()
        self.status_task(4)
        self.assertEqual([], objects.Cluster.list(self.context))


class TestCreatedAllTheSame(DriverCase):
    """A cluster that runs, in a record that does not know the revisions of its release yet."""

    def test_it_is_not_taken_for_one_that_was_never_created(self) -> None:
        self.made()
        lease = self.kube.get(names.LEASE, NAMESPACE, names.lease(RELEASE))
        del lease["metadata"]["annotations"]["k8s-capi-helm.magnum.openstack.org/revisions"]
        self.kube.replace(names.LEASE, lease)
        master = self.group("default-master")
        master.status = "CREATE_FAILED"
        master.save()
        cluster = self.cluster()
        cluster.status = "UPDATE_FAILED"
        cluster.save()
        self.health_task()
        self.assertNotEqual("CREATE_FAILED", self.cluster().status)
        self.assertNotIn("was not created", self.cluster().status_reason or "")
