# SPDX-License-Identifier: Apache-2.0
"""Flags of Kubernetes components in a label: ``--a=b --c=d`` -> pairs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
import re

from magnum.drivers.k8s_capi_helm.labels.value_types import types

Pairs = tuple[tuple[str, str], ...]

#: Flags stand behind each other with spaces, or with commas from a repeated ``--label``.
_BETWEEN = re.compile(r"\s+|[,;](?=--)")
_FLAG = re.compile(r"--([a-z][a-z0-9-]{0,62})=(.+)", re.ASCII)
#: kubeadm writes the kubelet's flags into a file of environment variables, whose quotes, dollars
#: and backslashes systemd reads; nothing else needs them.
_NEVER = frozenset("\"'`\\$")
_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)
_VERBOSITY = re.compile(r"[0-9]|10", re.ASCII)

_CHART = "the chart sets it"
_SERVING = dict.fromkeys(
    ("bind-address", "client-ca-file", "secure-port", "tls-cert-file", "tls-private-key-file"),
    _CHART,
)
_DELEGATED = dict.fromkeys(
    ("authentication-kubeconfig", "authorization-kubeconfig", "kubeconfig", "leader-elect"), _CHART
)
#: Beginnings of the flags that have a place of their own, and which.
_API_SERVER = {
    "admission-control-": _CHART,
    "advertise-address": _CHART,
    "audit-": "use the labels audit_log_*",
    "authentication-": _CHART,
    "authorization-": "use the label keystone_auth_enabled",
    "disable-admission-plugins": "use the label admission_control_list",
    "enable-admission-plugins": "use the label admission_control_list",
    "enable-bootstrap-token-auth": _CHART,
    "encryption-provider-": _CHART,
    "etcd-": _CHART,
    "kubelet-certificate-authority": _CHART,
    "kubelet-client-": _CHART,
    "oidc-": "use the labels oidc_*",
    "proxy-client-": _CHART,
    "requestheader-": _CHART,
    "service-account-key-file": _CHART,
    "service-account-signing-": _CHART,
    "service-cluster-ip-range": "use the label service_cluster_ip_range",
    "tls-cipher-suites": "use the label api_server_tls_cipher_suites",
    **_SERVING,
}
_CONTROLLER_MANAGER = {
    "allocate-node-cidrs": _CHART,
    "cloud-provider": _CHART,
    "cluster-cidr": "use the label calico_ipv4pool or cilium_ipv4pool",
    "cluster-name": _CHART,
    "cluster-signing-": _CHART,
    "requestheader-": _CHART,
    "root-ca-file": _CHART,
    "service-account-private-key-file": _CHART,
    "service-cluster-ip-range": "use the label service_cluster_ip_range",
    "use-service-account-credentials": _CHART,
    **_SERVING,
    **_DELEGATED,
}
_SCHEDULER = {"config": _CHART, **_SERVING, **_DELEGATED}
_KUBELET = {
    "bootstrap-kubeconfig": _CHART,
    "cert-dir": _CHART,
    "cloud-": _CHART,
    "cluster-dns": _CHART,
    "cluster-domain": "use the label dns_cluster_domain",
    "config": _CHART,
    "container-runtime-endpoint": _CHART,
    "hostname-override": _CHART,
    "kubeconfig": _CHART,
    "node-ip": "each node has a different address; only 0.0.0.0 and :: are possible",
    "node-labels": "use --node-labels of the nodegroup",
    "pod-manifest-path": _CHART,
    "provider-id": _CHART,
    "register-with-taints": "use --node-taints of the nodegroup",
    "root-dir": _CHART,
    "tls-cipher-suites": "use the label kubelet_tls_cipher_suites",
    **_SERVING,
}
#: Values that are right on every node: its kubelet reports the address of the default route, of
#: IPv4 or of IPv6.
#: https://github.com/kubernetes/kubernetes/blob/v1.36.0/pkg/kubelet/nodestatus/setters.go
_ANY_ADDRESS = frozenset({("node-ip", "0.0.0.0"), ("node-ip", "::")})  # noqa: S104
#: kube-proxy is told by a file, which has a field for each of these; what their values look like.
_PROXY = {
    "conntrack-max-per-core": _NUMBER,
    "conntrack-min": _NUMBER,
    "ipvs-scheduler": re.compile("[a-z]{2,10}"),
    "ipvs-strict-arp": re.compile("true|false"),
    "masquerade-all": re.compile("true|false"),
    "metrics-bind-address": re.compile(r"[0-9a-fA-F.:\[\]]+"),
    "proxy-mode": re.compile("iptables|ipvs|nftables"),
}


def _label_type(
    alternatives: Mapping[str, str], allowed: Collection[tuple[str, str]] = ()
) -> types.LabelType[Pairs]:
    """Flags of a component without those that have another place.

    :param alternatives: what to do instead, by the name of a flag or the beginning of names.
    :param allowed: names with the values that can be given all the same.
    """

    def read(text: str) -> Pairs:
        pairs = _pairs(text)
        for name, _ in (pair for pair in pairs if pair not in allowed):
            for prefix, alternative in alternatives.items():
                if name == prefix or (prefix.endswith("-") and name.startswith(prefix)):
                    raise types.InvalidText(f"--{name} cannot be given here: {alternative}")
        return pairs

    expected = "flags like --name=value with spaces between them, without quotes"
    return types.LabelType(read, expected, write=_text)


def _text(flags: Pairs) -> str:
    return " ".join(f"--{name}={value}" for name, value in flags)


def _read_kube_proxy(text: str) -> Pairs:
    pairs = _pairs(text)
    for name, value in pairs:
        if name not in _PROXY:
            raise types.InvalidText(f"of kube-proxy only --{', --'.join(_PROXY)} can be given")
        if _PROXY[name].fullmatch(value) is None:
            raise types.InvalidText(f"--{name} cannot be '{value}'")
    return pairs


def _pairs(text: str) -> Pairs:
    values: dict[str, str] = {}
    for piece in _BETWEEN.split(text.strip()):
        match = _FLAG.fullmatch(piece)
        if match is None:
            raise types.InvalidText(f"'{piece}' is not like --name=value")
        name, value = match.groups()
        types.read_name(value)
        if set(value) & _NEVER:
            raise types.InvalidText(f"the value of --{name} has a quote, a dollar or a backslash")
        if name in values:
            raise types.InvalidText(f"--{name} is given twice")
        if name == "v" and _VERBOSITY.fullmatch(value) is None:
            raise types.InvalidText("--v is a number from 0 to 10")
        values[name] = value
    return tuple(values.items())


API_SERVER = _label_type(_API_SERVER)
CONTROLLER_MANAGER = _label_type(_CONTROLLER_MANAGER)
SCHEDULER = _label_type(_SCHEDULER)
KUBELET = _label_type(_KUBELET, _ANY_ADDRESS)
PROXY = types.LabelType(
    _read_kube_proxy,
    "flags of kube-proxy like --proxy-mode=nftables, with spaces between them",
    write=_text,
)
