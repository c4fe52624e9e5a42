# SPDX-License-Identifier: Apache-2.0
"""What the benchmark of verbs makes of clocks, of an audit log, of rounds and of its goals."""

from __future__ import annotations

import dataclasses
import json

import testtools

from tools.bench import peer_verb_costs
from tools.bench.pass_costs import OWN, PEER
from tools.bench.peer_verb_costs import Clock, CREATE, GROUP, PEER_REFERENCE, RESIZE, Spent

SPENT = Spent(
    wall=3.0,
    driver=0.5,
    helm=1.0,
    runs=1,
    certificates=0.25,
    requests={"get leases": 3, "helm: get secrets": 4},
)


def event(agent: str, resource: str = "leases", second: int = 10) -> str:
    """A line of an audit log."""
    return json.dumps(
        {
            "verb": "get",
            "userAgent": agent,
            "requestReceivedTimestamp": f"1970-01-01T00:00:{second}.500000Z",
            "objectRef": {"resource": resource, "namespace": "magnum-p1"},
            "responseStatus": {"code": 200},
        }
    )


def rounds(*seconds: float) -> list[Spent]:
    """One round for each number of processor seconds."""
    return [dataclasses.replace(SPENT, driver=one, helm=0.0) for one in seconds]


class TestSpent(testtools.TestCase):
    def test_what_was_taken_is_between_two_clocks(self) -> None:
        before = Clock(time=100.0, driver=5.0, children=7.0, runs=2, certificates=1.0)
        after = Clock(time=103.0, driver=5.5, children=8.0, runs=3, certificates=1.25)
        self.assertEqual(SPENT, peer_verb_costs.spent(before, after, SPENT.requests))

    def test_processor_is_that_of_driver_and_helm(self) -> None:
        self.assertEqual((1.5, 1.25), (SPENT.processor, SPENT.uncertified))

    def test_requests_are_those_of_both(self) -> None:
        self.assertEqual((7, 4), (SPENT.asked, SPENT.asked_by_helm))


class TestAuditLog(testtools.TestCase):
    LINES = (
        event("Helm/3.22.0"),
        event("Helm/3.22.0", "secrets"),
        event("OpenAPI-Generator/37.0.2/python"),
        event("python-requests/2.34"),
        event("python-requests/2.34", second=20),
    )

    def test_the_requests_of_helm_are_told_apart(self) -> None:
        found = peer_verb_costs.count_requests(self.LINES, OWN, 10, 11)
        expected = {"helm: get leases": 1, "helm: get secrets": 1, "get leases": 1}
        self.assertEqual(expected, found)

    def test_those_of_another_driver_do_not_count(self) -> None:
        for driver in (OWN, PEER, PEER_REFERENCE):
            found = peer_verb_costs.count_requests(self.LINES, driver, 10, 11)
            self.assertEqual(1, found["get leases"], driver)

    def test_only_what_came_between_two_times_counts(self) -> None:
        self.assertEqual({}, peer_verb_costs.count_requests(self.LINES, OWN, 11, 19))


class TestGoals(testtools.TestCase):
    def found(self, own: float) -> dict[str, dict[str, list[Spent]]]:
        """Three rounds of each verb, in which the peer took two seconds."""
        drivers = {PEER: rounds(2.0, 2.0, 2.0), OWN: rounds(own, own, 9.0)}
        return dict.fromkeys((CREATE, GROUP, RESIZE), drivers)

    def test_a_ratio_is_that_of_a_round(self) -> None:
        drivers = {PEER: rounds(1.0, 4.0), OWN: rounds(0.5, 1.0)}
        self.assertEqual([0.5, 0.25], peer_verb_costs.ratios(drivers))

    def test_the_median_of_the_rounds_is_judged(self) -> None:
        for own, met in (
            (0.8, [True, True, True]),
            (0.9, [True, False, False]),
            (1.1, [False] * 3),
        ):
            checks = peer_verb_costs.verb_checks(self.found(own))
            self.assertEqual(met, [one.met for one in checks], own)

    def test_nodegroups_at_once(self) -> None:
        good = dataclasses.replace(SPENT, done=20)
        for changed, missed in (
            (good, []),
            (dataclasses.replace(good, done=19), ["missing"]),
            (dataclasses.replace(good, requests={"get leases": 401}), ["requests"]),
            (dataclasses.replace(good, driver=3.1), ["processor of the driver, s"]),
            (dataclasses.replace(good, runs=4), ["runs of Helm"]),
        ):
            checks = peer_verb_costs.together_checks([changed])
            names = [one.text.partition(": ")[2] for one in checks if not one.met]
            self.assertEqual(missed, names)

    def test_more_than_the_peer_is_a_failure(self) -> None:
        for part, results in ((0.9, {"met", "missed"}), (1.1, {"missed"}), (2.5, {"failed"})):
            checks = peer_verb_costs.verb_checks(self.found(part))
            self.assertEqual(results, {one.result for one in checks})


class TestTables(testtools.TestCase):
    def test_each_driver_has_a_line(self) -> None:
        drivers = {PEER: rounds(1.0, 3.0), OWN: rounds(0.5, 0.5), PEER_REFERENCE: rounds(2.0, 2.0)}
        text = peer_verb_costs.table(RESIZE, drivers)
        for words in ("resize: 2 rounds", "H ", "this driver", "H, reference", "2.00 (1.00..3.00)"):
            self.assertIn(words, text)
        self.assertIn("part of H's", text)

    def test_what_magnum_takes_is_shown_of_a_create(self) -> None:
        text = peer_verb_costs.certificates({PEER: rounds(2.25), OWN: rounds(1.25)})
        self.assertIn("0.50", text.splitlines()[-1])

    def test_nodegroups_at_once_show_how_many_are_there(self) -> None:
        drivers = {driver: [dataclasses.replace(SPENT, done=17)] for driver in (PEER, OWN)}
        self.assertIn("17 (17..17)", peer_verb_costs.together_table(drivers))

    def test_requests_are_listed_by_name(self) -> None:
        text = peer_verb_costs.requests_table({OWN: [SPENT]})
        self.assertIn("3 get leases", text)
