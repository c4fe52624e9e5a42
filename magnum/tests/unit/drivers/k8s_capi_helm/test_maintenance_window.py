# SPDX-License-Identifier: Apache-2.0
"""Maintenance windows: what is understood, when they are open, and when they open next."""

from __future__ import annotations

import datetime
import unittest

from hypothesis import given, strategies

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.labels.value_types.maintenance_window import (
    common_opening,
    parse_window,
)


def at(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.timezone.utc)


class TestOpen(unittest.TestCase):
    def test_open_and_closed(self) -> None:
        # 2026-11-28 is a Saturday.
        for window, now, is_open in (
            ("22:00-04:00", "2026-11-28T22:00", True),
            ("22:00-04:00", "2026-11-28T21:59", False),
            ("22:00-04:00", "2026-11-28T03:59", True),
            ("22:00-04:00", "2026-11-28T04:00", False),
            ("Sat 22:00-04:00", "2026-11-29T03:00", True),
            ("Sat 22:00-04:00", "2026-11-28T03:00", False),
            ("Sat,Mon 01:00-02:00", "2026-11-30T01:30", True),
            ("Sat,Mon 01:00-02:00", "2026-11-29T01:30", False),
            ("Fri-Sun 01:00-02:00", "2026-11-29T01:30", True),
            ("Sat-Tue 01:00-02:00", "2026-12-01T01:30", True),
            ("Sat-Tue 01:00-02:00", "2026-12-02T01:30", False),
            ("22:00-04:00 Europe/Berlin", "2026-11-28T21:00", True),
            ("22:00-04:00 Europe/Berlin", "2026-11-28T20:59", False),
            ("22:00-04:00 Asia/Tokyo", "2026-11-28T13:00", True),
            ("00:00-00:00", "2026-11-28T12:00", True),
        ):
            with self.subTest((window, now)):
                self.assertEqual(is_open, parse_window(window).is_open(at(now)))

    def test_when_clocks_are_put_back_an_hour_is_open_twice(self) -> None:
        window = parse_window("02:00-03:00 Europe/Berlin")
        opened = [
            minute
            for minute in range(0, 240, 30)
            if window.is_open(at("2026-10-25T00:00") + datetime.timedelta(minutes=minute))
        ]
        self.assertEqual([0, 30, 60, 90], opened)

    def test_next_opening(self) -> None:
        for window, now, opening in (
            ("22:00-04:00", "2026-11-28T12:00", "2026-11-28T22:00"),
            ("22:00-04:00", "2026-11-28T23:00", "2026-11-28T23:00"),
            ("Sat 22:00-04:00", "2026-11-29T12:00", "2026-12-05T22:00"),
            ("22:00-04:00 Europe/Berlin", "2026-11-28T12:00", "2026-11-28T21:00"),
        ):
            with self.subTest((window, now)):
                self.assertEqual(at(opening), parse_window(window).next_opening(at(now)))

    @given(
        strategies.sampled_from(
            ("22:00-04:00", "Sat 01:00-02:00", "Mon-Wed 03:00-03:30 America/New_York")
        ),
        strategies.integers(0, 60 * 24 * 30),
    )
    def test_it_is_open_when_it_opens_next(self, text: str, minutes: int) -> None:
        window, now = parse_window(text), at("2026-11-01T00:00")
        now += datetime.timedelta(minutes=minutes)
        opening = window.next_opening(now)
        self.assertTrue(window.is_open(opening))
        self.assertGreaterEqual(opening, now)


class TestCommon(unittest.TestCase):
    def test_when_windows_are_open_together(self) -> None:
        # 2026-11-28 is a Saturday.
        for windows, now, opening in (
            ([], "2026-11-28T12:00", "2026-11-28T12:00"),
            (["", ""], "2026-11-28T12:00", "2026-11-28T12:00"),
            (["", "22:00-04:00"], "2026-11-28T12:00", "2026-11-28T22:00"),
            (["22:00-04:00", "Sun 00:00-06:00"], "2026-11-28T12:00", "2026-11-29T00:00"),
            (["Sun 00:00-06:00", "22:00-04:00"], "2026-11-28T12:00", "2026-11-29T00:00"),
            (
                ["Mon-Fri 01:00-03:00", "Fri-Sun 02:00-05:00"],
                "2026-11-28T12:00",
                "2026-12-04T02:00",
            ),
        ):
            with self.subTest(windows):
                self.assertEqual(at(opening), common_opening(windows, at(now)))

    def test_never(self) -> None:
        for windows in (
            ["Sat 01:00-03:00", "Sun 01:00-03:00"],
            ["01:00-03:00", "03:00-05:00"],
            ["Mon-Fri 01:00-03:00", "Mon-Fri 01:00-03:00 America/New_York"],
        ):
            with self.subTest(windows):
                self.assertIsNone(common_opening(windows, at("2026-11-28T12:00")))

    @given(strategies.integers(0, 60 * 24 * 14))
    def test_it_is_the_first_minute_in_which_all_are_open(self, minutes: int) -> None:
        texts = "Fri,Sun 20:00-02:00", "Sat-Mon 23:00-01:30 Europe/Berlin"
        now = at("2026-11-01T00:00") + datetime.timedelta(minutes=minutes)
        opening = common_opening(texts, now)
        first = now
        while not all(parse_window(text).is_open(first) for text in texts):
            first += datetime.timedelta(minutes=1)
        self.assertEqual(first, opening)


class TestText(unittest.TestCase):
    def test_capitals_do_not_matter(self) -> None:
        window = parse_window("sat-SUN 22:00-04:00 europe/BERLIN")
        self.assertEqual("Sat-Sun 22:00-04:00 Europe/Berlin", window.text)
        self.assertEqual(window, parse_window(window.text))
        self.assertEqual("22:00-04:00 UTC", parse_window("22:00-04:00 utc").text)

    def test_duration(self) -> None:
        for text, hours in (("22:00-04:00", 6), ("01:00-01:30", 0.5), ("00:00-00:00", 24)):
            with self.subTest(text):
                duration = parse_window(text).duration
                self.assertEqual(datetime.timedelta(hours=hours), duration)


class TestRefused(unittest.TestCase):
    def test_what_is_no_window(self) -> None:
        for text in (
            "",
            "always",
            "25:00-04:00",
            "22-04",
            "Sun 22:00",
            "Son 22:00-04:00",
            "22:00-04:00 Europe/Nowhere",
            "22:00-04:00 Europe",
            "22:00-04:00 ../../etc/passwd",
        ):
            with self.subTest(text), self.assertRaises(errors.InvalidRequest) as caught:
                parse_window(text)
            self.assertIn(f"'{text}'", str(caught.exception))
