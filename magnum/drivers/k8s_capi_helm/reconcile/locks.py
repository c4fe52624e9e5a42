# SPDX-License-Identifier: Apache-2.0
"""Locks between the threads of one process, by key; between conductors a Lease locks."""

from __future__ import annotations

from collections.abc import Hashable
import threading

#: Keys share them, so that clusters that are deleted leave none behind.
_MANY = 64


class Locks:
    """Locks by key, of one process: a forked one has clients of its own, and these with them."""

    def __init__(self) -> None:
        self._locks = tuple(threading.Lock() for _ in range(_MANY))

    def lock(self, key: Hashable) -> threading.Lock:
        """The lock of a key; two keys may have the same one, so no thread takes two."""
        return self._locks[hash(key) % _MANY]
