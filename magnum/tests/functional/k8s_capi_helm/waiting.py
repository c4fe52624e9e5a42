# SPDX-License-Identifier: Apache-2.0
"""Wait for what a real program does, for a bounded time."""

from __future__ import annotations

from collections.abc import Callable
import time
from typing import TypeVar

Answer = TypeVar("Answer")
LIMIT = 120.0
_LOOKS = 0.5


def until(answer: Callable[[], Answer], what: str, limit: float = LIMIT) -> Answer:
    """Ask until the answer is true, and return it.

    :param what: has to become true, for the error.
    :param limit: seconds.
    :raises AssertionError: it does not within that time.
    """
    deadline = time.monotonic() + limit
    while not (found := answer()):
        assert time.monotonic() < deadline, f"not after {limit:.0f} s: {what}"
        time.sleep(_LOOKS)
    return found
