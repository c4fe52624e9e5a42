# SPDX-License-Identifier: Apache-2.0
"""Extract the message from a JSON error of OpenStack, at any depth.

A parser of the standard library recurses into what it parses, and has to be started again at each
brace of a text that only contains JSON. The text may be a tenant's (the words of a webhook), so it
is read token by token instead.
"""

from __future__ import annotations

import dataclasses
import json
import re

#: A text (it can be cut off nowhere), a brace or other mark, or a word such as ``null`` or ``1e3``.
_TOKEN = re.compile(
    r'\s*(?:(?P<text>"[^"\\]*(?:\\.[^"\\]*)*")|(?P<mark>[{}\[\]:,])|(?P<word>[-+.\w]+))',
    re.DOTALL,
)
#: The keys of a sentence, best first: Nova, Neutron, Cinder, Keystone; Octavia.
_KEYS = ("message", "faultstring")


@dataclasses.dataclass(slots=True)
class _Open:
    """An object or a list that has not ended yet.

    :ivar key: what the next value is called, None where none is expected.
    :ivar listed: whether it is a list or stands in one: errors of services are never listed.
    """

    mark: str
    listed: bool
    key: str | None = None
    last: str | None = None
    said: dict[str, str] = dataclasses.field(default_factory=dict)


def extract_sentence(text: str) -> str:
    """The deepest sentence in the first object of a text that has one, "" without any.

    :param text: its length is the caller's to bound.
    """
    opened: list[_Open] = []
    at = text.find("{")
    while at >= 0:
        token = _TOKEN.match(text, at)
        if token is not None:
            result = _take(opened, token)
            if result is not None:
                if result:
                    return result
                at = token.end() if opened else text.find("{", token.end())
                continue
        # No JSON goes on like this: whatever began with a brace before it was none.
        broken = bool(opened)
        opened.clear()
        at = text.find("{", at if broken else at + 1)
    return ""


def _take(opened: list[_Open], token: re.Match[str]) -> str | None:
    """Read one token: the sentence of an object that ends with it, "" for none yet.

    :returns: None where JSON does not go on like this.
    """
    bracket, inner = token["mark"], opened[-1] if opened else None
    if bracket in ("{", "["):
        if inner is not None and inner.mark == "{" and inner.key is None:
            return None
        in_list = bracket == "[" or (inner is not None and inner.listed)
        opened.append(_Open(bracket, in_list))
        return ""
    if inner is None:
        return None
    if bracket in ("}", "]"):
        if (inner.mark == "{") != (bracket == "}"):
            return None
        opened.pop()
        if opened:
            opened[-1].key = None
        return "" if inner.listed else next((inner.said[k] for k in _KEYS if k in inner.said), "")
    if bracket == ":":
        inner.key, inner.last = inner.last, None
        return None if inner.key is None else ""
    if bracket is None:
        return _take_value(inner, token["text"])
    inner.key = inner.last = None
    return ""


def _take_value(inner: _Open, text: str | None) -> str | None:
    """Read a text (the key or the value of an object, or one in a list) or a word."""
    if inner.mark == "[":
        return ""
    if inner.key is None:
        inner.last = None if text is None else text[1:-1]
        return None if text is None else ""
    if text is not None and inner.key in _KEYS:
        value = _decoded(text)
        if value.strip():
            inner.said[inner.key] = value
    inner.key = None
    return ""


def _decoded(text: str) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        return ""
    return str(value)
