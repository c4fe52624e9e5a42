# SPDX-License-Identifier: Apache-2.0
"""Whether Magnum's record of a cluster is unchanged since it was read."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from magnum.common import exception
from magnum.drivers.k8s_capi_helm.magnum_objects.rows.types import Cluster
from magnum.objects import cluster as cluster_object

#: What of a cluster tells that something has come in between; what an accepted upgrade changes.
_TOLD = ("status", "stack_id", "cluster_template_id")
_TEMPLATE = ("cluster_template_id", "cluster_template", "labels")


def is_unchanged(cluster: Cluster, context: Any) -> bool:
    """Whether *cluster* is still as in the database; takes what is newer over.

    Its status tells of verbs that came since, its stack id of a create that has just begun, its
    template of an upgrade that was accepted. Its reason may be of another pass; what is not known
    to be there would never be cleared.
    """
    previous = [getattr(cluster, field) for field in _TOLD]
    if not refresh(cluster, context, (*_TOLD, "status_reason", *_TEMPLATE)):
        return False
    return previous == [getattr(cluster, field) for field in _TOLD]


def is_row_unchanged(cluster: Cluster, context: Any) -> bool:
    """As :func:`is_unchanged`, for passes of Magnum's status task; the status stays as it was read.

    Magnum's own job tells the notification bus of the status that its pass leaves in *cluster*. Of
    what another pass has ended, in this conductor or in another one, the job of that one tells.
    """
    status = cluster.status
    if is_unchanged(cluster, context):
        return True
    cluster.status = status
    cluster.obj_reset_changes(["status"])
    return False


def refresh(cluster: Cluster, context: Any, fields: Collection[str] = _TEMPLATE) -> bool:
    """Take fields over from the database; False when the cluster is not there any more."""
    try:
        stored = cluster_object.Cluster.get_by_uuid(context, cluster.uuid)
    except exception.ClusterNotFound:  # another pass has ended it
        return False
    is_same_template = stored.cluster_template_id == cluster.cluster_template_id
    for field in fields:
        if field == "cluster_template" and is_same_template:
            # Magnum refuses to change a template in use, but for its name and who sees it
            # (``magnum.db.sqlalchemy.api``); loading it is the slowest query of a pass.
            continue
        setattr(cluster, field, getattr(stored, field))
    cluster.obj_reset_changes(fields)
    return True


def own_content(cluster: Any) -> str:
    """All fields of a cluster as a text, but for its template, of which it has the id."""
    fields = (field for field in sorted(cluster.fields) if field != "cluster_template")
    return repr([_text(getattr(cluster, field)) for field in fields])


def content(row: Any) -> tuple[tuple[str, str], ...]:
    """All fields of a record of Magnum as texts; of another record in it, which one and how old."""
    found = ((field, getattr(row, field)) for field in sorted(row.fields))
    return tuple((field, _text(value)) for field, value in found)


def _text(value: Any) -> str:
    if hasattr(value, "obj_what_changed"):
        return f"{value.uuid} {value.updated_at}"
    return repr(sorted(value.items()) if isinstance(value, dict) else value)
