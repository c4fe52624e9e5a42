# SPDX-License-Identifier: Apache-2.0
"""Periodic passes of a driver that watches: nothing less true, and nearly nothing asked."""

from __future__ import annotations

import dataclasses
import threading

from magnum import objects
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.handlers.tasks import failed_clusters, watch_trigger
from magnum.drivers.k8s_capi_helm.kube.watch import informers
from magnum.drivers.k8s_capi_helm.model import names
from magnum.drivers.k8s_capi_helm.model.management_cluster import DEFAULT_MANAGEMENT
from magnum.drivers.k8s_capi_helm.reconcile.process.evaluation_cache import EvaluationCache
from magnum.tests.unit.drivers.k8s_capi_helm import builders, driver_case


class WatchingWorld(driver_case.DriverCase):
    """A world whose watches go on when the test says so, and not by themselves."""

    def setUp(self) -> None:
        super().setUp()
        self.now = 1000.0
        self.begun: list[str] = []
        self.watching = informers.Informers(
            self.kube,
            staleness=45,
            covers=lambda namespace: namespace.startswith("magnum-"),
            clock=lambda: self.now,
            spawn=lambda name, run: self.begun.append(name),
        )
        resting = EvaluationCache(clock=lambda: self.now, jitter=lambda least, most: most)
        self.ports = dataclasses.replace(self.ports, informers=self.watching, evaluations=resting)

    def catch_up(self) -> None:
        """The watches hear of all that has happened."""
        for watch in self.watching.watches:
            self.assertEqual(0.0, watch.list_and_watch())

    def lists(self) -> list[str]:
        """Kinds that the passes since the last question have listed, or read, directly."""
        watched = {kind.name for kind in informers.KINDS}
        found = [call[1] for call in self.kube.calls if call[0] in ("get", "list")]
        self.kube.calls.clear()
        return [kind for kind in found if kind in watched]

    def settled(self) -> None:
        """A cluster at rest, called healthy, that is watched."""
        self.create()
        self.capi_converges()
        self.catch_up()
        self.status_task(2)
        self.health_task()
        self.assertEqual("CREATE_COMPLETE", self.cluster().status)
        self.assertEqual("HEALTHY", self.cluster().health_status)
        self.catch_up()
        self.lists()

    def break_a_machine(self) -> None:
        [one, *_] = self.kube.list(names.MACHINE, builders.NAMESPACE)
        self.kube.remove(names.MACHINE, builders.NAMESPACE, one["metadata"]["name"])


class TestWatching(WatchingWorld):
    def test_only_periodic_questions_begin_to_watch(self) -> None:
        self.create()
        self.add_group("more")
        self.driver.get_monitor(self.context, self.cluster())
        self.assertEqual([], self.begun)
        self.status_task()
        # A watch for each kind, and three threads; one more polls where Magnum does not.
        expected = 14 + len(failed_clusters.polls(failed_clusters.magnum_release()))
        self.assertEqual(expected, len(self.begun))
        self.health_task()
        self.assertEqual(expected, len(self.begun))

    def test_a_settled_cluster_is_not_read(self) -> None:
        self.settled()
        self.health_task()
        self.assertEqual([], self.lists())
        self.assertEqual("HEALTHY", self.cluster().health_status)

    def test_clusters_at_rest_cost_one_question_for_all(self) -> None:
        self.settled()
        self.health_task()
        self.helm.reads = 0
        self.now += 6
        self.kube.calls.clear()
        self.health_task()
        self.assertEqual([("get", "Namespace", "", "kube-system")], self.kube.calls)
        self.kube.calls.clear()
        self.health_task()
        self.assertEqual([], self.kube.calls)
        self.assertEqual(0, self.helm.reads)
        self.assertEqual("HEALTHY", self.cluster().health_status)

    def test_a_refusal_is_an_answer(self) -> None:
        """The operator's own role may let the driver read no namespaces."""
        self.settled()
        self.health_task()

        def forbid(verb: str, kind: names.Kind, name: str) -> None:
            if kind == names.NAMESPACE:
                raise errors.NotAllowed("It is not allowed.", "HTTP 403")

        self.kube.before, self.helm.reads = forbid, 0
        self.now += 6
        self.health_task()
        self.assertEqual(0, self.helm.reads)
        self.assertEqual("HEALTHY", self.cluster().health_status)

    def test_the_release_of_a_cluster_at_rest_is_read_now_and_then(self) -> None:
        self.settled()
        self.health_task()
        self.catch_up()
        self.helm.reads = 0
        for _ in range(91):
            self.now += 10
            self.catch_up()
            self.health_task()
        self.assertEqual(1, self.helm.reads)

    def test_the_release_is_read_of_the_kubeconfig_as_it_is(self) -> None:
        """Everything was moved to another management cluster, but for the release."""
        self.settled()
        self.health_task()
        self.kube.place = "there"
        self.helm.releases.clear()
        self.catch_up()
        self.helm.reads = 0
        self.health_task()
        self.assertEqual(1, self.helm.reads)
        said = self.cluster().health_status_reason.get("notice", "")
        self.assertIn("does not exist on the management cluster any more", said)

    def test_news_are_judged_by_the_release_as_it_is(self) -> None:
        self.settled()
        self.health_task()
        self.helm.reads = 0
        self.break_a_machine()
        self.catch_up()
        self.health_task()
        self.assertEqual(1, self.helm.reads)
        self.assertNotEqual("HEALTHY", self.cluster().health_status)

    def test_a_release_that_was_changed_by_hand_is_read_when_that_shows(self) -> None:
        """``helm rollback``, to fewer machines than the rows ask for."""
        self.settled()
        self.health_task()
        live = self.helm.live(builders.NAMESPACE, builders.RELEASE)
        live.values["nodeGroups"][0]["machineCount"] = 0
        self.helm.releases[builders.NAMESPACE, builders.RELEASE] = live
        self.capi_converges()
        self.catch_up()
        self.after(minutes=10)
        self.health_task()
        self.assertEqual("UPDATE_IN_PROGRESS", self.cluster().status)
        self.status_task()
        live = self.helm.live(builders.NAMESPACE, builders.RELEASE)
        self.assertEqual(1, live.values["nodeGroups"][0]["machineCount"])

    def test_what_was_changed_meanwhile_is_read(self) -> None:
        self.settled()
        self.health_task()
        self.resize(3)
        self.capi_converges()
        self.catch_up()
        self.status_task(3)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.helm.reads = 0
        self.health_task()
        self.assertEqual(1, self.helm.reads)

    def test_what_is_too_old_is_read(self) -> None:
        self.settled()
        self.now += 46
        self.health_task()
        self.assertNotEqual([], self.lists())

    def test_what_is_in_progress_and_waits_is_not_read(self) -> None:
        self.create()
        self.catch_up()
        self.status_task()
        self.lists()
        self.status_task(3)
        self.assertEqual([], self.lists())
        self.assertEqual("CREATE_IN_PROGRESS", self.cluster().status)

    def test_nothing_is_complete_by_watching_alone(self) -> None:
        """The watches saw it in place and are behind: it is not any more."""
        self.create()
        self.capi_converges()
        self.catch_up()
        self.break_a_machine()
        self.status_task(4)
        self.assertEqual("CREATE_IN_PROGRESS", self.cluster().status)

    def test_the_first_look_is_one_of_the_watches_and_the_second_is_not(self) -> None:
        self.create()
        self.status_task()
        self.capi_converges()
        self.catch_up()
        self.lists()
        self.status_task()
        self.assertEqual([], self.lists())
        self.assertIn("confirming", self.cluster().status_reason)
        self.catch_up()
        self.status_task()
        self.assertEqual("CREATE_COMPLETE", self.cluster().status)
        counted = {"Cluster", "KubeadmControlPlane", "Machine", "MachineDeployment"}
        self.assertEqual(sorted(counted), sorted(self.lists()))

    def test_the_first_look_is_none_of_watches_that_are_behind_the_lease(self) -> None:
        self.create()
        self.status_task()
        self.capi_converges()
        self.catch_up()
        self.ports.leases.remember(builders.NAMESPACE, builders.RELEASE, chart_source="other")
        self.lists()
        self.status_task()
        self.assertIn("Machine", self.lists())
        self.assertIn("confirming", self.cluster().status_reason)

    def test_a_second_look_that_is_behind_completes_nothing(self) -> None:
        self.create()
        self.capi_converges()
        self.catch_up()
        self.status_task()
        self.assertEqual("CREATE_IN_PROGRESS", self.cluster().status)
        self.break_a_machine()
        self.status_task(3)
        self.assertEqual("CREATE_IN_PROGRESS", self.cluster().status)

    def test_what_helm_has_just_written_is_not_judged_by_what_was_before(self) -> None:
        self.settled()
        self.resize(3)
        self.assertEqual("UPDATE_IN_PROGRESS", self.cluster().status)
        self.status_task(4)
        self.assertEqual("UPDATE_IN_PROGRESS", self.cluster().status)
        self.capi_converges()
        self.catch_up()
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    def test_a_group_is_not_gone_by_watching_alone(self) -> None:
        self.settled()
        self.add_group("more")
        deployment = f"{builders.RELEASE}-more"
        self.kube.put(
            names.MACHINE_DEPLOYMENT,
            {
                "metadata": {
                    "name": deployment,
                    "namespace": builders.NAMESPACE,
                    "labels": {
                        names.LABEL_CLUSTER_NAME: builders.RELEASE,
                        names.LABEL_NODE_GROUP: "more",
                    },
                },
            },
        )
        self.drop_group("more")
        self.status_task(3)
        self.assertEqual("DELETE_IN_PROGRESS", self.group("more").status)
        self.kube.remove(names.MACHINE_DEPLOYMENT, builders.NAMESPACE, deployment)
        self.status_task(3)
        self.assertEqual("DELETE_IN_PROGRESS", self.group("more").status)
        self.catch_up()
        self.status_task(3)
        left = {one.name for one in objects.NodeGroup.list(self.context, self.cluster().uuid)}
        self.assertEqual({"default-master", "default-worker"}, left)

    def test_a_number_that_is_behind_is_not_written(self) -> None:
        self.create(labels={"auto_scaling_enabled": "true", "max_node_count": "5"})
        self.capi_converges()
        self.status_task(2)
        self.health_task()
        self.catch_up()
        self.scale("default-worker", 3)
        self.capi_converges()
        group = self.group()
        group.node_count = 3  # by a pass that asked
        group.save()
        self.health_task()
        self.assertEqual(3, self.group().node_count)

    def test_healthy_is_not_said_of_a_management_cluster_that_is_away(self) -> None:
        """Its watches have not noticed yet, and are fresh."""
        self.settled()
        self.now += 6
        self.kube.unreachable = True
        self.health_task()
        cluster = self.cluster()
        self.assertEqual("UNKNOWN", cluster.health_status)
        self.assertIn("unreachable since", cluster.health_status_reason["management"])

    def test_illness_that_is_over_is_not_told(self) -> None:
        self.settled()
        self.break_a_machine()
        self.catch_up()
        self.capi_converges()
        self.health_task()
        self.assertEqual("HEALTHY", self.cluster().health_status)

    def test_illness_is_told(self) -> None:
        self.settled()
        self.break_a_machine()
        self.catch_up()
        self.health_task()
        self.assertNotEqual("HEALTHY", self.cluster().health_status)

    def test_a_deletion_looks_for_itself(self) -> None:
        """The watches know an empty management cluster only: that is no proof of anything."""
        self.catch_up()
        self.create()
        self.capi_converges()
        self.delete()
        self.status_task(3)
        self.assertEqual("DELETE_IN_PROGRESS", self.cluster().status)


class TestUpgrades(WatchingWorld):
    """A step of an upgrade is taken by what the API server says, and not by a watch."""

    def setUp(self) -> None:
        super().setUp()
        self.cloud.images["ubuntu-kube-1.35"] = ("image-2", "1.35.2")
        uuid = "21111111-2222-4333-8444-555555555555"
        template = self._template(uuid=uuid, name="next", image_id="ubuntu-kube-1.35")
        self.settled()
        self.assertEqual("", self.upgrade(template))
        self.catch_up()
        self.status_task(2)
        self.capi_converges()

    def is_waiting(self) -> bool:
        """Whether a pass leaves the worker at its old version."""
        self.status_task()
        (entry,) = self.helm.live(builders.NAMESPACE, builders.RELEASE).values["nodeGroups"]
        return entry.get("kubernetesVersion") == builders.VERSION

    def test_a_watch_that_is_behind_puts_it_off(self) -> None:
        self.assertTrue(self.is_waiting())
        self.catch_up()
        self.assertFalse(self.is_waiting())

    def test_a_watch_alone_does_not_take_it(self) -> None:
        self.catch_up()
        name = names.kubeadm_control_plane(builders.RELEASE)
        self.kube.remove(names.CONTROL_PLANE, builders.NAMESPACE, name)
        self.assertTrue(self.is_waiting())

    def test_the_objects_are_read_once_before_helm_and_once_after(self) -> None:
        self.catch_up()
        self.lists()
        self.assertFalse(self.is_waiting())
        self.assertEqual(2, self.lists().count(names.MACHINE.name))


class TestPrompts(WatchingWorld):
    """What happens is looked at out of turn, and nothing is ended by that."""

    def setUp(self) -> None:
        super().setUp()
        self.synced: list[str] = []
        self.confirmed: list[str] = []
        self.is_in_place = False
        self.prompts = watch_trigger.WatchTriggers(
            self.pretend, self.confirmed.append, clock=lambda: self.now
        )

    def pretend(self, release: str) -> bool:
        """A pass that does nothing."""
        self.synced.append(release)
        return self.is_in_place

    def in_place(self) -> None:
        """A cluster in creation of which everything has come to be in place since the last pass."""
        self.create()
        self.status_task()
        self.capi_converges()
        self.catch_up()

    def sync(self) -> bool:
        """A pass for a watch event."""
        return watch_trigger.sync(self.ports, driver_case.CONF, builders.RELEASE)

    def visit(self, release: str) -> None:
        """Magnum's status task comes by."""
        with self.prompts.visit(release) as is_free:
            self.assertTrue(is_free)

    def confirmed_after(self, seconds: float) -> list[str]:
        self.now += seconds
        self.prompts.reconcile_waiting()
        return self.confirmed

    def told(self, kind: str = "Machine", name: str = "one", **labels: str) -> list[str]:
        """What is looked at after one change."""
        self.synced.clear()
        keys = {"cluster": names.LABEL_CLUSTER_NAME, "chart": names.LABEL_CHART_CLUSTER}
        marks = {keys[key]: value for key, value in labels.items()}
        self.prompts.handle_event({"kind": kind, "metadata": {"name": name, "labels": marks}})
        self.prompts.reconcile_waiting()
        return list(self.synced)

    def looks(self) -> tuple[str, dict[str, str]]:
        """The first of two looks that the record holds, of the cluster and of its nodegroups."""
        record = self.ports.leases.read(builders.NAMESPACE, builders.RELEASE)
        return record.ready_fingerprint, dict(record.nodegroup_ready_fingerprints)

    def test_only_what_is_in_progress_is_looked_at(self) -> None:
        self.assertEqual([], self.told(cluster="a"))
        self.visit("a")
        self.assertEqual([], self.told(cluster="b"))
        self.assertEqual([], self.told(kind="Event", name="a"))
        self.assertEqual(["a"], self.told(cluster="a"))
        self.now += 31
        self.assertEqual([], self.told(cluster="a"))

    def test_whose_an_object_is(self) -> None:
        for more in ({"name": "a"}, {"cluster": "a"}, {"chart": "a"}):
            self.now += 5
            self.visit("a")
            self.assertEqual(["a"], self.told(**more), more)

    def test_many_changes_are_one_look_and_the_next_comes_later(self) -> None:
        self.visit("a")
        self.assertEqual(["a"], self.told(cluster="a"))
        for _ in range(20):
            self.assertEqual([], self.told(cluster="a"))
        self.now += 3
        self.prompts.reconcile_waiting()
        self.assertEqual(["a"], self.synced)
        self.prompts.reconcile_waiting()
        self.assertEqual(["a"], self.synced)

    def test_one_that_fails_does_not_hold_the_others_up(self) -> None:
        def sync(release: str) -> bool:
            self.synced.append(release)
            raise ValueError(release)

        self.prompts = watch_trigger.WatchTriggers(
            sync, self.confirmed.append, clock=lambda: self.now
        )
        for release in ("a", "b"):
            self.visit(release)
            self.prompts.handle_event({"metadata": {"name": release}})
        self.prompts.reconcile_waiting()
        self.assertEqual(["a", "b"], self.synced)

    def test_reasons_follow_at_once_and_nothing_ends(self) -> None:
        self.create()
        self.status_task()
        before = self.cluster().status_reason
        self.capi_converges()
        self.break_a_machine()
        self.catch_up()
        self.sync()
        self.assertNotEqual(before, self.cluster().status_reason)
        self.capi_converges()
        self.catch_up()
        for _ in range(4):
            self.assertTrue(self.sync())
        self.assertEqual("CREATE_IN_PROGRESS", self.cluster().status)
        self.assertNotEqual(("", {}), self.looks())

    def test_magnums_own_job_ends_it_between_two_periods(self) -> None:
        self.in_place()
        self.sync()
        self.assertEqual("CREATE_IN_PROGRESS", self.cluster().status)
        watch_trigger.confirm(DEFAULT_MANAGEMENT, builders.RELEASE)
        self.assertEqual(
            ("CREATE_COMPLETE", None), (self.cluster().status, self.cluster().status_reason)
        )
        # It is at rest now, and nothing of it is in progress.
        self.kube.calls.clear()
        watch_trigger.confirm(DEFAULT_MANAGEMENT, builders.RELEASE)
        self.assertEqual([], self.kube.calls)

    def test_an_end_is_told_by_the_job_whose_pass_has_ended_it(self) -> None:
        """Several conductors hear of a change, and each one's job looks at the same moment."""
        self.in_place()
        self.sync()
        late, later = self.cluster(), self.cluster()

        def meanwhile(verb: str, kind: names.Kind, name: str) -> None:
            if (verb, kind) == ("list", names.MACHINE):
                self.kube.before = None
                watch_trigger.confirm(DEFAULT_MANAGEMENT, builders.RELEASE)

        self.kube.before = meanwhile
        for cluster in (late, later):
            job = driver_case.periodic.ClusterUpdateJob(self.context, cluster)
            self.assertRaises(driver_case.loopingcall.LoopingCallDone, job.update_status)
            self.assertEqual("CREATE_IN_PROGRESS", cluster.status)
            self.assertEqual("CREATE_COMPLETE", self.cluster().status)

    def test_what_has_changed_in_between_is_not_ended(self) -> None:
        self.in_place()
        self.assertTrue(self.sync())
        self.break_a_machine()
        watch_trigger.confirm(DEFAULT_MANAGEMENT, builders.RELEASE)
        self.assertEqual("CREATE_IN_PROGRESS", self.cluster().status)

    def test_the_second_look_comes_by_itself(self) -> None:
        self.is_in_place = True
        self.visit("a")
        self.assertEqual(["a"], self.told(cluster="a"))
        self.assertEqual([], self.confirmed_after(1.9))
        self.assertEqual(["a"], self.confirmed_after(0.2))
        self.assertEqual(["a"], self.confirmed_after(10))

    def test_it_does_not_come_where_something_is_missing(self) -> None:
        self.visit("a")
        self.assertEqual(["a"], self.told(cluster="a"))
        self.assertEqual([], self.confirmed_after(10))

    def test_it_waits_for_a_pass_of_magnums(self) -> None:
        self.is_in_place = True
        self.visit("a")
        self.told(cluster="a")
        with self.prompts.visit("a"):
            self.assertEqual([], self.confirmed_after(3))
        self.assertEqual([], self.confirmed_after(1))
        self.assertEqual(["a"], self.confirmed_after(1.1))

    def test_a_pass_of_magnums_is_none_while_it_comes(self) -> None:
        found: list[bool] = []

        def visit() -> None:
            with self.prompts.visit("a") as is_free:
                found.append(is_free)

        def confirm(release: str) -> None:
            visit()
            other = threading.Thread(target=visit)
            other.start()
            other.join()

        self.prompts = watch_trigger.WatchTriggers(
            lambda release: True, confirm, clock=lambda: self.now
        )
        self.visit("a")
        self.told(cluster="a")
        self.confirmed_after(3)
        self.assertEqual([True, False], found)
        visit()
        self.assertEqual([True, False, True], found)

    def test_what_is_left_behind_is_told_out_of_turn_as_in_turn(self) -> None:
        self.create()
        self.capi_converges()
        left = builders.server("left")
        left["metadata"]["ownerReferences"] = [{"kind": "OpenStackMachine", "name": "left"}]
        left["metadata"]["labels"] = {names.LABEL_CLUSTER_NAME: builders.RELEASE}
        self.kube.put(names.OPENSTACK_SERVER, left)
        self.catch_up()
        self.status_task()
        before = self.cluster().status_reason
        self.assertIn("server left of a deleted machine", before)
        self.sync()
        self.assertEqual(before, self.cluster().status_reason)

    def test_a_first_look_that_is_still_so_counts(self) -> None:
        self.create()
        self.capi_converges()
        self.status_task()
        self.catch_up()
        self.sync()
        self.assertEqual("CREATE_IN_PROGRESS", self.cluster().status)
        self.status_task()
        self.assertEqual("CREATE_COMPLETE", self.cluster().status)

    def test_it_writes_nothing_when_the_period_has_ended_it_meanwhile(self) -> None:
        self.create()
        self.capi_converges()
        self.status_task()
        self.break_a_machine()
        self.catch_up()

        def meanwhile(verb: str, kind: names.Kind, name: str) -> None:
            if (verb, kind) == ("replace", names.LEASE):
                self.kube.before = None
                self.capi_converges()
                self.status_task(2)

        self.kube.before = meanwhile
        self.sync()
        after = self.cluster()
        self.assertIsNone(self.kube.before)
        self.assertEqual(("CREATE_COMPLETE", None), (after.status, after.status_reason))

    def test_what_somebody_else_works_on_is_left_to_him(self) -> None:
        self.settled()
        self.config(group="capi_helm", lock_wait=3600)
        with self.ports.leases.acquire(builders.NAMESPACE, builders.RELEASE, wait=0):
            self.kube.calls.clear()
            cluster = self.cluster()
            cluster.status = "UPDATE_IN_PROGRESS"
            cluster.save()
            group = self.group()
            group.node_count = 3
            group.save()
            runs = len(self.helm.runs)
            self.sync()
        self.assertEqual(runs, len(self.helm.runs))
        self.assertIsNone(self.cluster().status_reason)
        self.sync()
        self.assertEqual(runs + 1, len(self.helm.runs))

    def test_one_cluster_is_looked_at_by_one_thread(self) -> None:
        def sync(release: str) -> bool:
            self.synced.append(f"{release} begins")
            if len(self.synced) == 1:
                self.now += 5
                self.prompts.handle_event({"metadata": {"name": "a"}})
                # What another thread does meanwhile.
                self.prompts.reconcile_waiting()
            self.synced.append(f"{release} ends")
            return False

        self.prompts = watch_trigger.WatchTriggers(
            sync, self.confirmed.append, clock=lambda: self.now
        )
        for release in ("a", "b"):
            self.visit(release)
            self.prompts.handle_event({"metadata": {"name": release}})
        self.prompts.reconcile_waiting()
        expected = ["a begins", "b begins", "b ends", "a ends", "a begins", "a ends"]
        self.assertEqual(expected, self.synced)

    def test_a_first_look_is_not_kept_when_things_have_changed(self) -> None:
        self.create()
        self.capi_converges()
        self.status_task()
        self.assertNotEqual(("", {}), self.looks())
        self.break_a_machine()
        self.sync()
        self.assertEqual("", self.looks()[0])
        self.capi_converges()
        self.status_task()
        self.assertEqual("CREATE_IN_PROGRESS", self.cluster().status)

    def test_what_is_late_is_not_failed_out_of_turn(self) -> None:
        self.create()
        self.make_late()
        self.sync()
        self.assertEqual("CREATE_IN_PROGRESS", self.cluster().status)
        self.status_task()
        self.assertEqual("CREATE_FAILED", self.cluster().status)

    def test_deletions_are_left_to_magnums_own_task(self) -> None:
        self.settled()
        self.delete()
        self.capi_deletes()
        calls = len(self.kube.calls)
        self.sync()
        self.assertEqual(calls, len(self.kube.calls))
        self.assertEqual("DELETE_IN_PROGRESS", self.cluster().status)
