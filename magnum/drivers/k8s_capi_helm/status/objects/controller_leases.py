# SPDX-License-Identifier: Apache-2.0
"""Stale controllers: leader election Leases that are not renewed.

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

    :ivar renewed_at: its ``renewTime``, by the clock of its controller (aware).
    :ivar duration: how long its holder says that it is good for.
    :ivar first_seen: when it was seen with this ``renewTime`` first, in seconds of a clock of this
        process that only goes up.
    :ivar last_seen: and last.
    :ivar is_renewed_since: it was seen with an older one before, so that its clock need not be
        trusted.
    """

    controller: str
    renewed_at: datetime.datetime
    duration: datetime.timedelta
    first_seen: float
    last_seen: float
    is_renewed_since: bool = False


def controller_lease(
    controller: str, lease: Json | None, previous: ControllerLease | None, now: float
) -> ControllerLease | None:
    """The state of a controller's Lease; None if it was never renewed.

    :param lease: None if it is not there; one that was seen before went with its controller.
    :param previous: what was known of it, None if nothing.
    :param now: seconds of a clock of this process.
    """
    if lease is None:
        return previous and dataclasses.replace(previous, last_seen=now)
    renewed = conditions.instant(conditions.at_path(lease, "spec", "renewTime"))
    if renewed is None:
        return None
    if previous is not None and previous.renewed_at == renewed:
        return dataclasses.replace(previous, last_seen=now)
    seconds = conditions.at_path(lease, "spec", "leaseDurationSeconds")
    is_valid = isinstance(seconds, int) and 0 <= seconds <= _LONGEST
    duration = datetime.timedelta(seconds=seconds if is_valid else 0)
    return ControllerLease(
        controller, renewed, duration, now, now, is_renewed_since=previous is not None
    )


def stale_controller(
    lease: ControllerLease, max_staleness: datetime.timedelta, observed_at: datetime.datetime | None
) -> StaleController | None:
    """Whether a controller has not renewed its Lease for longer than *max_staleness*.

    That is the time for which we have seen it unchanged, in which no clock of another machine has a
    part. A Lease that we do not know for so long is believed its time, against what others on the
    management cluster have written since, less what their clocks differ by.

    :param observed_at: what the clocks of the management cluster show, None if unknown.
    """
    staleness = datetime.timedelta(seconds=lease.last_seen - lease.first_seen)
    if not lease.is_renewed_since and observed_at is not None:
        staleness = max(staleness, observed_at - lease.renewed_at - SKEW)
    if staleness < max(max_staleness, 2 * lease.duration):
        return None
    return StaleController(lease.controller, lease.renewed_at)


def recorded_stale_since(
    leases: Iterable[ControllerLease], recorded_text: str
) -> tuple[StaleController, ...]:
    """Who was silent for a conductor before this one, and has not renewed a Lease since.

    A row says whose Lease was how old. If it is so still, nobody has to watch for the whole time
    again, and nothing turns healthy in between because a conductor was started.

    :param recorded_text: reason and health of a row, as they are now.
    """
    unchanged = [lease for lease in leases if not lease.is_renewed_since]
    for match in _TOLD.finditer(recorded_text):
        controllers = set(match["who"].split(", "))
        matching = tuple(lease for lease in unchanged if lease.controller in controllers)
        if any(
            f"{lease.renewed_at:%Y-%m-%d%H:%M}" == match["day"] + match["time"]
            for lease in matching
        ):
            return tuple(StaleController(lease.controller, lease.renewed_at) for lease in matching)
    return ()


def describe(stale_controllers: Iterable[StaleController]) -> tuple[str, datetime.datetime] | None:
    """Names of the stale controllers, to be followed by the time; None without any."""
    controllers = sorted(stale_controllers, key=lambda controller: controller.controller)
    if not controllers:
        return None
    names = ", ".join(controller.controller for controller in controllers)
    subject = f"controller {names} has" if len(controllers) == 1 else f"controllers {names} have"
    return f"{subject} not reported since", min(controller.since for controller in controllers)
