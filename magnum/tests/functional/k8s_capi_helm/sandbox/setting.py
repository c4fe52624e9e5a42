# SPDX-License-Identifier: Apache-2.0
"""The sandbox that the tests run in: the one that is up, or one that is started and ended."""

from __future__ import annotations

import atexit
import functools
import os
from pathlib import Path
import subprocess
import sys
import threading

from sandbox import cli, faults
from sandbox.state import State

#: Seconds in which everything has to be up; binaries are built beforehand.
_START_LIMIT = 900
_lock = threading.Lock()


def state() -> State:
    """The running sandbox.

    It is in ``$SANDBOX_DIR`` or ``.sandbox`` of the checkout. What is up when the first test asks
    stays up; what had to be started is ended with this process, unless ``$KEEP`` is set.

    :raises RuntimeError: it does not come up.
    """
    with _lock:
        return _state()


def fault(name: str, on: bool, match: str | None = None) -> str:
    """``python -m sandbox fault NAME on|off [MATCH]``; returns what it says."""
    return faults.switch(state(), name, on, match)


@functools.cache
def _state() -> State:
    directory = cli.default_directory()
    if _command(directory, "status").returncode:
        done = _command(directory, "up", limit=_START_LIMIT)
        if done.returncode:
            raise RuntimeError(f"the sandbox in {directory} does not come up:\n{done.stdout}")
        if not os.environ.get("KEEP"):
            atexit.register(_command, directory, "down")
    return State(directory)


def _command(
    directory: Path, *arguments: str, limit: float = 120
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sandbox", "--dir", str(directory), *arguments],
        cwd=cli.CHECKOUT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=limit,
    )
