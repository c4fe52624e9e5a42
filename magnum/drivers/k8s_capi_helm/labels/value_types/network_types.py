# SPDX-License-Identifier: Apache-2.0
"""Types of labels about the network: URLs, hosts, registries, addresses, networks."""

from __future__ import annotations

from collections.abc import Mapping
import ipaddress
import re

from magnum.drivers.k8s_capi_helm.labels.value_types import types

_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_URL = re.compile(
    r"https://(?P<host>[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[A-Za-z0-9._~%+@:-]*)*",
    re.ASCII,
)
_LONGEST_DOMAIN = 253
_SMALLEST_SUBNET = 8
_PREFIX = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*", re.ASCII
)


def is_domain(text: str) -> bool:
    """Whether *text* is a DNS name in lower case."""
    return len(text) <= _LONGEST_DOMAIN and _DOMAIN.fullmatch(text) is not None


def _read_domain(text: str) -> str:
    if not is_domain(text.strip()):
        raise ValueError(text)
    return text.strip()


def _read_hosts(text: str) -> tuple[str, ...]:
    return tuple(_host(part) for part in types.parts(text))


def _host(text: str) -> str:
    if is_domain(text.removeprefix("*.")) and not re.fullmatch(r"[0-9.]+", text):
        return text
    return str(ipaddress.ip_address(text))


def _read_url(text: str) -> str:
    match = _URL.fullmatch(text)
    if match is None:
        raise ValueError(text)
    host = match["host"]
    if host.startswith("["):
        ipaddress.IPv6Address(host.strip("[]"))
    elif not is_domain(host.lower()):
        raise ValueError(text)
    return text


def _read_address(text: str) -> str:
    return str(ipaddress.ip_address(text.strip()))


def _read_prefix(text: str) -> str:
    """Heat's templates write a slash behind it."""
    prefix = text.strip().removesuffix("/")
    if _PREFIX.fullmatch(prefix) is None:
        raise ValueError(text)
    return prefix


def _read_subnet(text: str) -> str:
    network = ipaddress.IPv4Network(text.strip())
    if network.num_addresses < _SMALLEST_SUBNET:
        raise ValueError(text)
    return str(network)


def _read_cidrs(text: str) -> tuple[str, ...]:
    return tuple(str(ipaddress.ip_network(part)) for part in types.parts(text))


def _read_pods(text: str) -> tuple[str, ...]:
    """Nodes get a /24 or /64 each, and the controller manager counts 2^16 of them at most."""
    return _networks(text, {4: (8, 24), 6: (48, 64)})


def _read_services(text: str) -> tuple[str, ...]:
    """The API server takes 2^20 addresses at most."""
    return _networks(text, {4: (12, 28), 6: (108, 124)})


def _networks(text: str, allowed_lengths: Mapping[int, tuple[int, int]]) -> tuple[str, ...]:
    networks = [ipaddress.ip_network(part) for part in types.parts(text)]
    if len({network.version for network in networks}) != len(networks):
        raise types.InvalidText("two networks have the same IP version")
    for network in networks:
        widest, narrowest = allowed_lengths[network.version]
        if not widest <= network.prefixlen <= narrowest:
            raise types.InvalidText(f"{network} is not between /{widest} and /{narrowest}")
    return tuple(str(network) for network in networks)


HTTPS_URL = types.LabelType(
    _read_url, "a URL like https://sso.example.org/realms/k8s, without user, query and fragment"
)
HOSTS = types.LabelType(
    _read_hosts, "DNS names in lower case and IP addresses, with commas or spaces between them"
)
DOMAIN = types.LabelType(_read_domain, "a DNS domain in lower case, like cluster.local")
OBJECT = types.LabelType(_read_domain, "the name of an object of Kubernetes, in lower case")
ADDRESS = types.LabelType(_read_address, "an IP address like 192.0.2.10")
PREFIX = types.LabelType(
    _read_prefix, "a registry and path like registry.example.org:5000/mirror, without https://"
)
PODS = types.LabelType(
    _read_pods,
    "a network like 10.100.0.0/16, or one of IPv4 and one of IPv6 like "
    "10.100.0.0/16,fd00:10::/56, with no host bits set",
)
SERVICES = types.LabelType(
    _read_services,
    "a network like 10.254.0.0/16, or one of IPv4 and one of IPv6 like "
    "10.254.0.0/16,fd00:20::/112, with no host bits set",
)
#: IPv4 only: the subnet that CAPO makes is created with IP version 4 (its networking service).
SUBNET = types.LabelType(
    _read_subnet, "an IPv4 network of 8 addresses or more like 10.0.0.0/24, with no host bits set"
)
CIDRS = types.LabelType(
    _read_cidrs, "IPv4 or IPv6 networks like 192.0.2.0/24,2001:db8::/32, with no host bits set"
)
