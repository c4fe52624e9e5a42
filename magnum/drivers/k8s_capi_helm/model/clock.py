# SPDX-License-Identifier: Apache-2.0
"""The wall clock: the only module that reads it, so that tests can set it.

``oslo_utils.timeutils`` is Magnum's clock, and its fixture moves the times of Magnum's rows too. A
conductor whose clock is ahead of its database's is a case of its own, so this one moves alone.
"""

from __future__ import annotations

import datetime


def utc_now() -> datetime.datetime:
    """The time of this host (aware, UTC)."""
    return datetime.datetime.now(datetime.timezone.utc)
