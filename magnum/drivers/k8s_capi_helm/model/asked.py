# SPDX-License-Identifier: Apache-2.0
"""What was asked for: clusters and nodegroups as Magnum has them, and pending operations."""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
import datetime
import enum

from magnum.drivers.k8s_capi_helm import labels
from magnum.drivers.k8s_capi_helm.model.found import NOTHING, Resolved
from magnum.drivers.k8s_capi_helm.model.seen import Json


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
    :ivar is_young: the request for it may still be being checked.
    :ivar uuid: of its row. Another group may have had its name before.
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
    is_young: bool = dataclasses.field(default=False, compare=False)
    uuid: str = dataclasses.field(default="", compare=False)


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
        return frozenset(group.name for group in self.node_groups if group.image)


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """What an upgrade leads to.

    :ivar request: the cluster as it is to be: labels and image of the new template, and what cannot
        be changed in a running cluster as it was.
    :ivar texts: the cluster's labels as they are to be saved.
    """

    request: ClusterRequest
    texts: Mapping[str, str]


class Verb(enum.StrEnum):
    """What a person asked Magnum to do; each has its entitlement in change.py or upgrade.py."""

    CREATE = "create"
    RESIZE = "resize"
    UPGRADE = "upgrade"
    NODEGROUP_CREATE = "nodegroup-create"
    NODEGROUP_UPDATE = "nodegroup-update"
    NODEGROUP_DELETE = "nodegroup-delete"
    DELETE = "delete"


@dataclasses.dataclass(frozen=True, slots=True)
class Operation:
    """One thing that was asked for and is not through yet.

    :ivar groups: nodegroups that it is about, () for the cluster as a whole.
    :ivar started: when Magnum handed it over (aware, UTC).
    :ivar deadline: when it has to be through; None for no limit.
    :ivar template: of an upgrade, uuid of the cluster template that it leads to.
    :ivar batch: of an upgrade, how many machines of a nodegroup may be away at once.
    :ivar accepted: of an upgrade, whether Helm has taken it and Magnum's rows say so.
    :ivar count: machines that autoscaled ``groups`` are still to be given; None for a fixed
        size, whose row says it, and once the number has been handed over.
    :ivar fields: of a nodegroup's update, the fields of its row that it changes.
    :ivar bounds: of an update that changes them, the fewest and the most machines that its row
        said before; None where it does not.
    :ivar earlier: the same of requests before it that it stands for, the first first.
    :ivar row: of a nodegroup's creation or deletion, uuid of its row: a later group may have its
        name. "" where an older version has written it down.
    :ivar resolved: what its names stood for when it was asked for; nothing where the cloud could
        not be asked then, or an older version has written it down.
    """

    id: str
    verb: Verb
    started: datetime.datetime
    groups: tuple[str, ...] = ()
    deadline: datetime.datetime | None = None
    template: str = ""
    batch: int = 1
    accepted: bool = False
    count: int | None = None
    fields: tuple[str, ...] = ()
    bounds: tuple[int | None, int | None] | None = None
    row: str = ""
    earlier: tuple[tuple[int | None, int | None], ...] = ()
    resolved: Resolved = NOTHING


@dataclasses.dataclass(frozen=True, slots=True)
class Retired:
    """An application credential that another one has taken the place of.

    :ivar id: "" for new ones of which it is not known yet whether they are made, and saved.
    :ivar user: whose it is.
    :ivar since: when it was replaced (aware, UTC); what still uses it needs some time to notice.
    :ivar name: with which the names of new ones begin, "" for others.
    """

    id: str
    user: str
    since: datetime.datetime
    name: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Owed:
    """What an upgrade leads nodegroups to and has not given them yet, each an old and a new value.

    Both sides have only what differs, and are carried over into the live values.

    :ivar id: of the upgrade.
    :ivar defaults: of what nodegroups have in common.
    :ivar groups: of each nodegroup that has not taken it.
    :ivar shared: of top-level values that reach the machines of all nodegroups.
    """

    id: str
    defaults: tuple[Json, Json]
    groups: Mapping[str, tuple[Json, Json]]
    shared: tuple[Json, Json]


@dataclasses.dataclass(frozen=True, slots=True)
class Revisions:
    """What is known of the revisions that Helm has made of a release.

    :ivar newest: number of the newest one that was ever seen, 0 for none.
    :ivar applied: of the newest one that was applied as a whole, 0 for none.
    :ivar begun: of the one that an installation makes, while nobody has seen it; 0 for no such run.
        An installation of a release that was lost begins to count anew.
    """

    newest: int = 0
    applied: int = 0
    begun: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Record:
    """What the release's Lease holds and no Magnum row does.

    :ivar cluster_uuid: whose release this is; the proof that this is its management cluster.
    :ivar operations: pending ones, oldest first.
    :ivar chart_source: where the live chart came from, e.g. ``bundled`` or a directory.
    :ivar chart_digest: of the live chart, "" before the first apply.
    :ivar first_look: fingerprint of the look that found everything in place, "" for none.
    :ivar group_looks: the same for each nodegroup that was in place, by its name in the values.
    :ivar written: generations of objects, by uid, when Helm had written them last.
    :ivar tombstone: True once everything of the cluster is gone: until the pass that has seen to
        that, or the next one, has taken the Lease away.
    :ivar holder: who holds the lock now, "" for nobody.
    :ivar retired: credentials that are to be deleted.
    :ivar owed: what nodegroups still lack of upgrades, the oldest first.
    :ivar cleared: an operator has declared that nothing of the cluster is left in OpenStack.
    :ivar revisions: of the release; one that is older than these is not believed.
    """

    cluster_uuid: str
    project_id: str
    operations: tuple[Operation, ...] = ()
    chart_source: str = ""
    chart_digest: str = ""
    first_look: str = ""
    group_looks: Mapping[str, str] = dataclasses.field(default_factory=dict)
    written: Mapping[str, int] = dataclasses.field(default_factory=dict)
    tombstone: bool = False
    holder: str = ""
    retired: tuple[Retired, ...] = ()
    owed: tuple[Owed, ...] = ()
    cleared: bool = False
    revisions: Revisions = Revisions()
