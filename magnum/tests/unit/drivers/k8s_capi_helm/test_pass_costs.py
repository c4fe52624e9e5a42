# SPDX-License-Identifier: Apache-2.0
"""What the benchmark of a pass makes of an audit log, of rounds and of its goals, and prints."""

from __future__ import annotations

import json
import math
from typing import Any

import testtools

from tools.bench import pass_costs, pass_tables
from tools.bench.pass_costs import Check, Cost, NOTHING, OTHER_PEER, OWN, PEER


def event(verb: str, resource: str = "leases", code: int = 200, **more: Any) -> str:
    """A line of an audit log, at ten seconds."""
    return json.dumps(
        {
            "verb": verb,
            "requestURI": "/version",
            "requestReceivedTimestamp": "1970-01-01T00:00:10.500000Z",
            "objectRef": {"resource": resource, "namespace": "magnum-p1"},
            "responseStatus": {"code": code},
            **more,
        }
    )


def place(resource: str, namespace: str = "magnum-p1", **more: str) -> dict[str, Any]:
    """What an event is about."""
    return {"objectRef": {"resource": resource, "namespace": namespace, **more}}


class TestAuditLog(testtools.TestCase):
    def test_a_request_is_named_by_verb_and_resource(self) -> None:
        for line, name in (
            (event("get"), "get leases"),
            (event("get", code=404), "get leases 404"),
            (event("update", code=409), "update leases 409"),
            (event("create", code=201), "create leases"),
            (event("get", responseStatus=None), "get leases"),
            (event("patch", **place("machines", subresource="status")), "patch machines/status"),
        ):
            self.assertEqual({name: 1}, pass_costs.count_requests([line], 10, 11), line)

    def test_only_what_came_between_two_times_counts(self) -> None:
        lines = [event("get"), event("get"), event("list", "secrets")]
        for since, until, found in (
            (10, 11, {"get leases": 2, "list secrets": 1}),
            (10.5, 10.5, {"get leases": 2, "list secrets": 1}),
            (11, 12, {}),
            (9, 10, {}),
        ):
            self.assertEqual(found, pass_costs.count_requests(lines, since, until))

    def test_passes_are_averaged_per_cluster(self) -> None:
        passes = [{"get leases": 40, "watch pods": 1}, {"get leases": 20}]
        found = pass_costs.per_cluster(passes, clusters=20)
        self.assertEqual({"get leases": 1.5, "watch pods": 0.025}, found)

    def test_what_a_process_asks_for_all_clusters_is_apart(self) -> None:
        for line, apart in (
            (event("list", "machines"), False),
            (event("list", objectRef={"resource": "machines"}), True),
            (event("watch", objectRef={"resource": "machines"}), True),
            (event("get", "leases"), False),
            (event("get", **place("leases", namespace="capi-system"), code=404), True),
            (event("get", **place("namespaces", namespace="kube-system")), True),
            (event("get", objectRef=None), True),
        ):
            cost = Cost(pass_costs.count_requests([line], 10, 11), 0.0)
            self.assertEqual((0, 1) if apart else (1, 0), (cost.asked, cost.of_process), line)

    def test_what_a_process_asks_leaves_nothing_with_the_clusters(self) -> None:
        counts = pass_costs.count_requests([event("list", objectRef=None)] * 3, 10, 11)
        cost = Cost(pass_costs.per_cluster([counts], clusters=20), 0.0)
        self.assertEqual((0, 0.15), (cost.asked, cost.of_process))


class TestRatios(testtools.TestCase):
    def test_the_rounds_are_compared_one_by_one(self) -> None:
        costs = {
            NOTHING: [Cost({}, 10.0), Cost({}, 20.0)],
            PEER: [Cost({}, 14.0), Cost({}, 28.0)],
            OWN: [Cost({}, 12.0), Cost({}, 36.0)],
        }
        self.assertEqual([2.0, 16.0], pass_costs.over(costs[OWN], costs[NOTHING]))
        self.assertEqual([0.5, 2.0], pass_costs.ratios(costs))

    def test_another_peer_is_compared_with_the_same_one(self) -> None:
        costs = {
            NOTHING: [Cost({}, 10.0)],
            PEER: [Cost({}, 14.0)],
            OTHER_PEER: [Cost({}, 22.0)],
            OWN: [Cost({}, 12.0)],
        }
        self.assertEqual([3.0], pass_costs.ratios(costs, OTHER_PEER))
        self.assertEqual([0.5], pass_costs.ratios(costs))

    def test_magnums_part_of_each_pass_is_taken_off(self) -> None:
        nothing = [Cost({}, 20.0, passes=2)]
        self.assertEqual([5.0], pass_costs.over([Cost({}, 35.0, passes=3)], nothing))

    def test_spread(self) -> None:
        self.assertEqual("2.0 (1.0..9.0)", pass_costs.spread([9, 1, 2]).text(1))


class TestGoals(testtools.TestCase):
    def checked(self, phase: str, requests: float, milliseconds: float) -> list[bool]:
        """Whether the goals of requests and of processor time are met; the peer takes 10 ms."""
        costs = {
            NOTHING: [Cost({}, 5.0)],
            PEER: [Cost({"get clusters": 4.0}, 15.0)],
            OWN: [Cost({"get leases": requests}, 5.0 + milliseconds)],
        }
        return [one.met for one in pass_costs.checks(phase, costs)]

    def test_each_phase_has_its_limits(self) -> None:
        for phase, requests, milliseconds in (
            (pass_costs.AT_REST, 0.0, 0.2),
            (pass_costs.PENDING, 0.1, 1.0),
            (pass_costs.COMPLETING, 6.0, 10.0),
        ):
            for found, met in (
                (self.checked(phase, requests, milliseconds - 0.01), [True, True]),
                (self.checked(phase, requests + 0.01, milliseconds - 0.01), [False, True]),
                (self.checked(phase, requests, milliseconds + 0.01), [True, False]),
            ):
                self.assertEqual(met, found, phase)

    def test_another_peer_changes_no_goal(self) -> None:
        for phase in pass_costs.GOALS:
            costs = {
                NOTHING: [Cost({}, 5.0)],
                PEER: [Cost({}, 15.0)],
                OWN: [Cost({}, 6.0)],
            }
            without = pass_costs.checks(phase, costs)
            with_other = {**costs, OTHER_PEER: [Cost({"get clusters": 9.0}, 100.0)]}
            self.assertEqual(without, pass_costs.checks(phase, with_other))

    def test_what_cannot_be_measured_is_not_met(self) -> None:
        costs = {driver: [Cost({}, 5.0)] for driver in pass_costs.DRIVERS}
        requests, processor = pass_costs.checks(pass_costs.AT_REST, costs)
        self.assertTrue(requests.met)
        self.assertTrue(math.isnan(processor.measured))
        self.assertEqual("failed", processor.result)

    def test_a_goal_is_failed_where_it_is_missed_by_more_than_is_known(self) -> None:
        found = [Check("", measured, 1.0, 2.0) for measured in (1.0, 1.5, 2.5)]
        self.assertEqual(["met", "missed", "failed"], [one.result for one in found])
        text, failed = pass_tables.verdict(found)
        self.assertEqual(1, failed)
        self.assertEqual(3, len(text.strip().splitlines()))


class TestTables(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.costs = {
            NOTHING: [Cost({}, 10.0)],
            PEER: [Cost({"get clusters": 4.0}, 14.0)],
            OTHER_PEER: [Cost({"create leases": 1.0, "list machines": 1.0}, 22.0)],
            OWN: [Cost({"get leases": 0.5}, 12.0)],
        }
        self.megabytes = {
            driver: [{"settled": settled, "peak": settled + 1.0}]
            for driver, settled in ((NOTHING, 90.0), (PEER, 92.0), (OTHER_PEER, 120.0), (OWN, 95.0))
        }

    def printed(self, *, verbose: bool = False) -> list[str]:
        """The lines below the head of a table, their words one space apart."""
        text = pass_tables.costs(20, {pass_costs.PENDING: self.costs}, verbose=verbose)
        return [" ".join(line.split()) for line in text.splitlines()[3:]]

    def test_each_driver_has_a_line(self) -> None:
        nothing, peer, other, own = self.printed()
        self.assertEqual("0 0.00 0.0 10.00 (10.00..10.00) 1", nothing)
        self.assertEqual("H 4.00 0.0 14.00 (14.00..14.00) 4.00 (4.00..4.00) 1", peer)
        part = "12.00 (12.00..12.00) 3.00 (3.00..3.00)"
        self.assertEqual(f"V 2.00 0.0 22.00 (22.00..22.00) {part} 1", other)
        part = "2.00 (2.00..2.00) 0.50 (0.50..0.50)"
        self.assertEqual(f"this driver 0.50 0.0 12.00 (12.00..12.00) {part} 1", own)

    def test_requests_are_below_the_driver_that_made_them(self) -> None:
        lines = self.printed(verbose=True)
        drivers = [line.split()[0] for line in lines]
        self.assertEqual(["1.00 create leases", "1.00 list machines"], lines[4:6])
        self.assertEqual(("V", "this"), (drivers[3], drivers[6]))

    def test_a_driver_that_took_no_turn_has_no_line(self) -> None:
        everybody = self.printed()
        del self.costs[OTHER_PEER]
        self.assertEqual([everybody[0], everybody[1], everybody[3]], self.printed())

    def test_memory_is_that_over_nothing(self) -> None:
        def lines() -> list[str]:
            text = pass_tables.memory({pass_costs.PENDING: self.megabytes})
            return [" ".join(line.split()) for line in text.splitlines()[3:]]

        expected = [
            f"{pass_costs.PENDING} {driver} {over} ({over}..{over}) {over} ({over}..{over})"
            for driver, over in ((PEER, "2.0"), (OTHER_PEER, "30.0"), (OWN, "5.0"))
        ]
        self.assertEqual(expected, lines())
        del self.megabytes[OTHER_PEER]
        self.assertEqual([expected[0], expected[2]], lines())
