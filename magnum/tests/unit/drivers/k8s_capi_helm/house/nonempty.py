# SPDX-License-Identifier: Apache-2.0
"""For loops that assert: what they go over is there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def at_least_one(items: Iterable[T]) -> list[T]:
    """The items as a list.

    :raises AssertionError: there are none, so that a test would pass without any assertion.
    """
    found = list(items)
    if not found:
        raise AssertionError("there is nothing to look at")
    return found
