# SPDX-License-Identifier: Apache-2.0
"""Heartbeats: Leases that controllers renew as long as they live, and who has fallen silent.

What a controller has written stays when it is gone, and looks as true as before. The one thing that
it renews for nobody's sake but to be seen alive is the Lease of its leader election
(https://kubernetes.io/docs/concepts/architecture/leases/#leader-election).
"""

from __future__ import annotations

from collections.abc import Iterable
import dataclasses
import datetime
import re

from magnum.drivers.k8s_capi_helm.model import conditions, Json, StaleController

#: Clocks of two controllers may differ by that much; beyond it TLS and tokens fail as well.
SKEW = datetime.timedelta(minutes=5)
#: Seconds that a Lease can be good for; what says more says nothing.
_LONGEST = 24 * 3600


#: As rows say it, in the reason (to the minute) and in the health (to the second).
_TOLD = re.compile(
    r"controllers? (?P<who>[\w./-]+(?:, [\w./-]+)*) ha(?:s|ve) not reported since "
    r"(?P<day>\d{4}-\d\d-\d\d)[T ](?P<time>\d\d:\d\d)"
)


@dataclasses.dataclass(frozen=True, slots=True)
class ControllerLease:
    """What is known of one Lease.

    :ivar renewed: its ``renewTime``, by the clock of its controller (aware).
    :ivar lasts: how long its holder says that it is good for.
    :ivar first_seen: when it was seen with this ``renewTime`` first, in seconds of a clock of this
        process that only goes up.
    :ivar last_seen: and last.
    :ivar moved: it was seen with an older one before, so that its clock need not be trusted.
    """

    controller: str
    renewed: datetime.datetime
    lasts: datetime.timedelta
    first_seen: float
    last_seen: float
    moved: bool = False


def controller_lease(
    controller: str, lease: Json | None, before: ControllerLease | None, now: float
) -> ControllerLease | None:
    """What is known after a look at a Lease; None where nobody has ever renewed it.

    :param lease: None if it is not there; one that was seen before went with its controller.
    :param before: what was known of it, None if nothing.
    :param now: seconds of a clock of this process.
    """
    if lease is None:
        return before and dataclasses.replace(before, last_seen=now)
    renewed = conditions.instant(conditions.at_path(lease, "spec", "renewTime"))
    if renewed is None:
        return None
    if before is not None and before.renewed == renewed:
        return dataclasses.replace(before, last_seen=now)
    seconds = conditions.at_path(lease, "spec", "leaseDurationSeconds")
    known = isinstance(seconds, int) and 0 <= seconds <= _LONGEST
    lasts = datetime.timedelta(seconds=seconds if known else 0)
    return ControllerLease(controller, renewed, lasts, now, now, moved=before is not None)


def stale_controller(
    beat: ControllerLease, patience: datetime.timedelta, asof: datetime.datetime | None
) -> StaleController | None:
    """Whether a controller has not renewed its Lease for longer than *patience*.

    That is the time for which we have seen it unchanged, in which no clock of another machine has a
    part. A Lease that we do not know for so long is believed its time, against what others on the
    management cluster have written since, less what their clocks differ by.

    :param asof: what the clocks of the management cluster show, None where nobody knows.
    """
    quiet = datetime.timedelta(seconds=beat.last_seen - beat.first_seen)
    if not beat.moved and asof is not None:
        quiet = max(quiet, asof - beat.renewed - SKEW)
    if quiet < max(patience, 2 * beat.lasts):
        return None
    return StaleController(beat.controller, beat.renewed)


def recorded_stale_since(
    beats: Iterable[ControllerLease], said: str
) -> tuple[StaleController, ...]:
    """Who was silent for a conductor before this one, and has not renewed a Lease since.

    A row says whose Lease was how old. If it is so still, nobody has to watch for the whole time
    again, and nothing turns healthy in between because a conductor was started.

    :param said: reason and health of a row, as they are now.
    """
    waiting = [one for one in beats if not one.moved]
    for found in _TOLD.finditer(said):
        who = set(found["who"].split(", "))
        named = tuple(one for one in waiting if one.controller in who)
        if any(f"{one.renewed:%Y-%m-%d%H:%M}" == found["day"] + found["time"] for one in named):
            return tuple(StaleController(one.controller, one.renewed) for one in named)
    return ()


def describe(silent: Iterable[StaleController]) -> tuple[str, datetime.datetime] | None:
    """Who is silent, as the beginning of a sentence that ends with the time; None if nobody is."""
    found = sorted(silent, key=lambda one: one.controller)
    if not found:
        return None
    listed = ", ".join(one.controller for one in found)
    who = f"controller {listed} has" if len(found) == 1 else f"controllers {listed} have"
    return f"{who} not reported since", min(one.since for one in found)
