# SPDX-License-Identifier: Apache-2.0
"""The operator's command as an operator runs it on a conductor's host."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
import subprocess
import sys
import time
from typing import Any

from magnum.tests.functional.k8s_capi_helm.sandbox import setting
from sandbox.cloud import environment

#: Seconds for one command on a busy machine.
_LIMIT = 300
#: Seconds until a cause has to be found; Magnum has told it already.
_FOUND = 120.0


@dataclasses.dataclass(frozen=True)
class Answer:
    """What a command has printed, and its exit status."""

    status: int
    out: str
    error: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of JSON."""
        rows: list[dict[str, Any]] = json.loads(self.out)
        return rows


def run(*arguments: str) -> Answer:
    """``k8s-capi-helm ARGUMENTS`` with the conductors' configuration."""
    process = begin(*arguments)
    try:
        out, error = process.communicate(timeout=_LIMIT)
    finally:
        process.kill()
    return Answer(process.returncode, out, error)


def cause(uuid: str, words: str) -> str:
    """Wait until the first line of ``why`` has these words; returns the line."""
    deadline = time.monotonic() + _FOUND
    while True:
        answer = run("why", uuid)
        first = answer.out.partition("\n")[0]
        if first.startswith("Cause: ") and words in first:
            assert answer.status in (1, 2), answer
            return first
        assert time.monotonic() < deadline, f"{words!r} is not in the first line: {answer}"


def begin(*arguments: str) -> subprocess.Popen[str]:
    """The same as a process that has begun."""
    state = setting.state()
    program = Path(sys.executable).with_name("k8s-capi-helm")
    configuration = state.path("cloud", "etc", "magnum", "magnum.conf")
    path = os.pathsep.join((str(state.get("bin_dir")), os.environ["PATH"]))
    return subprocess.Popen(
        [str(program), "--config-file", str(configuration), *arguments],
        env={**environment.of_services(state), "PATH": path},
        cwd=state.path("run"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def rows(*arguments: str, status: int = 0) -> list[dict[str, Any]]:
    """The rows that a command prints; it has to end with this exit status."""
    answer = run(*arguments, "-f", "json")
    assert answer.status == status, answer
    return answer.rows
