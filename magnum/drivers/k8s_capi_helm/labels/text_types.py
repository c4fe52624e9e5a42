# SPDX-License-Identifier: Apache-2.0
"""Types of single labels: URLs, hosts, ciphers, versions, registries."""

from __future__ import annotations

from collections.abc import Mapping
import ipaddress
import re

from magnum.drivers.k8s_capi_helm.labels import types, versions

_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_URL = re.compile(
    r"https://(?P<host>[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[A-Za-z0-9._~%+@:-]*)*",
    re.ASCII,
)
_LONGEST_DOMAIN = 253
_TAG = re.compile(r"v?\d{1,4}(\.\d{1,4}){2}(-[0-9A-Za-z.-]{1,60})?", re.ASCII)
_PREFIX = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*", re.ASCII
)
#: Plugins that Kubernetes 1.32 and later have and that need no configuration file
#: (https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/).
_PLUGINS = (
    "AlwaysPullImages",
    "CertificateApproval",
    "CertificateSigning",
    "CertificateSubjectRestriction",
    "DefaultIngressClass",
    "DefaultStorageClass",
    "DefaultTolerationSeconds",
    "DenyServiceExternalIPs",
    "ExtendedResourceToleration",
    "LimitPodHardAntiAffinityTopology",
    "LimitRanger",
    "MutatingAdmissionWebhook",
    "NamespaceAutoProvision",
    "NamespaceExists",
    "NamespaceLifecycle",
    "NodeRestriction",
    "OwnerReferencesPermissionEnforcement",
    "PersistentVolumeClaimResize",
    "PodNodeSelector",
    "PodSecurity",
    "PodTolerationRestriction",
    "Priority",
    "ResourceQuota",
    "RuntimeClass",
    "ServiceAccount",
    "StorageObjectInUseProtection",
    "TaintNodesByCondition",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
)
#: What Go offers below TLS 1.3 and does not call insecure (https://pkg.go.dev/crypto/tls).
_SUITES = (
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
)


#: Go's HTTP/2 asks for one of them, and without it neither API server nor kubelet starts.
#: https://pkg.go.dev/golang.org/x/net/http2#ConfigureServer
_HTTP2_SUITES = (
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
)


def _word_list(
    words: tuple[str, ...], expected: str, required: tuple[str, ...] = ()
) -> types.LabelType[tuple[str, ...]]:
    """Words of a closed list, each once, in the order in which they are given.

    :param required: of these at least one.
    """
    by_key = {word.casefold(): word for word in words}

    def read(text: str) -> tuple[str, ...]:
        chosen: list[str] = []
        for part in types.parts(text):
            if part.casefold() not in by_key:
                raise types.InvalidText(f"'{part}' is not one of them")
            if by_key[part.casefold()] in chosen:
                raise types.InvalidText(f"'{part}' is given twice")
            chosen.append(by_key[part.casefold()])
        if required and not set(required) & set(chosen):
            raise types.InvalidText(f"neither {' nor '.join(required)} is among them")
        return tuple(chosen)

    return types.LabelType(read, expected)


def tag(oldest: str, component: str) -> types.LabelType[str]:
    """A version of a program that this driver's charts can run.

    :param oldest: the oldest one, like ``v4.0.0``; older ones are refused, as templates of the Heat
        driver name versions that no Kubernetes of today works with.
    :param component: of what it is a version.
    """
    oldest_version = versions.parse(oldest)
    assert oldest_version is not None

    def read(text: str) -> str:
        version = versions.parse(text.strip()) if _TAG.fullmatch(text.strip()) else None
        if version is None or version < oldest_version:
            raise ValueError(text)
        return text.strip()

    return types.LabelType(read, f"a version of {component} like {oldest}, or a newer one")


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


def _read_zones(text: str) -> tuple[str, ...]:
    zones = tuple(part.strip() for part in re.split("[,;]", text) if part.strip())
    if len(set(zones)) != len(zones):
        raise types.InvalidText("a zone is given twice")
    if not zones:
        raise ValueError(text)
    return tuple(types.ZONE.read(zone) for zone in zones)


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


def _read_id(text: str) -> str:
    if re.fullmatch(r"[0-9A-Za-z-]{1,64}", text.strip(), re.A) is None:
        raise ValueError(text)
    return text.strip()


SOME = types.number(1, "a whole number, 1 or more")
HTTPS_URL = types.LabelType(
    _read_url, "a URL like https://sso.example.org/realms/k8s, without user, query and fragment"
)
HOSTS = types.LabelType(
    _read_hosts, "DNS names in lower case and IP addresses, with commas or spaces between them"
)
DOMAIN = types.LabelType(_read_domain, "a DNS domain in lower case, like cluster.local")
OBJECT = types.LabelType(_read_domain, "the name of an object of Kubernetes, in lower case")
ID = types.LabelType(_read_id, "an id as OpenStack shows it")
ADDRESS = types.LabelType(_read_address, "an IP address like 192.0.2.10")
PREFIX = types.LabelType(
    _read_prefix, "a registry and path like registry.example.org:5000/mirror, without https://"
)
ZONES = types.LabelType(
    _read_zones, "names of availability zones with commas between them, each once, without ':'"
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
CIPHERS = _word_list(
    _SUITES,
    "Go's names of cipher suites for TLS 1.2, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 or the same of "
    "ECDSA among them, as HTTP/2 needs it, with commas between them",
    _HTTP2_SUITES,
)
ADMISSION_PLUGINS = _word_list(
    _PLUGINS,
    "admission plugins that Kubernetes has today and that need no file, like "
    "NodeRestriction,AlwaysPullImages",
)
