# SPDX-License-Identifier: Apache-2.0
"""The holder of a lock: host, process, and whether that process has ended.

Whoever dies with a lock leaves it held, and others have to see it without a renewal for its whole
duration. A process of the same kernel knows more: the kernel says whether the holder is still
there. A process is told from a later one with its number by the time of its start (``proc_pid_stat
(5)``), and numbers are compared within one PID namespace of one boot only (``pid_namespaces(7)``):
a conductor in another container, or on another host of the same name, is never taken for dead.
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


def identity() -> str:
    """A text that names this process among all others for ever.

    ``HOST/PROCESS/RANDOM``; where the kernel does not say when a process began, the process is its
    number alone, and nobody takes its locks before they expire.
    """
    return f"{socket.gethostname()}/{_process()}/{uuidutils.generate_uuid()[:8]}"


def has_ended(holder: str) -> bool:
    """Whether the kernel says that the process behind a holder is no more.

    :param holder: the text of :func:`identity`, with or without something behind it.
    :returns: False where the process is alive, frozen too, and where that cannot be known: it is
        of another host, container or boot, or a holder that somebody else has named.
    """
    parts = holder.split("/")
    match = _PROCESS.fullmatch(parts[1]) if len(parts) > 2 else None
    if match is None or [match[3], match[4]] != [_namespace(), _boot()]:
        return False
    pid = int(match[1])
    try:
        # Signal 0 asks whether there is such a process; /proc may hide those of other users.
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
    """When a process began, in clock ticks after the boot; None where nobody says."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text(errors="replace")
        return stat.rpartition(_BEHIND_THE_NAME)[2].split()[_START]
    except (OSError, IndexError):
        return None


def _namespace() -> str:
    """The PID namespace of this process, "" where nobody says."""
    try:
        return str((_PROC / "self" / "ns" / "pid").stat().st_ino)
    except OSError:
        return ""


def _boot() -> str:
    """The kernel's own name for this boot, "" where nobody says."""
    try:
        text = (_PROC / "sys" / "kernel" / "random" / "boot_id").read_text()
    except OSError:
        return ""
    return text.strip().replace("-", "")
