# SPDX-License-Identifier: Apache-2.0
"""What callers say of what they do: one line each, which never fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
import contextlib
import re
import time

from prometheus_client import Gauge

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.metrics.registry import process_metrics

SUCCESS = "success"
#: The API of the management cluster; the others are services of OpenStack.
MANAGEMENT = "management"
#: Results of requests without an HTTP status.
NO_RESPONSE, NOT_SENT, MALFORMED = "no_response", "not_sent", "malformed"
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")


def error_family(error: BaseException) -> str:
    """The family of an error, as a label: ``helm_refused``; ``unexpected`` of others than ours."""
    if not isinstance(error, errors.DriverError):
        return "unexpected"
    return _HUMP.sub("_", type(error).__name__).lower()


@contextlib.contextmanager
def helm_run(command: str) -> Iterator[None]:
    """Count a run of Helm, which is made inside of the ``with``.

    :param command: Helm's subcommand.
    """
    metrics, began, result = process_metrics(), time.monotonic(), SUCCESS
    try:
        yield
    except BaseException as error:
        result = error_family(error)
        raise
    finally:
        metrics.helm_runs.labels(command, result).inc()
        metrics.helm_run_seconds.labels(command).observe(time.monotonic() - began)


@contextlib.contextmanager
def helm_wait() -> Iterator[None]:
    """Count the wait for a turn to run Helm, and that it has not come."""
    metrics, began = process_metrics(), time.monotonic()
    try:
        with _counted(metrics.helm_runs_waiting):
            yield
    except errors.Busy:
        metrics.helm_runs_refused.inc()
        raise
    finally:
        metrics.helm_wait_seconds.observe(time.monotonic() - began)


@contextlib.contextmanager
def lock_wait() -> Iterator[None]:
    """Count the wait for the lock of a release."""
    metrics, began, result = process_metrics(), time.monotonic(), "taken"
    try:
        with _counted(metrics.locks_waiting):
            yield
    except errors.LockHeld:
        result = "held"
        raise
    except BaseException:
        result = "error"
        raise
    finally:
        metrics.lock_wait_seconds.labels(result).observe(time.monotonic() - began)


@contextlib.contextmanager
def _counted(gauge: Gauge) -> Iterator[None]:
    """Show how many threads are inside."""
    gauge.inc()
    try:
        yield
    finally:
        gauge.dec()


def api_request(api: str, code: int | str) -> None:
    """Count a request.

    :param api: :data:`MANAGEMENT`, or a service of OpenStack.
    :param code: the HTTP status, or why there is none.
    """
    label = f"{code // 100}xx" if isinstance(code, int) else code
    process_metrics().api_requests.labels(api, label).inc()


def breaker_state(management: str, *, is_open: bool) -> None:
    """Show whether requests to a management cluster are refused.

    :param management: its name, "" for the default one.
    """
    process_metrics().management_clusters.breakers[management] = float(is_open)


def watch_restart(kind: str) -> None:
    """Count a watch that ended with an error, so that everything is listed again.

    :param kind: in the plural, as in the API.
    """
    process_metrics().watch_restarts.labels(kind).inc()


def watch_ages(management: str, ages: Callable[[], Mapping[str, float]]) -> None:
    """Show the ages of the watches of a management cluster.

    :param management: its name, "" for the default one.
    :param ages: seconds by kind, read whenever metrics are; it asks nothing over the network.
    """
    process_metrics().management_clusters.ages[management] = ages


def new_request(verb: str) -> None:
    """Count a request of Magnum.

    :param verb: of Magnum's driver interface.
    """
    process_metrics().requests.labels(verb).inc()


def request_refused(verb: str, *, is_expected: bool = True) -> None:
    """Count a request that is refused, or fails with an error that is not expected."""
    process_metrics().requests_refused.labels(verb, "refused" if is_expected else "error").inc()


def operation_ended(operation: str, *, is_failed: bool, seconds: float) -> None:
    """Count an operation that has ended.

    :param operation: its verb.
    :param seconds: since it was asked for.
    """
    metrics, result = process_metrics(), "failed" if is_failed else "complete"
    metrics.operations.labels(operation, result).inc()
    metrics.operation_seconds.labels(operation, result).observe(max(0.0, seconds))


def identity_expiry(management: str, seconds: float) -> None:
    """Show when the client certificate for a management cluster expires.

    :param management: its name, "" for the default one.
    :param seconds: of the epoch; 0 where it has none that stays.
    """
    process_metrics().management_clusters.expiries[management] = seconds
