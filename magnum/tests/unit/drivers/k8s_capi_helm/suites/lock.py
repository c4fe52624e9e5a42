# SPDX-License-Identifier: Apache-2.0
"""What the Lease of a release promises as a lock: one holder, lost before it is taken."""

from __future__ import annotations

import contextlib
import threading

from magnum.drivers.k8s_capi_helm.lease import ReleaseLeases
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm.suites.release_lease import (
    Clock,
    DURATION,
    operation,
    OperationsSuite,
    RELEASE,
)


class LockTests(OperationsSuite):
    """The promises of the lock."""

    def test_a_lock_has_one_holder(self) -> None:
        clock = Clock()
        one, namespace = self.opened("one")
        two = self.conductor("two", clock)
        with one.acquire(namespace, RELEASE, wait=0) as hold:
            self.assertFalse(hold.is_lost())
            self.assertTrue(hold.record.holder.startswith("one/"))
            error = self.assertBusy(two, namespace, wait=10)
            self.assertIn("one/", error.detail)
            self.assertTrue(1010 <= clock.now < 1012, clock.now)
        self.assertEqual("", one.read(namespace, RELEASE).holder)
        with two.acquire(namespace, RELEASE, wait=0) as hold:
            self.assertTrue(hold.record.holder.startswith("two/"))

    def test_two_threads_of_one_conductor_are_two_holders(self) -> None:
        one, namespace = self.opened()
        with one.acquire(namespace, RELEASE, wait=0):
            self.assertBusy(one, namespace, wait=0)

    def test_who_waits_gets_it_when_it_is_given_back(self) -> None:
        clock = Clock()
        one, namespace = self.opened("one")
        two = self.conductor("two", clock)
        first = contextlib.ExitStack()
        first.enter_context(one.acquire(namespace, RELEASE, wait=0))
        clock.on_pause.append(first.close)
        with two.acquire(namespace, RELEASE, wait=30) as hold:
            self.assertFalse(hold.is_lost())
        self.assertTrue(clock.now < 1010, clock.now)

    def test_an_exception_gives_the_lock_back(self) -> None:
        one, namespace = self.opened()

        def fail() -> None:
            with one.acquire(namespace, RELEASE, wait=0):
                raise KeyError("of the body")

        self.assertRaises(KeyError, fail)
        self.assertEqual("", one.read(namespace, RELEASE).holder)

    def test_a_dead_holder_is_followed_after_its_lease(self) -> None:
        clock, namespace = Clock(), self.dead_holder()
        two = self.conductor("two", clock)
        # Other conductors' clocks and the times in the Lease do not matter: only what is seen.
        self.assertBusy(two, namespace, wait=0)
        clock.now += DURATION - 1
        self.assertBusy(two, namespace, wait=0)
        clock.now += 2
        with two.acquire(namespace, RELEASE, wait=0) as hold:
            self.assertFalse(hold.is_lost())

    def test_a_dead_holder_is_followed_while_waiting(self) -> None:
        clock, namespace = Clock(), self.dead_holder()
        with self.conductor("two", clock).acquire(namespace, RELEASE, wait=2 * DURATION):
            self.assertTrue(DURATION < clock.now - 1000 < DURATION + 5, clock.now)

    def test_a_renewed_lease_is_not_taken(self) -> None:
        mine, theirs = Clock(), Clock(5.0)
        one, namespace = self.opened("one", mine)
        two = self.conductor("two", theirs)
        with one.acquire(namespace, RELEASE, wait=0) as hold:
            for _ in range(5):
                self.assertBusy(two, namespace, wait=0)
                theirs.now += DURATION * 0.9
                mine.now += DURATION * 0.7
                self.assertFalse(hold.is_lost())
                hold.renew()
            self.assertBusy(two, namespace, wait=0)

    def test_records_are_written_while_the_lock_is_held(self) -> None:
        one, namespace = self.opened()
        with one.acquire(namespace, RELEASE, wait=0) as hold:
            self.conductor("two").add(namespace, RELEASE, operation("a"))
            hold.renew()
            self.assertEqual((operation("a"),), hold.record.operations)
            self.assertFalse(hold.is_lost())
        self.assertEqual((operation("a"),), one.read(namespace, RELEASE).operations)

    def test_who_cannot_renew_loses_it_before_others_may_take_it(self) -> None:
        clock = Clock()
        one, namespace = self.opened("one", clock)
        with one.acquire(namespace, RELEASE, wait=0) as hold:
            clock.now += DURATION * 0.7
            self.assertFalse(hold.is_lost())
            clock.now += DURATION * 0.1
            self.assertTrue(hold.is_lost())

    def test_a_frozen_holder_knows_when_it_wakes_up(self) -> None:
        mine, theirs = Clock(), Clock()
        one, namespace = self.opened("one", mine)
        two = self.conductor("two", theirs)
        with one.acquire(namespace, RELEASE, wait=0) as hold:
            self.assertBusy(two, namespace, wait=0)
            theirs.now += DURATION + 1
            with two.acquire(namespace, RELEASE, wait=0) as other:
                # Even with a clock that stood still, the next renewal tells.
                hold.renew()
                self.assertTrue(hold.is_lost())
                self.assertFalse(other.is_lost())
                self.assertTrue(one.read(namespace, RELEASE).holder.startswith("two/"))
        self.assertEqual("", one.read(namespace, RELEASE).holder)

    def test_who_lost_it_gives_nothing_back(self) -> None:
        mine, theirs = Clock(), Clock()
        one, namespace = self.opened("one", mine)
        two = self.conductor("two", theirs)
        later = contextlib.ExitStack()
        with one.acquire(namespace, RELEASE, wait=0):
            self.assertBusy(two, namespace, wait=0)
            theirs.now += DURATION + 1
            later.enter_context(two.acquire(namespace, RELEASE, wait=0))
        self.assertTrue(one.read(namespace, RELEASE).holder.startswith("two/"))
        later.close()

    def test_the_lease_that_goes_away_is_lost(self) -> None:
        one, namespace = self.opened()
        with one.acquire(namespace, RELEASE, wait=0) as hold:
            self.kube.delete(names.LEASE, namespace, f"{RELEASE}-magnum")
            hold.renew()
            self.assertTrue(hold.is_lost())

    def test_the_lock_is_renewed_by_itself(self) -> None:
        namespace = self.make_namespace()
        one = ReleaseLeases(self.kube, holder="one", lease_duration=1)
        one.open(namespace, RELEASE, cluster_uuid="u", project_id="p")
        renewed = threading.Event()
        with one.acquire(namespace, RELEASE, wait=0) as hold:
            name = f"{RELEASE}-magnum"
            first = self.kube.get(names.LEASE, namespace, name)["spec"]["renewTime"]
            for _ in range(100):
                if self.kube.get(names.LEASE, namespace, name)["spec"]["renewTime"] != first:
                    renewed.set()
                    break
                renewed.wait(0.05)
            self.assertTrue(renewed.is_set())
            self.assertFalse(hold.is_lost())
