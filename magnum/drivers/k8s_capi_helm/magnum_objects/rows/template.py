# SPDX-License-Identifier: Apache-2.0
"""The request of a cluster template, and its unsupported fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypedDict

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.magnum_objects.rows.types import ClusterTemplate
from magnum.drivers.k8s_capi_helm.model import cloud
from magnum.drivers.k8s_capi_helm.values.sections import proxy

SERVER_TYPES = ("vm", "bm")
CNIS = ("calico", "cilium")
#: What listens on a control plane machine besides the API: etcd, kubelet, kube-proxy, controller
#: manager and scheduler (https://kubernetes.io/docs/reference/networking/ports-and-protocols/), and
#: the range of NodePorts.
_TAKEN_PORTS = frozenset({2379, 2380, 2381, 10248, 10249, 10250, 10256, 10257, 10259})
_NODE_PORTS = range(30000, 32768)


class UpgradeFields(TypedDict):
    """Fields of a ClusterRequest, so that their types are checked where it is built."""

    template: str
    distro: str
    dns_nameservers: tuple[str, ...]
    http_proxy: str
    https_proxy: str
    no_proxy: tuple[str, ...]
    insecure_registry: str


def check_template(template: ClusterTemplate, old: ClusterTemplate | None = None) -> None:
    """Refuse a template that asks for what cannot be had.

    :param old: the template that a cluster has, which is to go over to *template*: a field that
        says the same in both is no part of the request, and an older driver may have let it pass.
    :raises errors.InvalidRequest: naming field and value.
    """
    for _, error in field_errors(template, old):
        raise error


def field_errors(
    template: ClusterTemplate, old: ClusterTemplate | None = None
) -> Iterator[tuple[str, errors.InvalidRequest]]:
    """The fields for which a template is refused, each with the error.

    :param old: as for :func:`check_template`.
    """
    for field, check in _CHECKS.items():
        value = getattr(template, field, None)
        if value and (old is None or value != getattr(old, field, None)):
            try:
                check(value)
            except errors.InvalidRequest as error:
                yield field, error
    is_alone = template.no_proxy and not (template.http_proxy or template.https_proxy)
    if is_alone and (old is None or template.no_proxy != old.no_proxy):
        refusal = errors.InvalidRequest(
            "Field 'no_proxy' of the cluster template is set, but the template has no proxy. Set "
            "http_proxy or https_proxy, or leave no_proxy out."
        )
        yield "no_proxy", refusal


def split_text(text: str | None) -> tuple[str, ...]:
    """The pieces of a text with commas between them."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def cni(driver: str | None) -> str:
    """The network of the pods; Magnum writes 'flannel' into every template that names none."""
    return driver if driver in CNIS else CNIS[0]


def upgrade_fields(template: ClusterTemplate) -> UpgradeFields:
    """What an upgrade takes from its template besides image and labels.

    A registry that nobody can make out was let pass by an older driver; it has no effect in the
    cluster, and must not keep it from being changed.
    """
    registry = (template.insecure_registry or "").strip()
    return {
        "template": template.name or "",
        "distro": template.cluster_distro or "",
        "dns_nameservers": split_text(template.dns_nameserver),
        "http_proxy": template.http_proxy or "",
        "https_proxy": template.https_proxy or "",
        "no_proxy": split_text(template.no_proxy),
        "insecure_registry": registry if proxy.is_registry(registry) else "",
    }


def start_timeout(template: ClusterTemplate, conf: Settings) -> int:
    """Seconds after which a server that never came up is replaced."""
    if template.server_type == "bm":
        return int(conf.capi_helm.bare_metal_start_timeout)
    return int(conf.capi_helm.server_start_timeout)


def _check_kind(field: str, known: tuple[str, ...]) -> Callable[[str], None]:
    def check(value: str) -> None:
        if value not in known:
            raise errors.InvalidRequest(
                f"Field '{field}' of the cluster template has an unsupported value. The value is "
                f"'{value}'; supported are: {', '.join(known)}."
            )

    return check


def _check_port(port: int) -> None:
    if port in _TAKEN_PORTS or port in _NODE_PORTS:
        raise errors.InvalidRequest(
            f"Field 'apiserver_port' of the cluster template is {port}, which is in use on the "
            "machines of the control plane. Choose another port, like 6443 or 8443."
        )


def _refuse_registry(value: bool) -> None:
    raise errors.InvalidRequest(
        "Field 'registry_enabled' of the cluster template is not supported: this driver runs no "
        "registry in a cluster. Leave the field out, and push images to a registry that the "
        "machines can reach."
    )


def _refuse_no_tls(value: bool) -> None:
    raise errors.InvalidRequest(
        "Field 'tls_disabled' of the cluster template is not supported: Kubernetes serves its API "
        "with TLS only. Leave the field out."
    )


_CHECKS: dict[str, Callable[[Any], None]] = {
    "coe": _check_kind("coe", ("kubernetes",)),
    "server_type": _check_kind("server_type", SERVER_TYPES),
    "cluster_distro": _check_kind("cluster_distro", cloud.DISTROS),
    "volume_driver": _check_kind("volume_driver", ("cinder",)),
    "http_proxy": lambda url: proxy.check_proxy("http_proxy", url),
    "https_proxy": lambda url: proxy.check_proxy("https_proxy", url),
    "no_proxy": lambda text: proxy.check_exceptions(split_text(text)),
    "insecure_registry": proxy.check_registry,
    "dns_nameserver": lambda text: proxy.check_nameservers(split_text(text)),
    "apiserver_port": _check_port,
    "registry_enabled": _refuse_registry,
    "tls_disabled": _refuse_no_tls,
}
