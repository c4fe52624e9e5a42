# SPDX-License-Identifier: Apache-2.0
"""ClusterRequest + CloudFacts -> the chart's values, in the order of values.yaml.

The keys are the values contract of the openstack-cluster charts (this project's own and
https://github.com/azimuth-cloud/capi-helm-charts, 0.22 and later). A key that has nothing to say is
left out, so that the chart's default holds; booleans and numbers are never texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from magnum.drivers.k8s_capi_helm import errors, names
from magnum.drivers.k8s_capi_helm.helm_values import storage
from magnum.drivers.k8s_capi_helm.labels import Labels
from magnum.drivers.k8s_capi_helm.model import (
    CloudFacts,
    ClusterRequest,
    Flavor,
    Json,
    NodeGroupRequest,
)


def render(
    request: ClusterRequest,
    facts: CloudFacts,
    *,
    storage_class_default: str | None = None,
    allowed_topologies: Sequence[str] = (),
) -> Json:
    """All values of a new release.

    :param storage_class_default: Cinder volume type of the default storage class; None for the
        first.
    :param allowed_topologies: ``label=value`` texts of nodes, see :func:`storage.topologies`.
    :raises errors.InvalidRequest: request and facts contradict each other, or something is missing
        that the chart needs.
    """
    _refuse_contradictions(request)
    labels = request.labels
    values: Json = {
        "cloudCredentialsSecretName": names.credential_secret(request.release),
        "kubernetesVersion": _kubernetes_version(request, facts),
        "machineImageId": facts.image_id,
    }
    if request.keypair:
        values["machineSSHKeyName"] = request.keypair
    values["clusterNetworking"] = _networking(request, facts)
    values["osDistro"] = facts.os_distro
    values["authWebhook"] = "k8s-keystone-auth" if labels.keystone_auth_enabled else "none"
    if labels.etcd_blockdevice_size:
        values["etcd"] = {"blockDevice": _etcd_disk(labels)}
    values["apiServer"] = _api_server(request)
    values["controlPlane"] = _control_plane(request, facts)
    values["nodeGroupDefaults"] = _node_group_defaults(request)
    values["nodeGroups"] = [
        node_group(group, labels, facts.flavors) for group in request.node_groups
    ]
    values["addons"] = _addons(request, facts, storage_class_default, allowed_topologies)
    return values


def counts(request: ClusterRequest) -> Json:
    """The part of the values that a running cluster's rows move; needs no answer of the cloud."""
    return {
        "controlPlane": {"machineCount": request.control_plane.count},
        "nodeGroups": [
            {"name": group.name, **group_counts(group, request.labels), **group_details(group)}
            for group in request.node_groups
        ],
    }


def node_group(group: NodeGroupRequest, labels: Labels, flavors: Mapping[str, Flavor]) -> Json:
    """The entry of a nodegroup that is new.

    :param flavors: by the text that the group uses.
    :raises errors.InvalidRequest: its flavor is not among *flavors*.
    """
    return {
        "name": group.name,
        "machineFlavor": _flavor(group, flavors),
        **group_counts(group, labels),
        **group_details(group),
    }


def group_counts(group: NodeGroupRequest, labels: Labels) -> Json:
    """Number of machines of a nodegroup, or its bounds where the autoscaler sets the number.

    The labels' bounds hold for the default worker group until it has a maximum of its own, because
    Magnum's API cannot give it one when the cluster is made. Then the last worker stays, unless the
    label says 0: Magnum's own minimum is 0 where nobody chose one.
    """
    least, most = group.minimum, group.maximum
    if group.is_default and most is None:
        most = labels.max_node_count
        least = max(least, 1) if labels.min_node_count is None else labels.min_node_count
    if labels.auto_scaling_enabled and most is not None and most > least:
        return {"autoscale": True, "machineCountMin": least, "machineCountMax": most}
    return {"machineCount": group.count}


def group_details(group: NodeGroupRequest) -> Json:
    """What Magnum's API lets a tenant change in a nodegroup besides its size."""
    details: Json = {}
    if group.node_labels:
        details["nodeLabels"] = dict(group.node_labels)
    if group.node_taints:
        details["nodeTaints"] = [dict(taint) for taint in group.node_taints]
    return details


def _refuse_contradictions(request: ClusterRequest) -> None:
    if request.labels.api_master_lb_allowed_cidrs and not request.load_balancer:
        raise errors.InvalidLabel(
            "api_master_lb_allowed_cidrs",
            ",".join(request.labels.api_master_lb_allowed_cidrs),
            "nothing, because the cluster has no load balancer that could refuse other networks "
            "(--master-lb-enabled)",
        )


def _kubernetes_version(request: ClusterRequest, facts: CloudFacts) -> str:
    tag = (request.labels.kube_tag or "").removeprefix("v")
    version = facts.kubernetes_version.removeprefix("v")
    if not (tag or version):
        raise errors.InvalidRequest(
            f"Image '{request.image}' does not say which Kubernetes it holds: give it the property "
            "kube_version, or set the label 'kube_tag'."
        )
    if tag and version and tag != version:
        raise errors.InvalidRequest(
            f"Label 'kube_tag' asks for Kubernetes v{tag}, but image '{request.image}' holds "
            f"v{version}: use a label and an image that agree."
        )
    return tag or version


def _networking(request: ClusterRequest, facts: CloudFacts) -> Json:
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


def _etcd_disk(labels: Labels) -> Json:
    disk: Json = {"size": labels.etcd_blockdevice_size}
    if labels.etcd_blockdevice_type == "local":
        return {**disk, "type": "Local"}
    disk["type"] = "Volume"
    if labels.etcd_blockdevice_volume_type:
        disk["volumeType"] = labels.etcd_blockdevice_volume_type
    if labels.etcd_blockdevice_volume_az:
        disk["availabilityZone"] = labels.etcd_blockdevice_volume_az
    return disk


def _api_server(request: ClusterRequest) -> Json:
    labels = request.labels
    values: Json = {
        "enableLoadBalancer": request.load_balancer,
        "loadBalancerProvider": labels.octavia_provider,
    }
    if labels.api_master_lb_allowed_cidrs:
        # The reference charts read the first spelling since 0.24 and the second one before.
        values["allowedCIDRs"] = list(labels.api_master_lb_allowed_cidrs)
        values["allowedCidrs"] = list(labels.api_master_lb_allowed_cidrs)
    values["associateFloatingIP"] = request.floating_ip and labels.master_lb_floating_ip_enabled
    return values


def _control_plane(request: ClusterRequest, facts: CloudFacts) -> Json:
    labels = request.labels
    values: Json = {
        "machineCount": request.control_plane.count,
        "machineFlavor": _flavor(request.control_plane, facts.flavors),
    }
    if labels.availability_zone:
        values["failureDomains"] = [labels.availability_zone]
        values["omitFailureDomain"] = False
    if labels.boot_volume_size:
        values["machineRootVolume"] = _boot_volume(labels)
    values["healthCheck"] = _health_check(request)
    return values


def _node_group_defaults(request: ClusterRequest) -> Json:
    labels = request.labels
    values: Json = {}
    if labels.availability_zone:
        values["failureDomain"] = labels.availability_zone
    if labels.boot_volume_size:
        values["machineRootVolume"] = _boot_volume(labels)
    if labels.extra_network_names:
        # The empty port is the one on the cluster's own network.
        values["machineNetworking"] = {
            "ports": [
                {},
                *({"network": {"filter": {"name": name}}} for name in labels.extra_network_names),
            ]
        }
    values["healthCheck"] = _health_check(request, patience=2)
    return values


def _health_check(request: ClusterRequest, *, patience: int = 1) -> Json:
    """Whether machines are replaced, and how long a server may take to come up before it is.

    :param patience: how many times the site's time; a worker's clock starts with its Machine, which
        is made while the control plane is still coming up.
    """
    values: Json = {"enabled": request.labels.auto_healing_enabled}
    if request.server_start_timeout:
        values["neverCameUpTimeout"] = f"{patience * request.server_start_timeout}s"
    return values


def _boot_volume(labels: Labels) -> Json:
    volume: Json = {"diskSize": labels.boot_volume_size}
    if labels.boot_volume_type:
        volume["volumeType"] = labels.boot_volume_type
    return volume


def _flavor(group: NodeGroupRequest, flavors: Mapping[str, Flavor]) -> str:
    """The flavor's name, which is what an OpenStackMachineTemplate takes."""
    if group.flavor not in flavors:
        raise errors.InvalidRequest(
            f"Flavor '{group.flavor}' of nodegroup '{group.name}' does not exist: choose one that "
            "'openstack flavor list' shows."
        )
    return flavors[group.flavor].name


def _addons(
    request: ClusterRequest,
    facts: CloudFacts,
    storage_class_default: str | None,
    allowed_topologies: Sequence[str],
) -> Json:
    labels = request.labels
    keystone_auth: Json = {"enabled": labels.keystone_auth_enabled}
    if labels.keystone_auth_enabled:
        keystone_auth["values"] = {
            "openstackAuthUrl": facts.auth_url,
            "projectId": request.project_id,
        }
    return {
        "cni": {"type": request.cni},
        "openstack": {
            "enabled": True,
            "cloudConfig": {
                "LoadBalancer": {
                    "lb-provider": labels.octavia_provider,
                    "lb-method": labels.load_balancer_method,
                    "create-monitor": labels.octavia_lb_healthcheck,
                }
            },
            "csiCinder": storage.classes(
                labels, facts.volume_types, storage_class_default, allowed_topologies
            ),
            "k8sKeystoneAuth": keystone_auth,
        },
        "metricsServer": {"enabled": True},
        "monitoring": {"enabled": labels.monitoring_enabled},
        # An ingress controller's load balancer would outlive the cluster.
        "ingress": {"enabled": False},
    }
