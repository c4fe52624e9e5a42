# SPDX-License-Identifier: Apache-2.0
"""Progress lines on the terminal with duration and size."""

from collections.abc import Iterator
import contextlib
import os
from pathlib import Path
import sys
import threading
import time

_BEGIN = time.monotonic()
_lock = threading.Lock()
_open_line: "Step | None" = None


class Step:
    """A step that is being done; what it is given shows on its line at the end."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._facts: list[str] = []

    def size(self, path: Path) -> None:
        """Show the disk space of a file or directory, in MiB."""
        self._facts.append(f"{disk_mib(path):.0f} MiB")

    def note(self, text: str) -> None:
        """Show a few words."""
        self._facts.append(text)

    def outcome(self, seconds: float) -> str:
        """What stands behind the step's text when it is done."""
        return ", ".join([f"{seconds:.1f} s", *self._facts])


@contextlib.contextmanager
def step(text: str) -> Iterator[Step]:
    """Print ``[ 12.3 s] text ... 3.2 s, 41 MiB`` around the body.

    The first number counts from the start of the program. Steps may overlap in threads: a line
    that was interrupted by another is repeated when its step ends.
    """
    current, begin = Step(text), time.monotonic()
    _begin_line(current)
    try:
        yield current
    except BaseException:
        _end_line(current, f"FAILED after {current.outcome(time.monotonic() - begin)}")
        raise
    _end_line(current, current.outcome(time.monotonic() - begin))


def say(text: str) -> None:
    """Print a line of its own, with the time."""
    with _lock:
        _break_line()
        print(f"{_stamp()} {text}", flush=True)


def disk_mib(path: Path) -> float:
    """Disk space below ``path`` in MiB; 0 when it does not exist."""
    if path.is_file():
        return path.stat().st_size / 2**20
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += os.lstat(os.path.join(folder, name)).st_size
    return total / 2**20


def _stamp() -> str:
    return f"[{time.monotonic() - _BEGIN:6.1f} s]"


def _begin_line(current: Step) -> None:
    global _open_line
    with _lock:
        _break_line()
        print(f"{_stamp()} {current.text} ...", end="", flush=True)
        _open_line = current


def _end_line(current: Step, outcome: str) -> None:
    global _open_line
    with _lock:
        if _open_line is current:
            print(f" {outcome}", flush=True)
            _open_line = None
        else:
            _break_line()
            print(f"{_stamp()} {current.text}: {outcome}", flush=True)


def _break_line() -> None:
    global _open_line
    if _open_line is not None:
        sys.stdout.write("\n")
        _open_line = None
