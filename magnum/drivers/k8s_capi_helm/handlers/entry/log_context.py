# SPDX-License-Identifier: Apache-2.0
"""Write cluster, operation and request ids into the log lines of a request or a pass.

oslo.log takes them from the context of the thread, which each new context of Magnum replaces
(``oslo_context.context.RequestContext.__init__``): after the first one of an administrator, lines
of a tenant's request would have another id. So a filter gives each line of the driver its context;
lines of libraries have that of the thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import functools
import inspect
import logging
from typing import Any, ParamSpec, TypeVar

from oslo_context import context as oslo_context
from oslo_log import log
from oslo_service import loopingcall

from magnum.common import context as magnum_context
from magnum.drivers import k8s_capi_helm
from magnum.drivers.k8s_capi_helm.model import log_scope

#: Operations of lines of passes; those of verbs are called as Magnum's driver interface calls them.
STATUS_TASK, HEALTH_TASK, WATCH_EVENT = "status_task", "health_task", "watch_event"
LOG = log.getLogger(__name__)
_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")


class LogContext(oslo_context.RequestContext):
    """The context of the log lines of a request or a pass; it has no token.

    :ivar cluster_uuid: of the cluster that they are about.
    :ivar pending_requests: ids of the requests whose operations are pending.
    :ivar prefix: what oslo.log's default formats have in front of the message.
    """

    def __init__(self, cluster: Any, operation: str, context: Any) -> None:
        """A context about *cluster*, with the identity of *context* and its request id."""
        super().__init__(
            request_id=getattr(context, "request_id", None),
            resource_uuid=cluster.uuid,
            overwrite=False,
        )
        self.cluster_uuid = str(cluster.uuid)
        self.pending_requests: tuple[str, ...] = ()
        self.prefix = f"[cluster: {cluster.uuid} {operation}] "
        known = context.get_logging_values() if context is not None else {}
        self._values = {
            **known,
            "request_id": self.request_id,
            "resource_uuid": cluster.uuid,
            "cluster_uuid": cluster.uuid,
            "cluster_name": cluster.name,
            "operation": operation,
        }

    def get_logging_values(self) -> dict[str, Any]:
        """What oslo.log writes: with the requests that are carried out, where these are others."""
        others = [one for one in self.pending_requests if one != self.request_id]
        requests = ",".join(others) or self._values.get("global_request_id")
        return {**self._values, "global_request_id": requests}


class _ScopeFilter(logging.Filter):
    """Gives lines the context of their thread's scope."""

    def filter(self, record: logging.LogRecord) -> bool:
        scope = log_scope.current()
        if isinstance(scope, LogContext) and not hasattr(record, "context"):
            record.context = scope
            record.instance = scope.prefix
        return True


_FILTER = _ScopeFilter()


@functools.cache
def enable_log_context() -> None:
    """Let all lines of the driver have the context of their request or pass, in this process."""
    for name in list(logging.root.manager.loggerDict):
        if name.startswith(f"{k8s_capi_helm.__name__}."):
            logging.getLogger(name).addFilter(_FILTER)


@contextlib.contextmanager
def log_about(cluster: Any, operation: str, context: Any) -> Iterator[None]:
    """Let the log lines of this thread be about an operation of a cluster.

    :param operation: a verb of Magnum's driver interface, or the task that makes a pass.
    :param context: of the request, or the one that Magnum has made for the pass; None without one.
    """
    before = oslo_context.get_current()
    scope = LogContext(cluster, operation, context)
    scope.update_store()
    try:
        with log_scope.enter(scope):
            yield
    finally:
        _restore(before)


@contextlib.contextmanager
def log_errors(cluster: Any, operation: str, context: Any) -> Iterator[None]:
    """As :func:`log_about`, for a thread that serves other clusters, too: nothing is raised.

    What is unexpected is logged.
    """
    with log_about(cluster, operation, context):
        try:
            yield
        except loopingcall.LoopingCallDone:
            return  # so Magnum's jobs end
        except Exception:
            LOG.exception(
                "Cluster %s: a pass failed with an unexpected error; the next period tries again.",
                cluster.uuid,
            )


def with_log_context(verb: Callable[_Given, _Answer]) -> Callable[_Given, _Answer]:
    """Let the log lines of a verb be about its cluster and its request."""
    signature = inspect.signature(verb)

    @functools.wraps(verb)
    def logged(*args: _Given.args, **kwargs: _Given.kwargs) -> _Answer:
        given = signature.bind(*args, **kwargs).arguments
        with log_about(given["cluster"], verb.__name__, given["context"]):
            return verb(*args, **kwargs)

    return logged


def make_admin_context() -> Any:
    """Magnum's context of an administrator, for all projects.

    The lines of libraries go on having the context that the thread has.
    """
    before = oslo_context.get_current()
    try:
        return magnum_context.make_admin_context(all_tenants=True)
    finally:
        _restore(before)


def _restore(context: oslo_context.RequestContext | None) -> None:
    """Let a thread have the context again that it had; None for none."""
    if context is not None:
        context.update_store()
    elif oslo_context.get_current() is not None:
        # There is no other way, and Magnum does the same (``magnum.common.context.set_ctx``).
        del oslo_context._request_store.context
