# SPDX-License-Identifier: Apache-2.0
"""How long a process has seen something, by times that a test gives."""

from __future__ import annotations

import datetime

import testtools

from magnum.drivers.k8s_capi_helm.sightings import Sightings

NOW = datetime.datetime(2026, 11, 22, tzinfo=datetime.UTC)
MINUTE = datetime.timedelta(minutes=1)


class TestSightings(testtools.TestCase):
    def test_what_is_seen_first_is_new(self) -> None:
        self.assertEqual(0 * MINUTE, Sightings().age("one", NOW))

    def test_it_grows_old_by_itself(self) -> None:
        seen = Sightings()
        seen.age("one", NOW)
        seen.age("other", NOW + 3 * MINUTE)
        ages = [seen.age(one, NOW + 5 * MINUTE) for one in ("one", "other", "third")]
        self.assertEqual([5 * MINUTE, 2 * MINUTE, 0 * MINUTE], ages)

    def test_a_clock_that_is_set_back_makes_nothing_younger_than_new(self) -> None:
        seen = Sightings()
        seen.age("one", NOW)
        self.assertEqual(0 * MINUTE, seen.age("one", NOW - 5 * MINUTE))

    def test_what_is_asked_about_is_known_for_as_long_as_it_takes(self) -> None:
        seen = Sightings()
        ages = [seen.age("one", NOW + number * 10 * MINUTE) for number in range(30)]
        self.assertEqual(290 * MINUTE, ages[-1])

    def test_what_nobody_asks_about_any_more_is_forgotten(self) -> None:
        seen = Sightings()
        for number in range(1000):
            seen.age(number, NOW)
        seen.age("one", NOW + 61 * MINUTE)
        self.assertEqual(0 * MINUTE, seen.age(5, NOW + 62 * MINUTE))
