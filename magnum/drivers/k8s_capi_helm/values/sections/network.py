# SPDX-License-Identifier: Apache-2.0
"""Values of Kubernetes version, networks and etcd's disk."""

from __future__ import annotations

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.labels import Labels
from magnum.drivers.k8s_capi_helm.labels.value_types.versions import plain
from magnum.drivers.k8s_capi_helm.model import CloudFacts, ClusterRequest, Json


def kubernetes_version(request: ClusterRequest, facts: CloudFacts) -> str:
    tag = plain(request.labels.kube_tag)
    version = plain(facts.kubernetes_version)
    if not (tag or version):
        raise errors.InvalidRequest(
            "The image does not say which Kubernetes version it has. Set the property kube_version "
            f"on image '{request.image}', or set the label 'kube_tag'."
        )
    if tag and version and tag != version:
        raise errors.InvalidRequest(
            "Label 'kube_tag' and the image have different Kubernetes versions. The label is "
            f"v{tag}, and image '{request.image}' has v{version}. Use a label and an image that "
            "agree."
        )
    return tag or version


def networking(request: ClusterRequest, facts: CloudFacts) -> Json:
    values: Json = {}
    if facts.external_network_id:
        values["externalNetworkId"] = facts.external_network_id
    internal: Json = {}
    if facts.fixed_network_id:
        internal["networkFilter"] = {"id": facts.fixed_network_id}
    if facts.fixed_subnet_id:
        internal["subnetFilter"] = {"id": facts.fixed_subnet_id}
    if not internal:
        internal["nodeCidr"] = request.labels.fixed_subnet_cidr
    if request.dns_nameservers:
        internal["dnsNameservers"] = list(request.dns_nameservers)
    return {**values, "internalNetwork": internal}


def pods_and_services(request: ClusterRequest) -> Json:
    """What the labels say of the networks of pods and services; {} where they say nothing."""
    labels = request.labels
    values: Json = {}
    pools = {"calico": labels.calico_ipv4pool, "cilium": labels.cilium_ipv4pool}
    if pods := pools[request.cni]:
        values["pods"] = {"cidrBlocks": list(pods)}
    if labels.service_cluster_ip_range:
        values["services"] = {"cidrBlocks": list(labels.service_cluster_ip_range)}
    if labels.dns_cluster_domain:
        values["serviceDomain"] = labels.dns_cluster_domain
    return values


def etcd_disk(labels: Labels) -> Json:
    disk: Json = {"size": labels.etcd_blockdevice_size}
    if labels.etcd_blockdevice_type == "local":
        return {**disk, "type": "Local"}
    disk["type"] = "Volume"
    if labels.etcd_blockdevice_volume_type:
        disk["volumeType"] = labels.etcd_blockdevice_volume_type
    if labels.etcd_blockdevice_volume_az:
        disk["availabilityZone"] = labels.etcd_blockdevice_volume_az
    return disk


def needs_api_address(request: ClusterRequest) -> bool:
    """Whether the driver makes the API's floating IP; without load balancer it is a machine's.

    Cluster API's OpenStack provider deletes a floating IP that it has made for a machine together
    with the machine, and the API's address with it; one that is given goes over to the next
    machine.
    """
    given = request.labels.api_server_floating_ip
    return not request.load_balancer and has_floating_ip(request) and not given


def has_floating_ip(request: ClusterRequest) -> bool:
    """Whether the Kubernetes API has a floating IP."""
    return request.floating_ip and request.labels.master_lb_floating_ip_enabled
