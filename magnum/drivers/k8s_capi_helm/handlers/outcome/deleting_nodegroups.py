# SPDX-License-Identifier: Apache-2.0
"""Keep the rows of nodegroups that are being deleted in DELETE_IN_PROGRESS."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from magnum.drivers.k8s_capi_helm.magnum_objects.rows import writer
from magnum.drivers.k8s_capi_helm.model import operation, ReleaseRecord


def needs_deleting_status(nodegroups: Iterable[Any], record: ReleaseRecord | None) -> bool:
    """Whether a request has overwritten the status of a nodegroup that is being deleted."""
    return bool(_overwritten(nodegroups, record))


def reassert_deleting(nodegroups: Iterable[Any], record: ReleaseRecord | None) -> bool:
    """Set nodegroups to DELETE_IN_PROGRESS again where a request has overwritten that.

    :returns: whether there was one.
    """
    overwritten = _overwritten(nodegroups, record)
    for nodegroup in overwritten:
        writer.LOG.info("Nodegroup %s is being deleted, and stays so.", nodegroup.uuid)
        writer.mark_in_progress(nodegroup, writer.Status.DELETE_IN_PROGRESS)
    return bool(overwritten)


def _overwritten(nodegroups: Iterable[Any], record: ReleaseRecord | None) -> list[Any]:
    deleted = operation.deleted_nodegroups(record)
    return [
        nodegroup
        for nodegroup in nodegroups
        if nodegroup.uuid in deleted and not writer.is_deleting(nodegroup)
    ]
