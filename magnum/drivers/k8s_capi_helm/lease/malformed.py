# SPDX-License-Identifier: Apache-2.0
"""Refuse a Lease with annotations that this driver does not write."""

from __future__ import annotations

from collections.abc import Callable
import functools
from typing import TypeVar

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.lease import record_format
from magnum.drivers.k8s_capi_helm.model import Json, ReleaseRecord

_Found = TypeVar("_Found")
_MALFORMED = (AttributeError, KeyError, TypeError, ValueError, RecursionError, OverflowError)


def refuse_malformed(function: Callable[[Json], _Found]) -> Callable[[Json], _Found]:
    """*function* to a Lease, of which only an error of this driver comes out.

    Whoever may write Leases may write anything; what is on record then cannot be known, so that
    nothing is done about the cluster until an operator has looked.

    :returns: the question, which raises errors.ManagementRefused where the Lease does not tell, or
        a newer version has written it in a newer format.
    """

    @functools.wraps(function)
    def asked(lease: Json) -> _Found:
        try:
            record_format.require_readable(lease)
            result = function(lease)
            if isinstance(result, ReleaseRecord):
                _check(result)
        except _MALFORMED as error:
            raise errors.ManagementRefused(
                f"The record of cluster operations, Lease '{lease['metadata'].get('name', '')}', "
                "cannot be read. Ask the operator to compare its annotations with the log of the "
                "Magnum conductor.",
                f"Lease {lease['metadata'].get('namespace', '')}/"
                f"{lease['metadata'].get('name', '')}: {type(error).__name__}",
            ) from None
        return result

    return asked


def _check(record: ReleaseRecord) -> None:
    """Raise TypeError for fields that Python takes whatever they are."""
    for mapping in (record.nodegroup_ready_fingerprints, record.applied_generations):
        if not isinstance(mapping, dict):
            raise TypeError(type(mapping).__name__)
    revisions = record.revisions
    if not all(
        isinstance(number, int)
        for number in (revisions.newest, revisions.last_applied, revisions.pending_install)
    ):
        raise TypeError("revisions")
    for credential in record.retired_credentials:
        if not all(isinstance(t, str) for t in (credential.id, credential.user, credential.name)):
            raise TypeError("retired credential")
    if not all(isinstance(deferred_change.id, str) for deferred_change in record.deferred):
        raise TypeError("deferred change")
    for operation in record.operations:
        texts = (
            operation.id,
            operation.template,
            operation.nodegroup_uuid,
            *operation.groups,
            *operation.fields,
            *operation.request_ids,
        )
        numbers = (
            operation.max_batch_size,
            *(() if operation.target_node_count is None else (operation.target_node_count,)),
        )
        if not all(isinstance(text, str) for text in texts) or not all(
            isinstance(number, int) for number in numbers
        ):
            raise TypeError(f"operation {operation.verb}")
