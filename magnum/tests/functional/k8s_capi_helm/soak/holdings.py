# SPDX-License-Identifier: Apache-2.0
"""What a process holds, as Linux tells it (proc_pid_status(5), proc_pid_fd(5))."""

from __future__ import annotations

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
    :ivar things: that Python's garbage collector knows of.
    """

    descriptors: int
    threads: int
    processes: int
    files: int
    memory: float
    things: int

    def __str__(self) -> str:
        return (
            f"{self.descriptors:4d} descriptors {self.threads:3d} threads "
            f"{self.processes:2d} processes {self.files:3d} temporary files "
            f"{self.memory:6.1f} MiB {self.things:8d} objects"
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
        things=len(gc.get_objects()),
    )


def _children() -> int:
    found = 0
    for thread in Path("/proc/self/task").iterdir():
        found += len((thread / "children").read_text().split())
    return found
