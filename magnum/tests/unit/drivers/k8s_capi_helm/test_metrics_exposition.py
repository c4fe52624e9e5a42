# SPDX-License-Identifier: Apache-2.0
"""Metrics of real processes as Prometheus reads them: by HTTP and from files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import datetime
import importlib.util
import os
import pathlib
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from typing import Any
import unittest
import urllib.request

from prometheus_client import CollectorRegistry, parser
import testtools

from magnum.drivers.k8s_capi_helm.metrics import exposition, record
from magnum.drivers.k8s_capi_helm.metrics.port import MetricsPort
from magnum.drivers.k8s_capi_helm.metrics.textfile import TextFile

_PATIENCE = 60.0
NOW = datetime.datetime(2026, 11, 1, tzinfo=datetime.timezone.utc)
Samples = dict[tuple[str, str, str], float]


def samples(text: str) -> Samples:
    """Values by name, process and class of the status."""
    return {
        (sample.name, sample.labels["process"], sample.labels.get("code", "")): sample.value
        for family in parser.text_string_to_metric_families(text)
        for sample in family.samples
    }


def scrape(port: int) -> str:
    """What Prometheus would read."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        return str(answer.read().decode())


def free_port() -> int:
    """A port with some free ones behind it, below those that the kernel gives out."""
    for first in range(20000 + os.getpid() % 8000, 32000, 10):
        with contextlib.ExitStack() as taken:
            try:
                for port in range(first, first + 5):
                    taken.enter_context(_listening(port))
            except OSError:
                continue
            return first
    raise AssertionError("no port is free")


@contextlib.contextmanager
def _listening(port: int) -> Iterator[socket.socket]:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(1)
        yield listener


class DirectoryCase(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        directory = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def files(self) -> list[str]:
        return sorted(path.name for path in self.directory.glob("*.prom*"))

    def eventually(self, found: Callable[[], Any]) -> Any:
        """What is found at last."""
        waited = threading.Event()
        for _ in range(int(_PATIENCE / 0.05)):
            with contextlib.suppress(OSError):
                if result := found():
                    return result
            waited.wait(0.05)
        raise AssertionError(f"not found in time; there is {os.listdir(self.directory)}")


class ProcessCase(DirectoryCase):
    """Processes with metrics in one directory and on ports from one on."""

    def setUp(self) -> None:
        super().setUp()
        self.port = free_port()

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        program = pathlib.Path(__file__).with_name("metrics_process.py")
        place = [str(self.directory), str(self.port)]
        process = subprocess.Popen([sys.executable, "-W", "ignore", str(program), *place, *words])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def scraped(self, number: int) -> Samples:
        """What the process with a number says at its port, as soon as it does."""
        found: Samples = self.eventually(lambda: samples(scrape(self.port + number)))
        return found


class TestProcesses(ProcessCase):
    def test_two_workers_of_a_host(self) -> None:
        self.start()
        self.eventually(lambda: self.files() == ["k8s_capi_helm-0.prom"])
        self.start()
        self.eventually(lambda: len(self.files()) == 2)
        for number in (0, 1):
            found = self.scraped(number)
            requests = ("k8s_capi_helm_api_requests_total", str(number), "2xx")
            self.assertEqual(1, found[requests])
            self.assertEqual({str(number)}, {process for _, process, _ in found})
            path = self.directory / f"k8s_capi_helm-{number}.prom"
            self.assertEqual(0o644, stat.S_IMODE(path.stat().st_mode))
            self.assertEqual(1, samples(path.read_text())[requests])

    def test_a_worker_that_is_forked_later_has_its_own(self) -> None:
        self.start("fork")
        self.eventually(lambda: len(self.files()) == 2)
        name = "k8s_capi_helm_api_requests_total"
        parent, worker = self.scraped(0), self.scraped(1)
        self.assertEqual(1, parent[name, "0", "2xx"])
        self.assertNotIn((name, "0", "5xx"), parent)
        self.assertEqual(1, worker[name, "1", "5xx"])
        self.assertNotIn((name, "1", "2xx"), worker)

    def test_files_of_killed_processes_are_removed(self) -> None:
        processes = [self.start() for _ in range(3)]
        self.eventually(lambda: len(self.files()) == 3)
        own = TextFile(self.directory, lambda number: b"own")
        own.write()
        self.assertIn("k8s_capi_helm-3.prom", self.files())
        for process in processes:
            process.send_signal(signal.SIGKILL)
            process.wait()
        (self.directory / "k8s_capi_helm-1.prom.begun").write_text("")
        (self.directory / "k8s_capi_helm-elsewhere.prom").write_text("")
        while len(self.files()) > 2:
            own.write()
        expected = ["k8s_capi_helm-3.prom", "k8s_capi_helm-elsewhere.prom"]
        self.assertEqual(expected, self.files())
        TextFile(self.directory, lambda number: b"").write()
        self.assertIn("k8s_capi_helm-0.prom", self.files())

    def test_a_client_that_is_silent_holds_up_nothing(self) -> None:
        self.turns_go_on()

    @unittest.skipUnless(importlib.util.find_spec("eventlet"), "eventlet is not installed")
    def test_the_same_under_eventlet(self) -> None:
        self.turns_go_on("eventlet")

    def turns_go_on(self, *words: str) -> None:
        process = self.start(*words)
        self.assertIn(("k8s_capi_helm_metrics_timestamp_seconds", "0", ""), self.scraped(0))
        turns = self.directory / f"turns-{process.pid}"
        with socket.create_connection(("127.0.0.1", self.port)):
            first = int(self.eventually(turns.read_text))
            self.eventually(lambda: int(turns.read_text() or 0) > first + 20)
        # The silent one is gone, and the next one has its answer.
        self.assertIn(("k8s_capi_helm_metrics_timestamp_seconds", "0", ""), self.scraped(0))

    @unittest.skipUnless(importlib.util.find_spec("eventlet"), "eventlet is not installed")
    def test_a_fork_under_eventlet(self) -> None:
        self.start("eventlet", "fork")
        self.eventually(lambda: "k8s_capi_helm-0.prom" in self.files())
        self.assertIn(("k8s_capi_helm_api_requests_total", "0", "2xx"), self.scraped(0))


class TestPort(testtools.TestCase):
    def test_one_that_is_taken_is_left_alone(self) -> None:
        first = free_port()
        with _listening(first):
            port = MetricsPort(first, lambda number: CollectorRegistry())
            self.addCleanup(port.close)
            self.assertEqual(first + 1, port.port)

    def test_without_a_free_one_it_is_tried_again(self) -> None:
        waits: list[float] = []

        def wait(seconds: float) -> bool:
            waits.append(seconds)
            return len(waits) == 2

        with contextlib.suppress(OSError), _listening(65535):
            exposition.serve_port(65535, lambda number: CollectorRegistry(), wait)
        self.assertEqual(2, len(waits))

    def test_only_this_host_can_connect(self) -> None:
        first = free_port()
        port = MetricsPort(first, lambda number: exposition.registry_of(number, lambda: NOW))
        thread = threading.Thread(target=port.serve, daemon=True)
        thread.start()
        record.api_request("management", 200)
        text = scrape(first)
        self.assertIn('k8s_capi_helm_metrics_timestamp_seconds{process="0"}', text)
        self.assertNotIn("_created", text)
        addresses = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
        listening = [line.split()[1] for line in addresses if f":{first:04X} 00000000" in line]
        self.assertEqual([f"0100007F:{first:04X}"], listening)
        port.close()


class TestDirectory(DirectoryCase):
    def test_one_that_is_missing_is_waited_for(self) -> None:
        directory, waits = self.directory / "later", []

        def wait(seconds: float) -> bool:
            waits.append(seconds)
            if len(waits) == 2:
                directory.mkdir()
            return len(waits) == 3

        exposition.write_files(TextFile(directory, lambda number: b"here"), wait)
        self.assertEqual(b"here", (directory / "k8s_capi_helm-0.prom").read_bytes())

    def test_what_is_no_directory_harms_nothing(self) -> None:
        place = self.directory / "file"
        place.write_text("own")
        exposition.write_files(TextFile(place, lambda number: b"here"), lambda seconds: True)
        self.assertEqual("own", place.read_text())

    def test_one_that_was_replaced_is_taken_anew(self) -> None:
        directory = self.directory / "mounted"
        directory.mkdir()
        file = TextFile(directory, lambda number: b"%d" % number)
        file.write()
        directory.rename(self.directory / "old")
        directory.mkdir()
        other = os.fork()
        if other == 0:
            TextFile(directory, lambda number: b"other").write()
            signal.pause()
        self.addCleanup(os.waitpid, other, 0)
        self.addCleanup(os.kill, other, signal.SIGKILL)
        self.eventually((directory / "k8s_capi_helm-0.prom").read_bytes)
        file.write()
        self.assertEqual(b"1", (directory / "k8s_capi_helm-1.prom").read_bytes())

    def test_a_link_is_not_followed(self) -> None:
        target = self.directory / "target"
        target.write_text("own")
        (self.directory / "k8s_capi_helm-0.prom").symlink_to(target)
        TextFile(self.directory, lambda number: b"here").write()
        self.assertEqual("own", target.read_text())
