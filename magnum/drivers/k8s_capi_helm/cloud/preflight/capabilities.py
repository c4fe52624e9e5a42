# SPDX-License-Identifier: Apache-2.0
"""Zones, volume types and load balancer kinds that labels name, by what they have to be among."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from magnum.drivers.k8s_capi_helm.cloud.preflight.message import listed, quoted
from magnum.drivers.k8s_capi_helm.labels import Labels
from magnum.drivers.k8s_capi_helm.model import (
    CloudCapability,
    CloudFacts,
    ClusterRequest,
    NodeGroupRequest,
)

#: Label of nodes -> of what it names one.
_OF_NODES = {
    "availability_zone": CloudCapability.SERVER_ZONE,
    "boot_volume_type": CloudCapability.VOLUME_TYPE,
    "boot_volume_availability_zone": CloudCapability.VOLUME_ZONE,
    "docker_volume_type": CloudCapability.VOLUME_TYPE,
}
#: The same of the control plane's own disks.
_OF_MASTERS = {
    "control_plane_availability_zones": CloudCapability.SERVER_ZONE,
    "etcd_blockdevice_volume_type": CloudCapability.VOLUME_TYPE,
    "etcd_blockdevice_volume_az": CloudCapability.VOLUME_ZONE,
}
#: The same of what is made once, with the cluster and its load balancer.
_OF_BALANCERS = {
    "octavia_provider": CloudCapability.BALANCER_PROVIDER,
    "api_server_lb_flavor": CloudCapability.BALANCER_FLAVOR,
    "api_server_lb_availability_zone": CloudCapability.BALANCER_ZONE,
}

Named = tuple[str, str, CloudCapability]


def of_group(group: NodeGroupRequest, request: ClusterRequest) -> list[Named]:
    """Label, value and kind of everything that holds for a nodegroup."""
    return _named(group.labels or request.labels, _OF_NODES)


def of_labels(request: ClusterRequest) -> list[Named]:
    """The same for the cluster's own labels, as far as they are about machines."""
    return _named(request.labels, {**_OF_NODES, **_OF_MASTERS})


def of_machines(request: ClusterRequest) -> list[Named]:
    """The same for all machines of a cluster, each once."""
    groups = (one for group in request.node_groups for one in of_group(group, request))
    return list(dict.fromkeys((*of_labels(request), *groups)))


def of_cluster(request: ClusterRequest) -> list[Named]:
    """The same for a new cluster, whose load balancer is to be made as well."""
    balancer = _named(request.labels, _OF_BALANCERS) if request.load_balancer else []
    return [*of_machines(request), *balancer]


def capability_kinds(named: Iterable[Named]) -> frozenset[CloudCapability]:
    """What the cloud has to be asked for."""
    return frozenset(offer for _, _, offer in named)


def capability_problems(
    named: Iterable[Named], facts: CloudFacts, group: str = "", way_out: str = ""
) -> Iterator[str]:
    """Labels that name what the cloud does not have.

    :param group: nodegroup whose own labels they are, "" for a cluster's.
    :param way_out: what to do where the label cannot just be given another value.
    """
    whose = f" of nodegroup '{group}'" if group else ""
    for label, value, offer in named:
        known = facts.offers.get(offer)
        if known is not None and value not in known:
            yield (
                f"Label '{label}'{whose} names no {offer} that this project can use. The value is "
                f"{quoted(value)}; this project can use: {listed(known)}.{way_out}"
            )


def _named(labels: Labels, table: Mapping[str, CloudCapability]) -> list[Named]:
    """A label's own default is no wish: where the usual load balancer provider is not there, the
    cloud's default is taken, and clouds have relied on that.
    """
    usual = Labels()
    found = []
    for label, offer in table.items():
        value = getattr(labels, label)
        several = value if isinstance(value, tuple) else (value,)
        if value != getattr(usual, label):
            found += [(label, one, offer) for one in several if one]
    return found
