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

from collections.abc import Callable
import html
import re

from magnum.drivers.k8s_capi_helm.status.finding import unwrapped

#: Longer messages are cut before anything else is done with them, in characters.
LONGEST = 8_000
#: Removing can join what makes another address; a text that needs more rounds was made for that.
_ROUNDS = 8
WITHHELD = "the message is in the log of the cloud's operator only"

#: Service by what stands in an address: path, well-known port or name of the host.
_SERVICES = (
    ("Nova", r"nova|/compute\b|:8774\b"),
    ("Neutron", r"neutron|/network\b|:9696\b"),
    ("Octavia", r"octavia|/load-?balancer\b|/lbaas\b|:9876\b"),
    ("Cinder", r"cinder|/volume\b|:8776\b"),
    ("Glance", r"glance|/image\b|:9292\b"),
    ("Keystone", r"keystone|/identity\b|:5000\b|:35357\b"),
    ("Barbican", r"barbican|/key-?manager\b|:9311\b"),
)

_COLON = r"(?::|%(?:25)*3A)"
_SLASHES = r"(?://|\\/\\/|%(?:25)*2F%(?:25)*2F)"
_IPV6 = r"\[[0-9a-f:.]{2,45}(?:%[\w.]{1,20})?\]"
_IPV4 = r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}"
#: The rest of an address, to the first character that ends it in a sentence.
_REST = r"""(?:[^\s"'<>\])},;\\]|[,;](?=[^\s"'<>])|\\(?!["']))*"""
_DOTTED = r"(?<![\w.-])(?:[a-z0-9_][a-z0-9_-]{0,62}\.){1,8}[a-z][a-z0-9-]{0,62}"
_URL = rf"[a-z0-9+.\-]{{0,30}}{_COLON}{_SLASHES}(?:[^\s/@\"']{{0,200}}@)?(?:{_IPV6})?{_REST}"
_HTTP_VERB = r"(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)"
_CLASS = r"(?:Exception|Error|Timeout|Failure|Refused|Fault|Forbidden|NotFound|Unauthorized)"
#: What is the tenant's own and looks like an address: an image with its registry, which has to be
#: corrected, and the id of a server as Kubernetes writes it.
_OWN = re.compile(
    r"""(?<![\w./\\:-])(?:image|reference):?\s+\\*["']?[a-z0-9][\w.\-]*(?::\d{1,5})?"""
    r"""(?:/[\w.\-]+)*(?::[\w][\w.\-]*)?(?:@sha256:[0-9a-f]+)?(?=\\*["'\s,;)]|:\s|\.?$)"""
    r"""|(?<![\w./:\-@\[%\\])[a-z0-9][a-z0-9.\-]*(?::\d{1,5})?(?:/[a-z0-9][\w.\-]*)+"""
    r"""(?::[a-z0-9_][\w.\-]*|@sha256:[0-9a-f]+)(?![\w/:])"""
    r"""|\bopenstack://[\w-]{0,40}/[0-9a-f]{8}-[0-9a-f-]{27}\b(?![\w./-])""",
    re.IGNORECASE,
)


def public(text: str) -> str:
    """The sentence that a tenant can use out of the message of a controller or service."""
    return public_text(unwrapped(text)) or (WITHHELD if text.strip() else "")


def public_text(text: str) -> str:
    """*text* as one line without addresses, ids of requests, paths and words of libraries.

    A text that has none of these is returned as it is; so is one that came from here.

    :returns: "" if nothing else was in it.
    """
    line = " ".join(_of_traceback(_of_markup(text[:LONGEST])).split())
    for _ in range(_ROUNDS):
        bare = _bare(line)
        if bare == line:
            return line
        line = _tidy(bare)
        line = " ".join(_of_traceback(_of_markup(line)).split())
    return WITHHELD


def first_bullet(message: str) -> str:
    """The first sentence of an aggregated message, without bullets.

    A bullet that only names what its sub-bullets are about is told together with the first of them.
    """
    lines = [one.strip().removeprefix("* ") for one in message.splitlines() if one.strip()]
    head = next((i for i, one in enumerate(lines) if not one.endswith(":")), len(lines) - 1)
    return public(" ".join(lines[: head + 1]))


# Markup and stacks --------------------------------------------------------------------------------
_MARKUP = re.compile(r"<(?:!doctype|\?xml|html|head|body|title|h[1-6]|p|br|center|pre|div)\b", re.I)
_TAG = re.compile(r"</?[a-z!?][^<>]*>", re.IGNORECASE)


def _of_markup(text: str) -> str:
    """What a page of HTML or XML says, behind what stands before it; its title if that is all."""
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
    words = " ".join(_TAG.sub(" ", body).split()) or head
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
_FRAME = re.compile(r'\s*File "[^"\n]*", line \d+, in [^\n]*')
_RAISED = re.compile(rf"(?<![\w.])(?:[\w]+\.){{0,8}}[A-Z]\w*{_CLASS}: ")


def _of_traceback(text: str) -> str:
    """What was raised, of a stack of Python or Go in one line or many."""
    text = text.partition("\ngoroutine ")[0] if "goroutine " in text else text
    before, stack, behind = text.partition(_STACK)
    if not stack:
        return text
    raised = _RAISED.search(behind)
    if raised is not None:
        return f"{before} {behind[raised.start() :]}"
    lines = [one for one in behind.splitlines() if one[:1].strip()]
    return f"{before} {lines[-1] if lines else ''}"


# Words --------------------------------------------------------------------------------------------
def _service(address: str) -> str:
    """Whose address it is, "" if that cannot be told."""
    for name, pattern in _SERVICES:
        if re.search(pattern, address, re.IGNORECASE):
            return name
    return ""


def _answered(found: re.Match[str]) -> str:
    """Who answered with which HTTP status, instead of which address was asked."""
    name = _service(found["url"])
    return f"{name} answered HTTP {found['code']}: " if name else f"HTTP {found['code']}: "


_Put = str | Callable[[re.Match[str]], str]
#: In this order: the sentences of libraries need the addresses in them to be understood.
_REMOVED: tuple[tuple[re.Pattern[str], _Put], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), put)
    for pattern, put in (
        (
            r"\(?\b(?:x-(?:openstack|compute)-)?request[ _-]?id\b[\"']?\s*[:=]?\s*[\"']?"
            r"(?:none\b|(?:req-)?[0-9a-f]{8}[0-9a-f-]*)[\"']?\)?",
            "",
        ),
        (r"\(?\breq-[0-9a-f]{8}(?:-?[0-9a-f]{1,12}){0,6}\)?", ""),
        (
            rf"expected HTTP response code \[[\d ]{{0,40}}\] when accessing \[{_HTTP_VERB} "
            r"(?P<url>[^\s\]]*(?:\][^\s\],]*)?)\],? but got (?P<code>\d{3})(?: instead)?:?",
            _answered,
        ),
        (
            rf"\b(?P<code>\d{{3}}):? (?:client|server) error for url: (?P<url>{_URL}),?",
            _answered,
        ),
        (
            rf"\b(?P<code>\d{{3}}) (?:client|server) error: [\w -]{{0,40}} "
            rf"for url: (?P<url>{_URL})",
            _answered,
        ),
        (rf":?\s*\[{_HTTP_VERB} [^\s\]]*(?:\][^\s\]]*)?\],?(?: error message)?:?", ": "),
        (r"\bHTTPS?ConnectionPool\([^()]{0,300}\):?", ""),
        (r"\bmax retries exceeded with url: [^\s,;)]*", ""),
        (r"\(?caused by (?:[\w.]{1,80}\()?[\"']?", ""),
        (r"<[\w.]{1,120}(?:\s[^<>]{0,300})? at 0x[0-9a-f]{4,16}>:?", ""),
        (r"\[errno -?\d{1,6}\]", ""),
        (r"\b(?:get|post|put|patch|delete|head|options) \\?\"[^\"\s]{0,300}?[:/%][^\"\s]*\":?", ""),
        (rf"\bunable to establish connection to {_URL}:?", "no connection: "),
        (r"\bfile \"[^\"]{0,300}\", line \d{1,9}(?:, in [\w<>.]{1,100})?:?", ""),
        (rf"\bunexpected status from {_HTTP_VERB} request to {_URL}:?", "HTTP "),
        (r"\bdial (?:tcp|udp|unix)[46]?(?: [^\s:]\S*?)?:(?= )", ""),
        (r"\b(?:read|write) (?:tcp|udp|unix)[46]? \S{1,300}->\S{1,300}?:(?= )", ""),
        (r"\blookup [\w.-]{1,255}(?: on \S{1,255}?)?:(?= )", ""),
        (
            r"\bcertificate is valid for [^:;()]{0,300}? not [\w.:*-]{1,255}",
            "certificate names another host",
        ),
        (r"\b(?:x509|net/http|tls|http2?): ", ""),
        (r"\s?\(Client\.Timeout (?:or context cancellation )?[^()]{0,80}\)", ""),
        (r"\bconnect: ", ""),
        (r"\bcontext deadline exceeded\b", "timed out"),
        (r"\brpc error: (?:code = \w{1,40} )?desc = ", ""),
        (rf"{_URL}", ""),
        (r"(?<![\w:/\\])//[\w.\-\[][^\s\"'<>\])},;]*", ""),
        (rf"{_IPV6}:\d{{1,5}}(?:/{_REST})?", ""),
        (rf"{_IPV4}:\d{{1,5}}\b(?:/{_REST})?", ""),
        (rf"{_DOTTED}:\d{{2,5}}\b(?![.\-]\w)(?:/{_REST})?", ""),
        (
            r"\b(?:localhost|[\w-]{0,40}(?:nova|neutron|octavia|cinder|glance|keystone|barbican|"
            r"placement|rabbitmq|mysql|mariadb|memcached)[\w-]{0,40}):\d{2,5}\b",
            "",
        ),
        (r"\b(?P<to>to|at|on|from|host|endpoint|address|via) [a-z][\w-]{0,62}:\d{4,5}\b", ""),
        (
            rf"\b(?P<what>connect(?:ion|ing|ed)?) (?:to|from|with) (?:host )?['\"]?"
            rf"(?:{_IPV4}|{_DOTTED})['\"]?",
            r"\g<what>",
        ),
        (
            r"\b(?:failed|unable|could not|cannot)(?: to)? resolve(?: host)?:? "
            r"['\"]?[\w.-]{1,255}['\"]?",
            "cannot resolve the name",
        ),
        (
            r"(?<![\w.-])[\w-]{1,63}(?:\.[\w-]{1,63}){0,8}\.(?:svc(?:\.cluster\.local)?|"
            r"cluster\.local|internal|localdomain|local|lan|intern|corp)\b"
            r"(?![\w-]|\.\w)(?::\d{1,5})?",
            "",
        ),
        (
            r"(?<![\w./-])(?:[\w.-]{1,100}/){1,20}[\w-]{1,100}\.(?:py|go|sock|pem|crt|key)\b"
            r"(?::\d{1,9}){0,2}",
            "",
        ),
        (r"\b[\w-]{1,100}\.(?:go|py):\d{1,9}", ""),
        (r"(?<![\w.:/\\%<-])/[\w.@+%-]+(?:/[\w.@+%-]*)*", ""),
        (r"\b(?:UPGRADE|INSTALLATION|UNINSTALLATION|ROLLBACK) FAILED:?", ""),
        (r"\breconciler? error:?", ""),
        (r"\bexit status \d{1,5}:?", ""),
        (r"\btemplate: \S{1,300}?:\d{1,9}(?::\d{1,9})?: ", ""),
        (r"\bexecuting \\?\"[^\"]{0,300}\" at <[^<>]{0,300}>:", ""),
        (r"\berror calling \w{1,40}:", ""),
        (
            r"\b(?:gophercloud|openstacksdk|keystoneauth1?|urllib3|controller-runtime|client-go|"
            r"errors\.errorString|nginx|openresty|gunicorn|apache|haproxy|uwsgi)(?:/[\w.]{1,40})?\b"
            r"(?:\s\((?:ubuntu|debian|centos|rocky|red hat|unix)\))?:?",
            "",
        ),
        (r"[*&](?:\w{1,40}\.)+\w{1,40}\b(?:\{[^{}]{0,300}\})?", ""),
        (r"\b0x[0-9a-f]{6,16}\b", ""),
    )
)


#: Names of classes are told by their capitals.
_CLASSES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?<![\w.])(?:[a-z_]\w{{0,60}}\.){{1,8}}[A-Z]\w{{0,80}}(?:{_CLASS})\b:?",
        r"(?<![\w.])[A-Z]\w{0,80}(?:Exception|Error|Timeout|Failure)\b(?::|\((?=['\"]))",
        r"(?<![\w.])(?:Error|ERROR|panic): ",
    )
)


def _bare(line: str) -> str:
    """A line without what no tenant is to read; what is the tenant's own is put aside."""
    pieces, at = [], 0
    for found in _OWN.finditer(line):
        pieces += [_removed(line[at : found.start()]), found[0]]
        at = found.end()
    return "".join((*pieces, _removed(line[at:])))


def _removed(piece: str) -> str:
    for pattern, put in _REMOVED:
        piece = pattern.sub(put, piece)
    for pattern in _CLASSES:
        piece = pattern.sub("", piece)
    return piece


_TIDY = (
    (re.compile(r"\(\s*[,;:]?\s*\)|\[\s*\]|<\s*>|\"\s*\"|'\s*'"), ""),
    (re.compile(r"\b(?:when accessing|with url|for url|accessing|url)\s*:?\s*(?=[,;.)]|$)"), ""),
    (re.compile(r"\s+([,;:.)])(?=\s|$)"), r"\1"),
    (re.compile(r"([:,;])(?:\s*[:,;])+"), r"\1"),
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
