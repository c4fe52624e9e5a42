# SPDX-License-Identifier: Apache-2.0
"""Counted work: how many calls a piece of code makes, which says how its cost grows on any machine.

Calls of Python functions and of functions written in C are counted, in the thread that calls. What
happens inside of one C function (a search, a sort) is not: sizes are held by tests of their own.
"""

from __future__ import annotations

from collections.abc import Callable
import sys
import types
from typing import Any


def calls(work: Callable[[], Any]) -> int:
    """How many functions *work* calls, directly or not."""
    count = 0

    def note(frame: types.FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count
