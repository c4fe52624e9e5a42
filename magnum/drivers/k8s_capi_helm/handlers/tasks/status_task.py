# SPDX-License-Identifier: Apache-2.0
"""Magnum's status task of one cluster: reconcile, or continue the deletion."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import deadline, errors
from magnum.drivers.k8s_capi_helm.cloud import provision
from magnum.drivers.k8s_capi_helm.handlers.entry.reconciliation import Trigger
from magnum.drivers.k8s_capi_helm.handlers.outcome import (
    deleting_nodegroups,
    update_deadline,
    write_status,
)
from magnum.drivers.k8s_capi_helm.handlers.tasks import finalize_deletion
from magnum.drivers.k8s_capi_helm.magnum_objects import state
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import reader, refresh, saving, writer
from magnum.drivers.k8s_capi_helm.magnum_objects.rows.cluster_rows import MagnumRows
from magnum.drivers.k8s_capi_helm.magnum_objects.rows.writer import Status
from magnum.drivers.k8s_capi_helm.magnum_objects.validation import validate_cluster
from magnum.drivers.k8s_capi_helm.model import ClusterRequest, ReleaseRecord, secrets
from magnum.drivers.k8s_capi_helm.model import operation as model_operation
from magnum.drivers.k8s_capi_helm.reconcile import reconciler
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import (
    Reconciliation,
    ReleaseSnapshot,
)
from magnum.drivers.k8s_capi_helm.reconcile.deletion import deletion as reconcile_deletion
from magnum.drivers.k8s_capi_helm.reconcile.nodegroups import lost_request
from magnum.drivers.k8s_capi_helm.reconcile.observe import evaluation_inputs, observe
from magnum.drivers.k8s_capi_helm.reconcile.observe.evaluation import Evaluation
from magnum.drivers.k8s_capi_helm.reconcile.ownership import ownership
from magnum.drivers.k8s_capi_helm.reconcile.process.evaluation_cache import Versions
from magnum.drivers.k8s_capi_helm.status.causes import reasons
from magnum.drivers.k8s_capi_helm.status.deletion import order as deletion_order

LOG = logging.getLogger(__name__)

#: A create that has not saved its release by then has died; since it was seen first.
_CREATE_START_LIMIT = datetime.timedelta(minutes=10)
_DIED = (
    "The creation was interrupted before anything was created. Delete the cluster and create "
    "it again."
)
#: What an operator has to mend and no tenant can: the request is as good as before, and goes on.
_OPERATORS_TURN = (
    errors.ManagementRefused,
    errors.ProofNotFound,
    errors.HelmUnusable,
    errors.InvalidConfiguration,
    errors.ReleaseOutdated,
)


def magnum_rows(run: Reconciliation, context: Any, cluster: Any) -> MagnumRows:
    """The rows of a cluster, for a reconciliation."""
    recent = lost_request.is_recent(run.clients, run.clients.clock())
    return MagnumRows(context, cluster, run.settings, recent)


def request(run: Reconciliation, cluster: Any) -> ClusterRequest:
    """What the rows ask for, read now."""
    return magnum_rows(run, cluster.obj_context, cluster).request()


def update_status(run: Reconciliation, context: Any, cluster: Any) -> None:
    """Carry on what is in progress and write what is true."""
    versions = evaluation_inputs.read_versions(run, cluster)
    if evaluation_inputs.last_verdict(run, cluster, versions) is not None:
        return
    if not refresh.is_row_unchanged(cluster, context):
        return
    if cluster.status == Status.DELETE_IN_PROGRESS:
        continue_deletion(run, context, cluster)
    else:
        advance(run, context, cluster, versions=versions)


def advance(
    run: Reconciliation,
    context: Any,
    cluster: Any,
    *,
    trigger: Trigger = Trigger.PERIODIC_TASK,
    record: ReleaseRecord | None = None,
    versions: Versions | None = None,
) -> bool:
    """One pass: apply what is pending, observe, evaluate, write. It waits for no lock.

    :param record: of the release, as it was read a moment ago; None to read it.
    :param versions: as they were before anything was read.
    :returns: whether everything is in place.
    """
    if _is_skipped(cluster):
        return False
    cluster_rows = magnum_rows(run, context, cluster)
    nodegroups_observed = cluster_rows.read_nodegroups()
    if not _has_release(run, cluster, nodegroups_observed):
        return False
    outcome = _outcome(run, cluster_rows, trigger, record)
    if outcome is None or deadline.is_expired():
        # The time of the request is over, and a snapshot would need more of it.
        return False
    snapshot = outcome.snapshot
    if snapshot is None or snapshot.is_changed:
        nodegroups_observed = cluster_rows.read_nodegroups()
    elif snapshot.observed is None:
        # The rows are written before the record, so those that belong to it were read after it.
        nodegroups_observed = cluster_rows.nodegroups
    evaluation = observe.evaluate_cluster(
        run, cluster, nodegroups_observed, outcome, may_finish=trigger.may_finish
    )
    is_news = write(run, context, cluster, nodegroups_observed, evaluation)
    if not is_news and snapshot is not None and not snapshot.is_changed:
        evaluation.keep(run, cluster, versions)
    return bool(evaluation.verdict.fingerprint)


def _has_release(run: Reconciliation, cluster: Any, nodegroups_observed: list[Any]) -> bool:
    """Whether there is a release to look at; what else a row is, is written."""
    if ownership.is_cluster_deleting(nodegroups_observed):
        writer.mark_in_progress(cluster, Status.DELETE_IN_PROGRESS)
        return False
    if not cluster.stack_id:
        _fail_interrupted_create(run, cluster)
        return False
    return True


def _outcome(
    run: Reconciliation, cluster_rows: MagnumRows, trigger: Trigger, record: ReleaseRecord | None
) -> observe.ApplyOutcome | None:
    """Apply what is pending; None where the pass is done with that."""
    cluster, nodegroups_observed = cluster_rows.cluster, cluster_rows.nodegroups
    try:
        check = evaluation_inputs.compare_snapshot(run, cluster, nodegroups_observed, record=record)
        if check is not None and check.verdict is not None:
            return None
        changing = evaluation_inputs.read_changing_release
        known = check.snapshot if check else changing(run, cluster, record)
        if known.is_kept and _is_record_needed(known.record, nodegroups_observed):
            known = evaluation_inputs.read_current_record(run, cluster)
        if model_operation.is_being_deleted(known.record):
            writer.mark_in_progress(cluster, Status.DELETE_IN_PROGRESS)
            return None
        applied = _apply(run, cluster_rows, known, may_finish=trigger.may_finish)
        return observe.ApplyOutcome(snapshot=applied)
    except errors.DriverError as error:
        if trigger.is_left_to_others(error):
            LOG.debug("Cluster %s: a reconcile is left to others: %s", cluster.uuid, error.detail)
            return None
        LOG.warning("Cluster %s: %s %s", cluster.uuid, error, error.detail)
        return _outcome_of(error, cluster, run.now)


def _is_record_needed(record: ReleaseRecord | None, nodegroups: list[Any]) -> bool:
    """Whether the record alone decides that something is written; a kept one is not enough then."""
    return (
        record is None
        or not record.operations
        or model_operation.is_being_deleted(record)
        or deleting_nodegroups.needs_deleting_status(nodegroups, record)
    )


def _apply(
    run: Reconciliation, cluster_rows: MagnumRows, snapshot: ReleaseSnapshot, *, may_finish: bool
) -> ReleaseSnapshot | None:
    """Apply what is pending.

    :param snapshot: as it was read a moment ago.
    :returns: record and release as they are then; None where that is not known.
    :raises errors.DriverError: it can not be applied, or not yet.
    """
    clients, conf, cluster = run.clients, run.settings, cluster_rows.cluster
    owner = ownership.owner(cluster, conf)
    record = ownership.proved_record(clients, owner, snapshot.record)
    if record is None:
        raise errors.ProofNotFound(
            f"Nothing on the management cluster proves that release '{owner.release}' "
            "belongs to this cluster. Ask the operator to check which management cluster the "
            "driver's kubeconfig names."
        )
    deleting_nodegroups.reassert_deleting(cluster_rows.nodegroups, record)
    if may_finish:
        record = update_deadline.add(run, cluster_rows.context, cluster, record)
    snapshot = dataclasses.replace(snapshot, record=record)
    return reconciler.reconcile(run, cluster_rows, snapshot=snapshot)


def continue_deletion(run: Reconciliation, context: Any, cluster: Any) -> None:
    """One pass of a deletion; only here a cluster becomes DELETE_COMPLETE.

    Passes of one cluster meet. What one finds after another has ended the deletion, a Lease that is
    not there, proves nothing: it says nothing then.
    """
    if not cluster.stack_id:
        finalize_deletion.discard_lease(run, cluster)
        if refresh.is_row_unchanged(cluster, context):
            finalize_deletion.finalize(run, context, cluster)
        return
    if _is_skipped(cluster):
        return
    owner = ownership.owner(cluster, run.settings)
    try:
        step = reconcile_deletion.advance_deletion(
            run.clients, owner, run.cloud, run.settings, run.now, cluster.status_reason or ""
        )
    except errors.DriverError as error:
        LOG.warning("Cluster %s: %s %s", cluster.uuid, error, error.detail)
        step = deletion_order.DeletionStep(deletion_order.DeletionAction.WAIT, reason=str(error))
    if not refresh.is_row_unchanged(cluster, context):
        return
    if step.action is deletion_order.DeletionAction.DONE:
        if finalize_deletion.release_lease(run, context, cluster, owner):
            finalize_deletion.finalize(run, context, cluster)
    elif step.action is deletion_order.DeletionAction.NO_PROOF or _is_late(run, owner):
        saving.save(cluster, status=Status.DELETE_FAILED, status_reason=step.reason)
    else:
        saving.save(cluster, status_reason=step.reason or reasons.starting_reason(cluster.status))


def write(
    run: Reconciliation,
    context: Any,
    cluster: Any,
    nodegroups_observed: list[Any],
    evaluation: Evaluation,
) -> bool:
    """Write a verdict; a nodegroup that is gone takes its server group along.

    :returns: as :func:`write_status.write`.
    """
    if any(nodegroup.is_deleted for nodegroup in evaluation.verdict.groups):
        owner = ownership.owner(cluster, run.settings)
        left = provision.delete_unused_server_groups(run.cloud(), owner, evaluation.verdict)
        evaluation = dataclasses.replace(evaluation, verdict=left)
    namespace = reader.cluster_namespace(cluster, run.settings)
    return write_status.write(
        context, cluster, nodegroups_observed, evaluation, run.clients, namespace
    )


def _is_skipped(cluster: Any) -> bool:
    """Whether it is another driver's, which may be working on it: only a sentence is written."""
    sentence = ownership.foreign_reason(cluster)
    if sentence:
        saving.save(cluster, status_reason=sentence)
    return bool(sentence)


def _outcome_of(
    error: errors.DriverError, cluster: Any, now: datetime.datetime
) -> observe.ApplyOutcome:
    """What an error means for what is in progress: it is refused, or waits."""
    if _is_temporary(error, cluster, now):
        return observe.ApplyOutcome(waiting_error=error)
    return observe.ApplyOutcome(refusal=str(error))


def _is_temporary(error: errors.DriverError, cluster: Any, now: datetime.datetime) -> bool:
    """Whether what goes wrong ends nothing that is in progress.

    What is not here may be on another management cluster. A create has its time to be found; its
    Lease, which would say when that ends, is not here either.
    """
    if isinstance(error, errors.ProofNotFound) and cluster.status == Status.CREATE_IN_PROGRESS:
        limit = state.deadline(cluster.created_at or now, cluster.create_timeout)
        return limit is None or now <= limit
    return error.retryable or isinstance(error, _OPERATORS_TURN)


def _has_just_begun(run: Reconciliation, cluster: Any) -> bool:
    """Whether the create may still be on its way to what has to be there first."""
    seen = run.clients.first_seen
    return seen.age(cluster.uuid, cluster.created_at, run.now) < _CREATE_START_LIMIT


def _fail_interrupted_create(run: Reconciliation, cluster: Any) -> None:
    """A row without a release: its create has just begun, or its conductor died.

    Or Magnum itself stumbled over a label that is no number before it called the driver. Where all
    of its nodegroups have failed, it was refused, and a request since has only overwritten that.
    """
    if {obj.status for obj in cluster.nodegroups} == {Status.CREATE_FAILED}:
        saving.save(cluster, status=Status.CREATE_FAILED)
        return
    try:
        validate_cluster.validate_labels(cluster, run.settings)
    except errors.InvalidRequest as error:
        reason = str(error)
    else:
        if _has_just_begun(run, cluster):
            return
        reason = _DIED
    for obj in (*cluster.nodegroups, cluster):
        saving.save(obj, status=Status.CREATE_FAILED, status_reason=reason)


def _is_late(run: Reconciliation, owner: secrets.Owner) -> bool:
    """Whether a deletion's time is over; not as long as nobody can tell."""
    try:
        record = run.clients.leases.read(owner.namespace, owner.release)
    except errors.DriverError:
        return False
    limits = [op.deadline for op in (record.operations if record else ()) if op.deadline]
    return bool(limits) and run.now > max(limits)
