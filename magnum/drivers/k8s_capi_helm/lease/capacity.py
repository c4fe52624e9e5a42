# SPDX-License-Identifier: Apache-2.0
"""The capacity of a Lease: what is refused beyond it. No I/O.

Kubernetes takes 256 KiB of annotations of an object, keys included
(https://github.com/kubernetes/apimachinery/blob/master/pkg/api/validation/objectmeta.go). Each part
has a bound, so that none takes another one's room: requests 64 KiB, replaced credentials 16 KiB,
deferred changes of upgrades 128 KiB (``values.upgrade.deferred.LIMIT``). What a snapshot leaves
gives way first: without it things are looked at once more. The rest is kept free, so that a
deletion always fits; and a Lease that is over these bounds, because an older version has filled it,
gives way to one as well.
"""

from __future__ import annotations

from collections.abc import Iterable
import json

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.lease import codec
from magnum.drivers.k8s_capi_helm.model import Json, Operation, RetiredCredential, Verb

#: Bytes of annotations that Kubernetes takes.
LIMIT = 256 * 1024
#: Bytes that only a deletion, and what is small, may use.
RESERVE = 16 * 1024
#: Bytes for pending operations; some 200 of them, 130 where each creates a nodegroup.
OF_OPERATIONS = 64 * 1024
#: Bytes for credentials that wait to be deleted; some 80 of them.
OF_RETIRED = 16 * 1024
#: What gives way, the first first: the next look finds it out again.
_HINTS = (codec.GROUP_LOOKS, codec.WRITTEN, codec.FIRST_LOOK)
#: What no deletion needs.
_POINTLESS = (codec.OWED, *_HINTS)


def annotations_size(lease: Json) -> int:
    """Bytes of a Lease's annotations, as Kubernetes counts them."""
    annotations = lease["metadata"].get("annotations") or {}
    return sum(len(text.encode()) for pair in annotations.items() for text in pair)


def shrink(lease: Json) -> None:
    """Drop what can be found out again, as far as there is no room for it.

    :raises errors.RecordFull: there is no room for the rest.
    """
    for key in _HINTS:
        if annotations_size(lease) > LIMIT - RESERVE:
            codec.annotate(lease, key, "")
    if annotations_size(lease) > LIMIT:
        raise _full(len(codec.pending_entries(lease)))


def put_operation(lease: Json, entries: Iterable[Json], operation: Operation) -> None:
    """Write pending operations down, of which one is new or has changed.

    :raises errors.RecordFull: they are too many. A deletion is never refused.
    """
    entry_list = list(entries)
    previous = codec.pending_entries(lease)
    codec.annotate(lease, codec.OPERATIONS, json.dumps(entry_list))
    if operation.verb is Verb.DELETE:
        _drop_for_deletion(lease, operation)
        return
    is_new = all(entry.get("id") != operation.id for entry in previous)
    size = len(json.dumps(entry_list))
    if is_new and size > OF_OPERATIONS and size > len(json.dumps(previous)):
        raise _full(len(previous))


def put_retired(lease: Json, credentials: Iterable[RetiredCredential]) -> None:
    """Write credentials down that are to be deleted.

    :raises errors.RecordFull: they are too many.
    """
    retired, previous = list(credentials), codec.record(lease).retired_credentials
    text = codec.retired_credentials(retired)
    if len(text) > OF_RETIRED and len(retired) > len(previous):
        raise errors.RecordFull(
            f"The credential of this cluster was rotated too often. {len(previous)} replaced ones "
            "still exist; each is deleted half an hour after it was replaced. Try again later."
        )
    codec.annotate(lease, codec.RETIRED, text)


def _drop_for_deletion(lease: Json, deletion: Operation) -> None:
    """Drop what a deletion makes pointless, if there is not enough room beside it."""
    if annotations_size(lease) <= LIMIT - RESERVE:
        return
    codec.annotate(lease, codec.OPERATIONS, json.dumps([codec.entry(deletion)]))
    for key in _POINTLESS:
        codec.annotate(lease, key, "")
    if annotations_size(lease) > LIMIT - RESERVE:
        # The end of a cluster finds all that this driver has made for a user by their names; the
        # first may be of magnum-capi-helm, which names them otherwise.
        first_of_user = {
            credential.user: credential
            for credential in reversed(codec.record(lease).retired_credentials)
        }
        codec.annotate(lease, codec.RETIRED, codec.retired_credentials(first_of_user.values()))


def _full(count: int) -> errors.RecordFull:
    return errors.RecordFull(
        f"Too many requests for this cluster are in progress. There are {count}, and their record "
        f"may have {OF_OPERATIONS // 1024} KiB. Nothing was changed. Try again when some of them "
        "have finished; the cluster can be deleted at any time."
    )
