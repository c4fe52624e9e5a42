# SPDX-License-Identifier: Apache-2.0
"""The wall clock: the only module that reads it, so that tests can set it.

``oslo_utils.timeutils`` is Magnum's clock, and its fixture moves the times of Magnum's rows too. A
conductor whose clock is ahead of its database's is a case of its own, so this one moves alone.
"""

from __future__ import annotations

import datetime
import re

#: What OpenSSL says of a certificate that is good at another time (X509_V_ERR_CERT_*).
_OTHER_TIME = re.compile(r"certificate (is not yet valid|has expired)", re.ASCII)


def utc_now() -> datetime.datetime:
    """The time of this host (aware, UTC)."""
    return datetime.datetime.now(datetime.timezone.utc)


def with_time(words: str) -> str:
    """An error's words, and the time of this host if they are about the time of a certificate."""
    if _OTHER_TIME.search(words) is None:
        return words
    return f"{words} (by the clock of this host, which shows {utc_now():%Y-%m-%d %H:%M:%S} UTC)"
