# SPDX-License-Identifier: Apache-2.0
"""Passes where nothing has changed since the last one read nothing, and each change is seen."""

from __future__ import annotations

from collections.abc import Callable
import contextlib
import dataclasses
import datetime

from magnum import objects
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import names, Operation, Verb
from magnum.drivers.k8s_capi_helm.reconcile.process.controller_check import ControllerCheck
from magnum.drivers.k8s_capi_helm.reconcile.process.credential_check import CredentialCheck
from magnum.drivers.k8s_capi_helm.reconcile.process.evaluation_cache import EvaluationCache
from magnum.tests.unit.drivers.k8s_capi_helm import builders
from magnum.tests.unit.drivers.k8s_capi_helm.test_status_task_with_watches import WatchingWorld

NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.timezone.utc)
CAPI = "capi-system/controller-leader-election-capi"


class UnchangedWorld(WatchingWorld):
    """A cluster of which a pass has found what the pass before had found."""

    def setUp(self) -> None:
        super().setUp()
        self.stand_still(NOON)
        checks = {
            "controller_check": ControllerCheck(
                (CAPI,), datetime.timedelta(minutes=3), clock=lambda: self.now
            ),
            "credential_check": CredentialCheck(jitter=lambda: 0.0, clock=lambda: self.now),
        }
        self.ports = dataclasses.replace(self.ports, **checks)
        self.statements = self.selects()

    def pending(self) -> None:
        """A cluster in creation, whose machines take their time."""
        self.create()
        self.infrastructure()
        self.catch_up()
        for _ in range(3):
            self.one_pass()

    def infrastructure(self) -> None:
        """Its load balancer is there: nobody asks Octavia any more."""
        self.capi_converges()
        for one in self.kube.list(names.MACHINE, builders.NAMESPACE):
            builders.say(one, "Ready", "False", "It is starting.", reason="NotReady")
            one["status"]["phase"] = "Provisioning"
            self.kube.put(names.MACHINE, one)

    def one_pass(self) -> tuple[int, int]:
        """A status pass: how often management cluster and database are asked."""
        [cluster] = objects.Cluster.list(self.context)
        # As Magnum does to choose the driver.
        self.assertIsNotNone(cluster.cluster_template)
        return self.counted(lambda: self.driver.update_cluster_status(self.context, cluster))

    def health_pass(self) -> tuple[int, int]:
        """The same of a health pass, without what Magnum saves then."""
        [cluster] = objects.Cluster.list(self.context)
        self.assertIsNotNone(cluster.cluster_template)
        monitor = self.driver.get_monitor(self.context, cluster)
        counts = self.counted(monitor.poll_health_status)
        if monitor.data:
            cluster.health_status = monitor.data["health_status"]
            cluster.health_status_reason = monitor.data["health_status_reason"]
            cluster.save()
        return counts

    def counted(self, work: Callable[[], None]) -> tuple[int, int]:
        self.kube.calls.clear()
        self.helm.reads = 0
        self.statements.clear()
        work()
        return len(self.kube.calls) + self.helm.reads, len(self.statements)

    def sees(self, change: Callable[[], None], one_pass: Callable[[], tuple[int, int]]) -> None:
        """The next pass that hears of a change evaluates, with a query for Magnum's objects."""
        self.assertEqual((0, 0), one_pass())
        change()
        self.catch_up()
        self.assertNotEqual(0, one_pass()[1])

    def time_passes(self, **duration: float) -> None:
        delta = datetime.timedelta(**duration)
        self.now += delta.total_seconds()
        self.stand_still(self.wall_clock() + delta)
        self.catch_up()

    def change_machine(self) -> None:
        [one, *_] = self.kube.list(names.MACHINE, builders.NAMESPACE)
        self.kube.patch(
            names.MACHINE, builders.NAMESPACE, one["metadata"]["name"], {"status": {"phase": "?"}}
        )


class TestInProgress(UnchangedWorld):
    def setUp(self) -> None:
        super().setUp()
        self.pending()

    def test_nothing_is_read(self) -> None:
        before = self.cluster().status_reason
        for _ in range(3):
            self.assertEqual((0, 0), self.one_pass())
        self.assertEqual(("CREATE_IN_PROGRESS", before), self.shown())

    def shown(self) -> tuple[str, str]:
        cluster = self.cluster()
        return cluster.status, cluster.status_reason

    def test_a_changed_object_is_seen(self) -> None:
        self.sees(self.change_machine, self.one_pass)

    def test_the_template_is_loaded_by_magnum_alone(self) -> None:
        self.change_machine()
        self.catch_up()
        self.one_pass()
        self.assertNotEqual([], self.statements)
        self.assertEqual([], [text for text in self.statements if "cluster_template." in text])

    def test_a_lease_that_another_conductor_has_written_is_seen(self) -> None:
        operation = Operation(id="a", verb=Verb.RESIZE, started_at=NOON)
        self.assertEqual((0, 0), self.one_pass())
        self.ports.leases.add(builders.NAMESPACE, builders.RELEASE, operation)
        self.catch_up()
        self.one_pass()
        self.assertIn("Lease", [call[1] for call in self.kube.calls])
        self.assertEqual(1, self.helm.reads)

    def test_a_changed_row_is_seen(self) -> None:
        def request() -> None:
            cluster = self.cluster()
            cluster.health_status_reason = {"notice": "by another conductor"}
            cluster.save()

        self.sees(request, self.one_pass)

    def test_a_failure_that_an_event_tells_is_seen(self) -> None:
        event = {
            "metadata": {"name": "one", "namespace": builders.NAMESPACE},
            "type": "Warning",
            "reason": "FailedCreate",
            "message": "No.",
            "involvedObject": {"kind": "Machine", "name": f"{builders.RELEASE}-x"},
        }
        self.sees(lambda: self.kube.put(names.EVENT, event) and None, self.one_pass)

    def test_record_and_release_are_read_again_where_the_lease_has_changed(self) -> None:
        """Any version: who takes the lock may run Helm."""
        self.change_machine()
        self.catch_up()
        self.assertEqual(0, self.one_pass()[0])
        self.renew()
        self.change_machine()
        self.catch_up()
        self.assertNotEqual(0, self.one_pass()[0])
        self.assertEqual(1, self.helm.reads)

    def renew(self) -> None:
        """Another conductor writes the Lease."""
        name = names.lease(builders.RELEASE)
        self.kube.patch(
            names.LEASE, builders.NAMESPACE, name, {"spec": {"leaseTransitions": self.next()}}
        )

    def next(self) -> int:
        lease = self.kube.get(names.LEASE, builders.NAMESPACE, names.lease(builders.RELEASE))
        return int(lease["spec"].get("leaseTransitions") or 0) + 1

    def test_a_first_snapshot_counts_for_the_lease_that_it_was_made_by(self) -> None:
        self.capi_converges()
        self.catch_up()
        self.renew()
        self.one_pass()
        self.assertEqual("", self.fingerprint())
        self.catch_up()
        self.one_pass()
        self.assertNotEqual("", self.fingerprint())
        self.assertEqual("CREATE_IN_PROGRESS", self.cluster().status)
        self.one_pass()
        self.assertEqual("CREATE_COMPLETE", self.cluster().status)

    def fingerprint(self) -> str:
        record = self.ports.leases.read(builders.NAMESPACE, builders.RELEASE)
        return str(record.ready_fingerprint)

    def test_what_the_time_changes_is_seen(self) -> None:
        self.assertEqual((0, 0), self.one_pass())
        self.time_passes(minutes=5, seconds=1)
        self.assertNotEqual(0, self.one_pass()[1])

    def test_the_release_is_read_again_after_minutes(self) -> None:
        """An operator may have run Helm."""
        self.time_passes(minutes=4)
        self.one_pass()
        self.assertEqual(0, self.helm.reads)
        self.time_passes(minutes=1, seconds=1)
        self.one_pass()
        self.assertEqual(1, self.helm.reads)

    def test_a_nodegroup_that_a_dead_conductor_has_written_is_seen_in_a_minute(self) -> None:
        """Neither the cluster nor the Lease tells of it."""
        group = self.group()
        group.node_count = 3
        group.save()
        self.assertEqual((0, 0), self.one_pass())
        self.time_passes(minutes=1)
        asked, _ = self.one_pass()
        self.assertNotEqual(0, asked)
        self.assertEqual(3, self.replicas_asked_for())

    def replicas_asked_for(self) -> int:
        values = self.helm.live(builders.NAMESPACE, builders.RELEASE).values
        [entry] = values["nodeGroups"]
        return int(entry["machineCount"])

    def test_in_a_minute_magnums_objects_are_read_alone(self) -> None:
        self.time_passes(minutes=1)
        _, statements = self.one_pass()
        self.assertEqual(1, statements)
        # That of a controller, which is read every twenty seconds for all clusters.
        self.assertEqual({"Lease"}, {call[1] for call in self.kube.calls})
        self.assertEqual((0, 0), self.one_pass())

    def test_a_controller_that_falls_silent_is_seen(self) -> None:
        lease = {
            "metadata": {"name": CAPI.partition("/")[2], "namespace": "capi-system"},
            "spec": {"renewTime": "2026-01-01T12:00:00.000000Z", "leaseDurationSeconds": 15},
        }
        self.kube.put(names.LEASE, lease)
        self.time_passes(seconds=21)
        self.one_pass()
        lease["spec"]["renewTime"] = "2026-01-01T12:00:21.000000Z"
        self.kube.put(names.LEASE, lease)
        self.time_passes(seconds=21)
        for _ in range(3):
            self.one_pass()
        self.time_passes(minutes=4)
        self.one_pass()
        self.assertIn("capi", self.cluster().status_reason)

    def test_another_clusters_objects_change_nothing(self) -> None:
        other = {
            "metadata": {
                "name": "other",
                "namespace": builders.NAMESPACE,
                "labels": {names.LABEL_CLUSTER_NAME: "other"},
            }
        }
        self.kube.put(names.MACHINE, other)
        lease = {**other, "metadata": {**other["metadata"], "name": names.lease("other")}}
        lease["metadata"]["labels"] = {**lease["metadata"]["labels"], names.LABEL_UUID: "o"}
        self.kube.put(names.LEASE, lease)
        self.catch_up()
        self.assertEqual((0, 0), self.one_pass())

    def test_a_watch_that_is_stale_proves_nothing(self) -> None:
        self.now += 46
        self.assertNotEqual(0, self.one_pass()[0])

    def test_another_management_cluster_is_read(self) -> None:
        self.kube.place = "there"
        self.catch_up()
        self.assertNotEqual(0, self.one_pass()[0])

    def test_the_credential_is_tried_at_its_own_times(self) -> None:
        self.assertEqual((0, 0), self.one_pass())
        self.time_passes(minutes=1)
        self.one_pass()
        self.assertNotIn("Secret", [call[1] for call in self.kube.calls])
        self.time_passes(minutes=4, seconds=1)
        self.one_pass()
        self.assertIn("Secret", [call[1] for call in self.kube.calls])

    def test_what_openstack_alone_knows_is_asked_for_again(self) -> None:
        """A server in ERROR, whose fault CAPO tells on no object."""
        [one, *_] = self.kube.list(names.OPENSTACK_SERVER, builders.NAMESPACE)
        one["status"] |= {"instanceID": "server-1", "instanceState": "ERROR"}
        self.kube.put(names.OPENSTACK_SERVER, one)
        self.catch_up()
        for _ in range(3):
            self.one_pass()
        self.assertEqual((0, 0), self.one_pass())
        self.cloud.faults["server-1"] = "No valid host was found."
        self.time_passes(seconds=21)
        self.one_pass()
        self.assertIn("No valid host was found", self.cluster().status_reason)


class TestLoadBalancer(UnchangedWorld):
    """Octavia alone knows of a load balancer that the cluster waits for."""

    def setUp(self) -> None:
        super().setUp()
        self.create()
        self.capi_converges()
        [cluster] = self.kube.list(names.OPENSTACK_CLUSTER, builders.NAMESPACE)
        cluster["metadata"]["creationTimestamp"] = "2026-01-01T11:00:00Z"
        cluster["spec"]["apiServerLoadBalancer"] = {"enabled": True}
        cluster["status"] = {}
        self.kube.put(names.OPENSTACK_CLUSTER, cluster)
        for _ in range(5):
            self.catch_up()
            self.one_pass()

    def test_it_costs_no_request_to_the_management_cluster(self) -> None:
        for _ in range(2):
            self.time_passes(seconds=21)
            asked, statements = self.one_pass()
            self.assertNotEqual(0, statements)
            # That of a controller, which is read every twenty seconds for all clusters.
            self.assertEqual([], [call for call in self.kube.calls if "capi" not in call[2]])
            self.assertEqual(0, asked - len(self.kube.calls))

    def test_its_failure_is_told(self) -> None:
        name = names.api_balancer(builders.NAMESPACE, builders.RELEASE)
        self.cloud.failed_balancers.add((name, self.cluster().project_id))
        self.time_passes(seconds=21)
        self.one_pass()
        self.assertIn("load balancer", self.cluster().status_reason)
        self.assertIn("ERROR", self.cluster().status_reason)


class TestWithoutTheRight(UnchangedWorld):
    def test_leases_are_read_where_they_may_not_be_watched(self) -> None:
        """The role of an older version: objects are watched, and the rest is read as before."""

        def forbid(verb: str, kind: names.Kind, name: str) -> None:
            if kind == names.LEASE and verb in ("list", "watch"):
                raise errors.NotAllowed("It is not allowed.", "HTTP 403")

        self.kube.before = forbid
        self.create()
        self.infrastructure()
        for watch in self.watching.watches:
            with contextlib.suppress(AssertionError):
                watch.list_and_watch()
        for _ in range(4):
            self.one_pass()
        self.kube.calls.clear()
        self.one_pass()
        asked = {(call[0], call[1]) for call in self.kube.calls}
        self.assertEqual({("get", "Lease")}, asked)


class TestAtRest(UnchangedWorld):
    def setUp(self) -> None:
        super().setUp()
        self.settled()
        for _ in range(3):
            self.health_pass()
        self.catch_up()

    def test_nothing_is_read(self) -> None:
        for _ in range(3):
            self.assertEqual((0, 0), self.health_pass())
        self.assertEqual("HEALTHY", self.cluster().health_status)

    def test_a_conductor_that_starts_lists_the_nodegroups_once_and_saves_nothing(self) -> None:
        self.ports = dataclasses.replace(self.ports, evaluations=EvaluationCache())
        self.driver = self.new_driver()
        [cluster] = objects.Cluster.list(self.context)
        self.assertIsNotNone(cluster.cluster_template)
        monitor = self.driver.get_monitor(self.context, cluster)
        self.assertEqual(1, self.counted(monitor.poll_health_status)[1], self.statements)
        self.assertEqual({}, monitor.data)
        self.assertEqual((0, 0), self.health_pass())

    def test_a_changed_object_is_seen(self) -> None:
        self.assertEqual((0, 0), self.health_pass())
        self.break_a_machine()
        self.catch_up()
        self.assertNotEqual((0, 0), self.health_pass())
        self.assertEqual("UNHEALTHY", self.cluster().health_status)

    def test_magnum_saves_nothing(self) -> None:
        before = self.cluster().updated_at
        [cluster] = objects.Cluster.list(self.context)
        monitor = self.driver.get_monitor(self.context, cluster)
        monitor.poll_health_status()
        self.assertEqual({}, monitor.data)
        self.health_task()
        self.assertEqual(before, self.cluster().updated_at)

    def test_a_request_is_seen(self) -> None:
        self.resize(3)
        self.catch_up()
        self.assertNotEqual((0, 0), self.health_pass())

    def test_what_comes_with_the_time_is_told_in_time(self) -> None:
        """Certificates that nothing renews: two weeks before their end, on the minute."""
        [*machines] = self.kube.list(names.MACHINE, builders.NAMESPACE)
        end = self.wall_clock() + datetime.timedelta(days=14, minutes=7)
        for one in machines:
            if names.LABEL_CONTROL_PLANE in one["metadata"]["labels"]:
                one["status"]["certificatesExpiryDate"] = end.strftime("%Y-%m-%dT%H:%M:%SZ")
                self.kube.put(names.MACHINE, one)
        self.catch_up()
        told = []
        for _ in range(10):
            self.health_pass()
            told.append("expire" in self.cluster().health_status_reason.get("certificates", ""))
            self.time_passes(minutes=1)
        self.assertEqual([False] * 8 + [True] * 2, told)

    def test_the_credential_is_tried_sooner_while_something_is_in_progress(self) -> None:
        self.resize(3)
        self.catch_up()
        for _ in range(3):
            self.health_pass()
        self.assertEqual((0, 0), self.health_pass())
        self.time_passes(minutes=5, seconds=1)
        self.health_pass()
        self.assertIn("Secret", [call[1] for call in self.kube.calls])

    def test_magnums_objects_are_read_now_and_then(self) -> None:
        counts = []
        for _ in range(6):
            self.time_passes(minutes=1)
            counts.append(self.health_pass())
        self.assertEqual(1, sum(statements > 0 for _, statements in counts))
