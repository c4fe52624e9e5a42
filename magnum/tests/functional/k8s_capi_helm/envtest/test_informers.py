# SPDX-License-Identifier: Apache-2.0
"""Watches on a real kube-apiserver: list, changes, bookmarks, 410 Gone, restarts, their threads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
import tempfile
import threading
import time
from typing import ClassVar

import testtools

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.kube.watch import informers as kube_informers
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm.suites import informers as suites_informers
from sandbox import processes
from sandbox.management import binaries, server
from sandbox.state import State

SERVER = "kube-apiserver"
#: Seconds that something may take which takes one or two on an idle machine.
PATIENCE = 60.0


class ServerCase(testtools.TestCase):
    """A case with an API server that may be stopped: the one of all tests may not."""

    state: ClassVar[State]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        place = tempfile.TemporaryDirectory()
        cls.addClassCleanup(place.cleanup)
        cls.state = State(Path(place.name))
        cls.addClassCleanup(processes.stop_all, cls.state)
        cls.up()

    @classmethod
    def up(cls) -> None:
        """Start what does not run of etcd and the API server."""
        server.start(cls.state, binaries.build())

    @classmethod
    def down(cls) -> None:
        """Stop the API server; etcd stays."""
        processes.stop(cls.state, SERVER)

    def setUp(self) -> None:
        super().setUp()
        self.kube = KubeClient(str(server.kubeconfig(self.state)))

    def until(self, question: Callable[[], bool]) -> float:
        """Seconds until a question is answered with yes."""
        began, pause = time.monotonic(), threading.Event()
        while not question():
            if time.monotonic() - began > PATIENCE:
                self.fail("it has not come about")
            pause.wait(0.05)
        return time.monotonic() - began


class TestWatching(suites_informers.WatchingTests, ServerCase):
    """The promises, kept over the wire."""

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        # A server that was started again has not seen what was before, and says 410.
        cls.down()
        cls.up()

    def test_a_watch_ends_when_it_was_asked_to(self) -> None:
        _, since = self.kube.snapshot(names.LEASE, lambda thing: thing)
        began = time.monotonic()
        marks = [what for what, _ in self.kube.changes(names.LEASE, since, 1) if what == "BOOKMARK"]
        self.assertLess(time.monotonic() - began, 15)
        self.assertIn(marks, ([], ["BOOKMARK"]))

    def test_what_is_too_long_ago_is_a_conflict(self) -> None:
        changes = self.kube.changes(names.LEASE, self.long_ago(), 1)
        error = self.assertRaises(errors.Conflict, list, changes)
        self.assertIn("too old resource version", error.detail)


class TestThreads(suites_informers.WithLeases, ServerCase):
    """Watches that go on by themselves, also when the API server does not."""

    def watching(self, staleness: float) -> tuple[kube_informers.Informers, str, threading.Event]:
        """Watches of one new namespace, and the event that they have been told of something."""
        namespace, seen = self.make_namespace(), threading.Event()
        found = kube_informers.Informers(
            self.kube,
            staleness=staleness,
            covers=lambda name: name == namespace,
            kinds=(names.LEASE,),
        )
        self.addCleanup(found.stop)
        found.start(lambda thing: seen.set())
        self.until(lambda: found.view().watched)
        return found, namespace, seen

    def known(self, watching: kube_informers.Informers, namespace: str) -> list[str]:
        """Names that are known without asking."""
        view = watching.view()
        self.assertTrue(view.watched)
        return [one["metadata"]["name"] for one in view.list(names.LEASE, namespace, None)]

    def test_they_follow(self) -> None:
        watching, namespace, seen = self.watching(suites_informers.STALENESS)
        self.make_lease(namespace)
        self.assertLess(self.until(seen.is_set), 5)
        self.assertEqual(["one"], self.known(watching, namespace))

    def test_an_api_server_that_goes_and_comes_back(self) -> None:
        self.kube = KubeClient(str(server.kubeconfig(self.state)), breaker_pause=1)
        watching, namespace, seen = self.watching(3)
        self.make_lease(namespace)
        self.until(seen.is_set)
        self.addCleanup(self.up)
        self.down()
        self.assertLess(self.until(lambda: not watching.view().watched), 3.5)
        view = watching.view()
        self.assertRaises(errors.ManagementUnreachable, view.list, names.LEASE, namespace, None)
        self.up()
        self.make_lease(namespace, "two")
        self.until(lambda: watching.view().watched)
        self.until(lambda: self.known(watching, namespace) == ["one", "two"])
        seen.clear()
        self.kube.delete(names.LEASE, namespace, "one")
        self.until(seen.is_set)
        self.assertEqual(["two"], self.known(watching, namespace))
