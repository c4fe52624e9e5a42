# SPDX-License-Identifier: Apache-2.0
"""A rollout's decisions: waves, budget, soak, the first cluster that does not come good."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any
import unittest

from hypothesis import given, settings, strategies

from magnum.drivers.k8s_capi_helm.commands.rollout.plan import (
    next_request,
    plan_next,
    resume_rollout,
    wave_numbers,
    with_refusal,
    with_request,
)
from magnum.drivers.k8s_capi_helm.commands.rollout.record import (
    MemberState,
    ObservedCluster,
    Rollout,
    RolloutMember,
    RolloutState,
)
from magnum.drivers.k8s_capi_helm.commands.rollout.store import decode_rollout, encode_rollout
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one

NOW = datetime.datetime(2026, 1, 2, 10, tzinfo=datetime.timezone.utc)
OLD, NEW = "old", "new"
DONE, FAILED, PENDING, REQUESTED, SKIPPED = (
    MemberState.DONE,
    MemberState.FAILED,
    MemberState.PENDING,
    MemberState.REQUESTED,
    MemberState.SKIPPED,
)
WELL = ObservedCluster("CREATE_COMPLETE", "HEALTHY", OLD)
UPGRADED = ObservedCluster("UPDATE_COMPLETE", "HEALTHY", NEW)
BUSY = ObservedCluster("UPDATE_IN_PROGRESS", "HEALTHY", OLD)
FAILED_BEFORE = ObservedCluster("UPDATE_FAILED", "HEALTHY", OLD, "quota: no more instances")
BROKEN = ObservedCluster("UPDATE_FAILED", "UNHEALTHY", NEW, "quota: no more instances")


def later(minutes: float) -> datetime.datetime:
    return NOW + datetime.timedelta(minutes=minutes)


def rollout(waves: str = "1123", **fields: Any) -> Rollout:
    members = tuple(
        RolloutMember(f"u{index}", f"c{index}", int(wave), OLD) for index, wave in enumerate(waves)
    )
    return Rollout("r", NEW, "kube-new", members, **fields)


class Fleet:
    """A rollout over clusters, step by step.

    :ivar clusters: what Magnum shows.
    """

    def __init__(self, given_rollout: Rollout) -> None:
        self.rollout = given_rollout
        self.clusters = {member.uuid: WELL for member in given_rollout.members}

    def step(self, minutes: float = 0, *, is_open: bool = True) -> tuple[str, ...]:
        """One look; what is next is requested."""
        now = later(minutes)
        self.rollout, chosen = plan_next(self.rollout, self.clusters, now, is_window_open=is_open)
        for uuid in chosen:
            self.rollout = with_request(self.rollout, uuid, now)
        return chosen

    def states(self) -> list[MemberState]:
        return [member.state for member in self.rollout.members]


class TestOwnWindow(unittest.TestCase):
    """A cluster's own maintenance window; NOW is a Friday, 10:00 UTC."""

    def test_outside_of_it_a_cluster_waits_and_takes_nothing_from_the_budget(self) -> None:
        fleet = Fleet(rollout("111", budget=2))
        fleet.clusters["u0"] = dataclasses.replace(WELL, window="Fri 12:00-14:00")
        self.assertEqual(("u1", "u2"), fleet.step())
        fleet.clusters.update(u1=UPGRADED, u2=UPGRADED)
        self.assertEqual((), fleet.step(60))
        self.assertEqual([PENDING, DONE, DONE], fleet.states())
        self.assertEqual(("u0",), fleet.step(120))

    def test_the_waves_behind_it_wait_as_well(self) -> None:
        fleet = Fleet(rollout("12", budget=2))
        fleet.clusters["u0"] = dataclasses.replace(WELL, window="Sat 12:00-14:00")
        self.assertEqual((), fleet.step())
        self.assertEqual([PENDING, PENDING], fleet.states())

    def test_an_upgrade_that_has_begun_is_followed_outside_of_it(self) -> None:
        fleet = Fleet(rollout("1"))
        fleet.clusters["u0"] = dataclasses.replace(WELL, window="09:00-10:01")
        self.assertEqual(("u0",), fleet.step())
        fleet.clusters["u0"] = dataclasses.replace(UPGRADED, window="09:00-10:01")
        fleet.step(30)
        self.assertEqual([DONE], fleet.states())

    def test_when_it_may_be_requested(self) -> None:
        waiting = rollout("1", window="11:00-13:00 UTC")
        (member,) = waiting.members
        for window, expected in (
            ("", later(60)),
            ("12:00-14:00", later(120)),
            ("Sat 12:00-14:00", later(26 * 60)),
            ("13:00-14:00", None),
        ):
            with self.subTest(window):
                self.assertEqual(expected, next_request(waiting, member, window, NOW))


class TestWaves(unittest.TestCase):
    def test_sizes(self) -> None:
        for sizes, count, expected in (
            (["1"], 3, [1, 2, 3]),
            (["1", "2"], 6, [1, 2, 2, 3, 3, 4]),
            (["1", "50%"], 5, [1, 2, 2, 2, 3]),
            (["100%"], 3, [1, 1, 1]),
            (["1%"], 2, [1, 2]),
        ):
            with self.subTest(sizes):
                self.assertEqual(expected, wave_numbers(sizes, count))

    def test_what_is_no_size(self) -> None:
        for text in ("0", "-1", "0%", "", "x", "%"):
            with self.subTest(text), self.assertRaises(ValueError):
                wave_numbers([text], 3)


class TestPlan(unittest.TestCase):
    def test_wave_by_wave_within_the_budget_to_the_end(self) -> None:
        fleet = Fleet(rollout("1122", budget=1))
        order = []
        for minute in range(20):
            for uuid in fleet.step(minute):
                order.append(uuid)
                fleet.clusters[uuid] = BUSY
                self.assertEqual(1, fleet.states().count(REQUESTED))
            if minute % 2:
                fleet.clusters |= {
                    uuid: UPGRADED for uuid, seen in fleet.clusters.items() if seen == BUSY
                }
        self.assertEqual(["u0", "u1", "u2", "u3"], order)
        self.assertEqual(([DONE] * 4, RolloutState.FINISHED), (fleet.states(), fleet.rollout.state))

    def test_the_budget(self) -> None:
        fleet = Fleet(rollout("11111", budget=2))
        self.assertEqual(("u0", "u1"), fleet.step())
        self.assertEqual((), fleet.step())
        fleet.clusters["u0"] = UPGRADED
        self.assertEqual(("u2",), fleet.step())

    def test_a_wave_begins_after_the_soak_of_the_one_before(self) -> None:
        fleet = Fleet(rollout("12", soak=600))
        self.assertEqual(("u0",), fleet.step())
        fleet.clusters["u0"] = UPGRADED
        self.assertEqual((), fleet.step(5))
        self.assertEqual((), fleet.step(14))
        self.assertEqual(("u1",), fleet.step(15))

    def test_no_soak_after_clusters_that_had_the_template(self) -> None:
        fleet = Fleet(rollout("12", soak=600))
        fleet.clusters["u0"] = UPGRADED
        self.assertEqual(("u1",), fleet.step())

    def test_outside_of_the_window_nothing_is_requested(self) -> None:
        fleet = Fleet(rollout("1"))
        self.assertEqual((), fleet.step(is_open=False))
        self.assertEqual([PENDING], fleet.states())
        self.assertEqual(("u0",), fleet.step())
        fleet.clusters["u0"] = UPGRADED
        fleet.step(1, is_open=False)
        self.assertEqual([DONE], fleet.states(), "what was requested is followed")

    def test_complete_and_not_healthy_is_not_the_end(self) -> None:
        fleet = Fleet(rollout("1"))
        fleet.step()
        for health in ("UNKNOWN", "UNHEALTHY", ""):
            fleet.clusters["u0"] = dataclasses.replace(UPGRADED, health=health)
            fleet.step(10)
            self.assertEqual([REQUESTED], fleet.states(), health)

    def test_one_in_progress_is_waited_for(self) -> None:
        fleet = Fleet(rollout("11", budget=1))
        fleet.clusters["u0"] = BUSY
        self.assertEqual(("u1",), fleet.step())
        said = "It is UPDATE_IN_PROGRESS, and is upgraded when its status is COMPLETE."
        self.assertEqual(said, fleet.rollout.members[0].text)
        fleet.clusters |= {"u0": WELL, "u1": UPGRADED}
        self.assertEqual(("u0",), fleet.step(1))
        self.assertEqual("", fleet.rollout.members[0].text)

    def test_one_that_has_failed_before_is_left_out_when_its_wave_is_through(self) -> None:
        fleet = Fleet(rollout("112", budget=2))
        fleet.clusters["u0"] = FAILED_BEFORE
        self.assertEqual(("u1",), fleet.step())
        self.assertEqual([PENDING, REQUESTED, PENDING], fleet.states())
        fleet.clusters["u1"] = UPGRADED
        self.assertEqual((), fleet.step(1, is_open=False))
        self.assertEqual(("u2",), fleet.step(2))
        self.assertEqual([SKIPPED, DONE, REQUESTED], fleet.states())
        self.assertIn("no more instances", fleet.rollout.members[0].text)

    def test_one_that_has_failed_before_and_comes_good_is_upgraded(self) -> None:
        fleet = Fleet(rollout("11", budget=2))
        fleet.clusters["u0"] = FAILED_BEFORE
        self.assertEqual(("u1",), fleet.step())
        fleet.clusters["u0"] = WELL
        self.assertEqual(("u0",), fleet.step(1))

    def test_one_that_is_deleted_is_left_out(self) -> None:
        fleet = Fleet(rollout("11", budget=2))
        fleet.step()
        del fleet.clusters["u0"]
        fleet.clusters["u1"] = dataclasses.replace(WELL, status="DELETE_IN_PROGRESS")
        fleet.step()
        self.assertEqual([MemberState.DELETED] * 2, fleet.states())
        self.assertIs(RolloutState.FINISHED, fleet.rollout.state)

    def test_one_whose_template_was_changed_meanwhile_is_left_out(self) -> None:
        fleet = Fleet(rollout("11", budget=2))
        fleet.clusters["u0"] = dataclasses.replace(WELL, template="the tenant's")
        self.assertEqual(("u1",), fleet.step())
        self.assertEqual([SKIPPED, REQUESTED], fleet.states())


class TestStop(unittest.TestCase):
    def stopped(self, fleet: Fleet, words: str) -> None:
        self.assertIs(RolloutState.STOPPED, fleet.rollout.state)
        self.assertIn(words, fleet.rollout.text)
        self.assertIn("'c0'", fleet.rollout.text)

    def test_the_first_that_fails_stops_it_and_nothing_else_is_touched(self) -> None:
        fleet = Fleet(rollout("1112", budget=2))
        fleet.step()
        fleet.clusters |= {"u0": BROKEN, "u1": BUSY}
        self.assertEqual((), fleet.step(1))
        self.stopped(fleet, "no more instances")
        self.assertEqual([FAILED, REQUESTED, PENDING, PENDING], fleet.states())
        fleet.clusters["u1"] = UPGRADED
        self.assertEqual((), fleet.step(2))
        self.assertEqual([FAILED, DONE, PENDING, PENDING], fleet.states())

    def test_one_that_takes_too_long(self) -> None:
        for seen in (BUSY, dataclasses.replace(UPGRADED, health="UNHEALTHY")):
            fleet = Fleet(rollout("11", timeout=600))
            fleet.step()
            fleet.clusters["u0"] = seen
            fleet.step(10)
            self.assertIs(RolloutState.RUNNING, fleet.rollout.state)
            fleet.step(11)
            self.stopped(fleet, "at the end of its time")

    def test_a_refusal_is_tried_once_more(self) -> None:
        fleet = Fleet(rollout("11"))
        fleet.step()
        fleet.rollout = with_refusal(fleet.rollout, "u0", "Glance is away.", later(0))
        self.assertIs(RolloutState.RUNNING, fleet.rollout.state)
        self.assertEqual(("u1",), fleet.step(1), "the others go on")
        fleet.clusters["u1"] = UPGRADED
        self.assertEqual(("u0",), fleet.step(2))
        fleet.rollout = with_refusal(fleet.rollout, "u0", "The image skips a release.", later(2))
        self.assertIs(RolloutState.STOPPED, fleet.rollout.state)
        self.assertEqual((), fleet.step(3))
        self.stopped(fleet, "The image skips a release.")

    def test_paused_it_still_stops_at_a_failure(self) -> None:
        fleet = Fleet(dataclasses.replace(rollout("11")))
        fleet.step()
        fleet.rollout = dataclasses.replace(fleet.rollout, state=RolloutState.PAUSED)
        self.assertEqual((), fleet.step())
        fleet.clusters["u0"] = BROKEN
        fleet.step()
        self.stopped(fleet, "no more instances")

    def test_resumed_without_the_one_that_failed(self) -> None:
        fleet = Fleet(rollout("11"))
        fleet.step()
        fleet.clusters["u0"] = BROKEN
        fleet.step()
        fleet.rollout = resume_rollout(fleet.rollout, retry=False)
        self.assertEqual(("u1",), fleet.step())
        self.assertEqual([SKIPPED, REQUESTED], fleet.states())

    def test_resumed_with_another_try(self) -> None:
        fleet = Fleet(rollout("11"))
        fleet.step()
        fleet.clusters["u0"] = BROKEN
        fleet.step()
        fleet.rollout = resume_rollout(fleet.rollout, retry=True)
        self.assertEqual(("u1",), fleet.step(), "Magnum upgrades none that is FAILED")
        self.assertEqual([PENDING, REQUESTED], fleet.states())
        fleet.clusters |= {"u0": WELL, "u1": UPGRADED}
        self.assertEqual(("u0",), fleet.step(1))


#: As the first version of the command has recorded it: clusters of running rollouts are in it.
RECORDED = """{"format": 1, "name": "minor", "template": "54a92f9f", "template_name": "kube-1.34",
 "members": [
  {"uuid": "3496eb87", "name": "a", "wave": 1, "template": "4f1a51c1", "state": "requested",
   "since": "2026-11-28T12:51:11.309426+00:00", "attempts": 1, "is_retry": false, "text": ""},
  {"uuid": "3a08c2ce", "name": "b", "wave": 2, "template": "a4593104", "state": "pending",
   "since": null, "attempts": 0, "is_retry": false, "text": ""}],
 "budget": 2, "max_batch_size": 1, "soak": 0.0, "timeout": 7200.0, "window": "",
 "state": "running", "text": ""}"""


class TestRecord(unittest.TestCase):
    def test_a_record_of_the_first_version_is_read(self) -> None:
        since = datetime.datetime(2026, 11, 28, 12, 51, 11, 309426, datetime.timezone.utc)
        first = RolloutMember("3496eb87", "a", 1, "4f1a51c1", REQUESTED, since, attempts=1)
        second = RolloutMember("3a08c2ce", "b", 2, "a4593104")
        expected = Rollout("minor", "54a92f9f", "kube-1.34", (first, second), budget=2)
        self.assertEqual(expected, decode_rollout(RECORDED))


class TestDeath(unittest.TestCase):
    def test_a_request_that_was_stored_and_never_made_is_made_once_more(self) -> None:
        fleet = Fleet(rollout("1"))
        self.assertEqual(("u0",), fleet.step())
        self.assertEqual((), fleet.step(1))
        self.assertEqual(("u0",), fleet.step(3))
        self.assertEqual((), fleet.step(4))
        fleet.step(7)
        self.assertIs(RolloutState.STOPPED, fleet.rollout.state)
        self.assertIn("no trace of 2 requests", fleet.rollout.text)

    def test_a_request_that_was_made_is_followed(self) -> None:
        fleet = Fleet(rollout("1"))
        fleet.step()
        fleet.clusters["u0"] = BUSY
        fleet.rollout = decode_rollout(encode_rollout(fleet.rollout))
        self.assertEqual((), fleet.step(30))
        fleet.clusters["u0"] = UPGRADED
        fleet.step(31)
        self.assertIs(RolloutState.FINISHED, fleet.rollout.state)


OBSERVED = strategies.sampled_from((WELL, UPGRADED, BUSY, BROKEN, None))


class TestProperties(unittest.TestCase):
    @settings(max_examples=200, deadline=None)
    @given(
        strategies.lists(strategies.integers(1, 3), min_size=1, max_size=6).map(sorted),
        strategies.integers(1, 3),
        strategies.lists(
            strategies.lists(OBSERVED, min_size=6, max_size=6), min_size=1, max_size=12
        ),
    )
    def test_no_more_than_the_budget_and_no_wave_before_its_time(
        self, waves: list[int], budget: int, looks: list[list[ObservedCluster | None]]
    ) -> None:
        current = rollout("".join(map(str, waves)), budget=budget)
        for minute, look in enumerate(at_least_one(looks)):
            observed = {f"u{index}": seen for index, seen in enumerate(look) if seen is not None}
            before = current
            now = later(5 * minute)
            current, chosen = plan_next(current, observed, now, is_window_open=True)
            for uuid in chosen:
                current = with_request(current, uuid, now)
            self.assertEqual(current, decode_rollout(encode_rollout(current)))
            if chosen:
                states = [member.state for member in current.members]
                self.assertLessEqual(states.count(REQUESTED), budget)
                self.assertNotIn(FAILED, states)
                self.assertIs(RolloutState.RUNNING, before.state)
                first = min(
                    member.wave
                    for member in current.members
                    if member.state in (PENDING, REQUESTED)
                )
                named = {member.uuid: member for member in current.members}
                self.assertEqual({first}, {named[uuid].wave for uuid in chosen})
