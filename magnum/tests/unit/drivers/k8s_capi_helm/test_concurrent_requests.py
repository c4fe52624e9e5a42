# SPDX-License-Identifier: Apache-2.0
"""What crosses: passes and verbs, refusals and other requests, crashes, an operator's repairs."""

import dataclasses
import datetime
import json

from magnum import objects
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.handlers.tasks import status_task
from magnum.drivers.k8s_capi_helm.kube.watch import snapshot
from magnum.drivers.k8s_capi_helm.model import names, Operation, Verb
from magnum.drivers.k8s_capi_helm.reconcile import reconciler
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import ReleaseSnapshot
from magnum.tests.unit.drivers.k8s_capi_helm import driver_case
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import NAMESPACE, RELEASE


class TestCrossing(driver_case.DriverCase):
    def test_a_pass_before_the_lease_is_made_does_not_fail_the_create(self):
        def look_now(verb, kind, name):
            if verb == "create" and kind == names.LEASE:
                self.kube.before = None
                self.status_task()

        self.kube.before = look_now
        self.assertEqual("CREATE_IN_PROGRESS", self.create().status)
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("CREATE_COMPLETE", self.cluster().status)

    def test_a_pass_takes_no_lock_from_a_create(self):
        taken = []

        def look_now(verb, kind, name):
            if (verb, kind) == ("get", names.LEASE) and self.cluster().stack_id:
                self.kube.before = None
                before = len(self.kube.calls)
                self.status_task()
                taken.append([one for one in self.kube.calls[before:] if one[0] != "get"])

        self.kube.before = look_now
        self.assertEqual("CREATE_IN_PROGRESS", self.create().status)
        ((*lists,),) = taken
        self.assertEqual({"list"}, {one[0] for one in lists})

    def test_a_lease_that_never_came_is_said_in_the_end(self):
        self.create()
        self.helm.releases.clear()
        for name in (names.lease(RELEASE), names.credential_secret(RELEASE)):
            self.kube.remove(names.LEASE if "magnum" in name else names.SECRET, NAMESPACE, name)
        cluster = self.cluster()
        cluster.created_at = datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)
        self.driver.update_cluster_status(self.context, cluster)
        self.assertEqual("CREATE_FAILED", self.cluster().status)
        self.assertIn("proves", self.cluster().status_reason)

    def test_a_create_that_could_not_make_its_lease_can_be_deleted(self):
        def vanish(verb, kind, name):
            if verb == "create" and kind == names.LEASE:
                raise errors.ManagementUnreachable("The management cluster does not answer.")

        self.kube.before = vanish
        cluster = self.create()
        self.assertEqual(("CREATE_FAILED", None), (cluster.status, cluster.stack_id))
        self.delete()
        self.status_task()
        self.assertEqual([], objects.Cluster.list(self.context))

    def test_an_interrupted_create_says_so_on_its_groups_too(self):
        cluster = self.create()
        cluster.stack_id = None
        status_task.advance(self.periodic(), self.context, cluster)
        self.assertEqual("CREATE_IN_PROGRESS", self.cluster().status)
        self.after(11)
        status_task.advance(self.periodic(), self.context, cluster)
        self.assertEqual("CREATE_FAILED", self.cluster().status)
        for group in self.cluster().nodegroups:
            self.assertEqual("CREATE_FAILED", group.status)
            self.assertIn("interrupted", group.status_reason)

    def test_a_pass_that_overtakes_another_one_leaves_none_of_its_reasons(self):
        self.made()
        self.resize(2)
        self.capi_converges()
        late = self.cluster()  # of a second task, which a busy machine lets wait
        self.status_task()
        self.assertIn("confirming", self.cluster().status_reason)
        status_task.advance(self.periodic(), self.context, late)
        after = self.cluster()
        self.assertEqual(("UPDATE_COMPLETE", None), (after.status, after.status_reason))

    def test_a_late_request_builds_nothing_on_a_tombstone(self):
        self.made()
        self.delete()
        self.ports.leases.set_tombstone(NAMESPACE, RELEASE)
        runs = len(self.helm.runs)
        cluster = self.cluster()
        cluster.status = "UPDATE_IN_PROGRESS"
        cluster.save()
        group = self.group()
        group.node_count = 3
        group.save()
        self.status_task()
        self.assertEqual("DELETE_IN_PROGRESS", self.cluster().status)
        self.assertEqual(runs, len(self.helm.runs))

    def test_a_refused_request_stops_no_other_one(self):
        self.made()
        with self.ports.leases.acquire(NAMESPACE, RELEASE, wait=0):
            self.add_group("extra")
        self.resize(1, remove=["server-1"])
        self.assertEqual("UPDATE_FAILED", self.cluster().status)
        self.health_task()
        self.status_task()
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.assertEqual("CREATE_COMPLETE", self.group("extra").status)

    def test_a_deletion_that_a_verdict_wrote_over_goes_on(self):
        self.made()
        self.delete()
        cluster = self.cluster()
        cluster.status = "UPDATE_COMPLETE"
        cluster.save()
        self.health_task()
        self.assertEqual("DELETE_IN_PROGRESS", self.cluster().status)

    def test_a_pass_that_another_one_overtakes_leaves_no_time_behind(self):
        """It would be that of the next update, which would be late before it began."""
        self.made()
        self.resize(2)
        self.capi_converges()
        self.status_task()

        def overtake(verb, kind, name):
            if (verb, kind) == ("get", names.LEASE):
                self.kube.before = None
                self.status_task()

        self.kube.before = overtake
        self.driver.update_cluster_status(self.context, self.cluster())
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.assertEqual((), self.ports.leases.read(NAMESPACE, RELEASE).operations)

    def test_a_time_that_was_left_behind_goes(self):
        self.made()
        old = Operation(id="update", verb=Verb.RESIZE, started_at=self.wall_clock())
        self.ports.leases.add(NAMESPACE, RELEASE, old)
        self.health_task()
        self.assertEqual("CREATE_COMPLETE", self.cluster().status)
        self.assertEqual((), self.ports.leases.read(NAMESPACE, RELEASE).operations)


class TestOutage(driver_case.DriverCase):
    def test_a_delete_that_was_asked_for_in_an_outage_is_not_forgotten(self):
        self.made()
        self.kube.unreachable = True
        self.delete()
        self.add_group("late")
        self.kube.unreachable = False
        self.status_task(2)
        self.capi_deletes()
        self.status_task(2)
        self.assertEqual([], objects.Cluster.list(self.context))
        self.assertNotIn("late", json.dumps(self.helm.runs))


class TestOperatorsRepairs(driver_case.DriverCase):
    """What an operator has to mend is no fault of the request, which goes on when it is mended."""

    def test_credentials_of_magnum_that_ended(self):
        def refuse(verb, kind, name):
            raise errors.ManagementRefused("The credentials are not accepted. Ask the operator.")

        self.create()
        self.kube.before = refuse
        self.status_task()
        cluster = self.cluster()
        self.assertEqual("CREATE_IN_PROGRESS", cluster.status)
        self.assertIn("Ask the operator", cluster.status_reason)
        self.kube.before = None
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("CREATE_COMPLETE", self.cluster().status)

    def test_helm_that_is_missing_for_a_while(self):
        self.made()
        self.helm.refusal = errors.HelmUnusable("Helm cannot be run. Ask the operator.")
        self.resize(2)
        self.status_task()
        cluster = self.cluster()
        self.assertEqual("UPDATE_IN_PROGRESS", cluster.status)
        self.assertIn("Ask the operator", cluster.status_reason)
        self.helm.refusal = None
        self.status_task()
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    def test_a_request_made_during_an_outage_has_a_deadline_all_the_same(self):
        self.made()
        self.kube.unreachable = True
        self.resize(2)
        self.kube.unreachable = False
        self.status_task()
        [operation] = self.ports.leases.read(NAMESPACE, RELEASE).operations
        self.assertIsNotNone(operation.deadline)
        year = datetime.datetime.now(datetime.timezone.utc).year
        text = json.dumps(self.kube.get(names.LEASE, NAMESPACE, names.lease(RELEASE)))
        self.kube.put(names.LEASE, json.loads(text.replace(f"{year}-", "2020-")))
        self.status_task()
        self.assertEqual("UPDATE_FAILED", self.cluster().status)
        self.assertTrue(self.cluster().status_reason.startswith("timeout:"))


class TestLock(driver_case.DriverCase):
    """What was read before the lock was taken, and what its holder has changed meanwhile."""

    def test_objects_that_the_holder_has_changed_are_read_again(self):
        self.made()
        run = self.periodic()
        lease = self.ports.leases.read(NAMESPACE, RELEASE)
        live = self.helm.live(NAMESPACE, RELEASE)
        read = snapshot.take_snapshot(self.kube, NAMESPACE, RELEASE, run.now)
        groups = ("default-worker",)
        resize = Operation("resize-1", Verb.RESIZE, run.now, groups, target_node_count=3)
        before = dataclasses.replace(lease, operations=(resize,))
        # The Lease says by now that another conductor has handed the number over.
        rows = status_task.magnum_rows(run, self.context, self.cluster())
        after = reconciler.reconcile(
            run, rows, snapshot=ReleaseSnapshot(before, live, objects=read)
        )
        self.assertEqual((), after.record.operations)
        self.assertIsNone(after.objects)
