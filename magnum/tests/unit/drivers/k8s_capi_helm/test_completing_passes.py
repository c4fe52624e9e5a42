# SPDX-License-Identifier: Apache-2.0
"""The two passes that end an operation: few requests, and neither believes what may be behind."""

from __future__ import annotations

from collections.abc import Callable
import contextlib
import dataclasses

from magnum.drivers.k8s_capi_helm import lease
from magnum.drivers.k8s_capi_helm.handlers.tasks import watch_trigger
from magnum.drivers.k8s_capi_helm.kube.watch import informers
from magnum.drivers.k8s_capi_helm.model import names
from magnum.drivers.k8s_capi_helm.reconcile.observe import observe
from magnum.tests.unit.drivers.k8s_capi_helm import builders, driver_case
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import NAMESPACE, RELEASE
from magnum.tests.unit.drivers.k8s_capi_helm.test_status_task_with_watches import WatchingWorld

#: The goal: what magnum-capi-helm asks for in its one pass.
MOST = 6


class CompletingWorld(WatchingWorld):
    """A cluster of which everything is in place, a while after anything was written about it."""

    def setUp(self) -> None:
        super().setUp()
        leases = lease.ReleaseLeases(
            self.kube, holder="test", lease_duration=60, clock=lambda: self.now
        )
        self.ports = dataclasses.replace(self.ports, leases=leases)
        self.create()
        self.catch_up()
        self.status_task(2)
        self.later()
        self.asked()

    def later(self) -> None:
        """Half a minute, and the watches have heard of everything."""
        self.now += 30
        self.catch_up()

    def in_place(self) -> None:
        self.capi_converges()
        self.catch_up()

    def asked(self) -> list[str]:
        """What was asked about the cluster since the last question."""
        found = [f"{verb} {kind}" for verb, kind, namespace, _ in self.kube.calls if namespace]
        found += ["read the release"] * self.helm.reads
        self.kube.calls.clear()
        self.helm.reads = 0
        return found

    def first_pass(self) -> None:
        """The pass of a watch event, and what the watches hear of it."""
        self.assertTrue(watch_trigger.sync(self.ports, driver_case.CONF, RELEASE))
        self.now += 2
        self.catch_up()

    def second_pass(self) -> str:
        """Magnum's own job; the status after it."""
        with contextlib.suppress(AssertionError):
            self.status_task()
        return str(self.cluster().status)


class TestRequests(CompletingWorld):
    def test_a_create(self) -> None:
        self.in_place()
        self.asked()
        self.first_pass()
        self.assertEqual(["replace Lease"], self.asked())
        self.assertEqual("CREATE_COMPLETE", self.second_pass())
        second = self.asked()
        self.assertLessEqual(1 + len(second), MOST, second)

    def test_a_resize(self) -> None:
        self.in_place()
        self.status_task(2)
        self.later()
        self.resize(3)
        self.later()
        self.status_task(2)
        self.in_place()
        self.later()
        self.asked()
        self.first_pass()
        self.assertEqual("UPDATE_COMPLETE", self.second_pass())
        found = self.asked()
        self.assertLessEqual(len(found), MOST, found)


class TestTruth(CompletingWorld):
    """Two snapshots as before: what nodes are made of is read, the record is the current one."""

    def setUp(self) -> None:
        super().setUp()
        self.in_place()
        self.first_pass()

    def change(self, kind: names.Kind, change: Callable[[builders.Json], object]) -> None:
        """Something that the watches do not hear of."""
        thing = self.kube.list(kind, NAMESPACE)[-1]
        change(thing)
        self.kube.put(kind, thing)

    def test_what_nodes_are_made_of_is_read(self) -> None:
        for kind in (names.CLUSTER, names.CONTROL_PLANE, names.MACHINE_DEPLOYMENT, names.MACHINE):
            thing = self.kube.list(kind, NAMESPACE)[-1]
            self.kube.remove(kind, NAMESPACE, thing["metadata"]["name"])
            self.assertEqual("CREATE_IN_PROGRESS", self.second_pass(), kind)
            self.kube.put(kind, thing)
            self.catch_up()
        self.status_task(2)
        self.assertEqual("CREATE_COMPLETE", self.cluster().status)

    def test_what_the_watches_know_of_the_rest_counts(self) -> None:
        for kind in (names.HELM_RELEASE, names.OPENSTACK_CLUSTER):
            self.assertIn(kind, observe.SELF_REPORTED)
            thing = self.kube.list(kind, NAMESPACE)[-1]
            broken = {**thing, "status": {}}
            self.kube.put(kind, broken)
            self.catch_up()
            self.assertEqual("CREATE_IN_PROGRESS", self.second_pass(), kind)
            self.kube.put(kind, thing)
            self.catch_up()

    def test_what_is_read_and_what_is_not_are_all_that_a_snapshot_needs(self) -> None:
        self.asked()
        self.second_pass()
        read = {name.split()[1] for name in self.asked()} & {kind.name for kind in informers.KINDS}
        self.assertEqual({"Cluster", "KubeadmControlPlane", "MachineDeployment", "Machine"}, read)

    def test_a_watch_that_is_too_old_is_none(self) -> None:
        self.asked()
        self.now += 46
        self.assertEqual("CREATE_COMPLETE", self.second_pass())
        self.assertIn("list HelmRelease", self.asked())

    def test_a_lease_that_was_written_meanwhile_ends_nothing(self) -> None:
        """The watch of Leases is behind, and another conductor had the lock."""
        other = lease.ReleaseLeases(self.kube, holder="other", lease_duration=60)
        with other.acquire(NAMESPACE, RELEASE, wait=0):
            pass
        self.assertEqual("CREATE_IN_PROGRESS", self.second_pass())
        self.catch_up()
        self.asked()
        self.assertEqual("CREATE_COMPLETE", self.second_pass())
        self.assertIn("read the release", self.asked())

    def test_a_lease_that_was_written_between_two_writes_of_ours_is_seen(self) -> None:
        """The verdict's own write came after that of another conductor, which ran Helm."""
        self.change(names.MACHINE, lambda one: one["metadata"].update(uid="another"))
        self.catch_up()
        other = lease.ReleaseLeases(self.kube, holder="other", lease_duration=60)

        def meanwhile(verb: str, kind: names.Kind, name: str) -> None:
            if (verb, kind) == ("replace", names.LEASE):
                self.kube.before = None
                other.remember(NAMESPACE, RELEASE, chart_source="other")

        self.kube.before = meanwhile
        self.status_task()
        self.assertIsNone(self.kube.before)
        self.catch_up()
        self.asked()
        self.status_task()
        self.assertIn("read the release", self.asked())

    def test_a_release_is_read_again_in_the_end(self) -> None:
        """However often verdicts are written in the meantime."""
        self.asked()
        reads = 0
        for turn in range(12):
            self.now += 30
            self.change(names.MACHINE, lambda one, turn=turn: one["metadata"].update(uid=f"{turn}"))
            self.catch_up()
            watch_trigger.sync(self.ports, driver_case.CONF, RELEASE)
            reads += self.asked().count("read the release")
        self.assertEqual(1, reads)
