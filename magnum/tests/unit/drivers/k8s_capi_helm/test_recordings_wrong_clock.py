# SPDX-License-Identifier: Apache-2.0
"""Recordings judged by a conductor whose clock is wrong: the same words as by a right one.

Controllers write times by their clocks, and a conductor has its own. What something has lasted is
told by the controllers' times among each other and by what the conductor has seen itself, so every
verdict is the same, byte for byte, whatever the conductor's clock shows.
"""

from __future__ import annotations

import dataclasses
import datetime

import testtools

from magnum.drivers.k8s_capi_helm import model, status
from magnum.tests.unit.drivers.k8s_capi_helm import recordings_player

OFF = tuple(datetime.timedelta(seconds=one) for one in (-28800, -180, -30, 30, 180, 28800))
#: Of all moments one in so many is judged.
STEP = 5
WORDS = ("CREATE_IN_PROGRESS", "UPDATE_FAILED", "UPDATE_COMPLETE", "DELETE_IN_PROGRESS")


class TestClocks(testtools.TestCase):
    def test_every_verdict_is_the_same(self) -> None:
        judged, reasons, pairs = 0, set(), set()
        for path in (*recordings_player.own(), *recordings_player.others()):
            for film in recordings_player.films(path, "v1beta2"):
                for number in range(0, len(film.moments), STEP):
                    word, off = WORDS[judged % 4], OFF[judged // 4 % 6]
                    look, state = film.observed(number), film.state(number, word)
                    right = status.evaluate(look, state, film.moments[number].at)
                    wrong = self.off(look, state, off)
                    self.assertEqual(right, wrong, (film.title, number, word, off))
                    reasons.add(right.reason)
                    pairs.add((word, off))
                    judged += 1
        self.assertGreater(judged, 500)
        self.assertEqual(len(WORDS) * len(OFF), len(pairs))
        self.assertGreater(len(reasons), 20)

    @staticmethod
    def off(look: model.Observed, state: model.MagnumState, off: datetime.timedelta) -> object:
        """The verdict of a conductor whose clock is off."""
        now = look.at + off
        return status.evaluate(dataclasses.replace(look, at=now), state, now)
