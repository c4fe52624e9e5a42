# SPDX-License-Identifier: Apache-2.0
"""Return memory that is not used any more to the operating system."""

from __future__ import annotations

import ctypes


def reduce() -> None:
    """Return what the pages of a long list have occupied.

    glibc keeps freed memory for each thread that has allocated some: eleven threads list at once
    when a conductor starts, and nothing as large comes again for a long time. Other C libraries
    have no ``malloc_trim``, and nothing happens.
    https://man7.org/linux/man-pages/man3/malloc_trim.3.html
    """
    try:
        malloc_trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return
    malloc_trim(0)
