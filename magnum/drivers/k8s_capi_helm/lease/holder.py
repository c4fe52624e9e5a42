# SPDX-License-Identifier: Apache-2.0
"""The holder of a lock: host, process, and whether that process has ended.

A process that ends while it holds a lock leaves the Lease held, and other conductors have to
observe it without a renewal for its whole duration. On the same host the kernel reports at once
whether the holder still exists. The start time distinguishes a process from a later one with the
same process id (``proc_pid_stat(5)``), and process ids are compared within one PID namespace of one
boot only (``pid_namespaces(7)``): a conductor in another container, or on another host of the same
name, never counts as ended.
"""

from __future__ import annotations

import os
import pathlib
import re
import socket

from oslo_utils import uuidutils

_PROC = pathlib.Path("/proc")
#: Process, start in clock ticks after the boot, PID namespace, boot.
_PROCESS = re.compile(r"(\d+)-(\d+)-(\d+)-([0-9a-f]{32})", re.ASCII)
#: Fields of ``/proc/PID/stat`` behind the name of the command, and which of them is the start.
_BEHIND_THE_NAME = ") "
_START = 19


def holder_identity() -> str:
    """A text that names this process among all others for ever.

    ``HOST/PROCESS/RANDOM``. Where the kernel does not report a start time, PROCESS is the process
    id alone, and its locks are taken over only after they have expired.
    """
    return f"{socket.gethostname()}/{_process()}/{uuidutils.generate_uuid()[:8]}"


def has_ended(holder: str) -> bool:
    """Whether the kernel reports that the process of a holder has ended.

    :param holder: the text of :func:`identity`, with or without something behind it.
    :returns: False where the process exists, also if it is stopped, and where that is unknown: it
        belongs to another host, container or boot, or the text has another form.
    """
    parts = holder.split("/")
    match = _PROCESS.fullmatch(parts[1]) if len(parts) > 2 else None
    if match is None or [match[3], match[4]] != [_namespace(), _boot()]:
        return False
    pid = int(match[1])
    try:
        # Signal 0 tests whether the process exists; /proc may hide processes of other users.
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    start = _start(pid)
    return start is not None and start != match[2]


def _process() -> str:
    pid, start, namespace, boot = os.getpid(), _start(os.getpid()), _namespace(), _boot()
    return f"{pid}-{start}-{namespace}-{boot}" if start and namespace and boot else str(pid)


def _start(pid: int) -> str | None:
    """Start time of a process in clock ticks after the boot, None if unknown."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text(errors="replace")
        return stat.rpartition(_BEHIND_THE_NAME)[2].split()[_START]
    except (OSError, IndexError):
        return None


def _namespace() -> str:
    """Inode of this process's PID namespace, "" if unknown."""
    try:
        return str((_PROC / "self" / "ns" / "pid").stat().st_ino)
    except OSError:
        return ""


def _boot() -> str:
    """The kernel's id of this boot, "" if unknown."""
    try:
        text = (_PROC / "sys" / "kernel" / "random" / "boot_id").read_text()
    except OSError:
        return ""
    return text.strip().replace("-", "")
