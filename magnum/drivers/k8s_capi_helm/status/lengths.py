# SPDX-License-Identifier: Apache-2.0
"""Lengths: texts cut after a whole word, to characters, to bytes, or to what JSON makes of them."""

from __future__ import annotations

_ENDING = "..."


def shortened(text: str, limit: int) -> str:
    """A text of at most *limit* characters; one that is cut ends with a whole word and "...".

    A word that is longer than half of the limit is cut itself, so that something is left.
    """
    if len(text) <= limit:
        return text
    room = max(0, limit - len(_ENDING))
    head = text[:room]
    if not text[room].isspace():
        whole, space, _ = head.rpartition(" ")
        if space and len(whole) >= room // 2:
            head = whole
    return f"{head.rstrip()}{_ENDING}"[:limit]
