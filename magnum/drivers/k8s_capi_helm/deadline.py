# SPDX-License-Identifier: Apache-2.0
"""Deadline of the current RPC, per thread: remaining work is left to the status task.

The bound belongs to the thread that works for him. Those who wait for the management cluster or for
helm wait no longer than it; what they raise then is what they raise of their own limits.
"""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import contextvars
import time

_until: contextvars.ContextVar[float | None] = contextvars.ContextVar("until", default=None)


@contextlib.contextmanager
def end_at(moment: float | None) -> Iterator[None]:
    """Have everything in this thread end by then.

    :param moment: of ``time.monotonic()``; None for no bound.
    """
    before = _until.set(moment)
    try:
        yield
    finally:
        _until.reset(before)


@contextlib.contextmanager
def at_least(seconds: float) -> Iterator[None]:
    """Leave this much for what has to be tried, also when the time is over."""
    end = _until.get()
    with end_at(None if end is None else max(end, time.monotonic() + seconds)):
        yield


def seconds_left(maximum: float) -> float:
    """Seconds that there are for something that may take *maximum*; never below 0."""
    end = _until.get()
    return maximum if end is None else max(0.0, min(maximum, end - time.monotonic()))


def is_expired() -> bool:
    """Whether there is a bound, and its moment has come."""
    end = _until.get()
    return end is not None and time.monotonic() >= end


def is_set() -> bool:
    """Whether there is a bound: the thread carries out a request, and Magnum has few of them."""
    return _until.get() is not None
