# SPDX-License-Identifier: Apache-2.0
"""Magnum's conductor on eventlet, and for how long its hub was blocked.

Started as a script by the Python that has Magnum 20 to 22; what follows are the arguments of
``magnum-conductor``, whose console script does the same but for the watch. Each time that no other
greenthread could run for 50 ms or more is a line of the log, with where the code was then: a call
that waits for something outside of eventlet takes no processor time, one that computes does.
"""

import collections
from collections.abc import Callable
import re
import sys
import time
import traceback

BLOCKED_SECONDS = 0.05
BEAT_SECONDS = 0.01
_FRAMES = 12
#: Of the machinery of imports, which hides who imports what.
_IMPORT = "<frozen importlib"
#: The form of a line: milliseconds, those of the processor, and functions from the outermost.
_LINE = re.compile(r"^hub blocked for (\d+) ms, processor (\d+) ms: (.*)$", re.M)

Gap = collections.namedtuple("Gap", ("milliseconds", "processor", "where"))


def gaps(log: str) -> list[Gap]:
    """What a conductor has written."""
    return [Gap(int(wall), int(cpu), where) for wall, cpu, where in _LINE.findall(log)]


def summary(log: str, shown: int = 5) -> list[str]:
    """How often a conductor's hub was blocked, and the longest times; a line each."""
    found = sorted(gaps(log), reverse=True)
    return [
        f"{len(found)} times the hub was blocked for {1000 * BLOCKED_SECONDS:.0f} ms or more",
        *(f"{g.milliseconds} ms, processor {g.processor} ms: {g.where}" for g in found[:shown]),
    ]


class Watch:
    """Beats in the hub; a native thread looks where the main thread is when a beat is late."""

    def __init__(self) -> None:
        from eventlet import patcher  # type: ignore[import-untyped]

        self._threading, self._time = (patcher.original(n) for n in ("threading", "time"))
        self._beat, self._where = self._time.monotonic(), ""

    def start(self) -> None:
        import eventlet

        main = self._threading.get_ident()
        self._threading.Thread(target=self._look, args=(main,), daemon=True).start()
        eventlet.spawn(self._beats, eventlet.sleep)

    def _beats(self, sleep: Callable[[float], object]) -> None:
        while True:
            begin, used = self._time.monotonic(), time.thread_time()
            self._beat, self._where = begin, ""
            sleep(BEAT_SECONDS)
            late = self._time.monotonic() - begin - BEAT_SECONDS
            if late >= BLOCKED_SECONDS:
                processor = time.thread_time() - used
                sys.stderr.write(
                    f"hub blocked for {1000 * late:.0f} ms, processor {1000 * processor:.0f} ms: "
                    f"{self._where}\n"
                )

    def _look(self, main: int) -> None:
        while True:
            self._time.sleep(BEAT_SECONDS)
            if self._time.monotonic() - self._beat > BLOCKED_SECONDS / 2 and not self._where:
                whole = traceback.extract_stack(sys._current_frames()[main])
                stack = [one for one in whole if not one.filename.startswith(_IMPORT)][-_FRAMES:]
                self._where = " < ".join(
                    f"{frame.name} ({'/'.join(frame.filename.split('/')[-2:])}:{frame.lineno})"
                    for frame in reversed(stack)
                )


def main() -> None:
    # The directory of a script is first in its path, and this one's modules have common names.
    del sys.path[0]
    from magnum.cmd import conductor  # patches Python's library

    Watch().start()
    conductor.main()


if __name__ == "__main__":
    main()
