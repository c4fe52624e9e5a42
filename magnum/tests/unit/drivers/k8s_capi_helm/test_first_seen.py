# SPDX-License-Identifier: Apache-2.0
"""How long a process has seen something, by a clock that a test gives."""

from __future__ import annotations

import datetime

import testtools

from magnum.drivers.k8s_capi_helm.reconcile.process.caches import CLOCKS_DIFFER, FirstSeen

NOW = datetime.datetime(2026, 11, 22, tzinfo=datetime.timezone.utc)
MINUTE = datetime.timedelta(minutes=1)


class TestSightings(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.minutes = 0.0
        self.seen = self.restarted()

    def restarted(self) -> FirstSeen:
        return FirstSeen(lambda: self.minutes * 60)

    def test_what_is_seen_first_is_new(self) -> None:
        self.assertEqual(0 * MINUTE, self.seen.age("one"))

    def test_it_grows_old_by_itself(self) -> None:
        self.seen.age("one")
        self.minutes = 3
        self.seen.age("other")
        self.minutes = 5
        ages = [self.seen.age(one) for one in ("one", "other", "third")]
        self.assertEqual([5 * MINUTE, 2 * MINUTE, 0 * MINUTE], ages)

    def test_what_is_asked_about_is_known_for_as_long_as_it_takes(self) -> None:
        for number in range(30):
            self.minutes = number * 10
            age = self.seen.age("one")
        self.assertEqual(290 * MINUTE, age)

    def test_what_nobody_asks_about_any_more_is_forgotten(self) -> None:
        for number in range(1000):
            self.seen.age(number)
        self.minutes = 25 * 60
        self.seen.age("one")
        self.minutes = 25 * 60 + 1
        self.assertEqual(0 * MINUTE, self.seen.age(5))

    def test_times_of_others_count_when_no_clock_can_be_to_blame(self) -> None:
        for hours in (-8, 0, 8, 23):
            stated = NOW - hours * 60 * MINUTE
            self.assertEqual(0 * MINUTE, self.seen.age(hours, stated, NOW))
        stated = NOW - CLOCKS_DIFFER - 5 * MINUTE
        self.assertEqual(5 * MINUTE, self.seen.age("old", stated, NOW))

    def test_restarts_that_never_end_keep_nothing_for_ever(self) -> None:
        """Each process sees it for four minutes, and it takes five."""
        ages = []
        for minutes in range(0, 26 * 60, 4):
            self.minutes, seen = minutes, self.restarted()
            ages.append(seen.age("one", NOW, NOW + minutes * MINUTE))
        self.assertEqual(0 * MINUTE, ages[0])
        self.assertGreaterEqual(ages[-1], 5 * MINUTE)
