# SPDX-License-Identifier: Apache-2.0
"""Types of labels about snapshots: a schedule as cron has it, and a bucket."""

from __future__ import annotations

import re

from magnum.drivers.k8s_capi_helm.labels.value_types import types

_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}", re.ASCII)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
#: Lowest and highest number of each field, and the names of the numbers from the lowest one on.
#: Kubernetes takes no 7 for Sunday: https://pkg.go.dev/github.com/robfig/cron/v3
_FIELDS: tuple[tuple[int, int, tuple[str, ...]], ...] = (
    (0, 59, ()),
    (0, 23, ()),
    (1, 31, ()),
    (1, 12, _MONTHS),
    (0, 6, _DAYS),
)
_PART = re.compile(r"(?:\*|(?P<first>\w{1,3})(?:-(?P<last>\w{1,3}))?)(?:/(?P<step>\d{1,2}))?", re.A)


def _read_bucket(text: str) -> str:
    if _BUCKET.fullmatch(text.strip()) is None:
        raise ValueError(text)
    return text.strip()


def _read_schedule(text: str) -> str:
    fields = text.lower().split()
    if len(fields) != len(_FIELDS):
        raise ValueError(text)
    for field, (lowest, highest, words) in zip(fields, _FIELDS, strict=True):
        for part in field.split(","):
            match = _PART.fullmatch(part)
            if match is None or (match["step"] and int(match["step"]) == 0):
                raise ValueError(text)
            bounds = [_number(match[name], lowest, words) for name in ("first", "last")]
            numbers = [lowest, *(number for number in bounds if number is not None), highest]
            if numbers != sorted(numbers):
                raise ValueError(text)
    return " ".join(fields)


def _number(word: str | None, lowest: int, words: tuple[str, ...]) -> int | None:
    if word is None:
        return None
    return lowest + words.index(word) if word in words else int(word)


BUCKET = types.LabelType(
    _read_bucket, "the name of a bucket: at most 255 letters, digits, '.', '_' and '-'"
)
SCHEDULE = types.LabelType(
    _read_schedule,
    "minute, hour, day, month and weekday as cron has them, with spaces between them, like "
    "30 1 * * *",
)
