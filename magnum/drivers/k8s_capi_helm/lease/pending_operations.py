# SPDX-License-Identifier: Apache-2.0
"""Pending operations: one entry for each verb and nodegroup. No I/O.

The rows say what is wanted, so of several requests for the same nodegroup the newest says it all.
What it takes over from those before it is the time: a series of requests counts as one that began
with the first of them. Each has its full time, but all of them together at most twice the time of
one, counted from the first: so nobody moves a deadline for ever, and a request that comes late in
the series is not failed by the first one's. A series that missed its deadline is over; what is
asked for then begins anew.
"""

from __future__ import annotations

from collections.abc import Iterable
import copy
import dataclasses
import datetime
import json
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.lease import codec, unknown_keys
from magnum.drivers.k8s_capi_helm.model import (
    conditions,
    Json,
    NOTHING,
    Operation,
    ReleaseRecord,
    Verb,
)

#: How many times the time of one request a series of them has.
_TIMES = 2
#: Earlier bounds that are kept beside the very first: the release has those of one of the newest.
_EARLIER = 3
#: Ids of the newest requests that a series of them keeps.
_REQUESTS = 4
_OF_ROWS = (Verb.NODEGROUP_CREATE, Verb.NODEGROUP_DELETE)
_SERIES = (Verb.RESIZE, Verb.NODEGROUP_UPDATE, *_OF_ROWS)
_Entry = dict[str, Any]


def with_operation(entries: Iterable[_Entry], operation: Operation) -> list[_Entry]:
    """The entries of a Lease with one more operation, oldest first.

    One with the same id is replaced. Series that an older version wrote one by one are joined, too.

    :param entries: as :func:`codec.pending_entries` gives them; those that this version does not
        know are kept as they are.
    """
    result: dict[Any, _Entry] = {}
    others = [current for current in entries if not _is_of_another_nodegroup(current, operation)]
    for index, entry in enumerate([*others, codec.entry(operation)]):
        if not codec.is_supported(entry):
            result[index] = entry
            continue
        current = codec.operation(entry)
        key = _key(current)
        previous = result.pop(key, None)
        if previous is not None and current.verb in _SERIES and current.groups:
            known = codec.operation(previous)
            merged = codec.entry(merge_operations(known, current))
            entry = unknown_keys.with_unknown(previous, codec.entry(known), merged)
        result[key] = entry
    return list(result.values())


def replace_operation(lease: Json, operation: Operation) -> None:
    """Replace the entry of an operation that is on record."""
    entries, new = codec.pending_entries(lease), codec.entry(operation)
    if any(entry.get("id") == operation.id for entry in entries):
        changed = [new if entry.get("id") == operation.id else entry for entry in entries]
        codec.annotate(lease, codec.OPERATIONS, json.dumps(changed))


def finish(lease: Json, ids: frozenset[str]) -> None:
    """Take operations off a Lease; an upgrade that was never accepted defers nothing any more."""
    if not ids:
        return
    record = codec.record(lease)
    finished = [item for item in record.operations if item.id in ids]
    refused = {item.id for item in finished if not item.is_accepted}
    deferred = [item for item in record.deferred if item.id not in refused]
    entries = codec.pending_entries(lease)
    remaining = [entry for entry in entries if entry.get("id") not in ids]
    codec.annotate(lease, codec.OPERATIONS, json.dumps(remaining) if remaining else "")
    codec.annotate(lease, codec.OWED, codec.deferred_changes(deferred))


def is_verdict_written(
    lease: Json, expected: ReleaseRecord, ids: frozenset[str], fields: codec.RecordFields
) -> bool:
    """Whether a write that ends operations has arrived, and its answer has not.

    :param ids: of the operations that it ends.
    :param fields: of the record that it sets.
    """
    remaining = tuple(item for item in expected.operations if item.id not in ids)
    if not ids or codec.record(lease).operations != remaining:
        return False
    same = copy.deepcopy(lease)
    codec.set_fields(same, fields)
    # Not byte by byte: a newer version may have keys of its own in it.
    return codec.record(same) == codec.record(lease)


def require_unchanged(lease: Json, expected: ReleaseRecord, *, same_version: bool) -> None:
    """Refuse to write what a record was judged by that has changed since it was read.

    :param same_version: any other version is a change; else other pending operations are.
    :raises errors.Conflict: it has changed.
    """
    record = codec.record(lease)
    is_same = record.version == expected.version if same_version else True
    if not is_same or record.operations != expected.operations:
        subject = f"Lease '{conditions.name(lease)}'"
        raise errors.Conflict(
            "Another client changed an object on the management cluster first. Nothing of "
            f"{subject} was overwritten; the request will be retried.",
            f"version {record.version} instead of {expected.version}",
        )


def merge_operations(first: Operation, new: Operation) -> Operation:
    """A series of requests for the same thing with one more; to join it twice is to do so once."""
    if new.previous_bounds is None:
        is_about_size = new.verb is not Verb.NODEGROUP_UPDATE or new.target_node_count is not None
        count = new.target_node_count if is_about_size else first.target_node_count
        bounds, earlier = first.previous_bounds, first.earlier
    else:
        count, bounds = new.target_node_count, new.previous_bounds
        earlier = tuple(dict.fromkeys((*first.earlier, *_before(first, new))))
        earlier = (*earlier[:1], *earlier[1:][-_EARLIER:])
    result = dataclasses.replace(
        new,
        target_node_count=count,
        fields=tuple(dict.fromkeys((*first.fields, *new.fields))),
        previous_bounds=bounds,
        earlier=earlier,
        resolved_names=first.resolved_names
        if new.resolved_names == NOTHING
        else new.resolved_names,
        request_ids=tuple(dict.fromkeys((*first.request_ids, *new.request_ids)))[-_REQUESTS:],
    )
    if first.deadline is not None and first.deadline < new.started_at:
        return result
    started = min(first.started_at, new.started_at)
    return dataclasses.replace(result, started_at=started, deadline=_deadline(first, new))


def _before(first: Operation, new: Operation) -> tuple[tuple[int | None, int | None], ...]:
    return () if first.previous_bounds in (None, new.previous_bounds) else (first.previous_bounds,)


def _deadline(first: Operation, new: Operation) -> datetime.datetime | None:
    if first.deadline is None or new.deadline is None:
        return new.deadline
    last = first.started_at + _TIMES * (new.deadline - new.started_at)
    return max(first.deadline, min(new.deadline, last))


def _key(operation: Operation) -> tuple[Any, ...]:
    """Operations with the same key are one."""
    if operation.verb in _SERIES and operation.groups:
        return operation.verb, operation.groups, operation.nodegroup_uuid
    return operation.verb, operation.id


def _is_of_another_nodegroup(entry: _Entry, new: Operation) -> bool:
    """Whether an entry is about a nodegroup that had the name of one that is created now.

    Names are unique among the rows of a cluster, so that one's row has gone.
    """
    if (
        new.verb is not Verb.NODEGROUP_CREATE
        or not new.nodegroup_uuid
        or not codec.is_supported(entry)
    ):
        return False
    recorded = codec.operation(entry)
    is_same = recorded.verb in _OF_ROWS and recorded.groups == new.groups
    return is_same and recorded.nodegroup_uuid not in ("", new.nodegroup_uuid)
