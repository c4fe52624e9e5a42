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

from magnum.drivers.k8s_capi_helm import conditions
from magnum.drivers.k8s_capi_helm.model import Json, Silence

#: Clocks of two machines may differ by that much; beyond it TLS and tokens fail as well.
SKEW = datetime.timedelta(minutes=5)


@dataclasses.dataclass(frozen=True, slots=True)
class Heartbeat:
    """What is known of one Lease.

    :ivar renewed: its ``renewTime``, by the clock of its controller (aware).
    :ivar lasts: how long its holder says that it is good for.
    :ivar first_seen: when it was seen with this ``renewTime`` first, by our clock (aware).
    :ivar last_seen: and last.
    :ivar moved: it was seen with an older one before, so that its clock need not be trusted.
    """

    controller: str
    renewed: datetime.datetime
    lasts: datetime.timedelta
    first_seen: datetime.datetime
    last_seen: datetime.datetime
    moved: bool = False


def heartbeat(
    controller: str, lease: Json | None, before: Heartbeat | None, now: datetime.datetime
) -> Heartbeat | None:
    """What is known after a look at a Lease; None where nobody has ever renewed it.

    :param lease: None if it is not there; one that was seen before went with its controller.
    :param before: what was known of it, None if nothing.
    """
    if lease is None:
        return before and dataclasses.replace(before, last_seen=now)
    renewed = conditions.instant(conditions.dig(lease, "spec", "renewTime"))
    if renewed is None:
        return None
    if before is not None and before.renewed == renewed:
        return dataclasses.replace(before, last_seen=now)
    seconds = conditions.dig(lease, "spec", "leaseDurationSeconds")
    lasts = datetime.timedelta(seconds=seconds if isinstance(seconds, int) else 0)
    return Heartbeat(controller, renewed, lasts, now, now, moved=before is not None)


def silence(beat: Heartbeat, patience: datetime.timedelta) -> Silence | None:
    """Whether a controller has not renewed its Lease for longer than *patience*.

    That is the time for which we have seen it unchanged, in which no clock of another machine has a
    part. A Lease that we do not know for so long is believed its time, less what clocks differ by.
    """
    quiet = beat.last_seen - beat.first_seen
    if not beat.moved:
        quiet = max(quiet, beat.last_seen - beat.renewed - SKEW)
    if quiet < max(patience, 2 * beat.lasts):
        return None
    return Silence(beat.controller, beat.renewed)


def told(silent: Iterable[Silence]) -> tuple[str, datetime.datetime] | None:
    """Who is silent, as the beginning of a sentence that ends with the time; None if nobody is."""
    found = sorted(silent, key=lambda one: one.controller)
    if not found:
        return None
    listed = ", ".join(one.controller for one in found)
    who = f"controller {listed} has" if len(found) == 1 else f"controllers {listed} have"
    return f"{who} not reported since", min(one.since for one in found)
