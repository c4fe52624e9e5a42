# SPDX-License-Identifier: Apache-2.0
"""Timestamps written on the management cluster, and the time that they imply.

The API server writes when an object was made and is to go, controllers write since when a condition
says what it says. A conductor's clock need not agree with theirs, so how long something lasts is
the difference between two of their times, never between one of theirs and one of the conductor's.
"""

from __future__ import annotations

from collections.abc import Iterator
import datetime

from magnum.drivers.k8s_capi_helm.model import conditions, Json, Observed, present

_OF_EVENTS = (("series", "lastObservedTime"), ("lastTimestamp",), ("eventTime",))


def observed_at(observed: Observed) -> datetime.datetime | None:
    """The time of a snapshot by the management cluster's clocks, None if unknown."""
    return observed.asof or newest(observed)


def is_older(
    since: datetime.datetime | None, observed: Observed, duration: datetime.timedelta
) -> bool:
    """Whether a condition has lasted longer than that at a snapshot; False if unknown.

    :param since: as a controller or the API server wrote it.
    """
    at = observed_at(observed)
    return since is not None and at is not None and at - since > duration


def of_event(event: Json) -> datetime.datetime | None:
    """When an Event was seen last, by who wrote it."""
    for path in _OF_EVENTS:
        at = conditions.instant(conditions.at_path(event, *path))
        if at is not None:
            return at
    return conditions.instant(conditions.metadata(event).get("creationTimestamp"))


def newest(observed: Observed) -> datetime.datetime | None:
    """The newest time in a look: it was at least that late when it was taken."""
    times = [time for time in _times(observed) if time is not None]
    return max(times, default=None)


def _times(observed: Observed) -> Iterator[datetime.datetime | None]:
    for obj in observed.objects():
        for field in ("creationTimestamp", "deletionTimestamp"):
            yield conditions.instant(conditions.metadata(obj).get(field))
        for condition in conditions.items(obj):
            yield conditions.instant(condition.get("lastTransitionTime"))
    for event in present(observed.events):
        yield of_event(event)
