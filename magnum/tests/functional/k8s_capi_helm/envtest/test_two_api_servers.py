# SPDX-License-Identifier: Apache-2.0
"""Two management clusters on real API servers, of which one stops answering and stays connected."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import os
from pathlib import Path
import signal
import statistics
import tempfile
import threading
import time
from typing import ClassVar

import testtools

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.clusters import list_clusters
from magnum.drivers.k8s_capi_helm.model import Json, names
from magnum.drivers.k8s_capi_helm.reconcile.process import clients
from magnum.tests.functional.k8s_capi_helm import envtest
from magnum.tests.unit.drivers.k8s_capi_helm.test_management_clusters import config_with_magnum
from sandbox import processes
from sandbox.management import binaries, server
from sandbox.state import State

SERVER = "kube-apiserver"
NAMESPACE = "magnum-two"
OTHER = "az2"
#: Looks, each of one request, that are measured.
LOOKS = 40
#: Seconds that a request waits for the silent one in this test.
SHORT = 2.0
PATIENCE = 60.0


class TwoServers(testtools.TestCase):
    """The default management cluster is that of all tests; the other one may be frozen."""

    state: ClassVar[State]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        place = tempfile.TemporaryDirectory()
        cls.addClassCleanup(place.cleanup)
        cls.state = State(Path(place.name))
        cls.addClassCleanup(processes.stop_all, cls.state)
        server.start(cls.state, binaries.build())

    def setUp(self) -> None:
        super().setUp()
        conf = config_with_magnum(
            self,
            f"[capi_helm]\nkubeconfig_file = {envtest.kubeconfig()}\n"
            f"management_connect_timeout = {SHORT}\nmanagement_read_timeout = {SHORT}\n"
            f"management_clusters = default, {OTHER}\nlease_duration = 200\nwatch_staleness = 9\n"
            f"[capi_helm_management_{OTHER}]\nkubeconfig_file = {server.kubeconfig(self.state)}\n",
        )
        self.here = clients.build(conf)
        self.there = self.here.at(OTHER)
        for one in self.here.all_clients():
            with contextlib.suppress(errors.Conflict):
                one.kube.create(names.NAMESPACE, {"metadata": {"name": NAMESPACE}})

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """The other API server takes connections, and answers nothing."""
        pids = processes.members(self.state, SERVER)
        self.assertNotEqual([], pids)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def looks(self) -> list[float]:
        """Seconds of requests to the default management cluster."""
        seconds = []
        for _ in range(LOOKS):
            began = time.monotonic()
            self.here.kube.list(names.LEASE, NAMESPACE)
            seconds.append(time.monotonic() - began)
        return seconds

    def until(self, is_so: Callable[[], bool]) -> None:
        began, pause = time.monotonic(), threading.Event()
        while not is_so():
            if time.monotonic() - began > PATIENCE:
                self.fail("it has not come about")
            pause.wait(0.05)


class TestSilent(TwoServers):
    def test_requests_of_the_other_take_no_longer(self) -> None:
        """While as many threads as Magnum has for requests hang in the silent one."""
        alone, stop = self.looks(), threading.Event()

        def hang() -> None:
            while not stop.is_set():
                with contextlib.suppress(errors.DriverError):
                    self.there.kube.list(names.LEASE, NAMESPACE)
                stop.wait(0.2)

        with self.frozen():
            threads = [threading.Thread(target=hang) for _ in range(64)]
            for thread in threads:
                thread.start()
            try:
                beside = self.looks()
                self.until(self.there.kube.is_unreachable)
                after = self.looks()
            finally:
                stop.set()
                for thread in threads:
                    thread.join(PATIENCE)
        medians = [statistics.median(seconds) for seconds in (alone, beside, after)]
        print("median seconds alone, beside, with the circuit open:", medians)  # noqa: T201
        self.assertLess(max(*beside, *after), SHORT)
        self.assertLess(max(medians[1:]), max(10 * medians[0], 0.2))
        self.assertFalse(self.here.kube.is_unreachable())

    def test_locks_and_records_go_on(self) -> None:
        for one in self.here.all_clients():
            one.leases.open(NAMESPACE, "one", cluster_uuid="u", project_id="p")
        with self.frozen():
            held = threading.Event()

            def wait_there() -> None:
                held.set()
                with (
                    contextlib.suppress(errors.DriverError),
                    self.there.leases.acquire(NAMESPACE, "one", wait=5),
                ):
                    pass

            thread = threading.Thread(target=wait_there)
            thread.start()
            self.assertTrue(held.wait(PATIENCE))
            began = time.monotonic()
            with self.here.leases.acquire(NAMESPACE, "one", wait=0) as lease:
                self.assertFalse(lease.is_lost())
            self.assertLess(time.monotonic() - began, SHORT)
        thread.join(PATIENCE)

    def test_watches_of_the_other_stay_fresh(self) -> None:
        for one in self.here.all_clients():
            assert one.informers is not None
            self.addCleanup(one.informers.stop)
            one.informers.start()
        self.until(lambda: names.LEASE in self.here.reader().kinds)
        self.until(lambda: names.LEASE in self.there.reader().kinds)
        with self.frozen():
            self.until(lambda: names.LEASE not in self.there.reader().kinds)
            reader = self.here.reader()
            self.assertIn(names.LEASE, reader.kinds)
            manifest: Json = {"metadata": {"name": "new", "namespace": NAMESPACE, "labels": LABELS}}
            self.here.kube.create(names.LEASE, manifest)
            self.addCleanup(self.here.kube.delete, names.LEASE, NAMESPACE, "new")
            self.until(lambda: self.here.reader().get(names.LEASE, NAMESPACE, "new") is not None)
        self.until(lambda: names.LEASE in self.there.reader().kinds)

    def test_a_list_of_all_has_the_others(self) -> None:
        with self.frozen():
            began = time.monotonic()
            fleets = list_clusters.read_fleets(self.here)
            self.assertLess(time.monotonic() - began, 10 * SHORT)
        self.assertIsInstance(fleets["default"], list_clusters.Fleet)
        self.assertIsInstance(fleets[OTHER], errors.ManagementUnreachable)


LABELS = {names.LABEL_UUID: "u"}
