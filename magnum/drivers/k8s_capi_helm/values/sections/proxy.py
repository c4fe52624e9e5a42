# SPDX-License-Identifier: Apache-2.0
"""Values of proxies and registries."""

from __future__ import annotations

import ipaddress
import re

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import ClusterRequest, Json

#: As the chart's schema has them, but for the user, of whom the chart tells only when it renders.
_PROXY = re.compile(r"https?://[-A-Za-z0-9._~:/\[\]%]+")
_EXCEPTION = re.compile(r"[-A-Za-z0-9_.*:/\[\]]+")
_REGISTRY = re.compile(
    r"(?:(?P<scheme>https?)://)?"
    r"(?P<host>[A-Za-z0-9](?:[-A-Za-z0-9.]*[A-Za-z0-9])?(?::[0-9]{1,5})?)/?"
)


def proxy(request: ClusterRequest) -> Json:
    """The chart's ``proxy``; {} without one."""
    values: Json = {}
    if request.http_proxy:
        values["http"] = request.http_proxy
    if request.https_proxy:
        values["https"] = request.https_proxy
    if values and request.no_proxy:
        values["noProxy"] = list(request.no_proxy)
    return values


def registries(request: ClusterRequest) -> Json:
    """The chart's ``registryMirrors``; {} where there is nothing to say.

    An insecure registry is one whose certificate nobody can check, or that has none at all. So it
    is asked as Docker does: by TLS without a look at the certificate, and then without TLS
    (https://docs.docker.com/reference/cli/dockerd/#insecure-registries). containerd goes on to the
    next of its hosts when one does not answer.
    """
    match = _REGISTRY.fullmatch(request.insecure_registry)
    if match is None:
        return {}
    host, scheme = match["host"], match["scheme"]
    plain: Json = {"url": f"http://{host}", "overridePath": False}
    unchecked: Json = {"url": f"https://{host}", "skipVerify": True, "overridePath": False}
    mirrors = {"http": [plain], "https": [unchecked]}.get(scheme, [unchecked, plain])
    return {host: {"upstream": f"{scheme or 'https'}://{host}", "mirrors": mirrors}}


def check_proxy(field: str, url: str) -> None:
    """Refuse a proxy that the machines cannot have.

    A password is refused without being repeated: everybody who may read the values of the release
    or the machines' set-up would see it, and so would readers of the refusal.

    :raises errors.InvalidRequest: naming the field.
    """
    if "@" in url:
        raise errors.InvalidRequest(
            f"Field '{field}' of the cluster template names a user, and everybody who may read the "
            "configuration of the machines would see the password. Let the proxy recognize the "
            "machines by their addresses, and give the URL without a user."
        )
    if _PROXY.fullmatch(url) is None:
        raise errors.InvalidRequest(
            f"Field '{field}' of the cluster template has an invalid value. The value is '{url}': "
            "expected a URL like http://proxy.example.org:3128."
        )


def check_exceptions(parts: tuple[str, ...]) -> None:
    """Refuse what programs would not understand as an exception from the proxy.

    :raises errors.InvalidRequest: naming field and value.
    """
    for part in parts:
        if _EXCEPTION.fullmatch(part) is None:
            raise errors.InvalidRequest(
                "Field 'no_proxy' of the cluster template has an invalid entry. The entry is "
                f"'{part}': expected names, domains with a leading dot, addresses or networks, "
                "with commas between them."
            )


def check_registry(text: str) -> None:
    """Refuse what is not one registry.

    :raises errors.InvalidRequest: naming field and value; a password is not repeated.
    """
    if "@" in text:
        raise errors.InvalidRequest(
            "Field 'insecure_registry' of the cluster template names a user. Give the registry "
            "alone, like registry.example.org:5000."
        )
    if not is_registry(text):
        raise errors.InvalidRequest(
            "Field 'insecure_registry' of the cluster template has an invalid value. The value is "
            f"'{text}': expected one registry, like registry.example.org:5000 or "
            "http://10.0.0.5:5000."
        )


def is_registry(text: str) -> bool:
    """Whether *text* names a registry that :func:`registries` can speak of."""
    return _REGISTRY.fullmatch(text) is not None


def check_nameservers(parts: tuple[str, ...]) -> None:
    """Refuse what is not the address of a name server.

    :raises errors.InvalidRequest: naming field and value.
    """
    for part in parts:
        try:
            ipaddress.ip_address(part)
        except ValueError:
            raise errors.InvalidRequest(
                "Field 'dns_nameserver' of the cluster template has an invalid entry. The entry is "
                f"'{part}': expected an IP address."
            ) from None
