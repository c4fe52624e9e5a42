# SPDX-License-Identifier: Apache-2.0
"""What all threads of a process do: where each is, looked at again and again.

A profiler of functions sees one thread; where hundreds wait for each other, what they wait for is
the question.
"""

from __future__ import annotations

import collections
from pathlib import Path
import sys
import threading
import time
from types import FrameType

#: Seconds between two looks.
_LOOKS = 0.05
#: Innermost functions of a thread that are told apart, and how many places are listed.
_DEPTH, _LISTED = 8, 25


class ThreadProfile:
    """Looks from its begin to its end."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._found: collections.Counter[str] = collections.Counter()
        self._looks = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> str:
        """The places where most threads were found, with how many there were at a time."""
        self._ended.set()
        self._thread.join()
        listed = self._found.most_common(_LISTED)
        return "\n".join(f"{number / self._looks:7.2f}  {place}" for place, number in listed)

    def _run(self) -> None:
        own = threading.get_ident()
        while not self._ended.wait(_LOOKS):
            self._looks += 1
            for thread, frame in sys._current_frames().items():
                if thread != own:
                    self._found[_place(frame)] += 1
            # A look takes its time, and is not to take all of it.
            time.sleep(_LOOKS)


def _place(frame: FrameType) -> str:
    """The innermost functions of a thread, the last one called first."""
    names, current = list[str](), frame
    while len(names) < _DEPTH:
        code = current.f_code
        names.append(f"{Path(code.co_filename).stem}.{code.co_name}")
        if current.f_back is None:
            break
        current = current.f_back
    return " < ".join(names)
