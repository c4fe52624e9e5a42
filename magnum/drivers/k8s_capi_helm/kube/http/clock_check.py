# SPDX-License-Identifier: Apache-2.0
"""Warn the operator where this host's clock and that of the management cluster differ.

What clusters are and how long something lasts does not depend on this host's clock. Deadlines of
operations do, which conductors write down and compare, and so does the validity of certificates.
The time of a server is in each of its answers (https://www.rfc-editor.org/rfc/rfc9110#field.date).
"""

from __future__ import annotations

from collections.abc import Callable
import email.utils
import time

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm.model import clock

LOG = logging.getLogger(__name__)

#: Seconds that clocks may differ by, and seconds between two comparisons and two warnings.
LIMIT = 60
_INTERVAL = 60
_REPEAT = 3600


class ClockCheck:
    """Compares clocks now and then; safe to share between threads.

    :param seconds: seconds that only ever go up.
    :param management: name of the management cluster, "" for the only or default one.
    """

    def __init__(self, seconds: Callable[[], float] = time.monotonic, management: str = "") -> None:
        self._place = f"management cluster {management}" if management else "management cluster"
        self._seconds = seconds
        self._next = float("-inf")
        #: Seconds that this host was ahead at the last comparison; None before the first.
        self.difference: int | None = None

    def compare(self, timestamp: str | None) -> None:
        """Compare this host's time with that of an answer, if it is time to.

        :param timestamp: the header ``Date``.
        """
        seconds, now = self._seconds(), clock.utc_now()
        if not timestamp or seconds < self._next:
            return
        try:
            server_time = email.utils.parsedate_to_datetime(timestamp)
            difference = round((now - server_time).total_seconds())
        except (TypeError, ValueError):
            return  # a proxy's own, or without a time zone
        self.difference = difference
        self._next = seconds + (_INTERVAL if abs(difference) <= LIMIT else _REPEAT)
        if abs(difference) > LIMIT:
            LOG.warning(
                "The clock of this host is %s seconds %s that of the %s (%s here, "
                "%s there). Deadlines of operations and the validity of certificates are judged by "
                "the clock of this host: synchronize the clocks of all hosts.",
                abs(difference),
                "ahead of" if difference > 0 else "behind",
                self._place,
                f"{now:%Y-%m-%d %H:%M:%S} UTC",
                f"{server_time:%Y-%m-%d %H:%M:%S} UTC",
            )
