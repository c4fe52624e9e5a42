# SPDX-License-Identifier: Apache-2.0
"""The cache that checks, evaluations and first-seen times are kept in."""

from __future__ import annotations

import threading

import testtools

from magnum.drivers.k8s_capi_helm.reconcile.process.caches import Cache


class TestCache(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.seconds = 0.0
        self.cache: Cache[str, object] = Cache(60.0, clock=lambda: self.seconds)

    def test_a_value_holds_for_its_time(self) -> None:
        self.cache.put("usual", 1)
        self.cache.put("short", 2, duration=10.0)
        self.cache.put("long", 3, duration=100.0)
        held = []
        for self.seconds in (0.0, 9.9, 10.1, 59.9, 60.1, 99.9, 100.1):
            held.append([self.cache.get(key) for key in ("usual", "short", "long")])
        self.assertEqual(
            [
                [1, 2, 3],
                [1, 2, 3],
                [1, None, 3],
                [1, None, 3],
                [None, None, 3],
                [None, None, 3],
                [None, None, None],
            ],
            held,
        )

    def test_reading_a_value_does_not_keep_it(self) -> None:
        self.cache.put("key", 1)
        for self.seconds in (30.0, 59.0):
            self.assertEqual(1, self.cache.get("key"))
        self.seconds = 61.0
        self.assertIsNone(self.cache.get("key"))

    def test_expired_entries_take_no_room(self) -> None:
        for number in range(1000):
            self.cache.put(f"cluster-{number}", number)
        self.assertEqual(1000, len(self.cache))
        self.seconds = 61.0
        self.cache.put("new", 1)
        self.assertEqual(1, len(self.cache))

    def test_the_first_default_stays(self) -> None:
        first, second = object(), object()
        self.assertIs(first, self.cache.get_or_put("key", first))
        self.assertIs(first, self.cache.get_or_put("key", second))
        self.seconds = 61.0
        self.assertIs(second, self.cache.get_or_put("key", second))

    def test_a_value_that_another_thread_has_put_is_not_replaced(self) -> None:
        read, other, own = object(), object(), object()
        self.cache.put("key", read)
        self.assertTrue(self.cache.replace("key", read, other))
        self.assertFalse(self.cache.replace("key", read, own))
        self.assertFalse(self.cache.replace("key", None, own))
        self.assertIs(other, self.cache.get("key"))
        self.cache.discard("key")
        self.assertTrue(self.cache.replace("key", None, own))

    def test_one_of_many_threads_replaces(self) -> None:
        start, won = threading.Barrier(8), []

        def claim(number: int) -> None:
            start.wait(timeout=20)
            if self.cache.replace("key", None, number):
                won.append(number)

        threads = [threading.Thread(target=claim, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=20)
        self.assertEqual(won, [self.cache.get("key")])

    def test_nothing_to_discard_is_no_error(self) -> None:
        self.cache.discard("none")
        self.assertEqual(0, len(self.cache))
