# SPDX-License-Identifier: Apache-2.0
"""Ask a process for one thing at a time: a line of JSON to its stdin, one from its stdout."""

from __future__ import annotations

import json
import subprocess
import threading
from typing import Any


def ask(process: subprocess.Popen[str], question: Any, timeout: float) -> Any:
    """The answer to a question; both are whatever JSON has.

    :param process: with pipes for stdin and stdout.
    :param timeout: seconds after which the process is killed.
    :raises EOFError: the process has ended without an answer.
    """
    assert process.stdin is not None and process.stdout is not None
    watchdog = threading.Timer(timeout, process.kill)
    watchdog.start()
    try:
        process.stdin.write(json.dumps(question) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
    except BrokenPipeError:
        line = ""
    finally:
        watchdog.cancel()
    if not line:
        raise EOFError(f"process {process.pid} has ended without an answer")
    return json.loads(line)
