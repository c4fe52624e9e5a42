# SPDX-License-Identifier: Apache-2.0
"""A file of metrics for node_exporter's textfile collector, replaced as a whole.

Each process has a file, and a number that tells it from the others of this host: the first whose
lock is free. The kernel gives the lock back when a process ends, however it does, and a number is
used again. So a file whose lock is free is one of a process that has ended. These locks are those
of ``fcntl(2)``, which belong to a process: a forked one does not inherit them.
"""

from __future__ import annotations

from collections.abc import Callable
import contextlib
import fcntl
import os
import pathlib
import re
import tempfile

#: Processes of a host at most; Magnum has as many workers as there are processors.
MAX_PROCESSES = 256
_STEM = "k8s_capi_helm-"
_FILE = re.compile(rf"{_STEM}(\d{{1,3}})\.prom(\..+)?", re.ASCII)
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
#: Files of processes that have ended are looked for at the first write and at each one after so
#: many.
_CLEAN_EVERY = 20


class TextFile:
    """The file of this process in a directory that it shares with others.

    :param directory: where node_exporter reads ``*.prom``.
    :param render: the content for the number of the process.
    """

    def __init__(self, directory: pathlib.Path, render: Callable[[int], bytes]) -> None:
        self._directory = directory
        self._render = render
        self._number = 0
        self._held: int | None = None
        self._writes = 0

    def write(self) -> None:
        """Replace the file by one of now, mode 0644.

        :raises OSError: the directory is missing, or cannot be written.
        """
        if not self._is_held():
            self._number, self._held = self._take_number()
        if self._writes % _CLEAN_EVERY == 0:
            self._clean()
        self._replace(self._directory / f"{_STEM}{self._number}.prom", self._render(self._number))
        self._writes += 1

    def _replace(self, path: pathlib.Path, content: bytes) -> None:
        # Readers find *.prom, and only what is complete.
        handle, name = tempfile.mkstemp(prefix=f"{path.name}.", dir=self._directory)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                os.fchmod(file.fileno(), 0o644)
            os.replace(name, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise

    def _is_held(self) -> bool:
        """Whether the lock is held, in the directory that is there now."""
        if self._held is None:
            return False
        with contextlib.suppress(OSError):
            if os.path.samestat(os.stat(self._lock_path(self._number)), os.fstat(self._held)):
                return True
        os.close(self._held)
        self._held = None
        return False

    def _take_number(self) -> tuple[int, int]:
        """The first number that no process has, and the descriptor of its lock."""
        for number in range(MAX_PROCESSES):
            handle = self._lock(number)
            if handle is not None:
                return number, handle
        raise OSError(f"all {MAX_PROCESSES} lock files are locked, or belong to other users")

    def _lock_path(self, number: int) -> pathlib.Path:
        return self._directory / f"{_STEM}{number}.lock"

    def _lock(self, number: int) -> int | None:
        """The descriptor of a lock that was free; None if it is held, or is another user's."""
        path = self._lock_path(number)
        try:
            handle = os.open(path, _FLAGS, 0o600)
        except PermissionError:
            if not path.exists():
                raise
            return None
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            os.close(handle)
            return None
        except BaseException:
            os.close(handle)
            raise
        return handle

    def _clean(self) -> None:
        """Remove the files of processes that have ended, and incomplete ones.

        The own lock is not tried: who closes any descriptor of its file has lost it.
        """
        for path in self._directory.glob(f"{_STEM}*.prom*"):
            match = _FILE.fullmatch(path.name)
            if match is None:
                continue
            number, is_incomplete = int(match[1]), bool(match[2])
            handle = None if number == self._number else self._lock(number)
            if handle is not None or (number == self._number and is_incomplete):
                with contextlib.suppress(OSError):
                    path.unlink()
            if handle is not None:
                os.close(handle)
