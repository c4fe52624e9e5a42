# SPDX-License-Identifier: Apache-2.0
"""What a process holds, as Linux and glibc tell it (proc_pid_status(5), mallinfo2(3))."""

from __future__ import annotations

import ctypes
import dataclasses
import gc
import os
from pathlib import Path
import tempfile


@dataclasses.dataclass(frozen=True)
class Holdings:
    """One look at a process and its files.

    :ivar descriptors: open files, sockets and pipes.
    :ivar processes: its children, zombies too.
    :ivar files: below the directory for temporary files.
    :ivar memory: in MiB, of the process alone.
    :ivar allocated: MiB of it that C code has asked for and not given back. What malloc keeps in
        pieces beyond that is left of the most that many threads ever needed at once.
    :ivar things: that Python's garbage collector knows of.
    """

    descriptors: int
    threads: int
    processes: int
    files: int
    memory: float
    allocated: float
    things: int

    def __str__(self) -> str:
        return (
            f"{self.descriptors:4d} descriptors {self.threads:3d} threads "
            f"{self.processes:2d} processes {self.files:3d} temporary files "
            f"{self.memory:6.1f} MiB, {self.allocated:5.1f} of malloc, {self.things:8d} objects"
        )


def look() -> Holdings:
    """What this process holds, after what is garbage has gone."""
    gc.collect()
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return Holdings(
        descriptors=len(os.listdir("/proc/self/fd")),
        threads=int(status["Threads"]),
        processes=_children(),
        files=sum(1 for one in Path(tempfile.gettempdir()).rglob("*") if not one.is_dir()),
        memory=int(status["VmRSS"].split()[0]) / 1024,
        allocated=_allocated() / 2**20,
        things=len(gc.get_objects()),
    )


class _Malloc(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    )


def _allocated() -> int:
    ask = ctypes.CDLL(None).mallinfo2
    ask.restype = _Malloc
    found = ask()
    return int(found.uordblks + found.hblkhd)


def _children() -> int:
    found = 0
    for thread in Path("/proc/self/task").iterdir():
        found += len((thread / "children").read_text().split())
    return found
