# SPDX-License-Identifier: Apache-2.0
"""The proxy on the way to the management cluster, chosen as Helm chooses it.

Releases of the kubernetes client differ: 32 reads neither a kubeconfig's ``proxy-url`` nor the
environment, newer ones read both, and each has rules of its own for NO_PROXY. Helm's client-go has
those of Go, so driver and Helm could take different ways; Go's are written down here (https://pkg.go.dev/golang.org/x/net/http/httpproxy#Config,
https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/#Cluster).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
import contextlib
import dataclasses
import ipaddress
from typing import TypeAlias
import urllib.parse

_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclasses.dataclass(frozen=True)
class Proxy:
    """How requests to a server travel.

    :ivar url: of the proxy, without user and password; None for none.
    :ivar headers: with which the proxy is asked.
    """

    url: str | None = None
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict, repr=False)


def choose_proxy(server: str, proxy_url: str | None, variables: Mapping[str, str]) -> Proxy:
    """The proxy for a server.

    :param server: its URL.
    :param proxy_url: of the kubeconfig; it wins, whatever the environment exempts.
    :param variables: the environment.
    :raises ValueError: the proxy's URL is none; the text may have its password.
    """
    if proxy_url:
        return _proxy(proxy_url)
    parts = urllib.parse.urlsplit(server)
    kind = "https" if parts.scheme == "https" else "http"
    url = _variable(variables, f"{kind}_proxy")
    host, port = (parts.hostname or "").lower(), parts.port or _DEFAULT_PORTS[kind]
    if not url or _is_exempt(host, port, _variable(variables, "no_proxy")):
        return Proxy()
    return _proxy(url)


def _variable(variables: Mapping[str, str], name: str) -> str:
    return variables.get(name.upper()) or variables.get(name) or ""


def _is_exempt(host: str, port: int, no_proxy: str) -> bool:
    """Whether a host is asked directly; this one always is."""
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    entries = (entry.strip().lower() for entry in no_proxy.split(","))
    return any(_matches(entry, host, address, port) for entry in entries if entry)


def _matches(entry: str, host: str, address: _Address | None, port: int) -> bool:
    """Whether an entry of NO_PROXY means a host: ``*``, a network, an address or a domain."""
    if entry == "*":
        return True
    if "/" in entry:
        with contextlib.suppress(ValueError):
            return address is not None and address in ipaddress.ip_network(entry, strict=False)
        return False
    name, own_port = _split_port(entry)
    if not name or own_port not in ("", str(port)):
        return False
    if _address(name) is not None:
        return address == _address(name)
    if name.startswith(("*.", ".")):  # names below a domain, but not its own
        return host.endswith(name.removeprefix("*"))
    return host == name or host.endswith(f".{name}")


def _split_port(entry: str) -> tuple[str, str]:
    """A host without brackets, and its port or ""."""
    if entry.startswith("["):
        host, _, rest = entry[1:].partition("]")
        return host, rest.removeprefix(":")
    if entry.count(":") == 1:
        host, _, port = entry.partition(":")
        return host, port
    return entry, ""


def _address(host: str) -> _Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _proxy(url: str) -> Proxy:
    parts = urllib.parse.urlsplit(url if "://" in url else f"http://{url}")
    bare_url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    if parts.username is None:
        return Proxy(bare_url)
    login = (urllib.parse.unquote(part or "") for part in (parts.username, parts.password))
    encoded = base64.b64encode(":".join(login).encode()).decode()
    return Proxy(bare_url, {"proxy-authorization": f"Basic {encoded}"})
