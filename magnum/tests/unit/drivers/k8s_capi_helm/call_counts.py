# SPDX-License-Identifier: Apache-2.0
"""Counted work: how many calls a piece of code makes, which says how its cost grows on any machine.

Calls of Python functions and of functions written in C are counted, in the thread that calls. What
happens inside of one C function (a search, a sort) is not: sizes are held by tests of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
import functools
import gc
import os
import sys
import types
from typing import Any

#: Whether somebody has asked for figures (``tox -e costs``), also for those that are not counts.
SHOWN = bool(os.environ.get("K8S_CAPI_HELM_COSTS"))


@functools.cache
def _is_of(path: str, parts: tuple[str, ...]) -> bool:
    return any(part in path for part in parts)


def calls(work: Callable[[], Any], *, without: tuple[str, ...] = ()) -> int:
    """How many functions *work* calls, directly or not.

    :param without: parts of paths of files whose calls do not count: those of fakes, say.
    """
    count = 0

    def note(frame: types.FrameType, event: str, argument: Any) -> None:
        nonlocal count
        if event in ("call", "c_call") and not _is_of(frame.f_code.co_filename, without):
            count += 1

    before, collects = sys.getprofile(), gc.isenabled()
    # What libraries of tests have called at each collection of garbage is nobody's work here.
    gc.disable()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()
    return count


def show(lines: Iterable[str]) -> None:
    """Print what was counted, where somebody has asked for that."""
    if SHOWN:
        sys.stdout.write("\n".join(("", *lines, "")))
