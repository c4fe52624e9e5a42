# SPDX-License-Identifier: Apache-2.0
"""How much of everything an operation takes from the project's quotas.

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
from magnum.drivers.k8s_capi_helm.values import live as values_live
from magnum.drivers.k8s_capi_helm.values import network, nodegroups

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
        *(new_group(group, request) for group in request.node_groups),
    ]


def new_group(group: NodeGroupRequest, request: ClusterRequest) -> MachineDemand:
    """The machines with which a new nodegroup begins."""
    labels = group.labels or request.labels
    count = nodegroups.initial_count(group, request.labels)
    grouped = nodegroups.server_group_policy(group, request.labels) is not None
    return MachineDemand(
        count,
        group.flavor,
        _volumes(group, labels),
        ports=1 + len(labels.extra_network_names),
        members=count if grouped else 0,
        makes_server_group=grouped,
    )


def resized(live: Json, group: str | None, have: int, more: int) -> MachineDemand | None:
    """The machines that a group of a running cluster gets more, as its release makes them.

    :param live: values of the release.
    :param group: name of a nodegroup, None for the control plane.
    :param have: how many it has; of one that the autoscaler sizes, the values do not tell.
    :param more: how many it gets.
    :returns: None where it gets none, or where nobody knows what they are.
    """
    entry: Json = live.get("controlPlane") or {}
    usual: Json = {}
    if group is not None:
        entry = values_live.node_groups(live).get(group) or {}
        usual = live.get("nodeGroupDefaults") or {}
    if more <= 0 or not entry.get("machineFlavor"):
        return None
    disks = [
        entry.get(key) or usual.get(key) or {}
        for key in ("machineRootVolume", "containerdBlockDevice")
    ]
    if group is None:
        etcd = (live.get("etcd") or {}).get("blockDevice") or {}
        disks.append({} if etcd.get("type") == "Local" else etcd)
    sizes = [(disk.get("diskSize") or disk.get("size"), disk.get("volumeType")) for disk in disks]
    networking = entry.get("machineNetworking") or usual.get("machineNetworking") or {}
    return MachineDemand(
        more,
        entry["machineFlavor"],
        tuple((int(size), kind or None) for size, kind in sizes if size),
        ports=len(networking.get("ports") or ()) or 1,
        members=have + more if _is_grouped(entry) else 0,
    )


def _is_grouped(entry: Json) -> bool:
    return bool(entry.get("serverGroupId") or entry.get("serverGroupName"))


def existing_cluster(request: ClusterRequest) -> Mapping[QuotaKey, int]:
    """What a new cluster has once, besides its machines."""
    taken = Counter[QuotaKey]({QuotaResource.SECURITY_GROUPS: _SECURITY_GROUPS})
    if not (request.fixed_network or request.fixed_subnet):
        # The router's interface in the new subnet is a port of the project too.
        made = (
            QuotaResource.NETWORKS,
            QuotaResource.SUBNETS,
            QuotaResource.ROUTERS,
            QuotaResource.PORTS,
        )
        taken.update(made)
    if request.load_balancer:
        balancer = (
            QuotaResource.LOAD_BALANCERS,
            QuotaResource.LISTENERS,
            QuotaResource.POOLS,
            QuotaResource.PORTS,
        )
        taken.update(balancer)
    if network.has_floating_ip(request) and not request.labels.api_server_floating_ip:
        taken[QuotaResource.FLOATING_IPS] += 1
    return taken


def machine_usage(
    growth: Iterable[MachineDemand], flavors: Mapping[str, Flavor]
) -> Mapping[QuotaKey, int]:
    """What machines take of each quota; with an unknown flavor no vCPUs and memory are known."""
    taken = Counter[QuotaKey]()
    for one in growth:
        flavor = flavors.get(one.flavor)
        taken[QuotaResource.INSTANCES] += one.count
        taken[QuotaResource.CORES] += one.count * (flavor.vcpus if flavor else 0)
        taken[QuotaResource.RAM] += one.count * (flavor.ram if flavor else 0)
        taken[QuotaResource.PORTS] += one.count * one.ports
        taken[QuotaResource.SERVER_GROUPS] += one.makes_server_group
        members = QuotaResource.SERVER_GROUP_MEMBERS
        taken[members] = max(taken[members], one.members)
        for size, kind in one.volumes if one.count else ():
            taken[QuotaResource.VOLUMES] += one.count
            taken[QuotaResource.GIGABYTES] += one.count * size
            taken[QuotaResource.VOLUME_GIGABYTES] = max(taken[QuotaResource.VOLUME_GIGABYTES], size)
            if kind:
                taken[QuotaResource.VOLUMES, kind] += one.count
                taken[QuotaResource.GIGABYTES, kind] += one.count * size
    return {key: number for key, number in taken.items() if number}


def cluster_usage(request: ClusterRequest, flavors: Mapping[str, Flavor]) -> Mapping[QuotaKey, int]:
    """What a new cluster takes of each quota, its machines and what it has once."""
    return Counter[QuotaKey](existing_cluster(request)) + Counter[QuotaKey](
        machine_usage(new_cluster(request), flavors)
    )


def _volumes(group: NodeGroupRequest, labels: Labels) -> tuple[tuple[int, str | None], ...]:
    """Of each machine: the one that it boots from, and the one for images and containers."""
    disks = (
        (labels.boot_volume_size, labels.boot_volume_type),
        (group.docker_volume, labels.docker_volume_type),
    )
    return tuple((size, kind) for size, kind in disks if size)
