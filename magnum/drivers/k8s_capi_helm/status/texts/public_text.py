# SPDX-License-Identifier: Apache-2.0
"""Public text: messages of services and controllers, redacted for tenants.

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
from magnum.drivers.k8s_capi_helm.status.texts import redaction
from magnum.drivers.k8s_capi_helm.status.texts.issue import unwrap_message

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
        result = public_text(unwrap_message(text)) or (WITHHELD if text.strip() else "")
        if result == text:
            return result
        text = result
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


def first_sentence(message: str) -> str:
    """The first sentence of an aggregated message, without bullets.

    A bullet that only names what its sub-bullets are about is told together with the first of them.
    A message that ends with such a name is told without its colon.
    """
    lines = [line.strip().removeprefix("* ") for line in message.splitlines() if line.strip()]
    last_index = next((i for i, line in enumerate(lines) if not line.endswith(":")), len(lines) - 1)
    return public(" ".join(lines[: last_index + 1])).rstrip(":")


# Markup and stacks --------------------------------------------------------------------------------
_MARKUP = re.compile(r"<(?:!doctype|\?xml|html|head|body|title|h[1-6]|p|br|center|pre|div)\b", re.I)
_TAG = re.compile(r"</?(?:[a-z!?][^<>]*)?(?:>|$)", re.IGNORECASE)


def _of_markup(text: str) -> str:
    """What a page of HTML or XML says, after what stands before it; its title if it says more."""
    match = _MARKUP.search(text)
    if match is None:
        return text
    leading, page = text[: match.start()], text[match.start() :]
    body = _without(page, "<!--", "-->")
    for block in ("script", "style", "head"):
        body = _without(body, f"<{block}", f"</{block}>")
    title = page.lower().partition("<title")[2].partition("</title")
    at = page.lower().find("<title")
    head = page[at + 6 : at + 6 + len(title[0])].partition(">")[2] if title[1] else ""
    head, words = (" ".join(_TAG.sub(" ", part).split()) for part in (head, body))
    if head not in words:
        words = f"{head} {words}"
    return f"{leading} {html.unescape(words)}"


def _without(page: str, begin_mark: str, end_mark: str) -> str:
    """A page without its blocks of one kind; one that never ends takes the rest along."""
    pieces, lowered, at = [], page.lower(), 0
    while (start := lowered.find(begin_mark, at)) >= 0:
        pieces.append(page[at:start])
        block_end = lowered.find(end_mark, start)
        if block_end < 0:
            return "".join(pieces)
        at = block_end + len(end_mark)
    return "".join((*pieces, page[at:]))


_STACK = "Traceback (most recent call last):"


def _of_traceback(text: str) -> str:
    """What was raised, of a stack of Python or Go in one line or many."""
    text = text.partition("\ngoroutine ")[0] if "goroutine " in text else text
    for _ in range(_ROUNDS):
        before, stack, frames = text.partition(_STACK)
        if not stack:
            break
        raised = redaction.RAISED.search(frames)
        if raised is None:
            lines = [line for line in frames.splitlines() if line[:1].strip()]
            text = f"{before} {lines[-1] if lines else ''}"
        else:
            text = f"{before} {frames[raised.start() :]}"
    return text


# Words -------------------------------------------------------------------------------------------
def _bare(line: str) -> str:
    """A line without what no tenant is to read; what is the tenant's own is put aside."""
    pieces, at = [], 0
    for match in redaction.OWN.finditer(line):
        pieces += [_removed(line[at : match.start()]), match[0]]
        at = match.end()
    return redaction.CUT.sub("", "".join((*pieces, _removed(line[at:]))))


def _removed(piece: str) -> str:
    for pattern, put in redaction.REMOVED:
        piece = pattern.sub(put, piece)
    for pattern in redaction.CLASSES:
        piece = pattern.sub("", piece)
    return piece


_TIDY = (
    (re.compile(r"\(\s*[,;:]?\s*\)|\[\s*\]|<\s*>|\\*\"\s*\\*\"|'\s*'"), ""),
    (re.compile(r"\b(?:when accessing|with url|for url|accessing|url|at)\s*:?\s*(?=[,;.)]|$)"), ""),
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
