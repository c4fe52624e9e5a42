# SPDX-License-Identifier: Apache-2.0
"""Encode and decode a Lease: record, operations, holder. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
import dataclasses
import datetime
import json
from typing import Any, TypedDict

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.lease import malformed, record_format, resolved_names
from magnum.drivers.k8s_capi_helm.model import (
    DeferredChange,
    Json,
    names,
    NOTHING,
    Operation,
    ReleaseRecord,
    RetiredCredential,
    Revisions,
    Verb,
)

PREFIX = "k8s-capi-helm.magnum.openstack.org"
OPERATIONS = f"{PREFIX}/operations"
CHART_SOURCE = f"{PREFIX}/chart-source"
CHART_DIGEST = f"{PREFIX}/chart-digest"
FIRST_LOOK = f"{PREFIX}/first-look"
GROUP_LOOKS = f"{PREFIX}/first-looks-of-groups"
WRITTEN = f"{PREFIX}/written"
TOMBSTONE = f"{PREFIX}/tombstone"
RETIRED = f"{PREFIX}/retired-credentials"
OWED = f"{PREFIX}/owed-to-nodegroups"
#: Set by an operator and by nobody else, see the page on deletions.
CLEARED = f"{PREFIX}/cloud-cleared"
#: An operator may take this one away: what Helm has is believed then, and noted anew.
REVISIONS = f"{PREFIX}/revisions"
#: The keys of :class:`Revisions`, in the order of its fields.
_REVISIONS = ("newest", "applied", "begun")
_VERBS = frozenset(Verb)
_BEING_APPLIED = "The change is being applied to the management cluster."
_SEVERAL_APPLIED = (
    "Another change of this cluster is being applied. This one is recorded and follows when it has "
    "finished."
)


def new(namespace: str, release: str, cluster_uuid: str, project_id: str) -> Json:
    """A Lease without holder and pending operations."""
    lease: Json = {
        "metadata": {
            "name": names.lease(release),
            "namespace": namespace,
            "labels": {
                names.LABEL_UUID: cluster_uuid,
                names.LABEL_PROJECT: project_id,
                names.LABEL_CLUSTER_NAME: release,
            },
        },
        "spec": {},
    }
    record_format.record_writer(lease)
    return lease


@malformed.refuse_malformed
def record(lease: Json) -> ReleaseRecord:
    """What a Lease says; operations of verbs that this version does not know are left out."""
    metadata = lease["metadata"]
    labels = metadata.get("labels") or {}
    notes = metadata.get("annotations") or {}
    return ReleaseRecord(
        cluster_uuid=labels.get(names.LABEL_UUID, ""),
        project_id=labels.get(names.LABEL_PROJECT, ""),
        operations=tuple(operation(item) for item in pending_entries(lease) if is_supported(item)),
        chart_source=notes.get(CHART_SOURCE, ""),
        chart_digest=notes.get(CHART_DIGEST, ""),
        ready_fingerprint=notes.get(FIRST_LOOK, ""),
        nodegroup_ready_fingerprints=json.loads(notes.get(GROUP_LOOKS) or "{}"),
        applied_generations=json.loads(notes.get(WRITTEN) or "{}"),
        tombstone=notes.get(TOMBSTONE) == "true",
        holder=holder(lease),
        retired_credentials=tuple(
            RetiredCredential(
                item["id"],
                item["user"],
                datetime.datetime.fromisoformat(item["since"]),
                item.get("name", ""),
            )
            for item in json.loads(notes.get(RETIRED) or "[]")
        ),
        deferred=tuple(_deferred(change) for change in json.loads(notes.get(OWED) or "[]")),
        is_cloud_cleared=notes.get(CLEARED) == "true",
        revisions=_revisions(json.loads(notes.get(REVISIONS) or "{}")),
        version=str(metadata.get("resourceVersion") or ""),
    )


@malformed.refuse_malformed
def pending_entries(lease: Json) -> list[dict[str, Any]]:
    """The entries of pending operations, also those that another version wrote; oldest first."""
    text = (lease["metadata"].get("annotations") or {}).get(OPERATIONS)
    entries = json.loads(text) if text else []
    if not all(isinstance(entry, dict) and isinstance(entry.get("verb"), str) for entry in entries):
        raise TypeError("operations")
    return list(entries)


def is_supported(entry: Mapping[str, Any]) -> bool:
    """Whether this version knows the verb of an entry."""
    return entry.get("verb") in _VERBS


def entry(operation: Operation) -> dict[str, Any]:
    """An operation as it stands in the Lease; what is not known of it is left out."""
    document: dict[str, Any] = {
        "id": operation.id,
        "verb": operation.verb.value,
        "groups": list(operation.groups),
        "started": operation.started_at.isoformat(),
        "deadline": operation.deadline.isoformat() if operation.deadline else None,
    }
    if operation.verb is Verb.UPGRADE:
        document["upgrade"] = {
            "template": operation.template,
            "batch": operation.max_batch_size,
            "accepted": operation.is_accepted,
        }
    if operation.target_node_count is not None:
        document["count"] = operation.target_node_count
    if operation.fields:
        document["fields"] = list(operation.fields)
    if operation.previous_bounds is not None:
        document["bounds"] = list(operation.previous_bounds)
    if operation.nodegroup_uuid:
        document["row"] = operation.nodegroup_uuid
    if operation.earlier:
        document["earlier"] = [list(bounds) for bounds in operation.earlier]
    if operation.resolved_names != NOTHING:
        document |= resolved_names.entry(operation.resolved_names)
    if operation.request_ids:
        document["requests"] = list(operation.request_ids)
    return document


def encode_mapping(values: Mapping[str, str] | Mapping[str, int]) -> str:
    """A mapping as it stands in the Lease, "" for an empty one."""
    return json.dumps(dict(values), sort_keys=True) if values else ""


def retired_credentials(credentials: Iterable[RetiredCredential]) -> str:
    """Retired credentials as they stand in the Lease."""
    items = [
        {**dataclasses.asdict(credential), "since": credential.since.isoformat()}
        for credential in credentials
    ]
    return json.dumps(items) if items else ""


def deferred_changes(upgrades: Iterable[DeferredChange]) -> str:
    """What upgrades owe, as it stands in the Lease."""
    items = [change.document for change in upgrades]
    return json.dumps(items) if items else ""


def revisions(recorded_revisions: Revisions) -> str:
    """What is known of revisions, as it stands in the Lease."""
    numbers = zip(_REVISIONS, dataclasses.astuple(recorded_revisions), strict=True)
    return encode_mapping({key: number for key, number in numbers if number})


def annotate(lease: Json, key: str, value: str) -> None:
    """Set an annotation, or take it away for ""."""
    notes = lease["metadata"].setdefault("annotations", {})
    if value:
        notes[key] = value
    else:
        notes.pop(key, None)


class RecordFields(TypedDict, total=False):
    """Fields of the record that are set together."""

    ready_fingerprint: str | None
    nodegroup_ready_fingerprints: Mapping[str, str] | None
    applied_generations: Mapping[str, int] | None
    chart_source: str | None
    chart_digest: str | None
    revisions: Revisions | None


def set_fields(lease: Json, fields: RecordFields) -> None:
    """Set fields of the record; None keeps a field, "" clears it."""
    for field, value in fields.items():
        key, text_of = _FIELDS[field]
        if value is not None:
            annotate(lease, key, text_of(value))


_FIELDS: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    "ready_fingerprint": (FIRST_LOOK, str),
    "nodegroup_ready_fingerprints": (GROUP_LOOKS, encode_mapping),
    "applied_generations": (WRITTEN, encode_mapping),
    "chart_source": (CHART_SOURCE, str),
    "chart_digest": (CHART_DIGEST, str),
    "revisions": (REVISIONS, revisions),
}


def holder(lease: Json) -> str:
    """The holder of the lock, "" if it is free."""
    return (lease.get("spec") or {}).get("holderIdentity") or ""


def take(lease: Json, identity: str, duration: int, now: datetime.datetime) -> None:
    """Make *identity* the holder for *duration* seconds.

    The times are for people who look at the Lease; nobody decides by them.
    """
    spec = lease.setdefault("spec", {})
    # The form of Kubernetes' MicroTime.
    written = now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if holder(lease) != identity:
        spec["leaseTransitions"] = (spec.get("leaseTransitions") or 0) + 1
        spec["acquireTime"] = written
    spec.update(holderIdentity=identity, leaseDurationSeconds=duration, renewTime=written)


def clear_holder(lease: Json) -> None:
    """Release the lock."""
    lease["spec"].pop("holderIdentity", None)


def renew(lease: Json) -> str:
    """What changes with each renewal, so that who has seen it twice knows that there was none."""
    spec = lease.get("spec") or {}
    return json.dumps([spec.get(key) for key in ("holderIdentity", "renewTime", "acquireTime")])


def lease_not_found(release: str) -> errors.Conflict:
    """The error for a release without a Lease."""
    return errors.Conflict(
        f"The record of operations of release '{release}' does not exist. The request will be "
        "retried; if this persists, ask the operator to check that this Magnum uses the right "
        "management cluster.",
        f"no Lease {names.lease(release)}",
    )


def too_large(release: str, attempts: int) -> errors.Conflict:
    """The error for a Lease that others were faster to change, as often as that."""
    return errors.Conflict(
        f"The record of operations of release '{release}' is changed by too many requests at "
        "once, or its namespace does not exist. The request will be retried.",
        f"{attempts} attempts to change the Lease",
    )


def lock_held(namespace: str, release: str, lease: Json) -> errors.LockHeld:
    """The error for a lock with another holder.

    With one pending operation the holder is at that very one: a tenant who has sent one request is
    not told of others.
    """
    is_several = len(pending_entries(lease)) > 1
    return errors.LockHeld(
        _SEVERAL_APPLIED if is_several else _BEING_APPLIED,
        f"Lease {namespace}/{names.lease(release)} is held by {holder(lease) or 'many'}",
    )


def not_alone(operation: Operation) -> errors.InvalidRequest:
    """The error for an operation of which there can be only one of its kind at a time."""
    return errors.InvalidRequest(
        f"Another {operation.verb} of this cluster is in progress. Try again when it has finished."
    )


def operation(entry: Mapping[str, Any]) -> Operation:
    """The operation of an entry that this version knows."""
    deadline, upgrade = entry.get("deadline"), entry.get("upgrade") or {}
    minimum, maximum = entry.get("bounds") or (None, None)
    return Operation(
        id=entry["id"],
        verb=Verb(entry["verb"]),
        started_at=datetime.datetime.fromisoformat(entry["started"]),
        groups=tuple(entry.get("groups") or ()),
        deadline=datetime.datetime.fromisoformat(deadline) if deadline else None,
        template=upgrade.get("template", ""),
        max_batch_size=upgrade.get("batch", 1),
        is_accepted=upgrade.get("accepted", False),
        target_node_count=entry.get("count"),
        fields=tuple(entry.get("fields") or ()),
        previous_bounds=(minimum, maximum) if entry.get("bounds") else None,
        nodegroup_uuid=entry.get("row") or "",
        earlier=tuple((low, high) for low, high in entry.get("earlier") or ()),
        resolved_names=resolved_names.lookup_of(entry),
        request_ids=tuple(entry.get("requests") or ()),
    )


def _revisions(entry: Mapping[str, int]) -> Revisions:
    return Revisions(*(entry.get(key, 0) for key in _REVISIONS))


def _deferred(entry: dict[str, Any]) -> DeferredChange:
    return DeferredChange(
        id=entry["id"],
        defaults=_old_and_new(entry["defaults"]),
        groups={name: _old_and_new(pair) for name, pair in entry["groups"].items()},
        shared_values=_old_and_new(entry["shared"]),
    )


def _old_and_new(items: list[Json]) -> tuple[Json, Json]:
    old, new = items
    return old, new
