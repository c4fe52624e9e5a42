# SPDX-License-Identifier: Apache-2.0
"""The Lease of a release, on a management cluster in memory that can fail."""

from __future__ import annotations

import time
from typing import Any

import testtools

from magnum.drivers.k8s_capi_helm import deadline, errors, lease
from magnum.drivers.k8s_capi_helm.kube.http.request import unreachable
from magnum.drivers.k8s_capi_helm.model import fair_order, names
from magnum.tests.unit.drivers.k8s_capi_helm.fakes import FakeKube
from magnum.tests.unit.drivers.k8s_capi_helm.suites import lock, release_lease


class TestRecord(release_lease.RecordTests, testtools.TestCase):
    """Nothing that was written is lost."""

    def setUp(self) -> None:
        super().setUp()
        self.kube = FakeKube()


class TestLock(lock.LockTests, testtools.TestCase):
    """There is one holder."""

    def setUp(self) -> None:
        super().setUp()
        self.kube = FakeKube()


class TestUnconfirmed(release_lease.OperationsSuite, testtools.TestCase):
    """A change of which nobody knows whether it arrived, because the answer was lost."""

    def setUp(self) -> None:
        super().setUp()
        self.kube = FakeKube()

    def lose_the_answer(self, *, arrives: bool) -> None:
        replace = self.kube.replace

        def lost(kind: names.Kind, manifest: Any) -> Any:
            self.kube.replace = replace  # type: ignore[method-assign]
            if arrives:
                replace(kind, manifest)
            raise unreachable("replace Lease: read timed out")

        self.kube.replace = lost  # type: ignore[method-assign]

    def test_what_has_arrived_is_written_down(self) -> None:
        one, namespace = self.opened()
        self.lose_the_answer(arrives=True)
        record = one.add(namespace, release_lease.RELEASE, release_lease.operation("a"))
        self.assertEqual((release_lease.operation("a"),), record.operations)

    def test_what_a_verdict_leaves_is_written_once(self) -> None:
        one, namespace = self.opened()
        judged = one.add(namespace, release_lease.RELEASE, release_lease.operation("a"))
        self.lose_the_answer(arrives=True)
        record = one.record_verdict(
            namespace,
            release_lease.RELEASE,
            judged,
            ids=frozenset({"a"}),
            same_version=False,
            ready_fingerprint="f",
        )
        self.assertEqual(((), "f"), (record.operations, record.ready_fingerprint))

    def test_what_has_not_is_not(self) -> None:
        one, namespace = self.opened()
        self.lose_the_answer(arrives=False)
        add = (one.add, namespace, release_lease.RELEASE, release_lease.operation("a"))
        self.assertRaises(errors.ManagementUnreachable, *add)
        self.assertEqual((), one.read(namespace, release_lease.RELEASE).operations)

    def test_a_lock_is_taken_after_a_lost_answer(self) -> None:
        """Also where the Lease was read a moment ago, so that taking it begins with a write."""
        for arrives in (True, False):
            one, namespace = self.opened()
            one.read(namespace, release_lease.RELEASE)
            self.lose_the_answer(arrives=arrives)
            with one.acquire(namespace, release_lease.RELEASE, wait=5) as hold:
                self.assertFalse(hold.is_lost())


class TestCrowd(release_lease.OperationsSuite, testtools.TestCase):
    """What the lock does while many others write down their requests."""

    def setUp(self) -> None:
        super().setUp()
        self.kube = FakeKube()

    def crowd(self, namespace: str, others: int) -> None:
        """Have so many requests written down, each between a look at the Lease and its change."""
        other, left = self.conductor("other"), list(range(others))

        def overtake(verb: str, kind: names.Kind, name: str) -> None:
            if (verb, kind) == ("replace", names.LEASE) and left:
                one = left.pop()
                self.kube.before = None
                other.add(
                    namespace, release_lease.RELEASE, release_lease.operation(f"resize-{one}")
                )
                self.kube.before = overtake

        self.kube.before = overtake

    def test_the_lock_is_given_back(self) -> None:
        one, namespace = self.opened()
        with one.acquire(namespace, release_lease.RELEASE, wait=0):
            self.crowd(namespace, 30)
        record = one.read(namespace, release_lease.RELEASE)
        self.assertEqual(("", 30), (record.holder, len(record.operations)))

    def test_a_request_that_many_others_overtake_is_written_down(self) -> None:
        one, namespace = self.opened()
        self.crowd(namespace, 60)
        one.add(namespace, release_lease.RELEASE, release_lease.operation("mine"))
        ids = [entry.id for entry in one.read(namespace, release_lease.RELEASE).operations]
        self.assertEqual((61, "mine"), (len(ids), ids[-1]))

    def test_a_free_lock_is_taken_by_who_does_not_wait(self) -> None:
        """Others who write are no holder; who does not wait would leave a lock that nobody has."""
        one, namespace = self.opened()
        self.crowd(namespace, 10)
        with one.acquire(namespace, release_lease.RELEASE, wait=0) as hold:
            self.assertEqual(10, len(hold.record.operations))

    def test_nobody_writes_for_ever(self) -> None:
        clock = release_lease.Clock()
        one, namespace = self.opened("one", clock)
        with one.acquire(namespace, release_lease.RELEASE, wait=0):
            self.crowd(namespace, 100_000)
        self.kube.before = None
        self.assertNotEqual("", one.read(namespace, release_lease.RELEASE).holder)
        self.assertTrue(clock.now < 1000 + release_lease.DURATION, clock.now)


class TestWithoutTheManagementCluster(release_lease.OperationsSuite, testtools.TestCase):
    """What the lock does while the management cluster does not answer."""

    def setUp(self) -> None:
        super().setUp()
        self.kube = FakeKube()

    def test_the_holder_goes_on_for_a_while_and_then_stops(self) -> None:
        clock = release_lease.Clock()
        one, namespace = self.opened("one", clock)
        with one.acquire(namespace, release_lease.RELEASE, wait=0) as hold:
            self.kube.unreachable = True
            clock.now += release_lease.DURATION * 0.5
            self.assertRaises(errors.ManagementUnreachable, hold.renew)
            self.assertFalse(hold.is_lost())
            clock.now += release_lease.DURATION * 0.3
            self.assertTrue(hold.is_lost())
        self.kube.unreachable = False
        self.assertNotEqual("", one.read(namespace, release_lease.RELEASE).holder)

    def test_the_end_passes_although_nothing_can_be_given_back(self) -> None:
        one, namespace = self.opened()
        with one.acquire(namespace, release_lease.RELEASE, wait=0):
            self.kube.unreachable = True
        self.kube.unreachable = False
        self.assertNotEqual("", one.read(namespace, release_lease.RELEASE).holder)

    def test_a_lost_answer_does_not_lock_us_out(self) -> None:
        one, namespace = self.opened()
        lost = []

        def lose_the_first_answer(verb: str, kind: names.Kind, name: str) -> None:
            if verb == "replace" and not lost:
                lost.append(name)
                self.kube.before = None
                found = self.kube.get(names.LEASE, namespace, name)
                written = {**found, "spec": dict(written_by_us)}
                self.kube.replace(names.LEASE, written)
                raise unreachable("the answer was lost")

        written_by_us: dict[str, str] = {}
        original = self.kube.replace

        def replace(kind: names.Kind, manifest: dict) -> dict:
            written_by_us.update(manifest["spec"])
            return original(kind, manifest)

        self.kube.replace = replace
        self.kube.before = lose_the_first_answer
        with one.acquire(namespace, release_lease.RELEASE, wait=5) as hold:
            self.assertFalse(hold.is_lost())
        self.assertEqual(1, len(lost))


class TestRequestsThatWait(release_lease.OperationsSuite, testtools.TestCase):
    """Requests of one project that wait for locks, which others hold."""

    def setUp(self) -> None:
        super().setUp()
        self.kube = FakeKube()
        self.namespace = self.dead_holder()
        self.another = self.dead_holder()
        self.depth = self.deepest = 0
        self.now = 0.0
        self.leases = lease.ReleaseLeases(
            self.kube,
            holder="one",
            lease_duration=release_lease.DURATION,
            clock=lambda: self.now,
            pause=self.pause,
        )

    def pause(self, seconds: float) -> None:
        """While one waits, another thread has the next request of the same project."""
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)
        if self.depth < 20:
            self.ask(self.namespace)
        self.depth -= 1
        self.now += seconds

    def ask(self, namespace: str) -> None:
        self.assertBusy(self.leases, namespace, wait=0.5)

    def test_few_of_a_project_wait(self) -> None:
        with deadline.end_at(time.monotonic() + 60):
            self.ask(self.namespace)
        self.assertEqual(fair_order.MAX_WAITING_REQUESTS, self.deepest)

    def test_those_of_another_project_wait_all_the_same(self) -> None:
        with deadline.end_at(time.monotonic() + 60):
            self.ask(self.another)
        self.assertEqual(1 + fair_order.MAX_WAITING_REQUESTS, self.deepest)

    def test_status_tasks_wait_in_any_number(self) -> None:
        self.ask(self.namespace)
        self.assertEqual(20, self.deepest)

    def test_who_has_waited_leaves_the_place(self) -> None:
        for _ in range(2):
            self.deepest = 0
            with deadline.end_at(time.monotonic() + 60):
                self.ask(self.namespace)
            self.assertEqual(fair_order.MAX_WAITING_REQUESTS, self.deepest)
