# SPDX-License-Identifier: Apache-2.0
"""One fault: its summary, and how to switch it on and off."""

from collections.abc import Callable
import dataclasses
import re

from sandbox.state import SandboxError, State

_EVERYTHING = "."


@dataclasses.dataclass(frozen=True)
class Fault:
    """One fault.

    :ivar summary: what fails while it is on, in one line.
    :ivar on: begins it; is given what it shall match, None for everything, and returns a
        sentence on what is the case now.
    :ivar off: ends it, whether it is on or not, and returns such a sentence.
    """

    name: str
    summary: str
    on: Callable[[State, str | None], str]
    off: Callable[[State], str]


def expression(match: str | None) -> str:
    """What a user wrote as a regular expression; everything when nothing was written.

    :raises SandboxError: it is none.
    """
    try:
        re.compile(match or _EVERYTHING)
    except re.error as error:
        raise SandboxError(f"{match!r} is not a regular expression: {error}") from error
    return match or _EVERYTHING
