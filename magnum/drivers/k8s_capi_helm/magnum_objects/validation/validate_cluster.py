# SPDX-License-Identifier: Apache-2.0
"""Refuse requests for a cluster by Magnum's objects and cloud facts."""

from __future__ import annotations

from collections.abc import Iterable

from magnum.drivers.k8s_capi_helm import conf as conf_module
from magnum.drivers.k8s_capi_helm import errors, labels
from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.magnum_objects.rows.reader import (
    cluster_request,
    entry_names_of,
    MASTER,
)
from magnum.drivers.k8s_capi_helm.magnum_objects.rows.template import check_template
from magnum.drivers.k8s_capi_helm.magnum_objects.rows.types import (
    Cluster,
    ClusterTemplate,
    NodeGroup,
)
from magnum.drivers.k8s_capi_helm.magnum_objects.validation import validate_nodegroup
from magnum.drivers.k8s_capi_helm.model import ClusterRequest, Json, names
from magnum.drivers.k8s_capi_helm.values import change
from magnum.drivers.k8s_capi_helm.values.sections import network, nodegroups
from magnum.drivers.k8s_capi_helm.values.tree import live as values_live

#: What a cluster is made with for ever.
_KIND = ("coe", "server_type")


def validate_new_cluster(cluster: Cluster, all_nodegroups: list[NodeGroup], conf: Settings) -> None:
    """Refuse what a new cluster asks for and this version cannot do.

    :raises errors.InvalidRequest: naming field and value.
    """
    template = cluster.cluster_template
    check_template(template)
    if not template.external_network_id:
        raise errors.InvalidRequest(
            "The cluster template names no external network. Create one with --external-network."
        )
    for nodegroup in all_nodegroups:
        if nodegroup.role == MASTER and nodegroup.node_count % 2 == 0:
            raise errors.InvalidRequest(
                f"master_count is {nodegroup.node_count}, and etcd needs an odd number of nodes. "
                "Choose an odd number."
            )
    validate_labels(cluster, conf)
    request = cluster_request(cluster, all_nodegroups, conf)
    _refuse_no_keypair(request)
    _refuse_no_address(request)
    _refuse_too_many(request)
    for nodegroup in all_nodegroups:
        validate_nodegroup.validate_new_nodegroup(nodegroup, cluster, conf)


def validate_labels(cluster: Cluster, conf: Settings) -> None:
    """Refuse labels of a new cluster that say nothing this version understands.

    :raises errors.InvalidRequest: naming label, value and form.
    """
    texts, template_labels = cluster.labels or {}, cluster.cluster_template.labels or {}
    labels.check_new(texts, "The cluster")
    labels.check_new(template_labels, "The cluster template")
    for cluster_labels in (texts, labels.with_template_only(texts, template_labels)):
        labels.parse(cluster_labels, conf_module.label_defaults(conf), template_labels)


def _refuse_no_keypair(request: ClusterRequest) -> None:
    """Refuse what cannot be the name of a Nova keypair, and cannot be written into an object."""
    if request.keypair and not request.keypair.isprintable():
        raise errors.InvalidRequest(
            "The name of the keypair has unprintable characters, which no keypair can have. The "
            f"keypair is '{request.keypair}': choose one that 'openstack keypair list' shows."
        )


def _refuse_no_address(request: ClusterRequest) -> None:
    """Refuse a Kubernetes API that would have no address which outlives a machine."""
    if not request.load_balancer and not network.has_floating_ip(request):
        raise errors.InvalidRequest(
            "The cluster has neither a load balancer nor a floating IP, so its Kubernetes API "
            "would lose its address with its machine. Create it with --master-lb-enabled, or with "
            "--floating-ip-enabled and without the label master_lb_floating_ip_enabled=false."
        )


def _refuse_too_many(request: ClusterRequest) -> None:
    """Refuse more machines than the labels let the autoscaler keep.

    Fewer than its minimum may be Magnum's own count, which nobody has chosen.
    """
    for nodegroup in request.node_groups:
        maximum = nodegroups.nodegroup_counts(nodegroup, request.labels).get(
            "machineCountMax", nodegroup.count
        )
        if nodegroup.count > maximum:
            raise errors.InvalidRequest(
                f"node_count is {nodegroup.count}, and label 'max_node_count' limits the "
                f"autoscaler to {maximum} nodes. Ask for fewer nodes, or raise the label."
            )


def validate_entry_name(nodegroup: NodeGroup, all_nodegroups: Iterable[NodeGroup]) -> None:
    """Refuse a nodegroup whose place another one has, which magnum-capi-helm gave it.

    :param all_nodegroups: all of the cluster.
    :raises errors.InvalidRequest: naming both.
    """
    all_nodegroups = list(all_nodegroups)
    older = {
        name: text
        for text, name in entry_names_of(all_nodegroups).items()
        if text != nodegroup.name
    }
    if nodegroup.name in older:
        raise errors.InvalidRequest(
            "The name of the nodegroup is in use on the management cluster. Nodegroup "
            f"'{older[nodegroup.name]}' is called '{nodegroup.name}' there. Choose another name."
        )


def validate_upgrade(cluster: Cluster, template: ClusterTemplate) -> None:
    """Refuse a template that this cluster cannot follow.

    :raises errors.InvalidRequest: naming field and value.
    """
    old = cluster.cluster_template
    pairs = [(field, getattr(old, field), getattr(template, field)) for field in _KIND]
    if template.driver:
        pairs.append(("driver", names.DRIVER, template.driver))
    for field, current, requested in pairs:
        if requested != current:
            raise errors.InvalidRequest(
                f"The cluster template has another {field} than the cluster. Template "
                f"'{template.name}' has '{requested}', and the cluster has '{current}': it cannot "
                "be upgraded to this template."
            )
    if not template.image_id:
        raise errors.InvalidRequest(
            f"The cluster template names no image. The template is '{template.name}': create one "
            "with --image."
        )
    check_template(template, old)


def validate_resize(
    cluster: Cluster, nodegroup: NodeGroup, name: str, request: ClusterRequest, live: Json
) -> None:
    """Refuse a node count that cannot be, or that would have no effect.

    :param nodegroup: of the nodegroup, with the new count; *name* is what the values call it.
    :param live: values of the live release, {} when nobody can read them.
    :raises errors.InvalidRequest: naming the group.
    """
    masters = request.control_plane
    balanced = (live.get("apiServer") or {}).get("enableLoadBalancer", cluster.master_lb_enabled)
    if name == masters.name and masters.count > 1 and not balanced:
        raise errors.InvalidRequest(
            f"{masters.count} control plane nodes need a load balancer, and this cluster was "
            "created without one (master_lb_enabled). Create a new cluster with one."
        )
    entry = values_live.node_groups(change.with_sizes(live, request)).get(name, {})
    if values_live.is_autoscaled(entry):
        minimum, maximum = values_live.bounds(entry)
        if not minimum <= nodegroup.node_count <= maximum:
            raise errors.InvalidRequest(
                f"Nodegroup '{name}' is sized by the autoscaler, between {minimum} and {maximum} "
                f"nodes, so it cannot be given {nodegroup.node_count}. Ask for a number between "
                "them, or change min_node_count and max_node_count of the nodegroup first."
            )
    elif nodegroup.role != MASTER:
        _refuse_beyond_bounds(nodegroup)


def _refuse_beyond_bounds(nodegroup: NodeGroup) -> None:
    """Refuse what Magnum's API refuses of a resize, and lets through in an update of the cluster
    (``magnum/api/controllers/v1/cluster_actions.py``).
    """
    minimum, maximum = nodegroup.min_node_count or 0, nodegroup.max_node_count
    if nodegroup.node_count < minimum or (maximum and nodegroup.node_count > maximum):
        bounds = f"{minimum} to {maximum}" if maximum else f"{minimum} or more"
        raise errors.InvalidRequest(
            f"Nodegroup '{nodegroup.name}' is to have {nodegroup.node_count} nodes, and its "
            f"min_node_count and max_node_count allow {bounds}. Ask for a number within them, or "
            "change them first."
        )
