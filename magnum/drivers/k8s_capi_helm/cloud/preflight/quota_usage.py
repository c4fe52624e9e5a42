# SPDX-License-Identifier: Apache-2.0
"""The quota usage of an operation.

Counted is what is certain to be asked for: what Cluster API's OpenStack provider makes at once for
the cluster, and each machine that the operation adds. What may come later (volumes and load
balancers of the tenant's own workload, machines of the autoscaler above a group's start, the spare
machine of an upgrade) is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
import dataclasses

from magnum.drivers.k8s_capi_helm.labels import Labels
from magnum.drivers.k8s_capi_helm.model import (
    ClusterRequest,
    Flavor,
    Json,
    NodeGroupRequest,
    QuotaKey,
    QuotaResource,
)
from magnum.drivers.k8s_capi_helm.values.sections import network, nodegroups
from magnum.drivers.k8s_capi_helm.values.tree import live as values_live

#: Security groups that the OpenStack provider makes: for the control plane and for workers.
_SECURITY_GROUPS = 2


@dataclasses.dataclass(frozen=True, slots=True)
class MachineDemand:
    """Machines of one kind that an operation adds.

    :ivar count: how many.
    :ivar flavor: text by which Nova's flavor is known.
    :ivar volumes: of each machine, size in GiB and type, None for Cinder's default.
    :ivar ports: of each machine.
    :ivar members: how many the server group has then, 0 where there is none.
    :ivar makes_server_group: it does not exist yet.
    """

    count: int
    flavor: str
    volumes: tuple[tuple[int, str | None], ...] = ()
    ports: int = 1
    members: int = 0
    makes_server_group: bool = False


def new_cluster(request: ClusterRequest) -> list[MachineDemand]:
    """All machines with which a new cluster begins."""
    labels, masters = request.labels, request.control_plane
    volumes = _volumes(masters, labels)
    if labels.etcd_blockdevice_size and labels.etcd_blockdevice_type == "volume":
        volumes += ((labels.etcd_blockdevice_size, labels.etcd_blockdevice_volume_type),)
    grouped = nodegroups.server_group_policy(masters, labels) is not None
    return [
        MachineDemand(
            masters.count,
            masters.flavor,
            volumes,
            members=masters.count if grouped else 0,
            makes_server_group=grouped,
        ),
        *(new_nodegroup(nodegroup, request) for nodegroup in request.node_groups),
    ]


def new_nodegroup(nodegroup: NodeGroupRequest, request: ClusterRequest) -> MachineDemand:
    """The machines with which a new nodegroup begins."""
    labels = nodegroup.labels or request.labels
    count = nodegroups.initial_count(nodegroup, request.labels)
    grouped = nodegroups.server_group_policy(nodegroup, request.labels) is not None
    return MachineDemand(
        count,
        nodegroup.flavor,
        _volumes(nodegroup, labels),
        ports=1 + len(labels.extra_network_names),
        members=count if grouped else 0,
        makes_server_group=grouped,
    )


def resize_demand(
    live: Json, nodegroup: str | None, current_count: int, extra_count: int
) -> MachineDemand | None:
    """The machines that a group of a running cluster gets more, as its release makes them.

    :param live: values of the release.
    :param nodegroup: name of a nodegroup, None for the control plane.
    :param current_count: how many it has; of one that the autoscaler sizes, the values do not tell.
    :param extra_count: how many it gets.
    :returns: None where it gets none, or where nobody knows what they are.
    """
    entry: Json = live.get("controlPlane") or {}
    defaults: Json = {}
    if nodegroup is not None:
        entry = values_live.node_groups(live).get(nodegroup) or {}
        defaults = live.get("nodeGroupDefaults") or {}
    if extra_count <= 0 or not entry.get("machineFlavor"):
        return None
    disks = [
        entry.get(key) or defaults.get(key) or {}
        for key in ("machineRootVolume", "containerdBlockDevice")
    ]
    if nodegroup is None:
        etcd = (live.get("etcd") or {}).get("blockDevice") or {}
        disks.append({} if etcd.get("type") == "Local" else etcd)
    sizes = [(disk.get("diskSize") or disk.get("size"), disk.get("volumeType")) for disk in disks]
    networking = entry.get("machineNetworking") or defaults.get("machineNetworking") or {}
    return MachineDemand(
        extra_count,
        entry["machineFlavor"],
        tuple((int(size), kind or None) for size, kind in sizes if size),
        ports=len(networking.get("ports") or ()) or 1,
        members=current_count + extra_count if _is_grouped(entry) else 0,
    )


def _is_grouped(entry: Json) -> bool:
    return bool(entry.get("serverGroupId") or entry.get("serverGroupName"))


def existing_cluster(request: ClusterRequest) -> Mapping[QuotaKey, int]:
    """What a new cluster has once, besides its machines."""
    usage = Counter[QuotaKey]({QuotaResource.SECURITY_GROUPS: _SECURITY_GROUPS})
    if not (request.fixed_network or request.fixed_subnet):
        # The router's interface in the new subnet is a port of the project too.
        created = (
            QuotaResource.NETWORKS,
            QuotaResource.SUBNETS,
            QuotaResource.ROUTERS,
            QuotaResource.PORTS,
        )
        usage.update(created)
    if request.load_balancer:
        balancer = (
            QuotaResource.LOAD_BALANCERS,
            QuotaResource.LISTENERS,
            QuotaResource.POOLS,
            QuotaResource.PORTS,
        )
        usage.update(balancer)
    if network.has_floating_ip(request) and not request.labels.api_server_floating_ip:
        usage[QuotaResource.FLOATING_IPS] += 1
    return usage


def machine_usage(
    demands: Iterable[MachineDemand], flavors: Mapping[str, Flavor]
) -> Mapping[QuotaKey, int]:
    """What machines take of each quota; with an unknown flavor no vCPUs and memory are known."""
    usage = Counter[QuotaKey]()
    for demand in demands:
        flavor = flavors.get(demand.flavor)
        usage[QuotaResource.INSTANCES] += demand.count
        usage[QuotaResource.CORES] += demand.count * (flavor.vcpus if flavor else 0)
        usage[QuotaResource.RAM] += demand.count * (flavor.ram if flavor else 0)
        usage[QuotaResource.PORTS] += demand.count * demand.ports
        usage[QuotaResource.SERVER_GROUPS] += demand.makes_server_group
        members = QuotaResource.SERVER_GROUP_MEMBERS
        usage[members] = max(usage[members], demand.members)
        for size, kind in demand.volumes if demand.count else ():
            usage[QuotaResource.VOLUMES] += demand.count
            usage[QuotaResource.GIGABYTES] += demand.count * size
            usage[QuotaResource.VOLUME_GIGABYTES] = max(usage[QuotaResource.VOLUME_GIGABYTES], size)
            if kind:
                usage[QuotaResource.VOLUMES, kind] += demand.count
                usage[QuotaResource.GIGABYTES, kind] += demand.count * size
    return {key: amount for key, amount in usage.items() if amount}


def cluster_usage(request: ClusterRequest, flavors: Mapping[str, Flavor]) -> Mapping[QuotaKey, int]:
    """What a new cluster takes of each quota, its machines and what it has once."""
    return Counter[QuotaKey](existing_cluster(request)) + Counter[QuotaKey](
        machine_usage(new_cluster(request), flavors)
    )


def _volumes(nodegroup: NodeGroupRequest, labels: Labels) -> tuple[tuple[int, str | None], ...]:
    """Of each machine: the one that it boots from, and the one for images and containers."""
    disks = (
        (labels.boot_volume_size, labels.boot_volume_type),
        (nodegroup.docker_volume, labels.docker_volume_type),
    )
    return tuple((size, kind) for size, kind in disks if size)
