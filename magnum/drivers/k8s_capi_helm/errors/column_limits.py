# SPDX-License-Identifier: Apache-2.0
"""Limits of Magnum's columns; texts are cut after a whole word.

Operators run MySQL or MariaDB in strict mode, where a text that is too long is no text at all: the
row is not written, in this pass and in every later one. ``Text`` holds 65,535 bytes of UTF-8 there
(https://dev.mysql.com/doc/refman/8.4/en/storage-requirements.html), and Magnum's tables are made
with ``mysql_charset`` utf8, which has characters of up to three bytes. ``JSONEncodedDict`` and
``JSONEncodedList`` are a ``Text`` with JSON, in which a character that is not ASCII takes six bytes
or twelve (``magnum/db/sqlalchemy/models.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
import json
import re
from typing import Any

#: Bytes in a ``Text`` column, and characters in a ``String(255)``.
TEXT, STRING = 65535, 255
#: Bytes of a sentence that is raised: Magnum writes it, and may write some words before it.
SENTENCE = 64000
#: Bytes of the labels of a cluster, as Magnum keeps them: the other half of the column is for what
#: templates of later upgrades add.
LABELS = TEXT // 2
_ENDING = "..."
#: Control characters but for tab and line ends, marks that turn the direction of writing, halves.
_NO_TEXT = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_BEYOND_THREE_BYTES = re.compile("[\U00010000-\U0010ffff]")
_REPLACEMENT = "\ufffd"


def shorten(text: str, limit: int, size: Callable[[str], int] = len) -> str:
    """A text of at most that size; one that is cut ends with a whole word and "...".

    A word that is longer than half of the limit is cut itself, so that something is left.

    :param size: of a character, which is 1 at least; characters are counted without it.
    """
    if size is len and len(text) <= limit:
        return text
    used = end = 0
    for at, character in enumerate(text[: limit + 1]):
        used += 1 if size is len else size(character)
        if used <= limit - len(_ENDING):
            end = at + 1
        elif used > limit:
            break
    else:
        return text
    head = text[:end]
    if not text[end].isspace():
        whole, space, _ = head.rpartition(" ")
        if space and len(whole) >= end // 2:
            head = whole
    return f"{head.rstrip()}{_ENDING}"[:limit]


def sentence(text: str) -> str:
    """A sentence as it can be raised: Magnum writes it into a ``status_reason``."""
    return _in_utf8(text, SENTENCE)


def fit(field: str, value: Any) -> Any:
    """A value for a column of Magnum's clusters or nodegroups, such that the database takes it.

    What a tenant has asked for (labels, names) is never cut: it is refused when it comes.

    :param field: name of the column.
    """
    return _COLUMNS[field](value) if value is not None and field in _COLUMNS else value


def encoded_size(value: Any) -> int:
    """Bytes of a value in a column with JSON."""
    return len(json.dumps(value))


def _in_utf8(text: str, limit: int) -> str:
    plain = _BEYOND_THREE_BYTES.sub(_REPLACEMENT, _readable(text[: limit + 1]))
    if 3 * len(plain) <= limit:
        return plain
    return shorten(plain, limit, lambda character: len(character.encode()))


def _readable(text: str) -> str:
    """Text without what is none: halves of characters, which no database takes, and characters
    that a terminal or a browser acts on instead of showing them.
    """
    return _NO_TEXT.sub(_REPLACEMENT, text)


def _in_json(character: str) -> int:
    return encoded_size(character) - 2


def _text(value: str) -> str:
    return _in_utf8(value, TEXT)


def _string(value: str) -> str:
    return shorten(_BEYOND_THREE_BYTES.sub(_REPLACEMENT, _readable(value[: STRING + 1])), STRING)


def _texts(value: Mapping[str, str]) -> dict[str, str]:
    """The longest texts are cut, all to one size, which is the largest at which all of it fits."""
    readable = {key: _readable(text[: TEXT + 1]) for key, text in value.items()}
    if encoded_size(readable) <= TEXT:
        return readable
    remaining = TEXT - encoded_size(dict.fromkeys(readable, ""))
    sizes = sorted(encoded_size(text) - 2 for text in readable.values())
    for index, size in enumerate(sizes):
        share = remaining // (len(sizes) - index)
        if size > share:
            return {key: shorten(text, share, _in_json) for key, text in readable.items()}
        remaining -= size
    return readable


def _addresses(value: Iterable[str]) -> list[str]:
    """As many of the first addresses as there is room for; half an address is none."""
    addresses: list[str] = []
    remaining = TEXT - encoded_size([])
    for address in value:
        if len(str(address)) > STRING:
            continue
        text = _readable(str(address))
        remaining -= encoded_size(text) + 2
        if remaining < 0:
            break
        addresses.append(text)
    return addresses


_COLUMNS: Mapping[str, Callable[[Any], Any]] = {
    "status_reason": _text,
    "health_status_reason": _texts,
    "api_address": _string,
    "coe_version": _string,
    "node_addresses": _addresses,
}
