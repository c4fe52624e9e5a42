# SPDX-License-Identifier: Apache-2.0
"""A management cluster that is away: requests fail at once, and one after another tries again."""

from __future__ import annotations

import time

import testtools

from magnum.drivers.k8s_capi_helm import deadline, errors
from magnum.drivers.k8s_capi_helm.kube.http import circuit_breaker
from magnum.drivers.k8s_capi_helm.kube.http.request import Request
from magnum.drivers.k8s_capi_helm.kube.http.transport import Transport
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm.suites import http_server

REQUEST = Request("GET", "/api/v1/namespaces/n/leases/one", "read", "Lease 'one'")
LIMIT, LONGEST, PATIENCE = 3, 10.0, 70.0


class BreakerCase(testtools.TestCase):
    """A breaker whose clock the test moves, and which always pauses as long as it may."""

    def setUp(self) -> None:
        super().setUp()
        self.now = 1000.0
        self.spreads: list[tuple[float, float]] = []
        self.breaker = self.make(LIMIT)

    def make(self, failures: int) -> circuit_breaker.CircuitBreaker:
        return circuit_breaker.CircuitBreaker(
            failures=failures,
            max_pause=LONGEST,
            max_wait=PATIENCE,
            clock=lambda: self.now,
            jitter=self.spread,
        )

    def spread(self, low: float, high: float) -> float:
        self.spreads.append((low, high))
        return high

    def open(self) -> None:
        for _ in range(LIMIT):
            self.assertEqual("", self.breaker.refusal())
            self.breaker.record_failure("timed out")
        self.assertNotEqual("", self.breaker.refusal())


class TestBreaker(BreakerCase):
    def test_only_silence_in_a_row_counts(self) -> None:
        for _ in range(LIMIT * 3):
            for _ in range(LIMIT - 1):
                self.breaker.record_failure("timed out")
            self.assertEqual("", self.breaker.refusal())
            self.breaker.close()

    def test_the_refusal_says_why_and_until_when(self) -> None:
        self.open()
        said = self.breaker.refusal()
        for part in ("3 consecutive attempts", "timed out", "within 2 seconds"):
            self.assertIn(part, said)

    def test_one_tries_and_the_others_wait_for_it(self) -> None:
        self.open()
        self.now += 2
        self.assertEqual("", self.breaker.refusal())
        for _ in range(5):
            self.assertNotEqual("", self.breaker.refusal())
            self.now += PATIENCE / 6
        self.breaker.close()
        self.assertEqual(["", ""], [self.breaker.refusal() for _ in range(2)])

    def test_a_try_that_never_tells_holds_the_place_for_a_while_only(self) -> None:
        self.open()
        self.now += 2
        self.assertEqual("", self.breaker.refusal())
        self.now += PATIENCE
        self.assertEqual("", self.breaker.refusal())
        self.assertNotEqual("", self.breaker.refusal())

    def test_pauses_grow_up_to_the_longest_and_are_spread(self) -> None:
        self.open()
        for _ in range(4):
            self.now += LONGEST
            self.assertEqual("", self.breaker.refusal())
            self.breaker.record_failure("timed out")
        self.assertEqual([(1, 2), (2, 4), (4, 8), (5, 10), (5, 10)], self.spreads)

    def test_who_had_less_time_than_usual_opens_nothing_but_ends_a_try(self) -> None:
        for _ in range(LIMIT * 3):
            self.breaker.record_failure("timed out", is_short=True)
        self.assertEqual("", self.breaker.refusal())
        self.open()
        self.now += 2
        self.assertEqual("", self.breaker.refusal())
        self.breaker.record_failure("timed out", is_short=True)
        self.now += 4
        self.assertEqual("", self.breaker.refusal())

    def test_requests_on_their_way_when_it_opens_do_not_make_pauses_longer(self) -> None:
        self.open()
        for _ in range(20):
            self.breaker.record_failure("timed out")
        self.assertEqual({(1, 2)}, set(self.spreads))

    def test_an_answer_forgets_all_of_it(self) -> None:
        self.open()
        self.now += LONGEST
        self.breaker.refusal()
        self.breaker.close()
        self.open()
        self.assertEqual([(1, 2), (1, 2)], self.spreads)

    def test_without_a_limit_nothing_is_refused(self) -> None:
        self.breaker = self.make(0)
        for _ in range(100):
            self.breaker.record_failure("timed out")
        self.assertEqual("", self.breaker.refusal())


class TestWire(http_server.WireCase):
    """What goes over the network, by a clock that stands still unless the test moves it."""

    def setUp(self) -> None:
        super().setUp()
        self.now = 1000.0
        self.wire = self.client()

    def client(self, failures: int = 5) -> Transport:
        found = circuit_breaker.CircuitBreaker(
            failures=failures, max_pause=10, max_wait=1000, clock=lambda: self.now
        )
        bounds = {"connect_timeout": 0.3, "read_timeout": 0.3, "pause": 0.001}
        return Transport(str(self.config), **bounds, breaker=found)

    def ask(self) -> errors.ManagementUnreachable:
        error: errors.ManagementUnreachable = self.assertRaises(
            errors.ManagementUnreachable, self.wire.send, REQUEST
        )
        return error

    def test_a_black_hole_is_not_asked_by_everybody(self) -> None:
        http_server.write_kubeconfig(self.config, "http://127.0.0.1:9")
        details = [self.ask().detail for _ in range(20)]
        self.assertEqual(1, sum("not sent" not in detail for detail in details), details)
        self.now += 10
        self.assertIn("6 consecutive attempts", self.ask().detail)

    def test_what_never_answers_is_silent(self) -> None:
        self.server.answer = self.server.never
        for _ in range(3):
            self.ask()
        sent = len(self.server.seen)
        error = self.ask()
        self.assertEqual(sent, len(self.server.seen))
        self.assertIn("5 consecutive attempts had no response", error.detail)
        self.assertTrue(error.retryable)

    def test_an_answer_that_comes_drop_by_drop_ends_in_time(self) -> None:
        self.server.answer = lambda seen: (200, b" " * 60)
        self.server.drops = 0.1
        began = time.monotonic()
        self.assertIn("took too long as a whole", self.ask().detail)
        self.assertLess(time.monotonic() - began, 3)

    def test_an_answer_that_takes_too_long_is_no_silence(self) -> None:
        """Long lists over a slow line keep nobody from asking for something short."""
        self.server.answer = lambda seen: (200, b" " * 60)
        self.server.drops = 0.1
        for _ in range(6):
            self.ask()
        self.server.drops = 0.0
        self.answer((200, {"ok": 1}))
        self.assertEqual(200, self.wire.send(REQUEST).code)

    def test_who_has_less_time_than_usual_keeps_nobody_from_asking(self) -> None:
        self.server.answer = self.server.never
        for _ in range(8):
            with deadline.end_at(time.monotonic() + 0.1):
                self.ask()
        self.answer((200, {"ok": 1}))
        self.assertEqual(200, self.wire.send(REQUEST).code)

    def test_the_first_answer_lets_all_through(self) -> None:
        self.server.answer = self.server.never
        for _ in range(3):
            self.ask()
        self.answer((200, {"ok": 1}))
        self.now += 10
        for _ in range(3):
            self.assertEqual(200, self.wire.send(REQUEST).code)

    def test_trouble_of_a_server_that_answers_is_none(self) -> None:
        self.answer((500, http_server.status("InternalError", "failed calling webhook x")))
        for _ in range(5):
            self.ask()
        self.assertEqual(15, len(self.sent()))

    def test_another_management_cluster_is_asked_at_once(self) -> None:
        http_server.write_kubeconfig(self.config, "http://127.0.0.1:9")
        for _ in range(3):
            self.ask()
        http_server.write_kubeconfig(self.config, self.server.url)
        self.assertEqual(404, self.wire.send(REQUEST).code)

    def test_it_can_be_switched_off(self) -> None:
        http_server.write_kubeconfig(self.config, "http://127.0.0.1:9")
        self.wire = self.client(failures=0)
        for _ in range(4):
            self.assertNotIn("not sent", self.ask().detail)

    def test_the_client_has_one(self) -> None:
        http_server.write_kubeconfig(self.config, "http://127.0.0.1:9")
        kube = KubeClient(str(self.config), connect_timeout=0.3, pause=0, breaker_failures=1)
        error = self.assertRaises(errors.ManagementUnreachable, kube.get, names.LEASE, "n", "one")
        self.assertIn("1 consecutive attempts", error.detail)
