# SPDX-License-Identifier: Apache-2.0
"""Frozen dataclasses that travel: what was asked for, what is so, what runs, what was judged.

They hold plain values only; nothing here does I/O or knows Magnum's objects. Kubernetes objects
travel as the JSON the API server sent (:data:`Json`).
"""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
import datetime
import enum
from typing import Any

from magnum.drivers.k8s_capi_helm import labels
from magnum.drivers.k8s_capi_helm.errors import Cause

Json = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class NodeGroupRequest:
    """A nodegroup as Magnum's database has it.

    :ivar flavor: id or name of the Nova flavor.
    :ivar count: wanted machines; where autoscaling is on, where the group starts.
    :ivar minimum: lower bound of the autoscaler, ``maximum`` the upper one or None without.
    """

    name: str
    flavor: str
    count: int
    minimum: int = 0
    maximum: int | None = None
    is_default: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterRequest:
    """A cluster as Magnum's database and configuration have it; every field is validated.

    :ivar release: Helm release and Cluster API name (Magnum's ``stack_id``).
    :ivar image: id or name of the Glance image.
    :ivar labels: typed cluster labels, site defaults applied.
    :ivar cni: ``calico`` or ``cilium``.
    :ivar node_groups: workers that are to exist: groups being deleted or that failed to be created
        are not in here.
    :ivar server_start_timeout: seconds after which a server that never came up is replaced; 0 for
        the chart's own.
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


@dataclasses.dataclass(frozen=True, slots=True)
class Flavor:
    """A Nova flavor: RAM in MiB, disk in GiB."""

    id: str
    name: str
    vcpus: int
    ram: int
    disk: int


@dataclasses.dataclass(frozen=True, slots=True)
class CloudFacts:
    """What OpenStack said when it was asked, for one render.

    :ivar kubernetes_version: without a leading ``v``, e.g. ``1.34.4``.
    :ivar flavors: by the text the request used.
    :ivar volume_types: names of Cinder's types, in Cinder's order; the first is the default one.
    """

    image_id: str
    kubernetes_version: str
    os_distro: str
    flavors: Mapping[str, Flavor]
    auth_url: str
    external_network_id: str | None = None
    fixed_network_id: str | None = None
    fixed_subnet_id: str | None = None
    volume_types: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class ApplicationCredential:
    """A Keystone application credential; ``secret`` never leaves the credential Secret."""

    id: str
    secret: str = dataclasses.field(repr=False)
    name: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Chart:
    """A chart at hand: what helm is given, and who it is.

    :ivar path: directory or .tgz on this host.
    :ivar family: the family annotation of Chart.yaml, "" for a foreign chart.
    :ivar digest: sha256 over the chart's files.
    """

    name: str
    version: str
    path: str
    family: str = ""
    digest: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class LiveRelease:
    """What Helm has as the newest revision of a release, read from its Secret.

    :ivar status: Helm's word: deployed, failed, pending-install, pending-upgrade, uninstalling ...
    :ivar values: the values that were given (not the chart's defaults).
    """

    name: str
    namespace: str
    revision: int
    status: str
    chart_name: str
    chart_version: str
    chart_family: str
    values: Json


class Verb(enum.StrEnum):
    """What a person asked Magnum to do; each has its entitlement in change.py."""

    CREATE = "create"
    RESIZE = "resize"
    NODEGROUP_CREATE = "nodegroup-create"
    NODEGROUP_DELETE = "nodegroup-delete"
    DELETE = "delete"


@dataclasses.dataclass(frozen=True, slots=True)
class Operation:
    """One thing that was asked for and is not through yet.

    :ivar groups: nodegroups that it is about, () for the cluster as a whole.
    :ivar started: when Magnum handed it over (aware, UTC).
    :ivar deadline: when it has to be through; None for no limit.
    """

    id: str
    verb: Verb
    started: datetime.datetime
    groups: tuple[str, ...] = ()
    deadline: datetime.datetime | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Record:
    """What the release's Lease holds and no Magnum row does.

    :ivar cluster_uuid: whose release this is; the proof that this is its management cluster.
    :ivar operations: pending ones, oldest first.
    :ivar chart_source: where the live chart came from, e.g. ``bundled`` or a directory.
    :ivar chart_digest: of the live chart, "" before the first apply.
    :ivar first_look: fingerprint of the look that found everything in place, "" for none.
    :ivar tombstone: True once everything of the cluster is gone.
    :ivar holder: who holds the lock now, "" for nobody.
    """

    cluster_uuid: str
    project_id: str
    operations: tuple[Operation, ...] = ()
    chart_source: str = ""
    chart_digest: str = ""
    first_look: str = ""
    tombstone: bool = False
    holder: str = ""


class Missing(enum.Enum):
    """Why there is no object: three different things are never one."""

    NOT_FOUND = "not found"
    UNREADABLE = "could not be read"


@dataclasses.dataclass(frozen=True, slots=True)
class Observed:
    """One look at everything of one release on the management cluster.

    A single object is its JSON, ``Missing.NOT_FOUND`` or ``Missing.UNREADABLE``; a list is a tuple
    of JSON or ``Missing.UNREADABLE``.

    :ivar at: when the look began (aware, UTC).
    :ivar addons: HelmRelease and Manifests of the cluster.
    :ivar server_faults: Nova's fault text by server id, for servers that are in ERROR.
    :ivar unreachable: the operator's detail when the management cluster could not be read, else "".
    """

    at: datetime.datetime
    cluster: Json | Missing
    infrastructure: Json | Missing
    control_plane: Json | Missing
    machine_deployments: tuple[Json, ...] | Missing
    machine_sets: tuple[Json, ...] | Missing
    machines: tuple[Json, ...] | Missing
    servers: tuple[Json, ...] | Missing
    addons: tuple[Json, ...] | Missing
    events: tuple[Json, ...] | Missing = ()
    server_faults: Mapping[str, str] = dataclasses.field(default_factory=dict)
    unreachable: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class GroupState:
    """A nodegroup's row: what it wants and what Magnum shows of it.

    :ivar status: Magnum's word, e.g. ``UPDATE_IN_PROGRESS``.
    :ivar reason: the row's ``status_reason`` now.
    """

    name: str
    status: str
    count: int
    is_control_plane: bool = False
    autoscaled: bool = False
    minimum: int = 0
    maximum: int | None = None
    reason: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class MagnumState:
    """What Magnum has in its database for one cluster, and what the driver has promised.

    :ivar release: the release's name, "" before it has one.
    :ivar applied: the live release carries everything that the rows ask for, so what is seen can be
        compared with what is wanted. While False nothing is ever COMPLETE.
    :ivar kubernetes_version: wanted, without ``v``, from the live release; "" if unknown.
    :ivar started: when the running operation began; None when nobody knows.
    :ivar deadline: when the running operation has to be through; None for no limit.
    :ivar first_look: fingerprint of the earlier look that found everything in place, "" for none.
    :ivar refusal: user sentence of what stopped the running operation for good, "" for none.
    :ivar health_reason: what the row's ``health_status_reason`` says now, so that the time since
        when something is wrong can be kept.
    :ivar waiting: why the live release is not what the rows ask for yet, "" if nobody knows;
        ``waiting_cause`` is who has to move, None when it is only a matter of time.
    :ivar without_addons: core addons that the live release switches off, e.g. ``csi-cinder``.
    """

    release: str
    status: str
    status_reason: str | None
    groups: tuple[GroupState, ...]
    applied: bool
    kubernetes_version: str = ""
    started: datetime.datetime | None = None
    deadline: datetime.datetime | None = None
    first_look: str = ""
    refusal: str = ""
    health_reason: Mapping[str, str] = dataclasses.field(default_factory=dict)
    waiting: str = ""
    waiting_cause: Cause | None = None
    without_addons: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True)
class GroupVerdict:
    """What a nodegroup's row should say; ``gone`` means that its row can be destroyed.

    :ivar node_count: None where the row's own count holds.
    :ivar addresses: None when nobody could read them.
    """

    name: str
    status: str
    reason: str | None
    node_count: int | None = None
    addresses: tuple[str, ...] | None = None
    gone: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """What Magnum should say about a cluster after one look.

    :ivar status: Magnum's status word; equal to the state's when nothing changes.
    :ivar fingerprint: of a look that found everything in place, to be kept as the next look's
        ``first_look``; "" when not everything is in place.
    :ivar health_reason: texts only, keys as magnum-capi-helm has them.
    """

    status: str
    reason: str | None
    groups: tuple[GroupVerdict, ...]
    health: str
    health_reason: Mapping[str, str]
    fingerprint: str = ""
    api_address: str | None = None
    coe_version: str | None = None
