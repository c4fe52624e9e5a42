# SPDX-License-Identifier: Apache-2.0
"""The reconciliation of a request, and the one of a periodic task."""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import enum
import functools
import time
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.handlers.entry import log_context
from magnum.drivers.k8s_capi_helm.metrics import record
from magnum.drivers.k8s_capi_helm.metrics.fleet import (
    ClusterMetrics,
    ClusterState,
    FORGOTTEN,
    STATUS_TASK,
)
from magnum.drivers.k8s_capi_helm.model import Verdict
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.process.clients import Clients
from magnum.drivers.k8s_capi_helm.status.texts import issue

#: In front of reasons of what only takes time.
_WAITING = "waiting"
#: Operations whose end no record tells: a deletion takes the record along, and a creation that was
#: interrupted has none.
_UNRECORDED = {"DELETE_IN_PROGRESS": "delete", "CREATE_IN_PROGRESS": "create"}


class Trigger(enum.Enum):
    """What a pass is made for."""

    PERIODIC_TASK = enum.auto()
    #: A request that is on record.
    REQUEST = enum.auto()
    WATCH_EVENT = enum.auto()

    @property
    def may_finish(self) -> bool:
        """Whether a pass may end what is in progress."""
        return self is not Trigger.WATCH_EVENT

    def is_left_to_others(self, error: errors.DriverError) -> bool:
        """Whether a pass that meets an error is over, without a word.

        The holder of the lock applies what is on record, and writes the result. Every other error
        of a watch event is left to the next periodic task.
        """
        if self is Trigger.REQUEST:
            return isinstance(error, errors.LockHeld)
        return self is Trigger.WATCH_EVENT


@contextlib.contextmanager
def record_pass(run: Reconciliation, cluster: Any, task: str) -> Iterator[None]:
    """Measure a pass of a periodic task, and show the cluster after it.

    :param task: as :mod:`metrics.fleet` names it.
    """
    metrics, key, before = run.clients.metrics, (task, cluster.uuid), cluster.status
    began, last = time.monotonic(), metrics.fleet.last_passes.get(key)
    if last is not None:
        metrics.pass_interval.labels(task).observe(began - last)
    metrics.fleet.last_passes[key] = began
    try:
        yield
    finally:
        now = time.monotonic()
        metrics.pass_seconds.labels(task).observe(now - began)
        _show(metrics.fleet, cluster, before, now)


def _show(fleet: ClusterMetrics, cluster: Any, before: str, now: float) -> None:
    """Show a cluster after a pass.

    :param before: its status when the pass began.
    """
    uuid, status, known = cluster.uuid, cluster.status or "", fleet.clusters.get(cluster.uuid)
    since = known.since if known and known.status == status else now
    is_settled = status.endswith("_COMPLETE")
    fleet.clusters[uuid] = ClusterState(
        status=status,
        health=cluster.health_status or "",
        cause="" if is_settled else _reason_class(cluster.status_reason or ""),
        has_credential_issue="credential" in (cluster.health_status_reason or {}),
        seen_at=now,
        since=since,
    )
    if not status.endswith("_IN_PROGRESS"):
        # The next operation begins when it is requested, and no task is late until then.
        fleet.last_passes.pop((STATUS_TASK, uuid), None)
    is_deletion = before == "DELETE_IN_PROGRESS"
    if status != before and before in _UNRECORDED and (is_deletion or not cluster.stack_id):
        record.operation_ended(
            _UNRECORDED[before],
            is_failed=status.endswith("_FAILED"),
            seconds=now - known.since if known else 0.0,
        )
    if status == "DELETE_COMPLETE":
        fleet.forget(uuid)
    elif now - fleet.cleaned > FORGOTTEN:
        fleet.clean(now)


def _reason_class(text: str) -> str:
    """The class of a reason, of which there are as many as the driver has; "" without a reason."""
    if not text:
        return ""
    is_waiting = text.startswith(f"{_WAITING}:")
    return issue.reason_class(text) or (_WAITING if is_waiting else "other")


def show_expiry(run: Reconciliation, cluster: Any, verdict: Verdict | None) -> None:
    """Show when the first certificate of a cluster's control plane expires, where that is known."""
    if verdict is not None and verdict.certificate_expiry is not None:
        expiries = run.clients.metrics.fleet.certificate_expiries
        expiries[cluster.uuid] = verdict.certificate_expiry.timestamp()


def of_request(clients: Clients, settings: Settings, context: Any) -> Reconciliation:
    """One that begins now, with the cloud as the person of *context* sees it."""
    cloud = functools.cache(lambda: clients.cloud(context))
    return Reconciliation(clients, settings, cloud, clients.clock())


def of_periodic_task(clients: Clients, settings: Settings) -> Reconciliation:
    """One that begins now, with the cloud as Magnum's service user sees it.

    A periodic task has no user's token.
    """
    return of_request(clients, settings, log_context.make_admin_context())
