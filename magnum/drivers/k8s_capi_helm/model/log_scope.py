# SPDX-License-Identifier: Apache-2.0
"""What the log lines of a thread are about: a cluster, and the requests that wait for it.

``handlers/entry/log_context.py`` sets it and writes it into the lines. Code that starts a thread
for an operation enters the scope there again: a thread begins without one.
"""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import contextvars
from typing import Protocol

from magnum.drivers.k8s_capi_helm.model.operation import ReleaseRecord


class LogScope(Protocol):
    """What the lines of one request or one pass are about.

    :ivar cluster_uuid: of the cluster.
    :ivar request_id: of the request or of the pass.
    :ivar pending_requests: ids of the requests whose operations are pending.
    """

    cluster_uuid: str
    request_id: str
    pending_requests: tuple[str, ...]


#: Characters of an id; those of OpenStack have 40.
_LONGEST = 64
_scope: contextvars.ContextVar[LogScope | None] = contextvars.ContextVar("scope", default=None)


def current() -> LogScope | None:
    """The scope of this thread, None outside of every request and pass."""
    return _scope.get()


@contextlib.contextmanager
def enter(scope: LogScope | None) -> Iterator[None]:
    """Let the lines of this thread be about *scope*."""
    before = _scope.set(scope)
    try:
        yield
    finally:
        _scope.reset(before)


def request_ids() -> tuple[str, ...]:
    """The id of the request that this thread carries out, for its pending operation."""
    scope = _scope.get()
    return (scope.request_id,) if scope is not None and _is_id(scope.request_id) else ()


def with_requests(record: ReleaseRecord) -> ReleaseRecord:
    """The same record; lines are from now on about the requests that wait in it, too.

    They may have been sent to another conductor. Records of other clusters change nothing.
    """
    scope = _scope.get()
    if scope is not None and scope.cluster_uuid == record.cluster_uuid:
        ids = (one for item in record.operations for one in item.request_ids if _is_id(one))
        scope.pending_requests = tuple(dict.fromkeys(ids))
    return record


def _is_id(text: str) -> bool:
    """Whether a text can be the id of a request, and no second line of the log."""
    return len(text) <= _LONGEST and text.isascii() and text.replace("-", "").isalnum()
