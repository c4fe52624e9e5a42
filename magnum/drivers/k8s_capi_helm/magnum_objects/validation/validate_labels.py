# SPDX-License-Identifier: Apache-2.0
"""Check labels against each other, the cluster's fields and its chart.

Only asked when labels are new: with a cluster that is made, or with a template that it is to
follow. What a cluster that runs has already is nobody's request.
"""

from __future__ import annotations

from collections.abc import Iterator
import ipaddress
import itertools

from magnum.drivers.k8s_capi_helm import errors, labels
from magnum.drivers.k8s_capi_helm.model import ClusterRequest, names

#: What the charts take without the label (their values.yaml, kubeNetwork).
_CHART_PODS, _CHART_SERVICES = ("172.16.0.0/13",), ("172.24.0.0/13",)
_NEED_LOAD_BALANCER = (
    "api_master_lb_allowed_cidrs",
    "api_server_lb_flavor",
    "api_server_lb_availability_zone",
)


def check_chart(
    new_labels: labels.Labels, family: str, previous_labels: labels.Labels | None = None
) -> None:
    """Refuse labels that the chart knows nothing of.

    :param family: of the chart, "" for a foreign one.
    :param previous_labels: the labels before an upgrade, which are not asked about again.
    :raises errors.InvalidRequest: naming the first such label.
    """
    if family == names.CHART_FAMILY:
        return
    texts, previous_texts = (
        labels.effective(new_labels),
        labels.effective(previous_labels or labels.Labels()),
    )
    for label in labels.REGISTRY:
        name = label.name
        if (
            label.requires_bundled_chart
            and name in texts
            and texts[name] != previous_texts.get(name)
        ):
            raise errors.InvalidRequest(
                f"The chart of this cluster does not support label '{name}' with this value. The "
                f"value is '{texts[name]}'. Leave it out, or ask the cloud's operator for another "
                "chart."
            )


def check_new_cluster(request: ClusterRequest) -> None:
    """Refuse labels of a new cluster that contradict each other or the cluster's fields.

    :raises errors.InvalidLabel: the first one.
    """
    texts = labels.effective(request.labels)
    for name, expected in _conflicts(request):
        raise errors.InvalidLabel(name, texts.get(name, ""), expected)


def _conflicts(request: ClusterRequest) -> Iterator[tuple[str, str]]:
    """Label, and what it should be instead."""
    cluster_labels = request.labels
    if not request.load_balancer:
        for name in _NEED_LOAD_BALANCER:
            if getattr(cluster_labels, name):
                yield name, "no value, because the cluster has no load balancer (master_lb_enabled)"
    elif cluster_labels.api_master_lb_allowed_cidrs:
        yield from _allowed_networks(request)
    if cluster_labels.api_server_floating_ip and not (
        request.floating_ip and cluster_labels.master_lb_floating_ip_enabled
    ):
        yield (
            "api_server_floating_ip",
            "no value, because the cluster has no floating IP (floating_ip_enabled, "
            "master_lb_floating_ip_enabled)",
        )
    if cluster_labels.oidc_issuer_url and not cluster_labels.oidc_client_id:
        yield "oidc_issuer_url", "oidc_client_id beside it, the client for which tokens are issued"
    if cluster_labels.oidc_client_id and not cluster_labels.oidc_issuer_url:
        yield "oidc_client_id", "oidc_issuer_url beside it, the URL of the issuer"
    for name in ("etcd_snapshot_bucket", "etcd_snapshot_secret"):
        if cluster_labels.etcd_snapshot_enabled and not getattr(cluster_labels, name):
            yield "etcd_snapshot_enabled", f"{name} beside it, or false"
    yield from _address_families(request)
    yield from _overlaps(request)


def _allowed_networks(request: ClusterRequest) -> Iterator[tuple[str, str]]:
    """Who may reach the API, where the load balancer or the OpenStack provider would not keep it.

    Source: https://github.com/kubernetes-sigs/cluster-api-provider-openstack/blob/v0.14.7/pkg/cloud/services/loadbalancer/loadbalancer.go
    """
    name = "api_master_lb_allowed_cidrs"
    if request.labels.octavia_provider == "ovn":
        yield (
            name,
            "no value, because load balancers of the Octavia provider ovn (octavia_provider) do "
            "not restrict clients",
        )
    elif any(":" in network for network in request.labels.api_master_lb_allowed_cidrs):
        yield name, "IPv4 networks, as IPv6 ones would have no effect"


def _pods(request: ClusterRequest) -> str:
    """The label that is about the cluster's network of pods."""
    return "calico_ipv4pool" if request.cni == "calico" else "cilium_ipv4pool"


def _address_families(request: ClusterRequest) -> Iterator[tuple[str, str]]:
    """IPv6 needs nodes that have it, and Kubernetes one first family for pods and services."""
    cluster_labels, label = request.labels, _pods(request)
    pods = getattr(cluster_labels, label) or _CHART_PODS
    services = cluster_labels.service_cluster_ip_range or _CHART_SERVICES
    is_dual_stack = bool(request.fixed_network) and not request.fixed_subnet
    for name, networks in ((label, pods), ("service_cluster_ip_range", services)):
        if not is_dual_stack and any(":" in network for network in networks):
            yield (
                name,
                "IPv4 only, because the nodes have IPv4 only: for IPv6 give the cluster a fixed "
                "network with subnets of both, and no fixed subnet",
            )
    if (":" in pods[0]) != (":" in services[0]):
        given = label if getattr(cluster_labels, label) else "service_cluster_ip_range"
        yield given, f"pods and services with the same first IP version ({pods[0]}, {services[0]})"


def _overlaps(request: ClusterRequest) -> Iterator[tuple[str, str]]:
    """Networks that are the same in part: nothing would reach the one through the other."""
    cluster_labels = request.labels
    pods = _pods(request)
    networks = {
        pods: getattr(cluster_labels, pods) or _CHART_PODS,
        "service_cluster_ip_range": cluster_labels.service_cluster_ip_range or _CHART_SERVICES,
        "fixed_subnet_cidr": (cluster_labels.fixed_subnet_cidr,),
    }
    if request.fixed_network or request.fixed_subnet:
        del networks["fixed_subnet_cidr"]
    texts = labels.effective(cluster_labels)
    for first, second in itertools.combinations(networks, 2):
        overlap = _overlap(networks[first], networks[second])
        label = first if first in texts else second
        if overlap and label in texts:
            expected = f"a network that does not overlap with {overlap[1 if label == first else 0]}"
            yield label, f"{expected} ({second if label == first else first})"


def _overlap(networks: tuple[str, ...], other_networks: tuple[str, ...]) -> tuple[str, str] | None:
    for text, other_text in itertools.product(networks, other_networks):
        network, other_network = ipaddress.ip_network(text), ipaddress.ip_network(other_text)
        if network.version == other_network.version and network.overlaps(other_network):
            return text, other_text
    return None
