# SPDX-License-Identifier: Apache-2.0
"""Where the metrics of this process can be read: a file, a port, both or neither.

Everything happens in threads of their own, so that neither a directory nor a port can hold up or
fail what the driver does. They are started by the first request or pass that a process carries out,
so that they are of the worker that was forked, and not of its parent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
import contextlib
import datetime
import functools
import os
import pathlib
import threading
import time

from oslo_log import log as logging
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from magnum.drivers.k8s_capi_helm.metrics.port import MetricsPort
from magnum.drivers.k8s_capi_helm.metrics.registry import PREFIX, process_metrics
from magnum.drivers.k8s_capi_helm.metrics.textfile import TextFile

LOG = logging.getLogger(__name__)

#: Seconds between two files, as often as Prometheus reads by default at most.
INTERVAL = 15.0
#: Seconds until a port is tried again.
_RETRY = 60.0
#: Not empty once :func:`start_exposition` was called in this process.
STARTED: list[object] = []
os.register_at_fork(after_in_child=STARTED.clear)


class _OfProcess(Collector):
    """All metrics with the number of their process, and when they were read."""

    def __init__(self, number: int, now: Callable[[], datetime.datetime]) -> None:
        self._number = str(number)
        self._now = now

    def collect(self) -> Iterable[Metric]:
        read_at = GaugeMetricFamily(
            f"{PREFIX}metrics_timestamp_seconds", "When these metrics were written or read"
        )
        read_at.add_metric([], self._now().timestamp())
        for family in (*process_metrics().registry.collect(), read_at):
            family.samples = [
                sample._replace(labels={**sample.labels, "process": self._number})
                for sample in family.samples
                # When this process has used a label first: as many series as there are metrics.
                if not sample.name.endswith("_created")
            ]
            yield family


def registry_of(number: int, now: Callable[[], datetime.datetime]) -> CollectorRegistry:
    """What is read of this process.

    :param number: that tells it from the others of its host.
    :param now: the time of this host.
    """
    registry = CollectorRegistry()
    registry.register(_OfProcess(number, now))
    return registry


def start_exposition(directory: str, first_port: int, now: Callable[[], datetime.datetime]) -> None:
    """Let the metrics of this process be read, from now on until it ends; once is enough.

    :param directory: of files, "" for none.
    :param first_port: the first one that is tried, 0 for none.
    :param now: the time of this host.
    """
    own = object()
    STARTED.append(own)
    if STARTED[0] is not own:
        return

    def registry(number: int) -> CollectorRegistry:
        return registry_of(number, now)

    if directory:
        file = TextFile(pathlib.Path(directory), lambda number: generate_latest(registry(number)))
        _run("metrics-file", functools.partial(write_files, file))
    if first_port:
        _run("metrics-port", functools.partial(serve_port, first_port, registry))


def _run(name: str, function: Callable[[], None]) -> None:
    try:
        threading.Thread(target=function, name=name, daemon=True).start()
    except RuntimeError as error:
        LOG.warning("No thread can be started for %s: %s", name, error)


def write_files(file: TextFile, wait: Callable[[float], object] = time.sleep) -> None:
    """Write a file again and again, until *wait* returns something.

    :param wait: waits so many seconds.
    """
    trouble = ""
    while True:
        before, trouble = trouble, ""
        try:
            file.write()
        except Exception as error:
            trouble = f"{type(error).__name__}: {error}"
            if trouble != before:
                LOG.warning("[capi_helm] metrics_directory: no metrics are written: %s", trouble)
        if before and not trouble:
            LOG.info("[capi_helm] metrics_directory: metrics are written again.")
        if wait(INTERVAL):
            return


def serve_port(
    first_port: int,
    registry: Callable[[int], CollectorRegistry],
    wait: Callable[[float], object] = time.sleep,
) -> None:
    """Answer requests on the first free port, until *wait* returns something after a failure.

    :param registry: of the metrics, by the number of the process.
    :param wait: waits so many seconds.
    """
    trouble = ""
    while True:
        try:
            port = MetricsPort(first_port, registry)
            with contextlib.closing(port):
                LOG.info("The metrics of this process are on port %d.", port.port)
                port.serve()
            return
        except Exception as error:
            before, trouble = trouble, f"{type(error).__name__}: {error}"
            if trouble != before:
                LOG.warning("[capi_helm] metrics_port: metrics cannot be read: %s", trouble)
        if wait(_RETRY):
            return
