# SPDX-License-Identifier: Apache-2.0
"""Labels of networks and load balancers."""

from __future__ import annotations

import dataclasses

from magnum.drivers.k8s_capi_helm.labels.value_types import network_types, types
from magnum.drivers.k8s_capi_helm.labels.value_types.label import label


@dataclasses.dataclass(frozen=True, kw_only=True)
class NetworkLabels:
    """Labels about networks and load balancers."""

    fixed_subnet_cidr: str = label(
        network_types.SUBNET,
        "10.0.0.0/24",
        "10.20.0.0/24",
        "IPv4 range of the network that is created for the nodes. Not used if the cluster has a "
        "fixed network or subnet.",
        immutable=True,
    )
    octavia_provider: str = label(
        types.PROVIDER,
        "amphora",
        "ovn",
        "Octavia provider of the load balancers of the Kubernetes API and of Services.",
        immutable=True,
    )
    octavia_lb_algorithm: str | None = label(
        types.choice("ROUND_ROBIN", "LEAST_CONNECTIONS", "SOURCE_IP", "SOURCE_IP_PORT"),
        None,
        "LEAST_CONNECTIONS",
        "Algorithm by which load balancers of Services select a node. The default is "
        "SOURCE_IP_PORT for the provider ovn, which supports no other, and ROUND_ROBIN for all "
        "others.",
    )
    octavia_lb_healthcheck: bool = label(
        types.SWITCH,
        True,
        "false",
        "Whether load balancers of Services have a health monitor for the nodes.",
    )
    master_lb_floating_ip_enabled: bool = label(
        types.SWITCH,
        True,
        "false",
        "Whether the load balancer of the Kubernetes API gets a floating IP. If the label is not "
        "set, the cluster's field floating_ip_enabled must be true as well.",
        immutable=True,
    )
    api_master_lb_allowed_cidrs: tuple[str, ...] = label(
        network_types.CIDRS,
        (),
        "192.0.2.0/24,198.51.100.0/24",
        "IPv4 networks that can connect to the Kubernetes API, separated by commas or spaces. "
        "They must include the management cluster. By default access is not restricted. Not "
        "supported by the provider ovn.",
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
        network_types.ADDRESS,
        None,
        "192.0.2.10",
        "An existing floating IP of the project for the Kubernetes API, instead of a new one.",
        immutable=True,
    )
    calico_ipv4pool: tuple[str, ...] = label(
        network_types.PODS,
        (),
        "10.100.0.0/16,fd00:10::/56",
        "Pod network with calico: one CIDR, or one of IPv4 and one of IPv6, the preferred one "
        "first. The chart's default is 172.16.0.0/13.",
        immutable=True,
    )
    cilium_ipv4pool: tuple[str, ...] = label(
        network_types.PODS,
        (),
        "10.100.0.0/16",
        "Pod network with cilium: one CIDR, or one of IPv4 and one of IPv6, the preferred one "
        "first. The chart's default is 172.16.0.0/13.",
        immutable=True,
    )
    service_cluster_ip_range: tuple[str, ...] = label(
        network_types.SERVICES,
        (),
        "10.254.0.0/16,fd00:20::/112",
        "Service network: one CIDR, or one of IPv4 and one of IPv6. The chart's default is "
        "172.24.0.0/13.",
        immutable=True,
    )
    dns_cluster_domain: str | None = label(
        network_types.DOMAIN,
        None,
        "k8s.example.org",
        "DNS domain of Services. The chart's default is cluster.local.",
        immutable=True,
    )
