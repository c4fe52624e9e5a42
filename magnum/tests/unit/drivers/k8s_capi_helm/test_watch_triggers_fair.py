# SPDX-License-Identifier: Apache-2.0
"""Watch events of many clusters of one project: those of another are looked at in their turn."""

from __future__ import annotations

from collections.abc import Callable

import testtools

from magnum.drivers.k8s_capi_helm.handlers.tasks import watch_trigger

MANY = 500


class TestFairTriggers(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.now = 1000.0
        self.observed: list[str] = []
        self.is_in_place = False
        self.meanwhile: Callable[[], None] = lambda: None
        self.triggers = watch_trigger.WatchTriggers(
            self.observe, self.observed.append, clock=lambda: self.now
        )

    def observe(self, release: str) -> bool:
        """A pass in which other threads look for work, too."""
        self.observed.append(release)
        self.meanwhile()
        return self.is_in_place

    def change(self, project: str, *releases: str) -> None:
        """Objects of clusters in progress change."""
        for release in releases:
            with self.triggers.visit(release):
                pass
            metadata = {"name": release, "namespace": f"magnum-{project}"}
            self.triggers.handle_event({"kind": "Cluster", "metadata": metadata})

    def reconcile(self) -> list[str]:
        self.observed.clear()
        self.triggers.reconcile_waiting()
        return list(self.observed)

    def many(self) -> list[str]:
        return [f"many-{number}" for number in range(MANY)]

    def test_events_of_one_project_wait_for_one_pass_of_another(self) -> None:
        self.change("many", *self.many())
        self.change("one", "one")
        observed = self.reconcile()
        self.assertEqual(["many-0", "one", "many-1"], observed[:3])
        self.assertEqual(MANY + 1, len(observed))

    def test_within_a_project_the_first_event_comes_first(self) -> None:
        self.change("many", *self.many())
        self.assertEqual(self.many(), self.reconcile())

    def test_second_snapshots_of_many_do_not_hold_up_the_first_of_another(self) -> None:
        self.change("many", *self.many())
        self.is_in_place = True
        self.reconcile()
        self.is_in_place = False
        self.now += 2.5
        self.change("one", "one")
        observed = self.reconcile()
        self.assertIn("one", observed[:2])
        self.assertEqual(MANY + 1, len(observed))

    def test_the_last_thread_is_for_a_project_that_has_none(self) -> None:
        """A pass may last as long as a run of Helm."""
        begun: list[list[str]] = []

        def meanwhile() -> None:
            if len(self.observed) == 2:
                self.meanwhile = lambda: None
                before = len(self.observed)
                # The third thread: first there is nothing for it, and then there is.
                self.triggers.reconcile_waiting()
                begun.append(self.observed[before:])
                self.change("one", "one", "two")
                self.triggers.reconcile_waiting()
                begun.append(self.observed[before:])
            else:
                self.triggers.reconcile_waiting()

        self.meanwhile = meanwhile
        self.change("many", *self.many())
        self.reconcile()
        self.assertEqual([[], ["one", "two"]], begun)
        self.assertEqual(MANY + 2, len(self.observed))

    def test_what_is_no_longer_in_progress_is_forgotten(self) -> None:
        self.change("many", *self.many())
        self.now += 31
        self.change("one", "one")
        self.assertEqual(["one"], self.reconcile())
