# SPDX-License-Identifier: Apache-2.0
"""Watches in memory: what they know, when that is too old, and what happens when they break."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import logging
import threading
from typing import Any

import fixtures
import testtools

from magnum.drivers.k8s_capi_helm import errors, status
from magnum.drivers.k8s_capi_helm.kube.watch import cache, snapshot
from magnum.drivers.k8s_capi_helm.kube.watch import informers as kube_informers
from magnum.drivers.k8s_capi_helm.kube.watch.transform import transform
from magnum.drivers.k8s_capi_helm.model import Json, names, Observed
from magnum.tests.unit.drivers.k8s_capi_helm import builders, fakes, test_snapshot
from magnum.tests.unit.drivers.k8s_capi_helm.suites import informers as suites_informers

#: Seconds that nothing takes.
LONG = 60.0


class TestWatching(suites_informers.WatchingTests, testtools.TestCase):
    """The promises, kept in memory, and those that need a clock."""

    def setUp(self) -> None:
        super().setUp()
        self.kube = fakes.FakeKube()
        self.kube.apply(names.NAMESPACE, {"metadata": {"name": "default"}})
        self.now = 1000.0
        self.stopped = threading.Event()

    def long_ago(self) -> str:
        self.kube.compact()
        since = self.kube.snapshot(names.LEASE, lambda thing: thing)[1]
        self.kube.compact()
        return since

    def timed(self) -> tuple[kube_informers.Informers, str]:
        """Watches by this test's clock that know one Lease, and its namespace."""
        namespace = self.make_namespace()
        self.make_lease(namespace)
        watching = self.watching(clock=lambda: self.now)
        self.rounds(watching)
        return watching, namespace

    def asked(self, watching: kube_informers.Informers, namespace: str) -> int:
        """How often the management cluster was asked for a list."""
        before = len(self.kube.calls)
        self.assertEqual(1, len(watching.view().list(names.LEASE, namespace, None)))
        return len(self.kube.calls) - before

    def test_what_is_fresh_is_not_asked_for(self) -> None:
        watching, namespace = self.timed()
        self.now += suites_informers.STALENESS
        self.assertEqual(suites_informers.STALENESS, watching.view().behind)
        self.assertEqual(0, self.asked(watching, namespace))

    def test_what_is_too_old_is_asked_for(self) -> None:
        watching, namespace = self.timed()
        self.now += suites_informers.STALENESS + 0.1
        self.assertEqual((False, 0.0), (watching.view().watched, watching.view().behind))
        self.assertEqual(1, self.asked(watching, namespace))

    def test_the_end_of_a_watch_makes_it_fresh_again(self) -> None:
        watching, namespace = self.timed()
        for _ in range(5):
            self.now += suites_informers.STALENESS / 2
            self.rounds(watching)
            self.assertEqual(0.0, watching.view().behind)
        self.assertEqual(0, self.asked(watching, namespace))

    def test_a_list_is_as_old_as_its_question(self) -> None:
        watching, _ = self.timed()
        self.kube.place = "there"

        def slow(verb: str, kind: names.Kind, name: str) -> None:
            self.now += 7 if verb == "list" else 0

        self.kube.before = slow
        self.rounds(watching)
        self.assertEqual(7.0, watching.view().behind)

    def test_namespaces_that_are_not_watched_are_asked_for(self) -> None:
        watching, _ = self.timed()
        self.kube.apply(names.LEASE, {"metadata": {"name": "one", "namespace": "default"}})
        self.assertEqual(1, self.asked(watching, "default"))
        self.assertIsNotNone(watching.view().get(names.LEASE, "default", "one"))

    def test_another_kubeconfig_is_another_place(self) -> None:
        watching, namespace = self.timed()
        self.kube.place = "there"
        self.assertEqual(1, self.asked(watching, namespace))
        self.rounds(watching)
        self.assertEqual(0, self.asked(watching, namespace))

    def test_a_management_cluster_that_is_away(self) -> None:
        watching, namespace = self.timed()
        self.kube.unreachable = True
        [watch] = watching.watches
        pauses = [watch.list_and_watch() for _ in range(8)]
        self.assertTrue(all(pauses), pauses)
        self.assertLessEqual(max(pauses), 30.0)
        self.assertLess(pauses[0], 1.01)
        self.now += suites_informers.STALENESS + 1
        view = watching.view()
        self.assertRaises(errors.ManagementUnreachable, view.list, names.LEASE, namespace, None)
        self.kube.unreachable = False
        self.rounds(watching)
        self.assertEqual(0, self.asked(watching, namespace))

    def test_a_watch_that_breaks_lists_again(self) -> None:
        watching, namespace = self.timed()

        def broken(verb: str, kind: names.Kind, name: str) -> None:
            if verb == "event":
                raise errors.ManagementUnreachable("Away.", "connection reset")

        self.kube.before = broken
        self.make_lease(namespace, "two")
        [watch] = watching.watches
        self.assertGreater(watch.list_and_watch(), 0.0)
        self.kube.before = None
        calls = len(self.kube.calls)
        self.rounds(watching)
        self.assertEqual(["list"], [call[0] for call in self.kube.calls[calls:]])
        self.assertEqual(2, len(self.same(watching, namespace)))

    def test_without_the_right_to_watch_lists_become_rare_and_it_is_said_once(self) -> None:
        """A list that works does not make up for a watch that does not."""
        watching, namespace = self.timed()

        def refused(verb: str, kind: names.Kind, name: str) -> None:
            if verb == "watch":
                raise errors.ManagementRefused("No.", "HTTP 403: leases cannot be watched")

        self.kube.before = refused
        self.kube.calls.clear()
        [watch] = watching.watches
        log = self.useFixture(fixtures.FakeLogger(level=logging.WARNING))
        for _ in range(200):
            self.now += watch.list_and_watch()
            if self.now > 1000 + 3600:
                break
        lists = [call for call in self.kube.calls if call[0] == "list"]
        # Some while the pauses grow, then one in five minutes.
        self.assertIn(len(lists), range(15, 40))
        self.assertEqual(1, log.output.count("are not watched now"), log.output)
        self.assertIn("HTTP 403: leases cannot be watched", log.output)
        self.now += suites_informers.STALENESS + 1
        self.assertEqual(1, self.asked(watching, namespace))
        self.kube.before = None
        self.rounds(watching, 2)
        self.assertEqual(0, self.asked(watching, namespace))

    def test_what_may_not_even_be_listed_is_tried_seldom(self) -> None:
        def refused(verb: str, kind: names.Kind, name: str) -> None:
            if verb in ("list", "watch"):
                raise errors.ManagementRefused("No.", "HTTP 403: leases cannot be listed")

        [watch] = self.watching(clock=lambda: self.now).watches
        self.kube.before = refused
        pauses = [watch.list_and_watch() for _ in range(20)]
        self.assertLess(pauses[0], 1.01)
        self.assertGreater(min(pauses[10:]), 149.0)
        self.assertLessEqual(max(pauses), 300.0)

    def paused(
        self, watching: kube_informers.Informers
    ) -> tuple[threading.Thread, threading.Semaphore]:
        """The thread of a watch that pauses for minutes, and how often it has asked since then."""
        [watch] = watching.watches
        asked = threading.Semaphore(0)

        def refused(verb: str, kind: names.Kind, name: str) -> None:
            if verb == "list":
                asked.release()
            if verb in ("list", "watch"):
                raise errors.NotAllowed("No.", "HTTP 403: leases cannot be listed")

        self.kube.before = refused
        watching.view()
        pauses = [watch.list_and_watch() for _ in range(20)]
        self.assertGreater(pauses[-1], 149.0)
        for _ in range(20):
            asked.acquire()
        thread = threading.Thread(target=watch.run, args=(self.stopped,), daemon=True)
        thread.start()
        self.addCleanup(self.end, watching, thread)
        # The first look found another kubeconfig than none, which ends one pause.
        for _ in range(2):
            self.assertTrue(asked.acquire(timeout=20))
        return thread, asked

    def end(self, watching: kube_informers.Informers, thread: threading.Thread) -> None:
        self.stopped.set()
        watching.stop()
        thread.join(20)
        self.assertFalse(thread.is_alive())

    def test_another_kubeconfig_ends_the_long_pause_after_a_refusal(self) -> None:
        watching = self.watching(clock=lambda: self.now)
        _, asked = self.paused(watching)
        watching.view()
        self.assertFalse(asked.acquire(timeout=0.5), "nothing has changed")
        self.kube.place = "there"
        watching.view()
        # The place is a new one, and so are the pauses.
        for _ in range(3):
            self.assertTrue(asked.acquire(timeout=20), "the watch still pauses")

    def test_a_kubeconfig_that_is_mended_ends_the_pause_too(self) -> None:
        watching = self.watching(clock=lambda: self.now)
        _, asked = self.paused(watching)
        whole = self.kube.identity

        def unusable() -> str:
            raise errors.ManagementRefused("No kubeconfig.", "it is gone")

        self.kube.identity = unusable  # type: ignore[method-assign]
        watching.view()
        self.assertFalse(asked.acquire(timeout=0.5), "there is nothing to ask with")
        self.kube.identity = whole  # type: ignore[method-assign]
        watching.view()
        self.assertTrue(asked.acquire(timeout=20), "the watch still pauses")

    def test_the_end_ends_the_pause_too(self) -> None:
        watching = self.watching(clock=lambda: self.now)
        thread, _ = self.paused(watching)
        self.stopped.set()
        watching.stop()
        thread.join(20)
        self.assertFalse(thread.is_alive())

    def test_who_is_told_to_stop_while_asking_does_not_pause(self) -> None:
        """Somebody else may have taken the wake: one that was stopped, and begun anew."""
        [watch] = self.watching(clock=lambda: self.now).watches

        def refused(verb: str, kind: names.Kind, name: str) -> None:
            raise errors.NotAllowed("No.", "HTTP 403: leases cannot be listed")

        self.kube.before = refused
        self.assertGreater([watch.list_and_watch() for _ in range(20)][-1], 149.0)

        def stopping(verb: str, kind: names.Kind, name: str) -> None:
            self.stopped.set()
            refused(verb, kind, name)

        self.kube.before = stopping
        thread = threading.Thread(target=watch.run, args=(self.stopped,), daemon=True)
        thread.start()
        thread.join(20)
        self.assertFalse(thread.is_alive())

    def test_who_cannot_be_told_hears_of_the_next(self) -> None:
        told = list[str]()

        def deaf(thing: Json) -> None:
            told.append(thing["metadata"]["name"])
            raise errors.ManagementUnreachable("Not that.", "not that")

        namespace = self.make_namespace()
        watching = self.watching(self.forgetful(), told=deaf)
        self.rounds(watching)
        for name in ("listed", "too"):
            self.make_lease(namespace, name)
        self.rounds(watching, 2)
        self.assertEqual(["listed", "too"], sorted(told))
        for name in ("watched", "also"):
            self.make_lease(namespace, name)
        self.rounds(watching)
        self.assertEqual(["also", "watched"], sorted(told[2:]))

    def test_another_trouble_is_said_too(self) -> None:
        [watch] = self.watching(clock=lambda: self.now).watches
        log = self.useFixture(fixtures.FakeLogger(level=logging.WARNING))
        self.kube.unreachable = True
        pauses = [watch.list_and_watch() for _ in range(3)]

        def refused(verb: str, kind: names.Kind, name: str) -> None:
            if verb in ("list", "watch"):
                raise errors.NotAllowed("No.", "HTTP 403: leases cannot be listed")

        self.kube.unreachable, self.kube.before = False, refused
        pauses += [watch.list_and_watch() for _ in range(3)]
        self.assertTrue(all(pauses), pauses)
        self.assertEqual(2, log.output.count("are not watched now"), log.output)
        self.assertIn("HTTP 403: leases cannot be listed", log.output)

    def test_from_where_nothing_can_be_followed_again_and_again(self) -> None:
        """410 Gone once is no trouble; after every list it is, and lists do not come in a row."""
        watching, _ = self.timed()

        def gone(verb: str, kind: names.Kind, name: str) -> None:
            if verb == "watch":
                raise errors.Conflict("Gone.", "HTTP 410: too old resource version")

        self.kube.before = gone
        log = self.useFixture(fixtures.FakeLogger(level=logging.WARNING))
        [watch] = watching.watches
        pauses = [watch.list_and_watch() for _ in range(40)]
        self.assertEqual([0.0, 0.0], pauses[:2])
        self.assertGreater(min(pauses[2::2]), 0.0)
        self.assertGreater(sum(pauses), 100.0)
        self.assertEqual(1, log.output.count("are not watched now"), log.output)

    def test_an_outage_of_days(self) -> None:
        [watch] = self.watching(clock=lambda: self.now).watches
        self.kube.unreachable = True
        pauses = [watch.list_and_watch() for _ in range(3000)]
        self.assertLessEqual(max(pauses), 30.0)
        self.assertGreaterEqual(min(pauses[10:]), 15.0)

    def test_everything_is_listed_again_now_and_then(self) -> None:
        watching, _ = self.timed()
        verbs = []
        for _ in range(100):
            self.now += 60
            calls = len(self.kube.calls)
            self.rounds(watching)
            verbs += [call[0] for call in self.kube.calls[calls:]]
        self.assertIn(verbs.count("list"), range(3, 8))
        self.assertGreater(verbs.count("watch"), 90)

    def test_a_management_cluster_that_was_restored_from_a_backup(self) -> None:
        """Its watches tell nothing of what is older than what was asked for, and end well."""
        watching, namespace = self.timed()
        for _ in range(5):
            self.make_lease(namespace, "two")
            self.kube.delete(names.LEASE, namespace, "two")
        self.rounds(watching)
        self.kube.restore()

        def lasting(verb: str, kind: names.Kind, name: str) -> None:
            self.now += 1 if verb == "watch" else 0

        self.kube.before = lasting
        self.rounds(watching, 2)
        self.assertEqual([], watching.view().list(names.LEASE, namespace, None))

    def test_a_quiet_watch_is_believed_when_nothing_has_happened(self) -> None:
        """As of a server that sends no bookmarks."""
        watching, namespace = self.timed()
        self.kube.changes = lambda *args: self.lasting(1)  # type: ignore[method-assign]
        self.kube.calls.clear()
        for _ in range(5):
            self.now += suites_informers.STALENESS / 2
            self.rounds(watching)
            self.assertEqual(0.0, watching.view().behind)
        self.assertEqual({"revision"}, {call[0] for call in self.kube.calls})
        self.assertEqual(0, self.asked(watching, namespace))

    def lasting(self, seconds: float) -> Iterator[tuple[str, Json]]:
        """A watch in which nothing happens."""
        self.now += seconds
        yield from ()

    def test_watches_that_end_at_once_are_not_begun_in_a_row_and_prove_nothing(self) -> None:
        """As through a proxy that lets no stream pass, or while the server stops."""
        watching, _ = self.timed()
        self.kube.changes = lambda *args: self.lasting(0.01)  # type: ignore[method-assign]
        log = self.useFixture(fixtures.FakeLogger(level=logging.WARNING))
        [watch] = watching.watches
        begun, rounds = self.now, 0
        while self.now - begun < 120:
            self.now += watch.list_and_watch()
            rounds += 1
        self.assertLess(rounds, 30)
        self.assertEqual(1, log.output.count("are not watched now"), log.output)
        self.assertIn("ended after 0.0 of 1 seconds", log.output)
        self.assertGreater(watching.view().behind, 0.0)

    def test_a_watch_that_is_cut_off_goes_on_and_proves_nothing(self) -> None:
        """A server ends watches of whoever does not keep up."""
        watching, namespace = self.timed()
        self.make_lease(namespace, "two")
        whole = self.kube.changes

        def cut(*asked: Any) -> Iterator[tuple[str, Json]]:
            self.now += 0.2
            yield next(one for one in whole(*asked) if one[0] != "BOOKMARK")

        self.kube.changes = cut  # type: ignore[method-assign]
        self.kube.calls.clear()
        self.rounds(watching)
        self.assertEqual(2, len(watching.view().list(names.LEASE, namespace, None)))
        self.assertAlmostEqual(0.2, watching.view().behind)
        self.kube.changes = whole  # type: ignore[method-assign]
        self.rounds(watching)
        self.assertEqual(0.0, watching.view().behind)
        self.assertEqual({"watch"}, {call[0] for call in self.kube.calls})

    def test_a_kubeconfig_that_cannot_be_read(self) -> None:
        watching, _ = self.timed()

        def unusable() -> str:
            raise errors.ManagementRefused("No kubeconfig.", "it is gone")

        self.kube.identity = unusable  # type: ignore[method-assign]
        self.assertFalse(watching.view().watched)

    def test_stopped_watches_know_nothing(self) -> None:
        watching, namespace = self.timed()
        watching.stop()
        self.assertEqual(1, self.asked(watching, namespace))

    def test_what_it_gives_out_is_ones_own(self) -> None:
        watching, namespace = self.timed()
        [found] = watching.view().list(names.LEASE, namespace, None)
        found["metadata"]["labels"]["a"] = "b"
        [again] = watching.view().list(names.LEASE, namespace, None)
        self.assertNotIn("a", again["metadata"]["labels"])

    def test_it_is_begun_once(self) -> None:
        begun: list[str] = []
        watching = kube_informers.Informers(
            self.kube,
            staleness=1,
            covers=lambda namespace: True,
            spawn=lambda name, run: begun.append(name),
        )
        self.assertEqual([], begun)
        for _ in range(3):
            watching.start()
        self.assertEqual(len(kube_informers.WATCHED), len(begun))
        self.assertIn("watch-machines", begun)

    def test_a_process_without_a_thread_to_spare_begins_anew_after_a_while(self) -> None:
        begun: list[Callable[[], None]] = []
        served: list[bool] = []
        spare = len(self.kinds) + 1

        def spawn(name: str, run: Callable[[], None]) -> None:
            if len(begun) == spare:
                raise RuntimeError("can't start new thread")
            begun.append(run)

        def serve(stopped: threading.Event) -> None:
            served.append(stopped.is_set())

        watching = kube_informers.Informers(
            self.kube,
            staleness=1,
            covers=lambda namespace: True,
            kinds=self.kinds,
            clock=lambda: self.now,
            spawn=spawn,
        )
        log = self.useFixture(fixtures.FakeLogger(level=logging.ERROR))
        for _ in range(3):
            watching.start(serve=[serve, serve])
            self.now += 5
        self.assertEqual(1, log.output.count("No thread can be started for the watches"))
        self.assertEqual(spare, len(begun))
        # Those that had begun are told to stop, and ask for nothing.
        self.kube.calls.clear()
        begun[-1]()
        self.assertEqual([True], served)
        begun[0]()
        self.assertEqual([], self.kube.calls)
        begun.clear()
        self.now += 30
        spare += 1
        watching.start(serve=[serve, serve])
        self.assertEqual(spare, len(begun))
        begun[-1]()
        self.assertEqual([True, False], served)

    def test_no_watch_begins_before_all_can(self) -> None:
        running = threading.Semaphore(0)
        began: list[bool] = []

        def spawn(name: str, run: Callable[[], None]) -> None:
            threading.Thread(target=run, daemon=True).start()
            began.append(running.acquire(timeout=0.2))

        watching = kube_informers.Informers(
            self.kube, staleness=1, covers=lambda namespace: True, kinds=(), spawn=spawn
        )
        serve = [lambda stopped: running.release()] * 2
        watching.start(serve=serve)
        self.assertEqual([False, False], began)
        for _ in serve:
            self.assertTrue(running.acquire(timeout=20))

    def starting(self) -> tuple[kube_informers.Informers, list[Callable[[], None]]]:
        """Watches that may be waited for, and what their threads run."""
        runs: list[Callable[[], None]] = []
        watching = kube_informers.Informers(
            self.kube,
            staleness=60,
            covers=lambda namespace: True,
            kinds=self.kinds,
            first_lists=LONG,
            spawn=lambda name, run: runs.append(run),
        )
        watching.start()
        return watching, runs

    def test_passes_wait_for_the_first_list_of_each_kind(self) -> None:
        watching, _ = self.starting()
        waited = threading.Event()

        def wait() -> None:
            watching.wait_for_lists()
            waited.set()

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        *others, last = watching.watches
        for watch in others:
            watch.attempted.set()
        self.assertFalse(waited.wait(0.1))
        last.attempted.set()
        self.assertTrue(waited.wait(LONG))
        thread.join()

    def test_a_list_that_fails_is_not_waited_for(self) -> None:
        watching, runs = self.starting()
        stopped = threading.Event()

        def refuse(verb: str, kind: names.Kind, name: str) -> None:
            stopped.set()
            raise errors.NotAllowed("It is not allowed.", "HTTP 403")

        self.kube.before = refuse
        for watch in watching.watches:
            stopped.clear()
            watch.run(stopped)
        watching.wait_for_lists()
        self.assertEqual(len(self.kinds), len(runs))

    def test_watches_that_have_no_threads_are_not_waited_for(self) -> None:
        def refuse(name: str, run: Callable[[], None]) -> None:
            raise RuntimeError("can't start new thread")

        watching = kube_informers.Informers(
            self.kube, staleness=60, covers=lambda namespace: True, first_lists=LONG, spawn=refuse
        )
        watching.start()
        thread = threading.Thread(target=watching.wait_for_lists, daemon=True)
        thread.start()
        thread.join(LONG / 2)
        self.assertFalse(thread.is_alive())

    def test_nothing_is_waited_for_longer_than_its_time(self) -> None:
        watching = kube_informers.Informers(
            self.kube,
            staleness=60,
            covers=lambda namespace: True,
            first_lists=5,
            clock=lambda: self.now,
            spawn=lambda name, run: None,
        )
        watching.start()
        self.now += 5
        watching.wait_for_lists()
        self.assertFalse(any(watch.attempted.is_set() for watch in watching.watches))

    def test_a_thread_ends_when_it_is_told_to(self) -> None:
        runs = []
        watching = kube_informers.Informers(
            self.kube,
            staleness=1,
            covers=lambda namespace: True,
            kinds=self.kinds,
            spawn=lambda name, run: runs.append(run),
        )
        watching.start()
        watching.stop()
        self.kube.calls.clear()
        self.assertIsNone(runs[0]())
        self.assertEqual([], self.kube.calls)


class TestLook(testtools.TestCase):
    """A look does not know where its reader has the objects from."""

    def setUp(self) -> None:
        super().setUp()
        self.kube = test_snapshot.filled()
        self.watching = kube_informers.Informers(
            self.kube,
            staleness=60,
            covers=lambda namespace: namespace == builders.NAMESPACE,
            spawn=lambda name, run: None,
        )
        for watch in self.watching.watches:
            watch.list_and_watch()

    def looks(self) -> tuple[Observed, Observed]:
        place = (builders.NAMESPACE, builders.RELEASE, builders.NOW)
        directly = snapshot.take_snapshot(self.kube, *place)
        calls = len(self.kube.calls)
        watched = snapshot.take_snapshot(self.watching.view(), *place)
        self.assertEqual(calls, len(self.kube.calls))
        return directly, watched

    def test_both_see_the_same(self) -> None:
        directly, watched = self.looks()
        for field in test_snapshot.FIELDS:
            one, other = getattr(directly, field), getattr(watched, field)
            things = (one, other) if isinstance(one, tuple) else ((one,), (other,))
            self.assertEqual(
                [transform(test_snapshot.KINDS[thing["kind"]], thing) for thing in things[0]],
                list(things[1]),
                field,
            )

    def test_both_are_judged_the_same(self) -> None:
        state = builders.state()
        directly, watched = (status.evaluate(look, state, builders.NOW) for look in self.looks())
        self.assertEqual(directly, watched)
        self.assertNotEqual("", watched.fingerprint)

    def test_a_server_that_a_machine_has_left_behind(self) -> None:
        """Whose it was stands in its ownerReferences."""
        left = builders.server("left")
        left["metadata"]["ownerReferences"] = [{"kind": "OpenStackMachine", "name": "left"}]
        self.kube.put(names.OPENSTACK_SERVER, left)
        for watch in self.watching.watches:
            watch.list_and_watch()
        state = builders.state()
        directly, watched = (status.evaluate(look, state, builders.NOW) for look in self.looks())
        self.assertIn("server left of a deleted machine", str(directly.reason))
        self.assertEqual(directly, watched)

    def test_events_of_what_went_well_are_not_kept(self) -> None:
        kept = self.watching.view().list(names.EVENT, builders.NAMESPACE, None)
        self.assertEqual(["FailedProvisioning"] * 2, [one["reason"] for one in kept])
        fine = builders.event("Cluster", builders.RELEASE, "Deleted", "it is")
        store = cache.ObjectCache(names.EVENT, lambda namespace: True)
        self.assertFalse(store.change(fine, is_deleted=False))
        self.assertTrue(store.change(kept[0], is_deleted=False))
        self.assertEqual(kept[:1], store.list(builders.NAMESPACE, None))
        self.assertTrue(store.change(kept[0], is_deleted=True))
        self.assertEqual([], store.list(builders.NAMESPACE, None))

    def test_what_is_long_is_not_kept(self) -> None:
        long = {"kubeadmConfigSpec": {"files": ["x"]}, "replicas": 3}
        plane = {
            "metadata": {"name": "a", "managedFields": ["x"]},
            "spec": long,
            "status": {"v": 1},
        }
        kept = transform(names.CONTROL_PLANE, plane)
        self.assertEqual({"name": "a"}, kept["metadata"])
        self.assertEqual({"replicas": 3}, kept["spec"])
        self.assertEqual({"v": 1}, kept["status"])
        self.assertIn("kubeadmConfigSpec", plane["spec"])
