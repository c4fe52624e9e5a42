# SPDX-License-Identifier: Apache-2.0
"""Requested clusters, nodegroups and upgrade targets, as Magnum's objects have them."""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
import datetime

from magnum.drivers.k8s_capi_helm import labels


@dataclasses.dataclass(frozen=True, slots=True)
class NodeGroupRequest:
    """A nodegroup as Magnum's database has it.

    :ivar flavor: id or name of the Nova flavor.
    :ivar count: wanted machines; where the autoscaler sizes the group, with how many it begins, and
        what it has later.
    :ivar minimum: lower bound of the autoscaler, ``maximum`` the upper one or None without.
    :ivar node_labels: labels of its Nodes.
    :ivar node_taints: taints of its Nodes, each a key, an effect and perhaps a value.
    :ivar image: id or name of an image of its own; None where it follows the cluster.
    :ivar labels: typed labels that hold for it, its own laid over the cluster's; None where it has
        none of its own.
    :ivar role: what its Nodes are called besides, as ``node-role.kubernetes.io/ROLE``.
    :ivar docker_volume: GiB of the volume for images and containers, 0 for none.
    :ivar is_new: its row says that it is being made.
    :ivar may_be_unvalidated: the request for it may still be being checked.
    :ivar uuid: of its row. Another group may have had its name before.
    :ivar changed_at: when its row was written last (aware, UTC), None if it is not known.
    """

    name: str
    flavor: str
    count: int
    minimum: int = 0
    maximum: int | None = None
    is_default: bool = False
    node_labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    node_taints: tuple[Mapping[str, str], ...] = ()
    image: str | None = None
    labels: labels.Labels | None = None
    role: str = "worker"
    docker_volume: int = 0
    is_new: bool = dataclasses.field(default=False, compare=False)
    may_be_unvalidated: bool = dataclasses.field(default=False, compare=False)
    uuid: str = dataclasses.field(default="", compare=False)
    changed_at: datetime.datetime | None = dataclasses.field(default=None, compare=False)


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterRequest:
    """A cluster as Magnum's database and configuration have it; every field is validated.

    :ivar release: Helm release and Cluster API name (Magnum's ``stack_id``).
    :ivar image: id or name of the Glance image.
    :ivar labels: typed cluster labels, site defaults applied.
    :ivar cni: ``calico`` or ``cilium``.
    :ivar node_groups: workers that are to exist: groups being deleted or that failed to be created
        are not in here.
    :ivar template: name of the cluster template.
    :ivar given_labels: names of the labels that the cluster or its template gives.
    :ivar distro: distribution that the template was made for, "" where it does not say.
    :ivar http_proxy: URL of the machines' proxy for http, "" without; ``https_proxy`` for https.
    :ivar no_proxy: what is reached without it.
    :ivar insecure_registry: host of a registry, perhaps with a scheme, whose certificate is not
        checked; "" without one.
    :ivar apiserver_port: of the Kubernetes API; None for the chart's own.
    :ivar server_start_timeout: seconds after which a server that never came up is replaced; 0 for
        the chart's own.
    :ivar separate_addon_credential: whether what runs inside the cluster logs in to OpenStack with
        a credential of its own.
    :ivar deleted_groups: names of nodegroups that are being deleted: only these may be taken out of
        the release, a group that merely failed stays in it.
    """

    uuid: str
    name: str
    release: str
    namespace: str
    project_id: str
    user_id: str
    labels: labels.Labels
    control_plane: NodeGroupRequest
    node_groups: tuple[NodeGroupRequest, ...]
    image: str
    external_network: str
    cni: str = "calico"
    keypair: str | None = None
    fixed_network: str | None = None
    fixed_subnet: str | None = None
    dns_nameservers: tuple[str, ...] = ()
    load_balancer: bool = True
    floating_ip: bool = True
    deleted_groups: tuple[str, ...] = ()
    server_start_timeout: int = 0
    separate_addon_credential: bool = False
    template: str = ""
    given_labels: frozenset[str] = frozenset()
    distro: str = ""
    http_proxy: str = ""
    https_proxy: str = ""
    no_proxy: tuple[str, ...] = ()
    insecure_registry: str = ""
    apiserver_port: int | None = None

    @property
    def own_images(self) -> frozenset[str]:
        """Names of the nodegroups with an image of their own."""
        return frozenset(nodegroup.name for nodegroup in self.node_groups if nodegroup.image)


@dataclasses.dataclass(frozen=True, slots=True)
class UpgradeTarget:
    """What an upgrade leads to.

    :ivar request: the cluster as it is to be: labels and image of the new template, and what cannot
        be changed in a running cluster as it was.
    :ivar labels: the cluster's labels as they are to be saved.
    """

    request: ClusterRequest
    labels: Mapping[str, str]


def initial_nodegroups(request: ClusterRequest) -> ClusterRequest:
    """The request without nodegroups that were asked for while the cluster is being made.

    What the cloud has for them was not asked for with the cluster; they join it once it is there.
    """
    nodegroups = (
        nodegroup
        for nodegroup in request.node_groups
        if nodegroup.is_default or not nodegroup.is_new
    )
    return dataclasses.replace(request, node_groups=tuple(nodegroups))


def node_annotations(nodegroup: NodeGroupRequest) -> tuple[tuple[str, str], ...]:
    """Annotations of a nodegroup's Nodes, each a key and a value."""
    return nodegroup.labels.node_annotations if nodegroup.labels else ()
