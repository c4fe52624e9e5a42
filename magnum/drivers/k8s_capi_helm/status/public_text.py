# SPDX-License-Identifier: Apache-2.0
"""Public text: what a tenant may read of the words of a service, a library or a controller.

Messages of OpenStack's services arrive wrapped: gophercloud, openstacksdk and Go's net package add
the address that was asked, services add the id of the request, proxies answer with a page of HTML.
The tenant gets the middle: which service, which HTTP status, what it said. What a tenant's own
cluster needs stays, as far as its form tells: names of images, addresses without a port, names of
objects. The forms are those of the sources of gophercloud ("ErrUnexpectedResponseCode"),
openstacksdk ("HttpException"), urllib3 ("MaxRetryError") and Go ("net.OpError", "url.Error").
"""

from __future__ import annotations

import functools
import html
import re

from magnum.drivers.k8s_capi_helm.model import conditions
from magnum.drivers.k8s_capi_helm.status import redaction
from magnum.drivers.k8s_capi_helm.status.issue import unwrapped

#: Longer messages are cut before anything else is done with them, in characters.
LONGEST = 8_000
#: And so much is looked at of what is left of a page or a stack.
_LINE = 1_000
#: Removing can join what makes another address; a text that needs more rounds was made for that.
_ROUNDS = 8
WITHHELD = "the message is in the log of the cloud's operator only"


def public(text: str) -> str:
    """The sentence that a tenant can use out of the message of a controller or service."""
    return _sentence(text[: conditions.LONGEST])


# The same message stands in many objects, and in each pass again.
@functools.lru_cache(maxsize=1024)
def _sentence(text: str) -> str:
    for _ in range(_ROUNDS):
        told = public_text(unwrapped(text)) or (WITHHELD if text.strip() else "")
        if told == text:
            return told
        text = told
    return WITHHELD


def public_text(text: str) -> str:
    """*text* as one line without addresses, ids of requests, paths and words of libraries.

    A text that has none of these is returned as it is; so is one that came from here.

    :returns: "" if nothing else was in it.
    """
    line = " ".join(_of_traceback(_of_markup(text[:LONGEST])).split())[:_LINE]
    for _ in range(_ROUNDS):
        bare = _bare(line)
        if bare == line:
            return line
        line = " ".join(_of_traceback(_of_markup(_tidy(bare))).split())
    return WITHHELD


def first_bullet(message: str) -> str:
    """The first sentence of an aggregated message, without bullets.

    A bullet that only names what its sub-bullets are about is told together with the first of them.
    A message that ends with such a name is told without its colon.
    """
    lines = [one.strip().removeprefix("* ") for one in message.splitlines() if one.strip()]
    head = next((i for i, one in enumerate(lines) if not one.endswith(":")), len(lines) - 1)
    return public(" ".join(lines[: head + 1])).rstrip(":")


# Markup and stacks --------------------------------------------------------------------------------
_MARKUP = re.compile(r"<(?:!doctype|\?xml|html|head|body|title|h[1-6]|p|br|center|pre|div)\b", re.I)
_TAG = re.compile(r"</?(?:[a-z!?][^<>]*)?(?:>|$)", re.IGNORECASE)


def _of_markup(text: str) -> str:
    """What a page of HTML or XML says, after what stands before it; its title if it says more."""
    found = _MARKUP.search(text)
    if found is None:
        return text
    before, page = text[: found.start()], text[found.start() :]
    body = _without(page, "<!--", "-->")
    for block in ("script", "style", "head"):
        body = _without(body, f"<{block}", f"</{block}>")
    title = page.lower().partition("<title")[2].partition("</title")
    at = page.lower().find("<title")
    head = page[at + 6 : at + 6 + len(title[0])].partition(">")[2] if title[1] else ""
    head, words = (" ".join(_TAG.sub(" ", one).split()) for one in (head, body))
    if head not in words:
        words = f"{head} {words}"
    return f"{before} {html.unescape(words)}"


def _without(page: str, begin: str, end: str) -> str:
    """A page without its blocks of one kind; one that never ends takes the rest along."""
    kept, low, at = [], page.lower(), 0
    while (start := low.find(begin, at)) >= 0:
        kept.append(page[at:start])
        stop = low.find(end, start)
        if stop < 0:
            return "".join(kept)
        at = stop + len(end)
    return "".join((*kept, page[at:]))


_STACK = "Traceback (most recent call last):"


def _of_traceback(text: str) -> str:
    """What was raised, of a stack of Python or Go in one line or many."""
    text = text.partition("\ngoroutine ")[0] if "goroutine " in text else text
    for _ in range(_ROUNDS):
        before, stack, behind = text.partition(_STACK)
        if not stack:
            break
        raised = redaction.RAISED.search(behind)
        if raised is None:
            lines = [one for one in behind.splitlines() if one[:1].strip()]
            text = f"{before} {lines[-1] if lines else ''}"
        else:
            text = f"{before} {behind[raised.start() :]}"
    return text


# Words -------------------------------------------------------------------------------------------
def _bare(line: str) -> str:
    """A line without what no tenant is to read; what is the tenant's own is put aside."""
    pieces, at = [], 0
    for found in redaction.OWN.finditer(line):
        pieces += [_removed(line[at : found.start()]), found[0]]
        at = found.end()
    return redaction.CUT.sub("", "".join((*pieces, _removed(line[at:]))))


def _removed(piece: str) -> str:
    for pattern, put in redaction.REMOVED:
        piece = pattern.sub(put, piece)
    for pattern in redaction.CLASSES:
        piece = pattern.sub("", piece)
    return piece


_TIDY = (
    (re.compile(r"\(\s*[,;:]?\s*\)|\[\s*\]|<\s*>|\\*\"\s*\\*\"|'\s*'"), ""),
    (re.compile(r"\b(?:when accessing|with url|for url|accessing|url)\s*:?\s*(?=[,;.)]|$)"), ""),
    (re.compile(r"\s+([,;:.)])(?=\s|$)"), r"\1"),
    (re.compile(r"([:,;])(?:\s+[:,;])+"), r"\1"),
    (re.compile(r"^[\s:,;.)\]}'\"-]+"), ""),
    (re.compile(r"[\s:,;(\[{-]+$"), ""),
)


def _tidy(text: str) -> str:
    """What removing has left of signs that stand for nothing any more."""
    line = " ".join(text.split())
    for pattern, put in _TIDY:
        line = pattern.sub(put, line)
    line = line.removesuffix("'))").removesuffix("')")
    return " ".join(line.split())
