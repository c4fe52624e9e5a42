# SPDX-License-Identifier: Apache-2.0
"""First-seen times of requests without progress."""

from __future__ import annotations

from collections.abc import Callable, Hashable
import datetime
import threading
import time

#: Seconds. What nobody has asked about for so long is gone, or has come to its end.
_FORGOTTEN = 3600.0
#: Clocks of two hosts differ by less: on this, and on nothing narrower, the times of others count.
CLOCKS_DIFFER = datetime.timedelta(days=1)


class FirstSeen:
    """Safe to share between threads.

    The times in Magnum's rows and in Leases are by the clock of the host that wrote them. Whoever
    would hold them against a clock that is ahead would give a request up that is being carried out
    elsewhere; so what counts is how long it was watched, by one clock that only goes up. After a
    restart that begins anew, once: what is more than a day older than that by its own time is taken
    for as old, so that conductors that never live long enough to watch it do not keep it for ever.

    :param clock: seconds that only ever go up.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: dict[Hashable, tuple[float, float]] = {}
        self._tidied = clock()

    def age(
        self,
        key: Hashable,
        created_at: datetime.datetime | None = None,
        now: datetime.datetime | None = None,
    ) -> datetime.timedelta:
        """For how long it was seen at least; zero if that begins now.

        :param key: the row, and whatever makes it another one for who asks.
        :param created_at: since when it is there by its own time (aware), None if it does not say.
        :param now: the same clock as who wrote that would have it, but for a day (aware).
        """
        with self._lock:
            seconds = self._clock()
            first_seen, _ = self._seen.get(key, (seconds, seconds))
            self._seen[key] = first_seen, seconds
            self._discard_old(seconds)
        seen = datetime.timedelta(seconds=seconds - first_seen)
        if created_at is None or now is None:
            return seen
        return max(seen, now - created_at - CLOCKS_DIFFER)

    def _discard_old(self, now: float) -> None:
        if now - self._tidied < _FORGOTTEN:
            return
        self._tidied = now
        self._seen = {key: at for key, at in self._seen.items() if now - at[1] < _FORGOTTEN}
