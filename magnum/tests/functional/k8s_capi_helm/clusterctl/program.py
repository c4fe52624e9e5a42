# SPDX-License-Identifier: Apache-2.0
"""Whether a program can be had that a life needs."""

from __future__ import annotations

from sandbox.management import binaries
from sandbox.management.binaries import Program
from sandbox.state import SandboxError


def missing(*programs: Program) -> str:
    """Why one of them cannot be had, as the reason of a skip; "" if all of them can.

    They are built when they are not there.
    """
    for program in programs:
        try:
            binaries.one(program)
        except SandboxError as error:
            return f"{program.name} cannot be built: {error}"
    return ""
