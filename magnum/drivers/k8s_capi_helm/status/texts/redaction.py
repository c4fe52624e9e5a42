# SPDX-License-Identifier: Apache-2.0
"""Redaction: patterns of private parts in messages.

Each expression is bounded in what it repeats, so that a hostile text costs no more than a long one.
"""

from __future__ import annotations

from collections.abc import Callable
import re

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
_SLASHES = r"(?:\\{0,8}/\\{0,8}/|%(?:25)*2F%(?:25)*2F)"
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
OWN = re.compile(
    r"""(?<![\w./\\:-])(?:image|reference):?\s+\\*["']?[a-z0-9][\w.\-]*(?::\d{1,5})?"""
    r"""(?:/[\w.\-]+)*(?::[\w][\w.\-]*)?(?:@sha256:[0-9a-f]+)?(?=\\*["'\s,;)]|:\s|\.?$)"""
    r"""|(?<![\w./:\-@\[%\\])[a-z0-9][a-z0-9.\-]*(?::\d{1,5})?(?:/[a-z0-9][\w.\-]*)+"""
    r"""(?::[a-z0-9_][\w.\-]*|@sha256:[0-9a-f]+)(?![\w/:])"""
    r"""|\bopenstack://[\w-]{0,40}/[0-9a-f]{8}-[0-9a-f-]{27}\b(?![\w./-])""",
    re.IGNORECASE,
)


def _service(address: str) -> str:
    """Whose address it is, "" if that cannot be told."""
    for name, pattern in _SERVICES:
        if re.search(pattern, address, re.IGNORECASE):
            return name
    return ""


def _answered(match: re.Match[str]) -> str:
    """Who answered with which HTTP status, instead of which address was asked."""
    name = _service(match["url"])
    return f"{name} answered HTTP {match['code']}: " if name else f"HTTP {match['code']}: "


_Put = str | Callable[[re.Match[str]], str]
#: In this order: the sentences of libraries need the addresses in them to be understood.
REMOVED: tuple[tuple[re.Pattern[str], _Put], ...] = tuple(
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
            r"\b(?P<code>\d{3}):? (?:client|server) error for url: (?P<url>\S+)",
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
        (
            r"\b(?:get|post|put|patch|delete|head|options) "
            r"\\{0,8}\"[^\"\s]{0,300}?[:/%][^\"\s]*\":?",
            "",
        ),
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
            r"(?<![\w.-])[\w-]{1,63}(?:\.[\w-]{1,63}){0,8}\.(?:svc(?:\.[\w.-]{0,60})?|"
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


#: What a stack of Python ends with.
RAISED = re.compile(rf"(?<![\w.])(?:[\w]+\.){{0,8}}[A-Z]\w*{_CLASS}: ")
#: Names of classes are told by their capitals.
CLASSES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?<![\w.])(?:[a-z_]\w{{0,60}}\.){{1,8}}[A-Z]\w{{0,80}}(?:{_CLASS})\b:?",
        r"(?<![\w.])[A-Z]\w{0,80}(?:Exception|Error|Timeout|Failure)\b(?::|\((?=['\"]))",
        r"(?<![\w.])(?:Error|ERROR|panic): ",
    )
)


#: A message that was cut ends in the middle of what is told above.
CUT = re.compile(
    r"(?:\bexpected HTTP response code\b|\bHTTPS?ConnectionPool\(|\bmax retries exceeded with\b|"
    r"\(?\b(?:x-(?:openstack|compute)-)?request[ _-]?id\b|\breq-|\bdial (?:tcp|udp|unix)|"
    r"\b(?:read|write) (?:tcp|udp|unix)|\blookup \S*(?: on(?: \S*)?)?$|\brpc error\b|"
    r"\[errno\b|\(Client\.Timeout\b|"
    r"\b(?:client|server) error for url\b|\bwhen acc|\(caused by\b|\btraceback \(|"
    rf"\[{_HTTP_VERB} )[^;]{{0,200}}$",
    re.IGNORECASE,
)
