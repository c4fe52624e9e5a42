# SPDX-License-Identifier: Apache-2.0
"""The metrics of this process: each with its name, its labels and what it counts.

Values of labels are words of the driver's own code, and names of management clusters: never a name,
an id of a project or a text that a tenant has written, and no more of them than there are.
"""

from __future__ import annotations

from collections.abc import Iterable
import os

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from magnum.drivers.k8s_capi_helm.metrics.fleet import ClusterMetrics
from magnum.drivers.k8s_capi_helm.metrics.management_clusters import ManagementMetrics

PREFIX = "k8s_capi_helm_"
#: Upper bounds of histograms, in seconds.
_WAITS = (0.01, 0.1, 0.5, 1, 5, 10, 30, 60, 120)
_OPERATIONS = (30, 60, 120, 300, 600, 900, 1200, 1800, 2700, 3600, 5400, 7200)
_INTERVALS = (5, 10, 15, 20, 30, 60, 90, 120, 180, 300, 600)
_RUNS = (0.5, 1, 2, 5, 10, 20, 30, 60, 90, 120, 180)


class ProcessMetrics:
    """All metrics of one process; safe to share between threads."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.helm_runs = self._counter(
            "helm_runs",
            "Helm processes by subcommand and by what came of them",
            "command",
            "result",
        )
        self.helm_run_seconds = self._histogram(
            "helm_run_duration_seconds", "Duration of Helm processes", _RUNS, "command"
        )
        self.helm_runs_waiting = self._gauge(
            "helm_runs_waiting", "Helm runs that wait for one of max_helm_runs"
        )
        self.helm_wait_seconds = self._histogram(
            "helm_wait_seconds", "Time that Helm runs waited for one of max_helm_runs", _WAITS
        )
        self.helm_runs_refused = self._counter(
            "helm_runs_refused", "Helm runs that had no turn and are left to the status task"
        )
        self._add_clients()
        self._add_passes()

    def _add_clients(self) -> None:
        """Those of the management cluster, of its locks, and of OpenStack."""
        self.locks_waiting = self._gauge("locks_waiting", "Threads that wait for a release's lock")
        self.lock_wait_seconds = self._histogram(
            "lock_wait_seconds",
            "Time until a release's lock was taken or refused",
            _WAITS,
            "result",
        )
        self.api_requests = self._counter(
            "api_requests",
            "Requests by API and by class of the HTTP status, or why there was none",
            "api",
            "code",
        )
        self.watch_restarts = self._counter(
            "watch_restarts",
            "Watches that ended with an error, so that all is listed again",
            "kind",
        )
        self.management_clusters = ManagementMetrics(PREFIX)
        self.registry.register(self.management_clusters)

    def _add_passes(self) -> None:
        """Those of requests, operations, periodic tasks and clusters."""
        self.requests = self._counter(
            "requests", "Requests of Magnum by verb of its driver interface", "verb"
        )
        self.requests_refused = self._counter(
            "requests_refused", "Requests that were refused, or have failed", "verb", "result"
        )
        self.operations = self._counter(
            "operations", "Operations that have ended", "operation", "result"
        )
        self.operation_seconds = self._histogram(
            "operation_duration_seconds",
            "Time from the request for an operation to its end",
            _OPERATIONS,
            "operation",
            "result",
        )
        self.pass_seconds = self._histogram(
            "pass_duration_seconds", "Duration of a periodic task of one cluster", _WAITS, "task"
        )
        self.pass_interval = self._histogram(
            "pass_interval_seconds",
            "Time between two periodic tasks of one cluster, start to start",
            _INTERVALS,
            "task",
        )
        self.fleet = ClusterMetrics(PREFIX)
        self.registry.register(self.fleet)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"{PREFIX}{name}", text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"{PREFIX}{name}", text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: Iterable[float], *labels: str) -> Histogram:
        return Histogram(
            f"{PREFIX}{name}", text, labels, registry=self.registry, buckets=tuple(buckets)
        )


#: Of this process; a forked one begins with its own, because a lock of the parent's may be held.
_made: list[ProcessMetrics] = []
os.register_at_fork(after_in_child=_made.clear)


def process_metrics() -> ProcessMetrics:
    """The metrics of this process."""
    if not _made:
        # Of two threads that come here at once both use the first.
        _made.append(ProcessMetrics())
    return _made[0]
