# SPDX-License-Identifier: Apache-2.0
"""What is counted where it happens: runs of Helm, locks, requests, the breaker, watches."""

from __future__ import annotations

from collections.abc import Callable
import pathlib
import tempfile
import threading
from typing import Any

from keystoneauth1 import exceptions as ka_exceptions
from openstack import exceptions as sdk_exceptions
import testtools

from magnum.drivers.k8s_capi_helm import errors, model
from magnum.drivers.k8s_capi_helm.cloud.access import services
from magnum.drivers.k8s_capi_helm.helm import HelmClient
from magnum.drivers.k8s_capi_helm.helm.fair_queue import FairQueue
from magnum.drivers.k8s_capi_helm.kube.http.circuit_breaker import CircuitBreaker
from magnum.drivers.k8s_capi_helm.kube.http.transport import Transport
from magnum.drivers.k8s_capi_helm.kube.watch.informers import Informers
from magnum.drivers.k8s_capi_helm.lease import ReleaseLeases
from magnum.drivers.k8s_capi_helm.metrics import record, registry
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm.fakes import FakeKube
from magnum.tests.unit.drivers.k8s_capi_helm.suites import http_server
from magnum.tests.unit.drivers.k8s_capi_helm.test_kube_circuit_breaker import REQUEST

_HELM = """#!/bin/sh
if [ "$1" = version ]; then echo v3.21.4; exit 0; fi
cat > /dev/null
echo "{words}" >&2
exit {code}
"""


def value(name: str, **labels: str) -> float:
    """A metric of this process, 0 where it is not known yet."""
    metrics = registry.process_metrics().registry
    return metrics.get_sample_value(f"k8s_capi_helm_{name}", labels) or 0.0


class MetricsCase(testtools.TestCase):
    """Compares metrics before and after: other tests of this process count, too."""

    def expect(self, work: Callable[[], Any], name: str, **labels: str) -> None:
        """One more of a metric, whether the work succeeds or is refused by the driver."""
        before = value(name, **labels)
        try:
            work()
        except errors.DriverError:
            pass
        self.assertEqual(before + 1, value(name, **labels), (name, labels))


class TestHelm(MetricsCase):
    def client(self, words: str = "", code: int = 0) -> tuple[HelmClient, model.Chart]:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        helm = pathlib.Path(directory.name, "helm")
        helm.write_text(_HELM.format(words=words, code=code))
        helm.chmod(0o755)
        client = HelmClient(FakeKube(), executable=str(helm), timeout=20)
        return client, model.Chart(path=directory.name, name="c", version="1")

    def test_runs_by_subcommand_and_family(self) -> None:
        for words, code, family in (
            ("", 0, "success"),
            ("Error: namespaces 'n' is forbidden: no", 1, "helm_refused"),
            ("Error: connection refused", 1, "helm_interrupted"),
            ("Error: another operation (install/upgrade/rollback) is in progress", 1, "busy"),
            ("Error: chart 'c' matching 1 not found: not found", 1, "chart_not_found"),
        ):
            client, chart = self.client(words, code)
            labels = {"command": "template", "result": family}
            self.expect(lambda: client.check("n", "r", chart, {}), "helm_runs_total", **labels)  # noqa: B023
        seconds = value("helm_run_duration_seconds_sum", command="template")
        self.assertGreater(seconds, 0)

    def test_no_text_of_a_tenant_is_a_label(self) -> None:
        client, chart = self.client("Error: execution error at (x): 'tenant-secret'", 1)
        before = value("helm_runs_total", command="template", result="helm_refused")
        self.assertRaises(errors.HelmRefused, client.check, "n", "tenant-release", chart, {})
        after = value("helm_runs_total", command="template", result="helm_refused")
        self.assertEqual(before + 1, after)
        for family in registry.process_metrics().registry.collect():
            self.assertNotIn("tenant-", repr(family.samples))

    def test_an_error_that_is_not_the_drivers_is_unexpected(self) -> None:
        def work() -> None:
            with record.helm_run("upgrade"):
                raise KeyError("x")

        labels = {"command": "upgrade", "result": "unexpected"}
        before = value("helm_runs_total", **labels)
        self.assertRaises(KeyError, work)
        self.assertEqual(before + 1, value("helm_runs_total", **labels))

    def test_the_queue(self) -> None:
        turns, seen = FairQueue(1), []

        def stop() -> bool:
            seen.append(value("helm_runs_waiting"))
            return True

        def wait() -> None:
            with turns.acquire("b", wait=60, stop=stop):
                self.fail("there is one run at once")

        with turns.acquire("a", wait=60, stop=lambda: False):
            self.expect(wait, "helm_runs_refused_total")
        self.assertEqual([1.0], seen)
        self.assertEqual(0, value("helm_runs_waiting"))
        self.assertGreaterEqual(value("helm_wait_seconds_count"), 2)


class TestLock(MetricsCase):
    def test_taken_and_held(self) -> None:
        kube = FakeKube()
        kube.create(names.NAMESPACE, {"metadata": {"name": "n"}})
        leases = ReleaseLeases(kube, holder="one", lease_duration=60)
        leases.open("n", "r", cluster_uuid="u", project_id="p")

        def take() -> None:
            with leases.acquire("n", "r", wait=0):
                self.expect(take_again, "lock_wait_seconds_count", result="held")

        def take_again() -> None:
            with leases.acquire("n", "r", wait=0):
                self.fail("it has a holder")

        self.expect(take, "lock_wait_seconds_count", result="taken")
        self.assertEqual(0, value("locks_waiting"))

    def test_what_cannot_be_read_is_an_error(self) -> None:
        leases = ReleaseLeases(FakeKube(), holder="one", lease_duration=60)

        def take() -> None:
            with leases.acquire("n", "absent", wait=0):
                self.fail("there is no Lease")

        self.expect(take, "lock_wait_seconds_count", result="error")


class TestRequests(http_server.WireCase, MetricsCase):
    def get(self) -> None:
        self.kube.get(names.LEASE, "n", "one")

    def test_by_class_of_the_status(self) -> None:
        self.get()  # also asks which kinds there are
        for code, body, label in (
            (200, self.lease(), "2xx"),
            (404, http_server.GONE, "4xx"),
            (403, http_server.status("Forbidden"), "4xx"),
        ):
            self.answer((code, body))
            before = value("api_requests_total", api="management", code=label)
            try:
                self.get()
            except errors.DriverError:
                pass
            after = value("api_requests_total", api="management", code=label)
            self.assertGreater(after, before, code)

    def test_each_attempt_counts(self) -> None:
        self.get()
        self.answer((500, http_server.status("InternalError")))
        before = value("api_requests_total", api="management", code="5xx")
        self.assertRaises(errors.ManagementUnreachable, self.get)
        self.assertEqual(before + 3, value("api_requests_total", api="management", code="5xx"))

    def test_an_open_breaker(self) -> None:
        breaker = CircuitBreaker(failures=2, max_pause=1000, max_wait=1000, clock=lambda: 1.0)
        bounds = {"connect_timeout": 0.3, "read_timeout": 0.3, "pause": 0.001}
        wire = Transport(str(self.config), **bounds, breaker=breaker)
        http_server.write_kubeconfig(self.config, "http://127.0.0.1:9")
        silent = value("api_requests_total", api="management", code="no_response")
        not_sent = value("api_requests_total", api="management", code="not_sent")
        self.assertRaises(errors.ManagementUnreachable, wire.send, REQUEST)
        self.assertEqual(1, value("circuit_breaker_open"))
        self.assertRaises(errors.ManagementUnreachable, wire.send, REQUEST)
        after = value("api_requests_total", api="management", code="no_response")
        self.assertEqual(silent + 2, after)
        after = value("api_requests_total", api="management", code="not_sent")
        self.assertGreater(after, not_sent)
        breaker.close()
        self.assertEqual(0, value("circuit_breaker_open"))

    def test_openstack(self) -> None:
        for error, label in (
            (None, "2xx"),
            (sdk_exceptions.HttpException("x", http_status=503), "5xx"),
            (sdk_exceptions.HttpException("x", http_status=409), "4xx"),
            (ka_exceptions.http.InternalServerError(), "5xx"),
            (ka_exceptions.ConnectTimeout("x"), "no_response"),
            (KeyError("x"), "malformed"),
        ):

            def ask(raised: Exception | None = error) -> None:
                with services.translate_errors("Nova", "the flavors"):
                    if raised:
                        raise raised

            self.expect(ask, "api_requests_total", api="nova", code=label)


class TestWatches(MetricsCase):
    def test_restarts_and_ages(self) -> None:
        now = [1000.0]
        kube = FakeKube()
        informers = Informers(
            kube,
            staleness=45,
            covers=lambda namespace: True,
            kinds=(names.CLUSTER,),
            clock=lambda: now[0],
            spawn=lambda name, run: None,
        )
        self.assertIsNone(_age())
        informers.start()
        now[0] = 1007.0
        self.assertEqual(7, _age())
        [watch] = informers.watches
        watch.list_and_watch()
        now[0] = 1010.0
        self.assertEqual(3, _age())
        informers.stop()
        self.assertIsNone(_age())

    def test_a_watch_that_fails(self) -> None:
        class Refusing(FakeKube):
            def snapshot(self, *arguments: Any) -> Any:
                raise errors.ManagementUnreachable("no", "no")

        informers = Informers(
            Refusing(), staleness=45, covers=lambda namespace: True, kinds=(names.CLUSTER,)
        )
        [watch] = informers.watches
        self.expect(watch.list_and_watch, "watch_restarts_total", kind="clusters")


def _age() -> float | None:
    metrics = registry.process_metrics().registry
    return metrics.get_sample_value("k8s_capi_helm_watch_age_seconds", {"kind": "clusters"})


class TestProcess(MetricsCase):
    def test_threads_share_their_metrics(self) -> None:
        seen: list[registry.ProcessMetrics] = []
        thread = threading.Thread(target=lambda: seen.append(registry.process_metrics()))
        thread.start()
        thread.join()
        self.assertIs(registry.process_metrics(), seen[0])
