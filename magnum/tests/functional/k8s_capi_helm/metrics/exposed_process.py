# SPDX-License-Identifier: Apache-2.0
"""A process whose metrics have all been used, at the driver's own port: exposed_process.py PORT.

Everything is said through the functions that the driver calls. It ends when its standard input
does.
"""

from __future__ import annotations

import contextlib
import sys
import time

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.metrics import exposition, record
from magnum.drivers.k8s_capi_helm.metrics.fleet import ClusterState, HEALTH_TASK
from magnum.drivers.k8s_capi_helm.metrics.registry import process_metrics
from magnum.drivers.k8s_capi_helm.model import clock


def use_all() -> None:
    """Use each metric at least once; the management cluster does not respond."""
    record.api_request(record.MANAGEMENT, record.NO_RESPONSE)
    record.breaker_state("", is_open=True)
    record.watch_ages("", lambda: {"machines": 1.0})
    record.watch_restart("machines")
    record.new_request("resize_cluster")
    record.request_refused("resize_cluster", is_expected=False)
    record.operation_ended("resize", is_failed=True, seconds=90)
    record.identity_expiry("", 0)
    for run in (lambda: record.helm_run("upgrade"), record.helm_wait, record.lock_wait):
        with run():
            pass
    with contextlib.suppress(errors.Busy), record.helm_wait():
        raise errors.Busy("No turn.")


def show_cluster() -> None:
    """What passes over a cluster leave behind."""
    metrics, now = process_metrics(), time.monotonic()
    state = ClusterState("UPDATE_FAILED", "UNHEALTHY", "quota", True, now, now)
    metrics.fleet.clusters["c-1"] = state
    metrics.fleet.certificate_expiries["c-1"] = time.time() + 86400
    metrics.pass_seconds.labels(HEALTH_TASK).observe(0.1)
    metrics.pass_interval.labels(HEALTH_TASK).observe(60)


if __name__ == "__main__":
    use_all()
    show_cluster()
    exposition.start_exposition("", int(sys.argv[1]), clock.utc_now)
    sys.stdin.read()
