# SPDX-License-Identifier: Apache-2.0
"""Check zones, volume types and load balancer kinds in labels against the cloud."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from magnum.drivers.k8s_capi_helm.cloud.preflight.message import in_quotes, joined_names
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

Requirement = tuple[str, str, CloudCapability]


def of_nodegroup_labels(nodegroup: NodeGroupRequest, request: ClusterRequest) -> list[Requirement]:
    """Label, value and kind of everything that holds for a nodegroup."""
    return _requirements(nodegroup.labels or request.labels, _OF_NODES)


def of_labels(request: ClusterRequest) -> list[Requirement]:
    """The references in the cluster's own labels, as far as they concern machines."""
    return _requirements(request.labels, {**_OF_NODES, **_OF_MASTERS})


def of_machines(request: ClusterRequest) -> list[Requirement]:
    """The same for all machines of a cluster, each once."""
    requirements_of_nodegroups = (
        requirement
        for nodegroup in request.node_groups
        for requirement in of_nodegroup_labels(nodegroup, request)
    )
    return list(dict.fromkeys((*of_labels(request), *requirements_of_nodegroups)))


def of_cluster(request: ClusterRequest) -> list[Requirement]:
    """The same for a new cluster, whose load balancer is to be made as well."""
    balancer = _requirements(request.labels, _OF_BALANCERS) if request.load_balancer else []
    return [*of_machines(request), *balancer]


def capability_kinds(requirements: Iterable[Requirement]) -> frozenset[CloudCapability]:
    """What the cloud has to be asked for."""
    return frozenset(capability for _, _, capability in requirements)


def capability_problems(
    requirements: Iterable[Requirement], facts: CloudFacts, nodegroup: str = "", way_out: str = ""
) -> Iterator[str]:
    """Labels that name what the cloud does not have.

    :param nodegroup: nodegroup whose own labels they are, "" for a cluster's.
    :param way_out: what to do where the label cannot just be given another value.
    """
    of_nodegroup = f" of nodegroup '{nodegroup}'" if nodegroup else ""
    for label, value, capability in requirements:
        available = facts.capabilities.get(capability)
        if available is not None and value not in available:
            yield (
                f"Label '{label}'{of_nodegroup} names no {capability} that this project can use. "
                f"The value is {in_quotes(value)}; this project can use: "
                f"{joined_names(available)}.{way_out}"
            )


def _requirements(labels: Labels, table: Mapping[str, CloudCapability]) -> list[Requirement]:
    """A label's own default is no wish: where the usual load balancer provider is not there, the
    cloud's default is taken, and clouds have relied on that.
    """
    defaults = Labels()
    requirements = []
    for label, capability in table.items():
        value = getattr(labels, label)
        values = value if isinstance(value, tuple) else (value,)
        if value != getattr(defaults, label):
            requirements += [(label, item, capability) for item in values if item]
    return requirements
