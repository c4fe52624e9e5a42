# SPDX-License-Identifier: Apache-2.0
"""Pending operations and the record of a release, as its Lease has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import dataclasses
import datetime
import enum
from typing import Any

from magnum.drivers.k8s_capi_helm.model.cloud import NOTHING, ResolvedNames
from magnum.drivers.k8s_capi_helm.model.observed import Json
from magnum.drivers.k8s_capi_helm.model.request import ClusterRequest, NodeGroupRequest

#: Id of an update of which no more is recorded than its deadline.
UPDATE = "update"


class Verb(str, enum.Enum):
    """What a person asked Magnum to do; each has its entitlement in change.py or upgrade.py."""

    __str__ = str.__str__

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
    :ivar started_at: when Magnum handed it over (aware, UTC).
    :ivar deadline: when it has to be through; None for no limit.
    :ivar template: of an upgrade, uuid of the cluster template that it leads to.
    :ivar max_batch_size: of an upgrade, how many machines of a nodegroup may be away at once.
    :ivar is_accepted: of an upgrade, whether Helm has taken it and Magnum's rows say so.
    :ivar target_node_count: machines that autoscaled ``groups`` are still to be given; None for a
        fixed size, whose row says it, and once the number has been handed over.
    :ivar fields: of a nodegroup's update, the fields of its row that it changes.
    :ivar previous_bounds: of an update that changes them, the fewest and the most machines that its
        row said before; None where it does not.
    :ivar earlier: the same of requests before it that it stands for, the first first.
    :ivar nodegroup_uuid: of a nodegroup's creation or deletion, uuid of its row: a later group may
        have its name. "" where an older version has written it down.
    :ivar resolved_names: what its names stood for when it was asked for; nothing where the cloud
        could not be asked then, or an older version has written it down.
    :ivar request_ids: of Magnum's requests that have asked for it, for log lines; the first first.
    """

    id: str
    verb: Verb
    started_at: datetime.datetime
    groups: tuple[str, ...] = ()
    deadline: datetime.datetime | None = None
    template: str = ""
    max_batch_size: int = 1
    is_accepted: bool = False
    target_node_count: int | None = None
    fields: tuple[str, ...] = ()
    previous_bounds: tuple[int | None, int | None] | None = None
    nodegroup_uuid: str = ""
    earlier: tuple[tuple[int | None, int | None], ...] = ()
    resolved_names: ResolvedNames = NOTHING
    request_ids: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What was asked for, in one word."""
        return UPDATE if self.id == UPDATE else str(self.verb)


@dataclasses.dataclass(frozen=True, slots=True)
class RetiredCredential:
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
class DeferredChange:
    """What an upgrade leads nodegroups to and has not given them yet, each an old and a new value.

    Both sides have only what differs, and are carried over into the live values.

    :ivar id: of the upgrade.
    :ivar defaults: of what nodegroups have in common.
    :ivar groups: of each nodegroup that has not taken it.
    :ivar shared_values: of top-level values that reach the machines of all nodegroups.
    """

    id: str
    defaults: tuple[Json, Json]
    groups: Mapping[str, tuple[Json, Json]]
    shared_values: tuple[Json, Json]

    @property
    def document(self) -> Json:
        """What the Lease stores of it."""
        return {
            "id": self.id,
            "defaults": self.defaults,
            "groups": self.groups,
            "shared": self.shared_values,
        }


@dataclasses.dataclass(frozen=True, slots=True)
class Revisions:
    """What is known of the revisions that Helm has made of a release.

    :ivar newest: number of the newest one that was ever seen, 0 for none.
    :ivar last_applied: of the newest one that was applied as a whole, 0 for none.
    :ivar pending_install: of the one that an installation makes, until it has been read; 0 for no
        such run. An installation of a release that was lost counts from the beginning.
    """

    newest: int = 0
    last_applied: int = 0
    pending_install: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class ReleaseRecord:
    """What the release's Lease holds and no Magnum row does.

    :ivar cluster_uuid: whose release this is; the proof that this is its management cluster.
    :ivar operations: pending ones, oldest first.
    :ivar chart_source: where the live chart came from, e.g. ``bundled`` or a directory.
    :ivar chart_digest: of the live chart, "" before the first apply.
    :ivar ready_fingerprint: fingerprint of the look that found everything in place, "" for none.
    :ivar nodegroup_ready_fingerprints: the same for each nodegroup that was in place, by its name
        in the values.
    :ivar applied_generations: generations of objects, by uid, when Helm had written them last.
    :ivar tombstone: True once everything of the cluster is gone: until the pass that has seen to
        that, or the next one, has taken the Lease away.
    :ivar holder: who holds the lock now, "" for nobody.
    :ivar retired_credentials: credentials that are to be deleted.
    :ivar deferred: what nodegroups still lack of upgrades, the oldest first.
    :ivar is_cloud_cleared: an operator has declared that nothing of the cluster is left in
        OpenStack.
    :ivar revisions: of the release; one that is older than these is not believed.
    :ivar version: resourceVersion of the Lease; records that say the same are equal.
    :ivar previous_version: that of the Lease which this one has replaced, "" if it was read.
    """

    cluster_uuid: str
    project_id: str
    operations: tuple[Operation, ...] = ()
    chart_source: str = ""
    chart_digest: str = ""
    ready_fingerprint: str = ""
    nodegroup_ready_fingerprints: Mapping[str, str] = dataclasses.field(default_factory=dict)
    applied_generations: Mapping[str, int] = dataclasses.field(default_factory=dict)
    tombstone: bool = False
    holder: str = ""
    retired_credentials: tuple[RetiredCredential, ...] = ()
    deferred: tuple[DeferredChange, ...] = ()
    is_cloud_cleared: bool = False
    revisions: Revisions = Revisions()
    version: str = dataclasses.field(default="", compare=False)
    previous_version: str = dataclasses.field(default="", compare=False)


def resolved_names(operations: Iterable[Operation], nodegroup: NodeGroupRequest) -> ResolvedNames:
    """The resolved names of a nodegroup in the last request that set them."""
    verbs = (Verb.NODEGROUP_CREATE, Verb.NODEGROUP_UPDATE)
    resolved = NOTHING
    for operation in operations:
        if (
            operation.verb in verbs
            and nodegroup.name in operation.groups
            and operation.nodegroup_uuid in ("", nodegroup.uuid)
        ):
            later = operation.resolved_names
            resolved = ResolvedNames(
                images={**resolved.images, **later.images},
                flavors={**resolved.flavors, **later.flavors},
                extra_networks={**resolved.extra_networks, **later.extra_networks},
            )
    return resolved


def is_creation_recorded(operations: Iterable[Operation], name: str, uuid: str) -> bool:
    """Whether the creation of a nodegroup is among the operations on record.

    :param name: what the values call it.
    :param uuid: of its row; one of its name may have been created and deleted before.
    """
    creations = (
        operation
        for operation in operations
        if operation.verb is Verb.NODEGROUP_CREATE and name in operation.groups
    )
    return any(operation.nodegroup_uuid in ("", uuid) for operation in creations)


def is_being_deleted(record: ReleaseRecord | None) -> bool:
    """Whether a deletion is pending or through: nodegroup verbs overwrite the row's status."""
    if record is None:
        return False
    return record.tombstone or any(operation.verb is Verb.DELETE for operation in record.operations)


def deleted_nodegroups(record: ReleaseRecord | None) -> frozenset[str]:
    """Uuids of the rows of nodegroups whose deletion is on record: nothing takes that back.

    It does not matter what else is on record of them, and in which order it came there.
    """
    operations = record.operations if record else ()
    return frozenset(
        operation.nodegroup_uuid
        for operation in operations
        if operation.verb is Verb.NODEGROUP_DELETE
    ) - {""}


def is_nodegroup_deleted(record: ReleaseRecord | None, nodegroup: Any, name: str) -> bool:
    """Whether a nodegroup was asked to go; Magnum overwrites its row's status with other verbs.

    Where an older version wrote the deletion down it says only the name, which a new group may
    have by now; then the last request counts.

    :param nodegroup: the nodegroup.
    :param name: what the values call it.
    """
    if nodegroup.uuid in deleted_nodegroups(record):
        return True
    relevant = (Verb.NODEGROUP_CREATE, Verb.NODEGROUP_DELETE)
    verbs = [
        operation.verb
        for operation in (record.operations if record else ())
        if operation.verb in relevant
        and name in operation.groups
        and operation.nodegroup_uuid in ("", nodegroup.uuid)
    ]
    return verbs[-1:] == [Verb.NODEGROUP_DELETE]


def without_deleted(request: ClusterRequest, record: ReleaseRecord | None) -> ClusterRequest:
    """The request, in which nodegroups go whose deletion is on record, whatever their rows say."""
    uuids = deleted_nodegroups(record)
    deleted = [nodegroup.name for nodegroup in request.node_groups if nodegroup.uuid in uuids]
    if not deleted:
        return request
    return dataclasses.replace(
        request,
        node_groups=tuple(
            nodegroup for nodegroup in request.node_groups if nodegroup.uuid not in uuids
        ),
        deleted_groups=(*request.deleted_groups, *deleted),
    )
