# SPDX-License-Identifier: Apache-2.0
"""Read the request of a cluster from Magnum's objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
import dataclasses
from typing import TypedDict

from magnum.drivers.k8s_capi_helm import conf as conf_module
from magnum.drivers.k8s_capi_helm import errors, labels
from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import node_metadata
from magnum.drivers.k8s_capi_helm.magnum_objects.rows.template import (
    cni,
    start_timeout,
    upgrade_fields,
)
from magnum.drivers.k8s_capi_helm.magnum_objects.rows.types import (
    Cluster,
    ClusterTemplate,
    NodeGroup,
)
from magnum.drivers.k8s_capi_helm.model import (
    ClusterRequest,
    names,
    NodeGroupRequest,
    UpgradeTarget,
)
from magnum.drivers.k8s_capi_helm.model.management_cluster import release_of
from magnum.drivers.k8s_capi_helm.status.causes import reasons
from magnum.drivers.k8s_capi_helm.values.upgrade import upgrade

#: The role of the control plane's nodegroup.
MASTER = "master"
#: Rows in these states ask to be taken away.
_LEAVING = ("DELETE_IN_PROGRESS", "DELETE_COMPLETE", "DELETE_FAILED")
#: Rows in these states ask for nothing: the group failed to be made, or is on its way out.
_NOT_RENDERED = ("CREATE_FAILED", *_LEAVING)


def cluster_request(
    cluster: Cluster,
    nodegroups: Iterable[NodeGroup],
    conf: Settings,
    *,
    release: str | None = None,
    is_recent: Callable[[NodeGroup], bool] = lambda nodegroup: False,
    include_deleted: bool = False,
) -> ClusterRequest:
    """What Magnum's rows ask for.

    Fields that only matter when a cluster or group is made are refused by ``..validation``, so that
    a cluster that runs can always be resized and deleted.

    :param cluster: ``magnum.objects.Cluster``; its template is read through it.
    :param nodegroups: the cluster's ``magnum.objects.NodeGroup`` rows, fresh from the database.
    :param conf: oslo.config with the driver's options registered.
    :param release: of a cluster whose row has none yet.
    :param is_recent: whether a nodegroup's row has been there for no longer than its request takes
        to be checked.
    :param include_deleted: with the nodegroups that are to go, as if they stayed.
    """
    template, all_nodegroups = cluster.cluster_template, list(nodegroups)
    texts = labels.with_template_only(cluster.labels or {}, template.labels or {})
    typed = labels.parse(texts, conf_module.label_defaults(conf), running_labels=texts)
    return ClusterRequest(
        release=release or release_of(cluster.stack_id),
        labels=typed,
        image=template.image_id,
        floating_ip=_floating_ip(cluster, texts, typed),
        separate_addon_credential=conf.capi_helm.separate_addon_credential,
        given_labels=labels.given_names(labels.readable_labels(texts)),
        **_nodegroup_fields(
            all_nodegroups, cluster, conf, is_recent, include_deleted=include_deleted
        ),
        **_cluster_fields(cluster, conf),
        **upgrade_fields(template),
    )


class _ClusterFields(TypedDict):
    """Fields of a ClusterRequest, so that their types are checked where it is built."""

    uuid: str
    name: str
    namespace: str
    project_id: str
    user_id: str
    external_network: str
    cni: str
    keypair: str | None
    fixed_network: str | None
    fixed_subnet: str | None
    apiserver_port: int | None
    server_start_timeout: int


class _NodegroupFields(TypedDict):
    """The fields of a ClusterRequest that depend on nodegroups."""

    control_plane: NodeGroupRequest
    node_groups: tuple[NodeGroupRequest, ...]
    deleted_groups: tuple[str, ...]
    load_balancer: bool


def _cluster_fields(cluster: Cluster, conf: Settings) -> _ClusterFields:
    """What a cluster has of its row and its template for as long as it exists."""
    template = cluster.cluster_template
    return {
        "uuid": cluster.uuid,
        "name": cluster.name,
        "namespace": cluster_namespace(cluster, conf),
        "project_id": cluster.project_id,
        "user_id": cluster.user_id,
        "external_network": template.external_network_id or "",
        "cni": cni(template.network_driver),
        "keypair": None if conf.capi_helm.ignore_keypairs else cluster.keypair or None,
        "fixed_network": cluster.fixed_network or None,
        "fixed_subnet": cluster.fixed_subnet or None,
        "apiserver_port": template.apiserver_port or None,
        "server_start_timeout": start_timeout(template, conf),
    }


def _nodegroup_fields(
    nodegroups: Sequence[NodeGroup],
    cluster: Cluster,
    conf: Settings,
    is_recent: Callable[[NodeGroup], bool],
    *,
    include_deleted: bool,
) -> _NodegroupFields:
    """What the rows of a cluster's nodegroups ask for; parameters as for :func:`cluster_request`.

    :param nodegroups: all of the cluster.
    """
    master, entry_names = _master(nodegroups), entry_names_of(nodegroups)
    shown = worker_nodegroups(nodegroups, include_deleted=include_deleted)
    deleted = [nodegroup for nodegroup in nodegroups if nodegroup.status in _LEAVING]
    return {
        "control_plane": _nodegroup_request(master, cluster, conf, entry_names),
        "node_groups": tuple(
            _nodegroup_request(nodegroup, cluster, conf, entry_names, is_recent)
            for nodegroup in shown
        ),
        "deleted_groups": tuple(entry_names[nodegroup.name] for nodegroup in deleted),
        "load_balancer": bool(cluster.master_lb_enabled) or master.node_count > 1,
    }


def _master(nodegroups: Iterable[NodeGroup]) -> NodeGroup:
    """The nodegroup of the control plane."""
    masters = [nodegroup for nodegroup in nodegroups if nodegroup.role == MASTER]
    if len(masters) != 1:
        raise errors.InvalidRequest(
            f"The cluster has {len(masters)} nodegroups of role '{MASTER}'; exactly one is "
            "supported."
        )
    return masters[0]


def upgrade_target(
    cluster: Cluster, nodegroups: Iterable[NodeGroup], conf: Settings, template: ClusterTemplate
) -> UpgradeTarget:
    """What an upgrade of a cluster to *template* leads to.

    :param template: ``magnum.objects.ClusterTemplate``, which may be the cluster's own.
    :raises errors.InvalidLabel: a label of it does not have the label's form.
    :raises errors.InvalidRequest: a label of it asks for what this version cannot do, or there are
        too many.
    """
    old, new = cluster.cluster_template.labels or {}, template.labels or {}
    cluster_labels = upgrade.merged_labels(old, new, cluster.labels or {})
    texts = labels.with_template_only(cluster_labels, new)
    labels.check_merged(texts, cluster.labels or {}, "the cluster")
    defaults = conf_module.label_defaults(conf)
    typed = labels.parse(texts, defaults, new, running_labels=cluster.labels or {})
    # What a cluster has from before and nobody can read was never in force; it stops no upgrade.
    readable = labels.readable_labels(texts)
    all_nodegroups = list(nodegroups)
    labels_by_name = _labels_by_name(all_nodegroups)
    request = cluster_request(cluster, all_nodegroups, conf)
    node_groups = []
    for node_group in request.node_groups:
        own = labels_by_name[node_group.name]
        merged_labels = upgrade.merged_labels(cluster.labels or {}, texts, own)
        labels.check_merged(merged_labels, own, f"nodegroup '{node_group.name}'")
        node_groups.append(
            dataclasses.replace(node_group, labels=_nodegroup_labels(merged_labels, readable, conf))
        )
    request = dataclasses.replace(
        request,
        labels=typed,
        given_labels=labels.given_names(readable),
        image=template.image_id,
        node_groups=tuple(node_groups),
        **upgrade_fields(template),
    )
    return UpgradeTarget(request, texts)


def entry_names_of(nodegroups: Iterable[NodeGroup]) -> dict[str, str]:
    """Under which name each nodegroup stands in the chart's values, by its name in Magnum.

    :param nodegroups: all of a cluster, oldest first, as Magnum lists them.
    """
    return names.entries(nodegroup.name for nodegroup in nodegroups)


def _labels_by_name(nodegroups: Sequence[NodeGroup]) -> dict[str, Mapping[str, str]]:
    """Labels of each nodegroup's row, by its name in the values.

    :param nodegroups: all of the cluster, as for :func:`entry_names_of`.
    """
    entry_names = entry_names_of(nodegroups)
    return {entry_names[nodegroup.name]: nodegroup.labels or {} for nodegroup in nodegroups}


def worker_nodegroups(
    nodegroups: Iterable[NodeGroup], *, include_deleted: bool = False
) -> list[NodeGroup]:
    """The nodegroups of workers that are requested.

    :param include_deleted: with those that are being deleted or could not be created.
    """
    return [
        nodegroup
        for nodegroup in nodegroups
        if nodegroup.role != MASTER and (include_deleted or nodegroup.status not in _NOT_RENDERED)
    ]


def cluster_namespace(cluster: Cluster, conf: Settings) -> str:
    """The namespace in which everything of a cluster lives."""
    return names.namespace(conf.capi_helm.namespace_prefix, cluster.project_id)


def own_images(cluster: Cluster, nodegroups: Iterable[NodeGroup]) -> frozenset[str]:
    """Nodegroups whose rows name another image than the cluster's template, by name in the values.

    :param nodegroups: all of the cluster, as for :func:`entry_names_of`.
    """
    all_nodegroups = list(nodegroups)
    entry_names = entry_names_of(all_nodegroups)
    return frozenset(
        entry_names[nodegroup.name] for nodegroup in all_nodegroups if own_image(nodegroup, cluster)
    )


def own_image(nodegroup: NodeGroup, cluster: Cluster) -> str | None:
    """The image of a nodegroup that does not follow its cluster's, None for one that does."""
    if nodegroup.role == MASTER or nodegroup.image_id == cluster.cluster_template.image_id:
        return None
    return nodegroup.image_id or None


def docker_volume_size(nodegroup: NodeGroup, cluster: Cluster) -> int:
    """GiB for images and containers: the nodegroup's own, else the cluster's; 0 for none."""
    return nodegroup.docker_volume_size or cluster.docker_volume_size or 0


def _nodegroup_labels(
    own: Mapping[str, str], texts: Mapping[str, str], conf: Settings
) -> labels.Labels:
    """The typed labels that hold for a nodegroup of a cluster with the labels *texts*."""
    defaults = conf_module.label_defaults(conf)
    return labels.parse_nodegroup(own, texts, defaults, is_running=True)


def _nodegroup_request(
    nodegroup: NodeGroup,
    cluster: Cluster,
    conf: Settings,
    entry_names: Mapping[str, str],
    is_recent: Callable[[NodeGroup], bool] = lambda nodegroup: False,
) -> NodeGroupRequest:
    is_new = nodegroup.status == "CREATE_IN_PROGRESS"
    own = _nodegroup_labels(nodegroup.labels or {}, cluster.labels or {}, conf)
    return NodeGroupRequest(
        name=entry_names[nodegroup.name],
        flavor=nodegroup.flavor_id or "",
        count=nodegroup.node_count,
        minimum=nodegroup.min_node_count or 0,
        maximum=nodegroup.max_node_count,
        is_default=bool(nodegroup.is_default),
        node_labels=node_metadata.node_labels(nodegroup),
        node_taints=_taints(node_metadata.node_taints(nodegroup)),
        image=own_image(nodegroup, cluster),
        labels=None if nodegroup.role == MASTER else own,
        role=nodegroup.role,
        docker_volume=docker_volume_size(nodegroup, cluster),
        is_new=is_new,
        may_be_unvalidated=may_be_unchecked(nodegroup) and is_recent(nodegroup),
        uuid=nodegroup.uuid,
        changed_at=nodegroup.updated_at or nodegroup.created_at,
    )


def may_be_unchecked(nodegroup: NodeGroup) -> bool:
    """Whether the request for a nodegroup may still be being checked, as far as its row tells.

    A resize that comes meanwhile makes its status another one. A row whose reason says more than
    that the request is starting was checked: why the nodegroup is refused, or what it waits for.
    """
    in_progress = nodegroup.status in ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS")
    return in_progress and reasons.is_starting(nodegroup.status_reason)


def _taints(taints: Iterable[Mapping[str, str]]) -> tuple[dict[str, str], ...]:
    """Taints without empty values, which are no values."""
    return tuple({key: text for key, text in taint.items() if text} for taint in taints)


def _floating_ip(cluster: Cluster, texts: Mapping[str, str], typed: labels.Labels) -> bool:
    """Whether the API gets a floating IP: the label's word, if given, else Magnum's own field."""
    if texts.get("master_lb_floating_ip_enabled", "").strip():
        return typed.master_lb_floating_ip_enabled
    return bool(cluster.floating_ip_enabled) and typed.master_lb_floating_ip_enabled
