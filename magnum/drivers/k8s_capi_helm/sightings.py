# SPDX-License-Identifier: Apache-2.0
"""Since when this process has seen requests that nobody carries on."""

from __future__ import annotations

from collections.abc import Hashable
import datetime
import threading

#: What nobody has asked about for so long is gone, or has come to its end.
_FORGOTTEN = datetime.timedelta(hours=1)


class Sightings:
    """Safe to share between threads.

    The times in Magnum's rows are by the clock of the host that wrote them. Whoever would hold them
    against a clock that is ahead would give a request up that is being carried out elsewhere; so
    what counts is how long it was watched, by one clock. After a restart that begins anew.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[Hashable, tuple[datetime.datetime, datetime.datetime]] = {}
        self._tidied: datetime.datetime | None = None

    def age(self, what: Hashable, now: datetime.datetime) -> datetime.timedelta:
        """How long ago it was seen first; zero if that is now.

        :param what: the row, and whatever makes it another one for who asks.
        :param now: aware, UTC.
        """
        with self._lock:
            first, _ = self._seen.get(what, (now, now))
            self._seen[what] = first, now
            self._tidy(now)
        return max(now - first, datetime.timedelta())

    def _tidy(self, now: datetime.datetime) -> None:
        if self._tidied is not None and abs(now - self._tidied) < _FORGOTTEN:
            return
        self._tidied = now
        self._seen = {
            one: times for one, times in self._seen.items() if abs(now - times[1]) < _FORGOTTEN
        }
