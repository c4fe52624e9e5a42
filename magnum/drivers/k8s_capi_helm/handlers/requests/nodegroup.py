# SPDX-License-Identifier: Apache-2.0
"""Requests on one nodegroup: a refusal fails that nodegroup only; others are recorded."""

from __future__ import annotations

import contextlib
from typing import Any

from magnum.common import exception
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.handlers.requests import (
    nodegroup_create,
    pending_operation,
    preflight,
    resize,
)
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import reader, writer
from magnum.drivers.k8s_capi_helm.magnum_objects.rows.writer import Status
from magnum.drivers.k8s_capi_helm.magnum_objects.validation import validate_nodegroup
from magnum.drivers.k8s_capi_helm.metrics import record as metrics
from magnum.drivers.k8s_capi_helm.model import NOTHING, Verb
from magnum.drivers.k8s_capi_helm.model.management_cluster import release_of
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.ownership import ownership
from magnum.drivers.k8s_capi_helm.reconcile.release import revisions
from magnum.drivers.k8s_capi_helm.values import change


def create(run: Reconciliation, context: Any, cluster: Any, nodegroup: Any) -> None:
    """Add a nodegroup. If that fails, only the nodegroup fails."""
    try:
        record = ownership.require(run.clients, cluster, run.settings)
        ownership.refuse_deleting(cluster)
        with contextlib.suppress(exception.NodeGroupNotFound):  # it was deleted meanwhile
            writer.mark_in_progress(nodegroup, Status.CREATE_IN_PROGRESS)
        checked = nodegroup_create.check(run, cluster, nodegroup, record)
        # Its row follows the autoscaler from the beginning, so only the record keeps a number.
        new = pending_operation.NewOperation(
            Verb.NODEGROUP_CREATE,
            nodegroup.name,
            must_be_recorded=checked.count is not None,
            target_node_count=checked.count,
            nodegroup_uuid=nodegroup.uuid,
            resolved_names=checked.resolved_names,
        )
        _, record = pending_operation.begin(run, cluster, new)
    except errors.DriverError as error:
        nodegroup_create.refuse_nodegroup(run, cluster, nodegroup, error)
        return
    pending_operation.reconcile_now(run, context, cluster, record)


def _refuse_update(nodegroup: Any, refusal: errors.DriverError, **previous: Any) -> None:
    """Say that a nodegroup cannot be changed; parameters as for ``writer.set_update_failed``."""
    metrics.request_refused("update_nodegroup")
    writer.set_update_failed(nodegroup, refusal, **previous)


def update(run: Reconciliation, context: Any, cluster: Any, nodegroup: Any) -> None:
    """Change bounds, labels and taints of a nodegroup. One that cannot be changed fails alone.

    Magnum would save the wanted fields with whatever it is told; so refused ones are dropped
    here, and nothing is raised, which would leave the whole cluster UPDATE_FAILED.
    """
    fields = writer.changed_fields(nodegroup)
    try:
        bounds = _check_update(run, cluster, nodegroup, fields)
    except errors.DriverError as refusal:
        nodegroup.obj_reset_changes()
        _refuse_update(nodegroup, refusal)
        return
    if bounds is None:
        return
    stored = {row.uuid: row for row in cluster.nodegroups}[nodegroup.uuid]
    changed = nodegroup.obj_what_changed() - {"status", "status_reason"}
    previous = {field: getattr(stored, field) for field in changed}
    # The rows do not tell "none" from "never asked", nor bounds of the autoscaler from a site's
    # new defaults; only the record does.
    must_be_recorded = bounds.must_be_recorded or writer.clears_metadata(nodegroup)
    try:
        new = pending_operation.NewOperation(
            Verb.NODEGROUP_UPDATE,
            nodegroup.name,
            must_be_recorded=must_be_recorded,
            target_node_count=bounds.count,
            fields=fields,
            previous_bounds=writer.nodegroup_bounds(stored)
            if set(fields) & set(change.BOUNDS)
            else None,
            resolved_names=preflight.flavor(run, cluster, nodegroup) if bounds.scales else NOTHING,
        )
        operation, _ = pending_operation.begin(run, cluster, new)
    except errors.DriverError as refusal:
        _refuse_update(nodegroup, refusal, **previous)
        return
    writer.mark_in_progress(nodegroup, Status.UPDATE_IN_PROGRESS)
    record = pending_operation.retry(run, cluster, nodegroup, operation)
    pending_operation.reconcile_now(run, context, cluster, record)


def _check_update(
    run: Reconciliation, cluster: Any, nodegroup: Any, fields: tuple[str, ...]
) -> resize.BoundsChange | None:
    """What an update means for the size of its nodegroup; None where there is none to be updated.

    :param fields: those that the request changes.
    :raises errors.DriverError: it is refused; nothing was touched.
    """
    record = ownership.require(run.clients, cluster, run.settings)
    release_key = reader.cluster_namespace(cluster, run.settings), release_of(cluster.stack_id)
    release_snapshot, error = revisions.read_for_request(run.clients, *release_key, record)
    if pending_operation.not_allowed(run, cluster, nodegroup, release_snapshot):
        return None
    validate_nodegroup.validate_details(nodegroup)
    live = resize.release_of_request(release_snapshot, error)
    validate_nodegroup.validate_taints(nodegroup, nodegroup_create.chart_family(live))
    return resize.change_bounds(run, cluster, nodegroup, fields, release_snapshot)


def delete(run: Reconciliation, context: Any, cluster: Any, nodegroup: Any) -> None:
    """Take a nodegroup away; its row goes when its last machine has.

    :raises errors.DriverError: nothing proves that the cluster is of this driver and here, its
        release is older than what runs, or the management cluster refuses.
    """
    record = ownership.require(run.clients, cluster, run.settings)
    namespace = reader.cluster_namespace(cluster, run.settings)
    revisions.require(run.clients, namespace, release_of(cluster.stack_id), record)
    writer.mark_in_progress(nodegroup, Status.DELETE_IN_PROGRESS)
    new = pending_operation.NewOperation(
        Verb.NODEGROUP_DELETE, nodegroup.name, nodegroup_uuid=nodegroup.uuid
    )
    _, record = pending_operation.begin(run, cluster, new)
    pending_operation.reconcile_now(run, context, cluster, record)
