# SPDX-License-Identifier: Apache-2.0
"""Values of control plane and nodegroups: machines, counts, disks, zones, metadata."""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.labels import Labels
from magnum.drivers.k8s_capi_helm.model import (
    CloudFacts,
    ClusterRequest,
    Flavor,
    Image,
    Json,
    NodeGroupRequest,
    ResolvedNames,
)
from magnum.drivers.k8s_capi_helm.values.sections import components

#: What the charts call the Nodes of a nodegroup that says nothing else.
_USUAL_ROLE = "worker"


def control_plane(request: ClusterRequest, facts: CloudFacts) -> Json:
    labels = request.labels
    values: Json = {
        "machineCount": request.control_plane.count,
        "machineFlavor": _flavor(request.control_plane, facts.flavors),
    }
    if zones := labels.control_plane_zones:
        values["failureDomains"] = list(zones)
        values["omitFailureDomain"] = False
    if labels.boot_volume_size:
        values["machineRootVolume"] = _boot_volume(labels)
    values.update(server_group_values(request.control_plane, labels, facts.server_groups))
    values.update(_containerd_disk(request.control_plane, labels))
    if spec := components.control_plane(request):
        values["kubeadmConfigSpec"] = spec
    values["healthCheck"] = _health_check(request)
    return values


def nodegroup_defaults(request: ClusterRequest, networks: Mapping[str, str]) -> Json:
    """What all nodegroups have that say nothing else.

    :param networks: ids by the texts of the label for further networks.
    """
    labels = request.labels
    values: Json = {}
    if labels.availability_zone:
        values["failureDomain"] = labels.availability_zone
    if labels.boot_volume_size:
        values["machineRootVolume"] = _boot_volume(labels)
    if labels.extra_network_names:
        values["machineNetworking"] = _networking(labels, networks)
    if spec := components.workers(labels):
        values["kubeadmConfigSpec"] = spec
    values["healthCheck"] = _health_check(request, factor=2)
    return values


def node_groups(request: ClusterRequest, facts: CloudFacts, tells_capacity: bool) -> list[Json]:
    """The entries of all nodegroups of a new release."""
    labels, resources = (
        request.labels,
        dataclasses.replace(facts.resolved_names, flavors=facts.flavors),
    )
    return [
        {
            **nodegroup_entry(nodegroup, labels, resources, tells_capacity),
            **server_group_values(nodegroup, labels, facts.server_groups),
        }
        for nodegroup in request.node_groups
    ]


def nodegroup_entry(
    nodegroup: NodeGroupRequest,
    labels: Labels,
    resources: ResolvedNames,
    tells_capacity: bool = True,
    inherits_networks: bool = True,
) -> Json:
    """The entry of a nodegroup that is new.

    :param labels: those of the cluster, which the chart has as defaults of all nodegroups; what a
        group has otherwise stands in its entry.
    :param resources: what the texts of the group stand for; another network that is not there goes
        by its name.
    :param tells_capacity: whether the chart can tell the autoscaler what a Node has.
    :param inherits_networks: whether the defaults have all networks of the cluster's label by id.
    :raises errors.InvalidRequest: its flavor or image is not among them.
    """
    own_labels = nodegroup.labels or labels
    values: Json = {
        "name": nodegroup.name,
        "machineFlavor": _flavor(nodegroup, resources.flavors),
        **nodegroup_counts(nodegroup, labels),
        **_software(nodegroup, resources.images),
    }
    values.update(_own_places(own_labels, labels))
    same_networks = own_labels.extra_network_names == labels.extra_network_names
    if not same_networks or (own_labels.extra_network_names and not inherits_networks):
        values["machineNetworking"] = _networking(own_labels, resources.extra_networks)
    values.update(_containerd_disk(nodegroup, own_labels))
    if nodegroup.role != _USUAL_ROLE:
        values["role"] = nodegroup.role
    values.update(nodegroup_details(nodegroup))
    if own_labels.node_annotations:
        values["nodeAnnotations"] = dict(own_labels.node_annotations)
    if own_labels.auto_healing_enabled != labels.auto_healing_enabled:
        values["healthCheck"] = {"enabled": own_labels.auto_healing_enabled}
    flavor = resources.flavors[nodegroup.flavor]
    if "autoscale" in values and tells_capacity and flavor.vcpus:
        values["capacity"] = capacity(flavor, own_labels.boot_volume_size)
    return values


def _own_places(own: Labels, labels: Labels) -> Json:
    """Zone and root volume of a nodegroup, where they are not its cluster's."""
    values: Json = {}
    if own.availability_zone != labels.availability_zone:
        values["failureDomain"] = own.availability_zone
    if _boot_volume(own) != _boot_volume(labels):
        values["machineRootVolume"] = _boot_volume(own)
    return values


def capacity(flavor: Flavor, boot_volume_size: int = 0) -> Json:
    """What a Node of that flavor has, so that the autoscaler can grow a group that has none.

    :param boot_volume_size: GiB of the volume that it boots from; 0 for the flavor's own disk.
    """
    values: Json = {"cpu": flavor.vcpus, "memory": f"{flavor.ram}Mi"}
    if boot_volume_size or flavor.disk:
        values["ephemeralDisk"] = f"{boot_volume_size or flavor.disk}Gi"
    return values


def boot_volume_size(values: Mapping[str, Any], entry: Mapping[str, Any]) -> int:
    """GiB of the volume that machines of a nodegroup of a release boot from; 0 for the flavor's."""
    for source in (entry, values.get("nodeGroupDefaults") or {}):
        size = (source.get("machineRootVolume") or {}).get("diskSize")
        if size:
            return int(size)
    return 0


def server_group_values(
    nodegroup: NodeGroupRequest, labels: Labels, ids: Mapping[str, str]
) -> Json:
    """What places the machines of a new group by its Nova server group.

    :param ids: of the server groups that were made, by name of the group.
    """
    if nodegroup.name in ids and server_group_policy(nodegroup, labels):
        return {"serverGroupId": ids[nodegroup.name]}
    return {}


def server_group_policy(nodegroup: NodeGroupRequest, labels: Labels) -> str | None:
    """Nova's policy for the machines of a group, None where it has no server group."""
    policy = (nodegroup.labels or labels).server_group_policies
    return None if policy == "none" else policy


def nodegroup_counts(nodegroup: NodeGroupRequest, labels: Labels) -> Json:
    """Number of machines of a nodegroup, or its bounds where the autoscaler sets the number.

    The labels' bounds hold for the default worker group until it has a maximum of its own, because
    Magnum's API cannot give it one when the cluster is made. Then the last worker stays, unless the
    label says 0: Magnum's own minimum is 0 where nobody chose one. When the group gets a maximum,
    the minimum that holds is written into its row.
    """
    minimum, maximum = nodegroup.minimum, nodegroup.maximum
    if nodegroup.is_default and maximum is None:
        maximum = labels.max_node_count
        minimum = max(minimum, 1) if labels.min_node_count is None else labels.min_node_count
    if labels.auto_scaling_enabled and maximum is not None and maximum > minimum:
        return {"autoscale": True, "machineCountMin": minimum, "machineCountMax": maximum}
    return {"machineCount": nodegroup.count}


def initial_count(nodegroup: NodeGroupRequest, labels: Labels) -> int:
    """Machines with which a new group begins; of one that the autoscaler sizes, within its bounds.

    Magnum's own node count is 1 where nobody chose one, so fewer than the minimum is no wish.
    """
    counts = nodegroup_counts(nodegroup, labels)
    if "machineCount" in counts:
        return nodegroup.count
    return int(min(max(nodegroup.count, counts["machineCountMin"]), counts["machineCountMax"]))


def nodegroup_details(nodegroup: NodeGroupRequest) -> Json:
    """What Magnum's API lets a tenant change in a nodegroup besides its size."""
    details: Json = {}
    if nodegroup.node_labels:
        details["nodeLabels"] = dict(nodegroup.node_labels)
    if nodegroup.node_taints:
        details["nodeTaints"] = [dict(taint) for taint in nodegroup.node_taints]
    return details


def _health_check(request: ClusterRequest, *, factor: int = 1) -> Json:
    """Whether machines are replaced, and how long a server may take to come up before it is.

    :param factor: how many times the site's time; a worker's clock starts with its Machine, which
        is made while the control plane is still coming up.
    """
    values: Json = {"enabled": request.labels.auto_healing_enabled}
    if request.server_start_timeout:
        values["neverCameUpTimeout"] = f"{factor * request.server_start_timeout}s"
    return values


def _boot_volume(labels: Labels) -> Json:
    volume: Json = {"diskSize": labels.boot_volume_size}
    if labels.boot_volume_type:
        volume["volumeType"] = labels.boot_volume_type
    if labels.boot_volume_availability_zone:
        volume["availabilityZone"] = labels.boot_volume_availability_zone
    return volume


def extra_networks(values: Mapping[str, Any], labels: Labels) -> dict[str, str]:
    """Ids of further networks by the cluster's names for them, as its release has them.

    A release of an older driver has the names alone, which anybody can give to a network.
    """
    ports = ((values.get("nodeGroupDefaults") or {}).get("machineNetworking") or {}).get("ports")
    names, further_ports = labels.extra_network_names, list(ports or ())[1:]
    if len(names) != len(further_ports):
        return {}
    ids = [str((port.get("network") or {}).get("id") or "") for port in further_ports]
    return {name: network_id for name, network_id in zip(names, ids, strict=True) if network_id}


def _networking(labels: Labels, networks: Mapping[str, str]) -> Json:
    """Ports of a worker; the empty one is on the cluster's own network."""
    references = (
        {"id": networks[name]} if name in networks else {"filter": {"name": name}}
        for name in labels.extra_network_names
    )
    return {"ports": [{}, *({"network": reference} for reference in references)]}


def _containerd_disk(nodegroup: NodeGroupRequest, labels: Labels) -> Json:
    """The disk for images and containers, which only this project's chart knows."""
    if not nodegroup.docker_volume:
        return {}
    disk: Json = {"size": nodegroup.docker_volume}
    if labels.docker_volume_type:
        disk["volumeType"] = labels.docker_volume_type
    return {"containerdBlockDevice": disk}


def _software(nodegroup: NodeGroupRequest, images: Mapping[str, Image]) -> Json:
    """What a nodegroup with an image of its own runs."""
    if not nodegroup.image:
        return {}
    if nodegroup.image not in images:
        raise errors.InvalidRequest(
            f"The image of nodegroup '{nodegroup.name}' does not exist. The image is "
            f"'{nodegroup.image}': choose one that 'openstack image list' shows."
        )
    image = images[nodegroup.image]
    return {"kubernetesVersion": image.kubernetes_version, "machineImageId": image.id}


def _flavor(nodegroup: NodeGroupRequest, flavors: Mapping[str, Flavor]) -> str:
    """The flavor's name, which is what an OpenStackMachineTemplate takes."""
    if nodegroup.flavor not in flavors:
        raise errors.InvalidRequest(
            f"The flavor of nodegroup '{nodegroup.name}' does not exist. The flavor is "
            f"'{nodegroup.flavor}': choose one that 'openstack flavor list' shows."
        )
    return flavors[nodegroup.flavor].name


def sizes(request: ClusterRequest) -> Json:
    """The part of the values that a running cluster's rows move; needs no answer of the cloud."""
    return {
        "controlPlane": {"machineCount": request.control_plane.count},
        "nodeGroups": [
            {
                "name": nodegroup.name,
                **nodegroup_counts(nodegroup, request.labels),
                **nodegroup_details(nodegroup),
            }
            for nodegroup in request.node_groups
        ],
    }
