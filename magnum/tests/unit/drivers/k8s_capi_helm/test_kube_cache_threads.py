# SPDX-License-Identifier: Apache-2.0
"""Hundreds of threads look at what is watched: none waits, and each sees whole objects."""

from __future__ import annotations

from collections.abc import Callable
import sys
import threading
from types import FrameType
from typing import Any

import testtools

from magnum.drivers.k8s_capi_helm import model
from magnum.drivers.k8s_capi_helm.kube.watch import cache
from magnum.drivers.k8s_capi_helm.model import names

Json = model.Json
NAMESPACE, RELEASE, NAME = "magnum-p1", "demo", "demo-worker"
SELECTOR = {names.LABEL_CLUSTER_NAME: RELEASE}
#: Seconds that nothing takes.
LONG = 60.0


def machine(version: str, name: str = NAME, release: str = RELEASE) -> Json:
    labels = {names.LABEL_CLUSTER_NAME: release, names.LABEL_CHART_CLUSTER: release}
    metadata = {"namespace": NAMESPACE, "name": name, "resourceVersion": version, "labels": labels}
    return {"kind": "Machine", "metadata": metadata, "spec": {"version": version}}


class TestThreads(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.while_written: Callable[[], None] = lambda: None
        self.cache = cache.ObjectCache(names.MACHINE, lambda namespace: True, self.clock)
        self.fill(machine("1"), machine("1", "demo-other"), machine("1", "else", "else"))

    def clock(self) -> float:
        self.while_written()
        return 1000.0

    def fill(self, *objects: Json) -> None:
        kept = [self.cache.keep(one) for one in objects]
        self.cache.fill([one for one in kept if one], "here", 1000.0)

    def looks(self) -> list[Any]:
        """Everything that a pass asks for."""
        return [
            self.cache.get(NAMESPACE, NAME),
            self.cache.list(NAMESPACE, SELECTOR),
            self.cache.list(NAMESPACE, None),
            self.cache.version(NAMESPACE, NAME),
            self.cache.versions(NAMESPACE, RELEASE),
        ]

    def beside(self, look: Callable[[], None]) -> None:
        """Look in another thread, which does not wait for this one."""
        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        thread.join(LONG)
        self.assertFalse(thread.is_alive())

    def at_each_line(self, write: Callable[[], object], look: Callable[[], None]) -> None:
        """Look in the middle of a write, between any two of its lines."""

        def trace(frame: FrameType, event: str, argument: object) -> Any:
            if frame.f_code.co_filename != cache.__file__:
                return None
            sys.settrace(None)
            self.beside(look)
            sys.settrace(trace)
            return trace

        sys.settrace(trace)
        try:
            write()
        finally:
            sys.settrace(None)

    def names(self) -> list[tuple[str, str]]:
        listed = self.cache.list(NAMESPACE, SELECTOR)
        return [(one["metadata"]["name"], one["spec"]["version"]) for one in listed]

    def test_a_look_does_not_wait_for_who_writes(self) -> None:
        found: list[Any] = []

        def look() -> None:
            self.while_written = lambda: None
            self.beside(lambda: found.extend([*self.looks(), self.cache.age("here")]))

        self.while_written = look
        self.cache.confirm()
        self.assertEqual([*self.looks(), 0.0], found)

    def test_an_object_that_changes_is_always_there(self) -> None:
        seen: list[list[tuple[str, str]]] = []
        self.at_each_line(
            lambda: self.cache.change(machine("2"), is_deleted=False),
            lambda: seen.append(self.names()),
        )
        old, new = [("demo-other", "1"), (NAME, "1")], [("demo-other", "1"), (NAME, "2")]
        self.assertIn(old, seen)
        self.assertEqual([], [one for one in seen if one not in (old, new)])
        self.assertEqual(new, self.names())

    def test_a_list_shows_changes_in_their_order(self) -> None:
        """What was made first is there where what was changed after it is seen."""
        seen: list[list[tuple[str, str]]] = []

        def write() -> None:
            self.cache.change(machine("2", "demo-new"), is_deleted=False)
            self.cache.change(machine("3"), is_deleted=False)

        self.at_each_line(write, lambda: seen.append(self.names()))
        late = [one for one in seen if (NAME, "3") in one and ("demo-new", "2") not in one]
        self.assertEqual([], late)
        self.assertIn([("demo-new", "2"), ("demo-other", "1"), (NAME, "3")], [self.names()])

    def test_all_that_is_new_is_seen_at_once(self) -> None:
        seen: list[list[tuple[str, str]]] = []
        self.at_each_line(
            lambda: self.fill(machine("5"), machine("5", "demo-other")),
            lambda: seen.append(self.names()),
        )
        versions = {frozenset(version for _, version in one) for one in seen}
        self.assertEqual({frozenset({"1"}), frozenset({"5"})}, versions)

    def test_what_is_gone_is_in_no_index(self) -> None:
        self.cache.change(machine("2"), is_deleted=True)
        self.cache.change(machine("2", "demo-other"), is_deleted=True)
        self.assertEqual(
            [None, [], ["else"], "", frozenset()],
            [
                self.cache.get(NAMESPACE, NAME),
                self.names(),
                [one["metadata"]["name"] for one in self.cache.list(NAMESPACE, None)],
                self.cache.version(NAMESPACE, NAME),
                self.cache.versions(NAMESPACE, RELEASE),
            ],
        )

    def test_an_object_of_another_release_now_leaves_the_former(self) -> None:
        self.cache.change(machine("2", release="else"), is_deleted=False)
        self.assertEqual([("demo-other", "1")], self.names())
        listed = self.cache.list(NAMESPACE, {names.LABEL_CLUSTER_NAME: "else"})
        self.assertEqual([NAME, "else"], [one["metadata"]["name"] for one in listed])
