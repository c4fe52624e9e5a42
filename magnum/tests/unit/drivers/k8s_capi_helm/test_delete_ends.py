# SPDX-License-Identifier: Apache-2.0
"""The last moments of a cluster: a conductor may die in each, or meet another one's pass."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
import itertools

from oslo_service import loopingcall

from magnum import objects
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.handlers.tasks import finalize_deletion
from magnum.drivers.k8s_capi_helm.model import names, secrets
from magnum.drivers.k8s_capi_helm.reconcile.deletion import deletion
from magnum.drivers.k8s_capi_helm.reconcile.process.caches import FinishedOnce
from magnum.service import periodic
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import CONF, DriverCase, NAMESPACE, RELEASE

_OTHER = "other-abcdefghijkl"
_TOMBSTONE = f"Lease/{names.lease(_OTHER)}"


class Case(DriverCase):
    def dying(self) -> None:
        """A cluster whose next pass is the last one."""
        self.create()
        self.now = 1000.0
        self.restart()
        self.capi_converges()
        self.delete()
        self.status_task()
        self.capi_deletes()

    def restart(self) -> None:
        """Another conductor goes on."""
        told = FinishedOnce(clock=lambda: self.now)
        self.ports = dataclasses.replace(self.ports, finished_deletions=told)

    def bury(self, release: str, uuid: str) -> None:
        """A tombstone of another cluster of the project."""
        self.ports.leases.open(NAMESPACE, release, cluster_uuid=uuid, project_id="p1")
        self.ports.leases.set_tombstone(NAMESPACE, release)

    def away(self, times: int) -> None:
        """The management cluster does not answer when there is nothing left but the Lease."""
        left = itertools.chain([True] * times, itertools.repeat(False))

        def vanish(verb: str, kind: names.Kind, name: str) -> None:
            if self.cluster().stack_id is None and next(left):
                raise errors.ManagementUnreachable("The management cluster does not answer.")

        self.kube.before = vanish

    def nothing_is_left(self) -> None:
        self.assertEqual([], objects.Cluster.list(self.context))
        self.assertEqual([], self.left())


class TestCharts(Case):
    def test_of_two_deletions_at_once_the_later_one_takes_the_chart_away(self) -> None:
        """The other one comes to its end just before this one writes its tombstone."""
        self.dying()
        record = self.ports.leases.read(NAMESPACE, RELEASE)
        self.ports.leases.open(NAMESPACE, _OTHER, cluster_uuid="o", project_id="p1")
        self.ports.leases.remember(NAMESPACE, _OTHER, chart_digest=record.chart_digest)
        owner = secrets.Owner(_OTHER, NAMESPACE, "p1", "u", "o")

        last = []

        def meanwhile(verb: str, kind: names.Kind, name: str) -> None:
            if kind == names.BOOTSTRAP_TEMPLATE:
                last.append(verb)
            elif last and (verb, kind) == ("replace", names.LEASE):
                self.kube.before = None
                now = self.ports.clock()
                deletion.advance_deletion(self.ports, owner, lambda: self.cloud, CONF, now)

        self.kube.before = meanwhile
        self.status_task()
        self.assertIsNone(self.kube.before)
        self.ports.leases.delete_finished(NAMESPACE, _OTHER)
        self.nothing_is_left()

    def test_a_conductor_that_dies_before_that_leaves_it_to_the_next(self) -> None:
        self.dying()
        died = []

        def die(verb: str, kind: names.Kind, name: str) -> None:
            if (verb, kind) == ("list", names.LEASE) and not died:
                died.append(True)
                raise KilledError

        self.kube.before = die
        self.assertRaises(KilledError, self.status_task)
        self.status_task()
        self.nothing_is_left()


class KilledError(BaseException):
    """Ends a conductor."""


class TestLease(Case):
    def test_no_lease_is_left_to_a_process_that_may_end(self) -> None:
        self.dying()
        self.status_task()
        self.nothing_is_left()

    def test_the_row_needs_no_proof_before_the_proof_goes(self) -> None:
        self.dying()
        seen = []

        def look(verb: str, kind: names.Kind, name: str) -> None:
            if (verb, kind) == ("delete", names.LEASE):
                seen.append((self.cluster().stack_id, self.cluster().status))

        self.kube.before = look
        self.status_task()
        self.assertEqual([(None, "DELETE_IN_PROGRESS")], seen)

    def test_a_conductor_that_dies_before_the_row_goes_leaves_it_to_the_next(self) -> None:
        self.dying()
        cluster = self.cluster()
        self.driver.update_cluster_status(self.context, cluster)
        self.assertEqual("DELETE_COMPLETE", cluster.status)
        self.assertEqual([], self.left())
        self.restart()
        self.health_task()
        self.assertEqual("DELETE_IN_PROGRESS", self.cluster().status)
        self.status_task()
        self.nothing_is_left()

    def test_a_request_that_wrote_over_the_end_does_not_call_it_a_create(self) -> None:
        """Whoever was to destroy the row died, and a late request has set the cluster's status."""
        self.dying()
        self.driver.update_cluster_status(self.context, self.cluster())
        self.restart()
        cluster = self.cluster()
        cluster.status = "UPDATE_IN_PROGRESS"
        cluster.save()
        self.after(minutes=60)
        self.status_task()
        self.assertEqual("DELETE_IN_PROGRESS", self.cluster().status)
        self.status_task()
        self.nothing_is_left()

    def test_one_that_cannot_be_deleted_now_is_deleted_by_the_next_pass(self) -> None:
        self.dying()
        self.away(times=1)
        self.status_task()
        cluster = self.cluster()
        self.assertEqual("DELETE_IN_PROGRESS", cluster.status)
        self.assertIn("does not answer", cluster.status_reason)
        self.status_task()
        self.nothing_is_left()

    def test_one_that_stays_behind_goes_with_the_next_deletion_of_the_project(self) -> None:
        self.dying()
        self.away(times=2)
        self.status_task(2)
        self.kube.before = None
        self.assertEqual([], objects.Cluster.list(self.context))
        self.assertEqual([f"Lease/{names.lease(RELEASE)}"], self.left())
        self.bury(_OTHER, "of-an-older-driver")
        self.kube.remove(names.LEASE, NAMESPACE, names.lease(RELEASE))
        self.dying()
        self.status_task()
        self.nothing_is_left()

    def test_a_tombstone_whose_row_is_there_stays(self) -> None:
        self.made()
        self.bury(_OTHER, self.cluster().uuid)
        finalize_deletion.delete_leases(self.ports, NAMESPACE)
        self.assertIn(_TOMBSTONE, self.left())

    def test_a_lease_that_is_no_tombstone_stays(self) -> None:
        self.ports.kube.put(names.NAMESPACE, {"metadata": {"name": NAMESPACE}})
        self.ports.leases.open(NAMESPACE, _OTHER, cluster_uuid="gone", project_id="p1")
        finalize_deletion.delete_leases(self.ports, NAMESPACE)
        self.assertEqual([_TOMBSTONE], self.left())


class TestMeeting(Case):
    def test_passes_that_overlap_tell_of_it_once(self) -> None:
        """Magnum notifies, and destroys rows, after each pass that does."""
        self.dying()
        late, told = self.cluster(), []
        for _ in range(3):
            cluster = self.cluster()
            self.driver.update_cluster_status(self.context, cluster)
            told.append(cluster.status)
        self.assertEqual(["DELETE_COMPLETE", "DELETE_IN_PROGRESS", "DELETE_IN_PROGRESS"], told)
        self.restart()
        self.status_task()
        self.driver.update_cluster_status(self.context, late)
        self.assertEqual("DELETE_IN_PROGRESS", late.status)
        self.nothing_is_left()

    def test_a_row_that_magnum_could_not_destroy_is_told_of_again(self) -> None:
        self.dying()
        self.driver.update_cluster_status(self.context, self.cluster())
        self.now += 59
        self.status_task()
        self.assertEqual("DELETE_IN_PROGRESS", self.cluster().status)
        self.now += 1
        self.status_task()
        self.nothing_is_left()

    def test_two_passes_that_meet_anywhere_end_it_once(self) -> None:
        """The second one, of another conductor, runs as the first one asks for a Lease again."""
        ended_by_second = 0
        for point in itertools.count(1):
            self.dying()
            self.kube.before = self.meet_at(point)
            cluster = self.cluster()
            job = periodic.ClusterUpdateJob(self.context, cluster)
            self.assertRaises(loopingcall.LoopingCallDone, job.update_status)
            met, self.kube.before = self.kube.before is None, None
            self.assertIn(cluster.status, ("DELETE_IN_PROGRESS", "DELETE_COMPLETE"), point)
            ended_by_second += cluster.status == "DELETE_IN_PROGRESS"
            for left in objects.Cluster.list(self.context):
                self.assertEqual("DELETE_IN_PROGRESS", left.status, point)
            self.status_task()
            self.nothing_is_left()
            if not met:
                break
        self.assertGreater(ended_by_second, 0)

    def meet_at(self, point: int) -> Callable[[str, names.Kind, str], None]:
        """What lets another pass run once, at so many requests about Leases."""
        calls = itertools.count(1)

        def meet(verb: str, kind: names.Kind, name: str) -> None:
            if kind == names.LEASE and next(calls) == point:
                self.kube.before = None
                self.status_task()

        return meet
