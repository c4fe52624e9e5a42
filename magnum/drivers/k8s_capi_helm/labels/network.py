# SPDX-License-Identifier: Apache-2.0
"""Labels about networks and load balancers."""

from __future__ import annotations

import dataclasses

from magnum.drivers.k8s_capi_helm.labels import text_types, types
from magnum.drivers.k8s_capi_helm.labels.label import label


@dataclasses.dataclass(frozen=True, kw_only=True)
class NetworkLabels:
    """Labels about networks and load balancers."""

    fixed_subnet_cidr: str = label(
        types.SUBNET,
        "10.0.0.0/24",
        "10.20.0.0/24",
        "IPv4 range of the network that is made for the nodes. Not used if the cluster has a fixed "
        "network or subnet.",
        immutable=True,
    )
    octavia_provider: str = label(
        types.PROVIDER,
        "amphora",
        "ovn",
        "Octavia provider of the Kubernetes API's load balancer and of those for Services.",
        immutable=True,
    )
    octavia_lb_algorithm: str | None = label(
        types.choice("ROUND_ROBIN", "LEAST_CONNECTIONS", "SOURCE_IP", "SOURCE_IP_PORT"),
        None,
        "LEAST_CONNECTIONS",
        "How load balancers of Services choose a node. Without it, SOURCE_IP_PORT with the "
        "provider ovn, which has no other, and ROUND_ROBIN with all others.",
    )
    octavia_lb_healthcheck: bool = label(
        types.SWITCH,
        True,
        "false",
        "Whether load balancers of Services watch with a health monitor which nodes answer.",
    )
    master_lb_floating_ip_enabled: bool = label(
        types.SWITCH,
        True,
        "false",
        "Whether the load balancer of the Kubernetes API gets a floating IP. Where the label is "
        "not given, the cluster's own floating_ip_enabled has to be true as well.",
        immutable=True,
    )
    api_master_lb_allowed_cidrs: tuple[str, ...] = label(
        types.CIDRS,
        (),
        "192.0.2.0/24,198.51.100.0/24",
        "IPv4 networks that may reach the Kubernetes API, with commas or spaces between them. The "
        "management cluster has to be in one of them. Without it everybody may. Load balancers of "
        "the provider ovn cannot keep anybody out.",
        aliases=("master_lb_allowed_cidrs",),
    )
    api_server_lb_flavor: str | None = label(
        types.NAME,
        None,
        "large",
        "Octavia flavor, by name, of the Kubernetes API's load balancer.",
        immutable=True,
        requires_bundled_chart=True,
    )
    api_server_lb_availability_zone: str | None = label(
        types.ZONE,
        None,
        "az-2",
        "Octavia availability zone of the Kubernetes API's load balancer.",
        immutable=True,
        requires_bundled_chart=True,
    )
    api_server_floating_ip: str | None = label(
        text_types.ADDRESS,
        None,
        "192.0.2.10",
        "An existing floating IP of the project for the Kubernetes API, instead of a new one.",
        immutable=True,
    )
    calico_ipv4pool: tuple[str, ...] = label(
        text_types.PODS,
        (),
        "10.100.0.0/16,fd00:10::/56",
        "Network of the pods with calico: one, or one of IPv4 and one of IPv6, of which pods "
        "prefer the first. Without it the chart's, 172.16.0.0/13.",
        immutable=True,
    )
    cilium_ipv4pool: tuple[str, ...] = label(
        text_types.PODS,
        (),
        "10.100.0.0/16",
        "The same with cilium.",
        immutable=True,
    )
    service_cluster_ip_range: tuple[str, ...] = label(
        text_types.SERVICES,
        (),
        "10.254.0.0/16,fd00:20::/112",
        "Network of the services: one, or one of IPv4 and one of IPv6. Without it the chart's, "
        "172.24.0.0/13.",
        immutable=True,
    )
    dns_cluster_domain: str | None = label(
        text_types.DOMAIN,
        None,
        "k8s.example.org",
        "DNS domain of services. Without it the chart's, cluster.local.",
        immutable=True,
    )
