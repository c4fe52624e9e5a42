# SPDX-License-Identifier: Apache-2.0
"""ClusterRequest + CloudFacts -> the chart's values, in the order of values.yaml.

The keys are the values contract of the openstack-cluster charts (this project's own and
https://github.com/azimuth-cloud/capi-helm-charts, 0.22 and later). A key that has nothing to say is
left out, so that the chart's default holds; booleans and numbers are never texts.
"""

from __future__ import annotations

from collections.abc import Sequence

from magnum.drivers.k8s_capi_helm import names
from magnum.drivers.k8s_capi_helm.helm_values import infrastructure, nodes, outside, programs
from magnum.drivers.k8s_capi_helm.helm_values.addons import addons
from magnum.drivers.k8s_capi_helm.helm_values.autoscaler import (
    has_prefix,
    names_image,
    takes_prefix,
    TEMPLATES,
    with_image,
    without_prefix,
)
from magnum.drivers.k8s_capi_helm.helm_values.families import check_family
from magnum.drivers.k8s_capi_helm.helm_values.infrastructure import (
    has_floating_ip,
    needs_api_address,
)
from magnum.drivers.k8s_capi_helm.helm_values.nodes import (
    boot_volume_size,
    capacity,
    extra_networks,
    first_count,
    group_counts,
    group_details,
    node_group,
    server_group,
    server_group_policy,
)
from magnum.drivers.k8s_capi_helm.helm_values.owned import is_owned, OWNED
from magnum.drivers.k8s_capi_helm.labels import effective
from magnum.drivers.k8s_capi_helm.model import CloudFacts, ClusterRequest, Json

__all__ = [
    "OWNED",
    "TEMPLATES",
    "boot_volume_size",
    "capacity",
    "check_family",
    "counts",
    "extra_networks",
    "first_count",
    "group_counts",
    "has_floating_ip",
    "has_prefix",
    "is_owned",
    "names_image",
    "needs_api_address",
    "node_group",
    "render",
    "server_group",
    "server_group_policy",
    "takes_prefix",
    "with_image",
    "without_prefix",
]


def render(
    request: ClusterRequest,
    facts: CloudFacts,
    *,
    storage_class_default: str | None = None,
    allowed_topologies: Sequence[str] = (),
    tells_capacity: bool = True,
) -> Json:
    """All values of a new release.

    :param storage_class_default: Cinder volume type of the default storage class; None for the
        first.
    :param allowed_topologies: ``label=value`` texts of nodes, see :func:`storage.topologies`.
    :param tells_capacity: whether the chart can tell the autoscaler what a Node has.
    :raises errors.InvalidRequest: request and facts contradict each other, or something is missing
        that the chart needs.
    """
    labels = request.labels
    values: Json = {
        "cloudCredentialsSecretName": names.credential_secret(request.release),
        "kubernetesVersion": infrastructure.kubernetes_version(request, facts),
        "machineImageId": facts.image_id,
    }
    if request.keypair:
        values["machineSSHKeyName"] = request.keypair
    if given := effective(labels):
        # What the cluster was made with stays on record there, whatever a site's defaults become.
        values["clusterAnnotations"] = {
            f"{names.EFFECTIVE_LABEL}/{name}": text for name, text in given.items()
        }
    if labels.container_infra_prefix:
        values["global"] = {"imageRegistryPrefix": labels.container_infra_prefix}
    if networks := infrastructure.pods_and_services(request):
        values["kubeNetwork"] = networks
    values["clusterNetworking"] = infrastructure.networking(request, facts)
    values["osDistro"] = facts.os_distro
    if registries := outside.registries(request):
        values["registryMirrors"] = registries
    if proxy := outside.proxy(request):
        values["proxy"] = proxy
    values["authWebhook"] = "k8s-keystone-auth" if labels.keystone_auth_enabled else "none"
    if sign_in := programs.oidc(labels):
        values["oidc"] = sign_in
    if labels.etcd_blockdevice_size:
        values["etcd"] = {"blockDevice": infrastructure.etcd_disk(labels)}
    values["apiServer"] = programs.api_server(request, facts)
    values["controlPlane"] = nodes.control_plane(request, facts)
    values["nodeGroupDefaults"] = nodes.node_group_defaults(request, facts.resolved.extra_networks)
    values["nodeGroups"] = [
        {
            **node_group(
                group,
                labels,
                facts.flavors,
                facts.images,
                facts.resolved.extra_networks,
                tells_capacity,
            ),
            **server_group(group, labels, facts.server_groups),
        }
        for group in request.node_groups
    ]
    values["addons"] = addons(request, facts, storage_class_default, allowed_topologies)
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
