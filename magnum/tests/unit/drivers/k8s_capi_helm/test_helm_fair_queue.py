# SPDX-License-Identifier: Apache-2.0
"""Runs of helm at once: so many, project by project, and nobody waits longer than he may."""

from __future__ import annotations

import collections
from collections.abc import Callable
import pathlib
import tempfile
import threading
import time

import hypothesis
from hypothesis import strategies as st
import testtools

from magnum.drivers.k8s_capi_helm import deadline, errors
from magnum.drivers.k8s_capi_helm.helm import HelmClient
from magnum.drivers.k8s_capi_helm.helm.fair_queue import FairQueue
from magnum.drivers.k8s_capi_helm.model import fair_order, names
from magnum.tests.unit.drivers.k8s_capi_helm.fakes import FakeKube
from magnum.tests.unit.drivers.k8s_capi_helm.suites import helm

LONG = 60.0


class Site:
    """Threads that want to run helm; runs end when the test says so.

    :ivar running: runs that go on, by project.
    :ivar begun: the project of each run, in the order in which they have begun.
    :ivar chances: projects of which one might have begun, for each of these runs.
    :ivar left: the project of each run that does not wait for its turn.
    """

    def __init__(self, most: int) -> None:
        self.turns = FairQueue(most)
        self.running: collections.Counter[str] = collections.Counter()
        self._most = most
        self.begun: list[str] = []
        self.chances: list[set[str]] = []
        self.left: list[str] = []
        self.most_at_once = 0
        self._changed = threading.Condition()
        self._to_end = 0
        self._asked: list[str] = []
        self._ended = 0
        self.threads: list[threading.Thread] = []

    def ask(self, project: str, *, is_request: bool = False) -> None:
        """One more run of a project; returns when it has begun, stands in its queue, or has left.

        :param is_request: whether it is for a request, and not for a status task.
        """
        self._asked.append(project)
        asked = threading.Event()

        def stop() -> bool:
            asked.set()
            return False

        def run() -> None:
            end = time.monotonic() + LONG if is_request else None
            try:
                with deadline.end_at(end), self.turns.acquire(project, wait=LONG, stop=stop):
                    self._go(project)
                    asked.set()
                    self._last(project)
            except errors.Busy:
                self.left.append(project)
                asked.set()

        thread = threading.Thread(target=run, daemon=True)
        self.threads.append(thread)
        thread.start()
        assert asked.wait(LONG)

    def end_one(self) -> None:
        """Let any run end; returns when another one has begun, if one can."""
        with self._changed:
            before, ended = len(self.begun), self._ended

            def is_over() -> bool:
                return self._ended > ended and (len(self.begun) > before or not self.ready())

            self._to_end += 1
            self._changed.notify_all()
            assert self._changed.wait_for(is_over, LONG)

    def ready(self) -> set[str]:
        """Projects that wait and may begin: the last of the runs is for one that has none."""
        waiting = collections.Counter(self._asked) - collections.Counter(self.begun + self.left)
        total, most = self.running.total(), self._most
        return {
            project
            for project in waiting
            if total < (most if not self.running[project] else max(1, most - 1))
        }

    def end_all(self) -> None:
        with self._changed:
            self._to_end += 10**6
            self._changed.notify_all()
        for thread in self.threads:
            thread.join(LONG)

    def _go(self, project: str) -> None:
        with self._changed:
            self.chances.append(self.ready())
            self.begun.append(project)
            self.running[project] += 1
            self.most_at_once = max(self.most_at_once, self.running.total())
            self._changed.notify_all()

    def _last(self, project: str) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self._to_end > 0, LONG)
            self._to_end -= 1
            self._ended += 1
            self.running[project] -= 1
            self._changed.notify_all()


class TestTurns(testtools.TestCase):
    def site(self, most: int) -> Site:
        site = Site(most)
        self.addCleanup(site.end_all)
        return site

    def test_no_more_than_so_many_run_at_once(self) -> None:
        site = self.site(3)
        for _ in range(12):
            site.ask("a")
        self.assertEqual(["a"] * 2, site.begun)
        for project in "bc":
            site.ask(project)
        self.assertEqual(["a"] * 2 + ["b"], site.begun)
        site.end_all()
        self.assertEqual((14, 3), (len(site.begun), site.most_at_once))

    def test_a_project_with_two_hundred_runs_does_not_delay_another(self) -> None:
        site = self.site(4)
        for _ in range(200):
            site.ask("many")
        self.assertEqual(["many"] * 3, site.begun)
        site.ask("one")
        self.assertEqual("one", site.begun[-1])
        site.end_all()
        self.assertEqual(201, len(site.begun))

    def test_where_all_are_taken_another_waits_for_the_end_of_one(self) -> None:
        for most, others in ((1, 0), (4, 1)):
            site = self.site(most)
            for _ in range(200):
                site.ask("many")
            for _ in range(others):
                site.ask("other")
            site.ask("one")
            before = len(site.begun)
            self.assertEqual(most, before)
            site.end_one()
            self.assertEqual("one", site.begun[before])
            site.end_all()
            self.assertEqual(201 + others, len(site.begun))

    def test_projects_take_turns(self) -> None:
        site = self.site(1)
        for project in "aaaabbbbcccc":
            site.ask(project)
        for _ in range(11):
            site.end_one()
        self.assertEqual("abcabcabcabc", "".join(site.begun))

    def test_within_a_project_the_first_comes_first(self) -> None:
        turns, order = FairQueue(1), []
        gate = threading.Event()

        def run(number: int, standing: threading.Event) -> None:
            def stop() -> bool:
                standing.set()
                return False

            with turns.acquire("a", wait=LONG, stop=stop):
                standing.set()
                assert gate.wait(LONG)
                order.append(number)

        threads = []
        for number in range(10):
            standing = threading.Event()
            threads.append(threading.Thread(target=run, args=(number, standing), daemon=True))
            threads[-1].start()
            self.assertTrue(standing.wait(LONG))
        gate.set()
        for thread in threads:
            thread.join(LONG)
        self.assertEqual(list(range(10)), order)

    def test_few_requests_of_a_project_wait_and_those_of_another_do(self) -> None:
        site = self.site(1)
        for _ in range(1 + fair_order.MAX_WAITING_REQUESTS):
            site.ask("many", is_request=True)
        self.assertEqual([], site.left)
        for _ in range(50):
            site.ask("many", is_request=True)
        self.assertEqual(["many"] * 50, site.left)
        site.ask("one", is_request=True)
        site.end_one()
        self.assertEqual(["many", "one"], site.begun)
        # There is one place less by now.
        site.end_one()
        site.ask("many", is_request=True)
        self.assertEqual(50, len(site.left))

    def test_status_tasks_wait_in_any_number_and_so_do_charts(self) -> None:
        """A chart that is to be fetched is on no record, so nothing would carry it on."""
        site = self.site(1)
        for _ in range(30):
            site.ask("many")
            site.ask("", is_request=True)
        self.assertEqual([], site.left)

    def test_who_cannot_wait_is_told_and_leaves_no_trace(self) -> None:
        turns = FairQueue(1)
        with turns.acquire("a", wait=0, stop=lambda: False):
            for project in ("a", "b"):
                error = self.assertRaises(errors.Busy, self.enter, turns, project, 0.0)
                self.assertTrue(error.retryable)
                self.assertIn("max_helm_runs is 1", error.detail)
        self.enter(turns, "a", 0.0)

    def test_who_has_lost_his_lock_waits_no_longer(self) -> None:
        turns = FairQueue(1)
        with turns.acquire("a", wait=0, stop=lambda: False):
            self.assertRaises(errors.Busy, self.enter, turns, "b", LONG, lambda: True)
        self.enter(turns, "b", 0.0)

    def test_a_run_that_fails_gives_its_turn_back(self) -> None:
        turns = FairQueue(1)

        def fail() -> None:
            with turns.acquire("a", wait=0, stop=lambda: False):
                raise errors.HelmRefused("no")

        self.assertRaises(errors.HelmRefused, fail)
        self.enter(turns, "b", 0.0)

    @staticmethod
    def enter(
        turns: FairQueue, project: str, wait: float, stop: Callable[[], bool] = lambda: False
    ) -> None:
        with turns.acquire(project, wait=wait, stop=stop):
            pass

    @hypothesis.given(st.lists(st.sampled_from("abcd"), max_size=30), st.integers(1, 4))
    @hypothesis.settings(max_examples=30, deadline=None)
    def test_whatever_is_asked_no_project_is_a_run_behind_another_while_it_waits(
        self, asked: list[str], most: int
    ) -> None:
        site = self.site(most)
        for project in asked:
            site.ask(project)
        while len(site.begun) < len(asked):
            site.end_one()
        had: collections.Counter[str] = collections.Counter()
        for project, chances in zip(site.begun, site.chances, strict=True):
            # Those who waited and had fewer runs than the one that went had one going on.
            self.assertLessEqual(had[project], min(had[one] for one in chances) + most)
            self.assertIn(project, chances)
            had[project] += 1
        site.end_all()
        self.assertEqual(sorted(asked), sorted(site.begun))
        self.assertLessEqual(site.most_at_once, most)


class TestClient(testtools.TestCase):
    """Through HelmClient, with a stand-in for the binary that waits until it is let go."""

    def setUp(self) -> None:
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.executable = self.directory / "helm"
        self.executable.write_text(
            "#!/bin/sh\n"
            'if [ "$1" = version ]; then echo v3.21.4; exit 0; fi\n'
            f'echo "$2" >> {self.directory}/begun\n'
            f"while [ ! -e {self.directory}/go ]; do sleep 0.05; done\n"
        )
        self.executable.chmod(0o755)
        self.chart = helm.write_chart(self.directory / "chart")
        kube = FakeKube()
        kube.kubeconfig_path = "/the/kubeconfig"
        kube.apply(names.NAMESPACE, {"metadata": {"name": helm.NAMESPACE}})
        self.helm = HelmClient(kube, executable=str(self.executable), timeout=LONG, runs=1)
        self.addCleanup((self.directory / "go").touch)

    def check(self, namespace: str, release: str) -> None:
        self.helm.check(namespace, release, self.chart, {})

    def test_a_request_waits_no_longer_than_its_caller_and_runs_nothing(self) -> None:
        first = threading.Thread(target=self.check, args=("a", "first"), daemon=True)
        first.start()
        begun = self.directory / "begun"
        while not begun.exists():
            threading.Event().wait(0.01)
        with deadline.end_at(time.monotonic() + 0.2):
            error = self.assertRaises(errors.Busy, self.check, "b", "second")
        self.assertTrue(error.retryable)
        self.assertRaises(errors.Busy, self.apply_late)
        (self.directory / "go").touch()
        first.join(LONG)
        self.check("b", "third")
        self.assertEqual(["first", "third"], begun.read_text().split())

    def apply_late(self) -> None:
        with deadline.end_at(time.monotonic() + 0.2):
            self.helm.apply(helm.NAMESPACE, helm.RELEASE, self.chart, {})
