# SPDX-License-Identifier: Apache-2.0
"""Keys of a newer version in the annotations of a Lease, which an older one preserves. No I/O.

What this version writes is compared with what it would have written of the Lease as it was: keys
beside that are unknown here, and stay; a value that is the same here stays as the other version
wrote it. Unknown keys of an entry are deleted with the entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
import json
from typing import Any

from magnum.drivers.k8s_capi_helm.lease import codec
from magnum.drivers.k8s_capi_helm.model import Json, ReleaseRecord

#: What this version writes of a record, for each annotation that has keys.
_ENCODERS: Mapping[str, Callable[[ReleaseRecord], str]] = {
    codec.OPERATIONS: lambda record: json.dumps([codec.entry(one) for one in record.operations]),
    codec.RETIRED: lambda record: codec.retired_credentials(record.retired_credentials),
    codec.OWED: lambda record: codec.deferred_changes(record.deferred),
    codec.REVISIONS: lambda record: codec.revisions(record.revisions),
}


def keep_unknown(previous: Json, lease: Json) -> None:
    """Put unknown keys back that a change has dropped.

    :param previous: the Lease as it was.
    :param lease: as it is after the change.
    :raises errors.ManagementRefused: the Lease was malformed before.
    """
    old = previous["metadata"].get("annotations") or {}
    new = lease["metadata"].get("annotations") or {}
    for key, encode in _ENCODERS.items():
        if key in old and key in new and old[key] != new[key]:
            # Refuses what is malformed before it is looked into.
            own = json.loads(encode(codec.record(previous)) or "null")
            raw = json.loads(old[key])
            result = _with_unknown_of_entries(raw, own, json.loads(new[key]))
            new[key] = old[key] if result == raw else json.dumps(result)


def with_unknown(raw: Any, own: Any, new: Any) -> Any:
    """A value that this version writes, with the unknown keys of the one before.

    :param raw: as the Lease has it.
    :param own: what this version would have written of that.
    """
    if new == own:
        return raw
    if not (isinstance(raw, dict) and isinstance(own, dict) and isinstance(new, dict)):
        return new
    result = {
        key: with_unknown(raw[key], own[key], value) if key in raw and key in own else value
        for key, value in new.items()
    }
    return result | {key: raw[key] for key in raw if key not in own and key not in new}


def _with_unknown_of_entries(raw: Any, own: Any, new: Any) -> Any:
    """As :func:`with_unknown`, also for entries of a list, which their ids tell apart."""
    if not isinstance(new, list):
        return with_unknown(raw, own, new)
    raw_entries = {_identity(entry): entry for entry in raw}
    own_entries = {_identity(entry): entry for entry in own or ()}
    return [
        with_unknown(raw_entries[identity], own_entries[identity], entry)
        if (identity := _identity(entry)) in own_entries
        else entry
        for entry in new
    ]


def _identity(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    """A new credential has no id yet, and a name instead."""
    return entry.get("id"), entry.get("name", "")
