# SPDX-License-Identifier: Apache-2.0
"""What is counted of requests, operations and periodic tasks, and shown of clusters."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

import testtools

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.metrics import fleet, registry
from magnum.drivers.k8s_capi_helm.metrics.fleet import ClusterMetrics, ClusterState
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase, NAMESPACE
from magnum.tests.unit.drivers.k8s_capi_helm.suites import http_server
from magnum.tests.unit.drivers.k8s_capi_helm.test_kube_tls import parts, write_identity
from magnum.tests.unit.drivers.k8s_capi_helm.test_metrics import value


def shown(collector: ClusterMetrics) -> dict[tuple[str, ...], float]:
    """What a fleet shows, by the metric's name without the prefix and the values of its labels."""
    return {
        (sample.name.removeprefix("k8s_capi_helm_"), *sample.labels.values()): sample.value
        for family in collector.collect()
        for sample in family.samples
    }


class MetricsCase(DriverCase):
    """A conductor whose clusters are its own metrics'."""

    def setUp(self) -> None:
        super().setUp()
        self.metrics = registry.ProcessMetrics()
        self.ports = dataclasses.replace(self.ports, metrics=self.metrics)
        self.before: dict[tuple[Any, ...], float] = {}

    def shows(self) -> dict[tuple[str, ...], float]:
        return shown(self.metrics.fleet)

    def count(self, name: str, **labels: str) -> float:
        """How much a metric has grown since it was read first."""
        key = name, *labels.items()
        now = value(name, **labels)
        return now - self.before.setdefault(key, now)


class TestOperations(MetricsCase):
    def ended(self, operation: str, result: str = "complete") -> float:
        return self.count("operations_total", operation=operation, result=result)

    def test_each_counts_once_when_it_ends(self) -> None:
        for operation in ("create", "resize", "delete", "nodegroup-create", "nodegroup-delete"):
            self.assertEqual(0, self.ended(operation))
        self.create()
        self.status_task()
        self.assertEqual(0, self.ended("create"))
        self.capi_converges()
        self.status_task(3)
        self.assertEqual(1, self.ended("create"))
        self.resize(3)
        self.capi_converges()
        self.status_task(3)
        self.assertEqual(1, self.ended("resize"))
        self.add_group("second")
        self.capi_converges()
        self.status_task(3)
        self.assertEqual(1, self.ended("nodegroup-create"))
        self.drop_group("second")
        self.capi_converges()
        self.status_task(3)
        self.assertEqual(1, self.ended("nodegroup-delete"))
        self.delete()
        self.status_task()
        self.capi_deletes()
        for _ in range(6):
            self.status_task()
        self.assertEqual(1, self.ended("delete"))
        self.assertEqual({}, self.metrics.fleet.clusters)
        self.assertEqual({}, self.metrics.fleet.last_passes)

    def test_one_that_misses_its_deadline_has_failed(self) -> None:
        self.made()
        self.assertEqual(0, self.ended("resize", "failed"))
        seconds = {"operation": "resize", "result": "failed"}
        self.assertEqual(0, self.count("operation_duration_seconds_sum", **seconds))
        self.resize(3)
        self.after(minutes=61)
        self.status_task(2)
        self.assertEqual("UPDATE_FAILED", self.cluster().status)
        self.assertEqual(1, self.ended("resize", "failed"))
        self.assertEqual(0, self.ended("resize"))
        taken = self.count("operation_duration_seconds_sum", **seconds)
        self.assertTrue(3600 < taken < 3800, taken)


class TestRequests(MetricsCase):
    def test_those_that_are_refused(self) -> None:
        refused = {"verb": "create_cluster", "result": "refused"}
        self.count("requests_total", verb="create_cluster")
        self.count("requests_refused_total", **refused)
        self.create(labels={"kube_tag": "no version"})
        self.assertEqual(1, self.count("requests_total", verb="create_cluster"))
        self.assertEqual(1, self.count("requests_refused_total", **refused))

    def test_a_nodegroup_that_is_refused_fails_alone(self) -> None:
        refused = {"verb": "create_nodegroup", "result": "refused"}
        self.made()
        self.count("requests_refused_total", **refused)
        self.add_group("second", flavor_id="absent")
        self.assertEqual("CREATE_FAILED", self.group("second").status)
        self.assertEqual(1, self.count("requests_refused_total", **refused))

    def test_an_error_that_is_not_expected(self) -> None:
        error = {"verb": "create_cluster", "result": "error"}
        self.count("requests_refused_total", **error)

        def fail(name: str) -> str:
            raise KeyError(name)

        self.ports = dataclasses.replace(self.ports, release_name=fail)
        self.create()
        self.assertEqual("CREATE_FAILED", self.cluster().status)
        self.assertEqual(1, self.count("requests_refused_total", **error))


class TestClusters(MetricsCase):
    def test_status_health_and_reason(self) -> None:
        self.create()
        self.status_task()
        self.assertEqual(1, self.shows()["clusters", "CREATE_IN_PROGRESS", "UNKNOWN"])
        [reason] = [key[1] for key in self.shows() if key[0] == "cluster_reasons"]
        self.assertIn(reason, {"waiting", *(cause.value for cause in errors.Cause)})
        self.capi_converges()
        self.status_task(3)
        self.health_task()
        self.health_task()
        self.assertEqual(1, self.shows()["clusters", "CREATE_COMPLETE", "HEALTHY"])
        self.assertEqual([], [key for key in self.shows() if key[0] == "cluster_reasons"])

    def test_a_text_of_a_tenant_is_no_label(self) -> None:
        cluster = self.made()
        cluster.status, cluster.status_reason = "UPDATE_IN_PROGRESS", "tenant-text: x"
        cluster.save()
        self.health_task()
        self.assertEqual(1, self.shows()["cluster_reasons", "other"])
        self.assertNotIn("tenant-text", repr(self.shows()))

    def test_no_reason_is_no_other_reason(self) -> None:
        cluster = self.made()
        cluster.status, cluster.status_reason = "UPDATE_IN_PROGRESS", None
        cluster.save()
        self.health_task()
        self.assertEqual([], [key for key in self.shows() if key[0] == "cluster_reasons"])

    def test_certificates_of_a_control_plane(self) -> None:
        cluster = self.made()
        end = datetime.datetime(2041, 2, 3, tzinfo=datetime.timezone.utc)
        for machine in self.kube.list(names.MACHINE, NAMESPACE):
            machine["status"]["certificatesExpiryDate"] = f"{end:%Y-%m-%dT%H:%M:%SZ}"
            self.kube.put(names.MACHINE, machine)
        self.health_task()
        name = "cluster_certificate_expiry_timestamp_seconds"
        self.assertEqual(end.timestamp(), self.shows()[name, cluster.uuid])

    def test_passes_are_measured(self) -> None:
        self.made()
        for task in (fleet.STATUS_TASK, fleet.HEALTH_TASK):
            name = "k8s_capi_helm_pass_duration_seconds_count"
            before = self.metrics.registry.get_sample_value(name, {"task": task}) or 0
            self.resize(2)
            self.status_task()
            self.health_task()
            after = self.metrics.registry.get_sample_value(name, {"task": task})
            self.assertEqual(before + 1, after, task)

    def test_no_task_is_late_between_two_operations(self) -> None:
        self.made()
        name, labels = "k8s_capi_helm_pass_interval_seconds_count", {"task": fleet.STATUS_TASK}
        before = self.metrics.registry.get_sample_value(name, labels)
        self.resize(3)
        self.status_task()
        self.assertEqual(before, self.metrics.registry.get_sample_value(name, labels))
        self.status_task()
        self.assertEqual((before or 0) + 1, self.metrics.registry.get_sample_value(name, labels))


class TestFleet(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.fleet = ClusterMetrics("k8s_capi_helm_")

    def put(self, uuid: str, **changes: Any) -> None:
        now = self.fleet.cleaned
        state = ClusterState("CREATE_COMPLETE", "HEALTHY", "", False, now, now)
        self.fleet.clusters[uuid] = dataclasses.replace(state, **changes)

    def test_as_few_series_as_there_are_words(self) -> None:
        for number in range(1000):
            self.put(f"{number}", has_credential_issue=number < 3)
            self.fleet.certificate_expiries[f"{number}"] = 5000.0 - number
        found = shown(self.fleet)
        self.assertEqual(1000, found["clusters", "CREATE_COMPLETE", "HEALTHY"])
        self.assertEqual((3.0,), (found["cluster_credential_problems",],))
        expiries = {key[1]: end for key, end in found.items() if len(key) == 2}
        self.assertEqual({f"{number}": 5000.0 - number for number in range(990, 1000)}, expiries)

    def test_a_cluster_that_no_task_comes_by_is_gone(self) -> None:
        self.put("old", seen_at=self.fleet.cleaned - fleet.FORGOTTEN - 1)
        self.put("new")
        self.fleet.certificate_expiries["old"] = 1.0
        self.fleet.last_passes[fleet.HEALTH_TASK, "old"] = 1.0
        self.assertEqual(1, shown(self.fleet)["clusters", "CREATE_COMPLETE", "HEALTHY"])
        self.assertEqual({}, self.fleet.certificate_expiries)
        self.assertEqual({}, self.fleet.last_passes)


class TestExpiry(http_server.WireCase):
    def test_without_a_client_certificate(self) -> None:
        registry.process_metrics().management_clusters.expiries[""] = 5
        self.kube.get(names.LEASE, "n", "one")
        self.assertEqual(0, value("management_certificate_expiry_timestamp_seconds"))

    def test_a_client_certificate(self) -> None:
        for days, is_shown in ((30, True), (13, False)):
            identity = write_identity(self.directory / f"{days}.pem", hours=(-1, 24 * days))
            http_server.write_kubeconfig(self.config, "https://127.0.0.1:9", parts(identity))
            self.assertRaises(errors.ManagementUnreachable, self.kube.get, names.LEASE, "n", "one")
            end = value("management_certificate_expiry_timestamp_seconds")
            now = datetime.datetime.now(datetime.timezone.utc).timestamp()
            self.assertEqual(is_shown, abs(end - now - days * 86400) < 600, end)
            self.assertEqual(is_shown, bool(end))
