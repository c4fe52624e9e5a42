# SPDX-License-Identifier: Apache-2.0
"""Maintenance windows: hours of some weekdays, in a time zone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import dataclasses
import datetime
import functools
import re
import zoneinfo

from magnum.drivers.k8s_capi_helm import errors

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_PATTERN = re.compile(
    r"(?:(?P<days>[a-z]{3}(?:[,-][a-z]{3}){0,6}) )?"
    r"(?P<start>\d{2}:\d{2})-(?P<end>\d{2}:\d{2})(?: (?P<zone>[\w+/-]{1,64}))?",
    re.ASCII | re.IGNORECASE,
)
_DAY = datetime.timedelta(days=1)
#: Openings that are looked at for one that windows have in common: those of two weeks.
_OPENINGS = 2 * 2 * len(_DAYS)


@dataclasses.dataclass(frozen=True, slots=True)
class MaintenanceWindow:
    """When clusters may be changed.

    :ivar text: as it is written.
    :ivar days: weekdays on which it opens, Monday 0.
    :ivar start: local hour and minute at which it opens, *end* at which it closes, of the next day
        if it is not later.
    """

    text: str
    days: frozenset[int]
    start: tuple[int, int]
    end: tuple[int, int]
    zone: datetime.tzinfo

    @property
    def duration(self) -> datetime.timedelta:
        """How long it is open, by the clock on the wall; up to a day."""
        start, end = (datetime.timedelta(hours=h, minutes=m) for h, m in (self.start, self.end))
        return end - start if end > start else end - start + _DAY

    def is_open(self, now: datetime.datetime) -> bool:
        """Whether it is open at an instant (aware)."""
        today = now.astimezone(self.zone).date()
        return any(
            self._opening(day) <= now < self._closing(day)
            for day in (today - _DAY, today)
            if day.weekday() in self.days
        )

    def next_opening(self, now: datetime.datetime) -> datetime.datetime:
        """When it opens next, as UTC; *now* while it is open."""
        if self.is_open(now):
            return now
        today = now.astimezone(self.zone).date()
        days = (today + number * _DAY for number in range(len(_DAYS) + 1))
        openings = (self._opening(day) for day in days if day.weekday() in self.days)
        return next(opening for opening in openings if opening > now)

    def _opening(self, day: datetime.date) -> datetime.datetime:
        return self._instant(day, self.start)

    def _closing(self, day: datetime.date) -> datetime.datetime:
        return self._instant(day if self.end > self.start else day + _DAY, self.end)

    def _instant(self, day: datetime.date, time: tuple[int, int]) -> datetime.datetime:
        local = datetime.datetime(day.year, day.month, day.day, *time, tzinfo=self.zone)
        # As UTC, in which hours that the clocks skip or repeat are none.
        return local.astimezone(datetime.timezone.utc)


def common_opening(texts: Iterable[str], now: datetime.datetime) -> datetime.datetime | None:
    """When windows are open together next, as UTC; *now* while they are; None if they never are.

    :param texts: of the windows; "" is always open.
    :raises errors.InvalidRequest: one is none.
    """
    windows = [parse_window(text) for text in texts if text]
    for _ in range(_OPENINGS):
        opening = max((window.next_opening(now) for window in windows), default=now)
        if opening == now:
            return now
        now = opening
    return None


@functools.lru_cache(maxsize=256)
def parse_window(text: str) -> MaintenanceWindow:
    """The window of a text such as ``Sat,Sun 22:00-04:00 Europe/Berlin``.

    Without days it opens on each day, and without a time zone (of the IANA database) it is in UTC.
    Capitals do not matter.

    :raises errors.InvalidRequest: it is none.
    """
    match = _PATTERN.fullmatch(text.strip())
    if match is None:
        raise _invalid(text)
    names = (match["days"] or "").title()
    try:
        zone_name, zone = _zone(match["zone"] or "")
        start, end = (_hour_and_minute(match[key]) for key in ("start", "end"))
        days = _weekdays(names)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        raise _invalid(text) from None
    hours = f"{match['start']}-{match['end']}"
    return MaintenanceWindow(
        " ".join(part for part in (names, hours, zone_name) if part), days, start, end, zone
    )


def _hour_and_minute(text: str) -> tuple[int, int]:
    """
    :raises ValueError: there is no such time of a day.
    """
    parsed = datetime.datetime.strptime(text, "%H:%M")
    return parsed.hour, parsed.minute


def _zone(text: str) -> tuple[str, datetime.tzinfo]:
    """A time zone with its name; UTC is known on each host.

    :raises ValueError: there is none of this name.
    """
    if text.upper() in ("", "UTC"):
        return text.upper(), datetime.timezone.utc
    name = _zone_names().get(text.casefold())
    if name is None:
        raise ValueError(text)
    return name, zoneinfo.ZoneInfo(name)


@functools.cache
def _zone_names() -> Mapping[str, str]:
    """All zones that this host knows, by name without capitals, as the dashboard writes them."""
    return {name.casefold(): name for name in zoneinfo.available_timezones()}


def _weekdays(text: str) -> frozenset[int]:
    """Days and ranges of days, all without a text.

    :raises ValueError: one is none.
    """
    if not text:
        return frozenset(range(len(_DAYS)))
    days: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        start, end = _DAYS.index(first), _DAYS.index(last or first)
        days |= {number % len(_DAYS) for number in range(start, end + (end < start) * 7 + 1)}
    return frozenset(days)


def _invalid(text: str) -> errors.InvalidRequest:
    return errors.InvalidRequest(
        "This is no maintenance window. Write for example 'Sat,Sun 22:00-04:00 Europe/Berlin', "
        f"instead of '{text}'."
    )
