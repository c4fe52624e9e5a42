# SPDX-License-Identifier: Apache-2.0
"""A supervised child process: bounded in time, and terminated with its parent.

The child leads a process group of its own, so that what it starts ends with it. The kernel kills it
when the thread that started it ends, which is the thread that waits in :func:`run`
(``PR_SET_PDEATHSIG``, https://man7.org/linux/man-pages/man2/pr_set_pdeathsig.2const.html).

``setpriv --pdeathsig`` of util-linux does not serve: it does not look whether the parent is still
there once the signal is set, so that a child of a conductor that died meanwhile would run on
without any lock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
import contextlib
import dataclasses
import enum
import io
import os
import selectors
import signal
import subprocess
import sys
import time
from typing import IO

#: Bytes kept of each of stdout and stderr; of more the last ones are kept.
OUTPUT_LIMIT = 32 << 20
_POLL = 0.1
_CHUNK = 1 << 16
_NOT_STARTED = 127
# Between fork and exec a threaded Python process must run no Python code, so the child asks for
# the signal itself, in an interpreter of its own, and then becomes the program. The parent may
# have died in the meantime: then the signal would never come.
_LAUNCHER = f"""
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)
if os.getppid() != int(sys.argv[1]):
    sys.exit({_NOT_STARTED})
try:
    os.execv(sys.argv[2], sys.argv[2:])
except OSError as error:
    sys.stderr.write(f"{{sys.argv[2]}}: {{error.strerror}}")
    sys.exit({_NOT_STARTED})
"""


class ProcessOutcome(enum.Enum):
    """Why a child is not running any more."""

    EXITED = "exited"
    TIMED_OUT = "timed out"
    STOPPED = "stopped"


@dataclasses.dataclass(frozen=True, slots=True)
class ProcessResult:
    """What became of a child.

    :ivar code: exit status; negative for the signal that killed it.
    """

    end: ProcessOutcome
    code: int
    stdout: bytes
    stderr: bytes


def run(
    argv: Sequence[str],
    *,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    timeout: float,
    grace: float = 5.0,
    stop: Callable[[], bool] = lambda: False,
) -> ProcessResult:
    """Run a program to its end, or to the end of our patience.

    :param argv: an absolute path and its arguments; no shell.
    :param env: the whole environment; this process's own when None.
    :param timeout: seconds until it is asked to end (SIGTERM).
    :param grace: seconds after that until it is killed.
    :param stop: asked about ten times a second; once it says True, the child is killed at once,
        without being asked, for it must not have any effect from then on.
    :raises OSError: this host cannot start any process now.
    """
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid()), *argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=None if env is None else dict(env),
        start_new_session=True,
    )
    try:
        return _Watch(child, stdin, timeout, grace, stop).to_the_end()
    finally:
        if child.returncode is None:
            _signal(child, signal.SIGKILL)
            child.wait()
        for stream in (child.stdin, child.stdout, child.stderr):
            if stream is not None:
                # Closing stdin flushes what the child has not read; it may be dead.
                with contextlib.suppress(OSError):
                    stream.close()


class _Watch:
    """One child's pipes and deadlines."""

    def __init__(
        self,
        child: subprocess.Popen[bytes],
        stdin: bytes,
        timeout: float,
        grace: float,
        stop: Callable[[], bool],
    ) -> None:
        self._child = child
        self._rest = memoryview(stdin)
        self._ask_at = time.monotonic() + timeout
        self._kill_at = self._ask_at + grace
        self._stop = stop
        self._end = ProcessOutcome.EXITED
        self._kept: dict[str, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}

    def to_the_end(self) -> ProcessResult:
        child = self._child
        assert child.stdin is not None and child.stdout is not None and child.stderr is not None
        with selectors.DefaultSelector() as selector:
            for stream, event, name in (
                (child.stdin, selectors.EVENT_WRITE, "stdin"),
                (child.stdout, selectors.EVENT_READ, "stdout"),
                (child.stderr, selectors.EVENT_READ, "stderr"),
            ):
                os.set_blocking(stream.fileno(), False)
                # Where eventlet has patched os and subprocess, their functions wait until a pipe
                # has room, whatever the time.
                mode = "w" if event == selectors.EVENT_WRITE else "r"
                raw = io.FileIO(stream.fileno(), mode, closefd=False)
                selector.register(stream, event, (name, raw))
            # A grandchild may keep the pipes open after the child has ended.
            while selector.get_map() and not _has_ended(child):
                self._move(selector)
                self._judge()
            while selector.get_map() and self._move(selector, wait=0.0):
                pass
        while not _has_ended(child):
            self._judge()
            time.sleep(_POLL / 10)
        _signal(child, signal.SIGKILL)
        return ProcessResult(
            self._end, child.wait(), bytes(self._kept["stdout"]), bytes(self._kept["stderr"])
        )

    def _judge(self) -> None:
        now = time.monotonic()
        if self._end is not ProcessOutcome.STOPPED and self._stop():
            self._end = ProcessOutcome.STOPPED
            _signal(self._child, signal.SIGKILL)
        elif self._end is ProcessOutcome.EXITED and now >= self._ask_at:
            self._end = ProcessOutcome.TIMED_OUT
            _signal(self._child, signal.SIGTERM)
        elif self._end is ProcessOutcome.TIMED_OUT and now >= self._kill_at:
            _signal(self._child, signal.SIGKILL)

    def _move(self, selector: selectors.BaseSelector, wait: float = _POLL) -> bool:
        """Carry bytes from and to the child; False when none could be moved."""
        has_moved = False
        for key, _ in selector.select(wait):
            stream: IO[bytes] = key.fileobj  # type: ignore[assignment]
            name, raw = key.data
            done = self._write(raw) if name == "stdin" else self._read(raw, name)
            has_moved = True
            if done:
                selector.unregister(stream)
                with contextlib.suppress(OSError):
                    stream.close()
        return has_moved

    def _write(self, raw: io.FileIO) -> bool:
        try:
            # None where the pipe is full.
            written: int | None = raw.write(self._rest[:_CHUNK])
        except BrokenPipeError:
            return True
        self._rest = self._rest[written or 0 :]
        return not self._rest

    def _read(self, raw: io.FileIO, name: str) -> bool:
        piece: bytes | None = raw.read(_CHUNK)
        if piece is None:
            return False
        buffer = self._kept[name]
        buffer += piece
        if len(buffer) > OUTPUT_LIMIT:
            del buffer[: len(buffer) - OUTPUT_LIMIT]
        return not piece


def _has_ended(child: subprocess.Popen[bytes]) -> bool:
    """Whether the child has ended; it is not reaped, so that its number stays taken."""
    options = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, child.pid, options) is not None


def _signal(child: subprocess.Popen[bytes], signal_number: signal.Signals) -> None:
    """Signal the group of a child that is not reaped yet, also what the child has left in it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal_number)
