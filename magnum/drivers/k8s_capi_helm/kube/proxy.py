# SPDX-License-Identifier: Apache-2.0
"""The proxy on the way to the management cluster, chosen as Helm chooses it.

Releases of the kubernetes client differ: 32 reads neither a kubeconfig's ``proxy-url`` nor the
environment, newer ones read both. Helm's client-go reads both, so driver and Helm could take
different ways (https://pkg.go.dev/golang.org/x/net/http/httpproxy#Config,
https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/#Cluster).
"""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
import ipaddress
from typing import Any
import urllib.parse

import urllib3


@dataclasses.dataclass(frozen=True)
class Proxy:
    """How requests to a server travel.

    :ivar url: of the proxy, without user and password; None for none.
    :ivar headers: with which the proxy is asked.
    :ivar no_proxy: hosts, domains and networks that are asked directly, with a comma between two.
    """

    url: str | None = None
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict, repr=False)
    no_proxy: str = ""


def choose_proxy(server: str, proxy_url: str | None, variables: Mapping[str, str]) -> Proxy:
    """The proxy for a server.

    :param server: its URL.
    :param proxy_url: of the kubeconfig; it wins, whatever the environment exempts.
    :param variables: the environment.
    """
    if proxy_url:
        return _proxy(proxy_url, "")
    parts = urllib.parse.urlsplit(server)
    if _is_loopback(parts.hostname or ""):
        return Proxy()
    kind = "https" if parts.scheme == "https" else "http"
    url = _variable(variables, f"{kind}_proxy")
    return _proxy(url, _variable(variables, "no_proxy")) if url else Proxy()


def _variable(variables: Mapping[str, str], name: str) -> str:
    return variables.get(name.upper()) or variables.get(name) or ""


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _proxy(url: str, no_proxy: str) -> Proxy:
    parts = urllib.parse.urlsplit(url if "://" in url else f"http://{url}")
    bare_url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    if parts.username is None:
        return Proxy(bare_url, {}, no_proxy)
    login = (urllib.parse.unquote(part or "") for part in (parts.username, parts.password))
    headers: dict[str, Any] = urllib3.make_headers(proxy_basic_auth=":".join(login))
    return Proxy(bare_url, headers, no_proxy)
