# SPDX-License-Identifier: Apache-2.0
"""ClusterRequest + CloudFacts -> the chart's values, in the order of values.yaml.

The keys are the values contract of the openstack-cluster charts (this project's own and
https://github.com/azimuth-cloud/capi-helm-charts, 0.22 and later). A key that has nothing to say is
left out, so that the chart's default holds; booleans and numbers are never texts.
"""

from __future__ import annotations

from collections.abc import Sequence

from magnum.drivers.k8s_capi_helm.labels import effective
from magnum.drivers.k8s_capi_helm.model import CloudFacts, ClusterRequest, Json, names
from magnum.drivers.k8s_capi_helm.values.sections import components, network, nodegroups
from magnum.drivers.k8s_capi_helm.values.sections import proxy as values_proxy
from magnum.drivers.k8s_capi_helm.values.sections.addons import addons
from magnum.drivers.k8s_capi_helm.values.sections.nodegroups import server_group_values

__all__ = ["render"]


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
    return {
        **_whole_cluster(request, facts),
        "apiServer": components.api_server(request, facts),
        "controlPlane": nodegroups.control_plane(request, facts),
        "nodeGroupDefaults": nodegroups.nodegroup_defaults(
            request, facts.resolved_names.extra_networks
        ),
        "nodeGroups": nodegroups.node_groups(request, facts, tells_capacity),
        "addons": addons(request, facts, storage_class_default, allowed_topologies),
    }


def _whole_cluster(request: ClusterRequest, facts: CloudFacts) -> Json:
    """What no part of a cluster has for itself."""
    labels = request.labels
    values: Json = {
        "cloudCredentialsSecretName": names.credential_secret(request.release),
        "kubernetesVersion": network.kubernetes_version(request, facts),
        "machineImageId": facts.image_id,
    }
    if request.keypair:
        values["machineSSHKeyName"] = request.keypair
    if effective_labels := effective(labels):
        # What the cluster was made with stays on record there, whatever a site's defaults become.
        values["clusterAnnotations"] = {
            f"{names.EFFECTIVE_LABEL}/{name}": text for name, text in effective_labels.items()
        }
    if labels.container_infra_prefix:
        values["global"] = {"imageRegistryPrefix": labels.container_infra_prefix}
    if networks := network.pods_and_services(request):
        values["kubeNetwork"] = networks
    values["clusterNetworking"] = network.networking(request, facts)
    values["osDistro"] = facts.os_distro
    if registries := values_proxy.registries(request):
        values["registryMirrors"] = registries
    if proxy := values_proxy.proxy(request):
        values["proxy"] = proxy
    values["authWebhook"] = "k8s-keystone-auth" if labels.keystone_auth_enabled else "none"
    if oidc := components.oidc(labels):
        values["oidc"] = oidc
    if labels.etcd_blockdevice_size:
        values["etcd"] = {"blockDevice": network.etcd_disk(labels)}
    return values


def with_created(values: Json, request: ClusterRequest, facts: CloudFacts) -> Json:
    """The values of a new release, with the ids of what was created after they were rendered.

    Only the driver sets these keys, so no overlay has a say in them
    (:mod:`~magnum.drivers.k8s_capi_helm.values.tree.reserved_keys`).

    :param values: as :func:`render` made them of the same request, overlays included.
    :param facts: with the server groups and the API address.
    """
    api_server = components.api_server(request, facts)
    all_nodegroups = (request.control_plane, *request.node_groups)
    created = {
        nodegroup.name: server_group_values(nodegroup, request.labels, facts.server_groups)
        for nodegroup in all_nodegroups
    }
    address = {key: api_server[key] for key in ("floatingIP",) if key in api_server}
    return {
        **values,
        "apiServer": {**values["apiServer"], **address},
        "controlPlane": {**values["controlPlane"], **created[request.control_plane.name]},
        "nodeGroups": [{**entry, **created[entry["name"]]} for entry in values["nodeGroups"]],
    }
