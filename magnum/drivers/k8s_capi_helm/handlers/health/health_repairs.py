# SPDX-License-Identifier: Apache-2.0
"""Repairs of clusters that the status task does not visit: the first that applies is made.

The status task visits what is in progress. Everything else that a crossed, lost or refused request
leaves in Magnum's objects is found by the health poll.
"""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
from typing import Any

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm.handlers.entry import reconciliation
from magnum.drivers.k8s_capi_helm.handlers.outcome import (
    deleting_nodegroups,
    update_deadline,
    write_status,
)
from magnum.drivers.k8s_capi_helm.handlers.requests import pending_operation
from magnum.drivers.k8s_capi_helm.handlers.tasks import status_task
from magnum.drivers.k8s_capi_helm.magnum_objects import state
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import reader, writer
from magnum.drivers.k8s_capi_helm.magnum_objects.rows.writer import Status
from magnum.drivers.k8s_capi_helm.model import Operation, Verb
from magnum.drivers.k8s_capi_helm.model import operation as model_operation
from magnum.drivers.k8s_capi_helm.model.management_cluster import release_of
from magnum.drivers.k8s_capi_helm.reconcile import reconciler
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.credentials import rotation
from magnum.drivers.k8s_capi_helm.reconcile.nodegroups import lost_request
from magnum.drivers.k8s_capi_helm.reconcile.observe.evaluation import Evaluation
from magnum.drivers.k8s_capi_helm.reconcile.ownership import ownership
from magnum.drivers.k8s_capi_helm.reconcile.upgrade import upgrade

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    """A cluster as a health poll finds it.

    :ivar nodegroups: Magnum's objects as they were evaluated.
    """

    run: Reconciliation
    context: Any
    cluster: Any
    nodegroups: list[Any]
    evaluation: Evaluation

    def is_failed(self) -> bool:
        """Whether a request, or Magnum, has ended in a failure."""
        return bool(self.cluster.status.endswith("_FAILED"))

    def is_complete(self) -> bool:
        """Whether nothing is in progress and nothing has failed."""
        return bool(self.cluster.status.endswith("_COMPLETE"))


@dataclasses.dataclass(frozen=True, slots=True)
class Repair:
    """What is wrong, and what the poll does about it.

    :ivar name: of the repair, for the log.
    :ivar applies: whether this is wrong; reads nothing over the network.
    :ivar make: repairs it; raises DriverError where that has to be tried again.
    """

    name: str
    applies: Callable[[Case], bool]
    make: Callable[[Case], None]


def apply_first(case: Case) -> bool:
    """Update the release record and make the first repair that applies.

    :returns: whether a repair was made, which may have changed Magnum's objects.
    :raises errors.DriverError: it cannot be made now; the next poll tries again.
    """
    run, found = case.run, case.evaluation
    if found.record is not None and found.unrecorded_revisions is not None:
        run.clients.leases.record_revisions(
            reader.cluster_namespace(case.cluster, run.settings),
            release_of(case.cluster.stack_id),
            found.record.revisions,
            found.unrecorded_revisions,
        )
    owner = ownership.owner(case.cluster, run.settings)
    rotation.delete_retired(run.clients, owner, found.record, run.cloud, run.now)
    for repair in REPAIRS:
        if repair.applies(case):
            LOG.debug("Cluster %s: the health poll does this: %s", case.cluster.uuid, repair.name)
            repair.make(case)
            return True
    return False


def is_record_needed(case: Case) -> bool:
    """Whether something is written that the record decides; a kept one is not enough then."""
    record = case.evaluation.record
    if record is not None and record.retired_credentials:
        return True
    repair = next((repair for repair in REPAIRS if repair.applies(case)), None)
    if repair is None or repair.make is not _update_settled:
        return repair is not None
    return bool(record and record.operations)


# A deletion that failed, or whose status a request has overwritten --------------------------------
def _deletion_failed(case: Case) -> bool:
    return bool(case.cluster.status == Status.DELETE_FAILED)


def _continue_deletion(case: Case) -> None:
    """Continue it, where it is proved that the cluster was here, with its whole time."""
    run, cluster = case.run, case.cluster
    owner = ownership.owner(cluster, run.settings)
    if case.evaluation.unreachable:
        return
    if not ownership.proved_record(run.clients, owner, case.evaluation.record):
        return
    limit = state.deadline(run.now, run.settings.capi_helm.delete_timeout)
    run.clients.leases.add(
        owner.namespace,
        owner.release,
        Operation(id=str(Verb.DELETE), verb=Verb.DELETE, started_at=run.now, deadline=limit),
    )
    writer.mark_in_progress(cluster, Status.DELETE_IN_PROGRESS)


def _deletion_is_recorded(case: Case) -> bool:
    return model_operation.is_being_deleted(case.evaluation.record)


def _show_deletion(case: Case) -> None:
    if case.cluster.status != Status.DELETE_IN_PROGRESS:
        writer.mark_in_progress(case.cluster, Status.DELETE_IN_PROGRESS)


# A creation that failed, and requests after it ----------------------------------------------------
def _was_never_created(case: Case) -> bool:
    """Whether Helm has never applied the release as a whole, and the creation has failed.

    Magnum lets requests about nodegroups through, and writes UPDATE_FAILED where they are refused.
    A record that does not know the newest revisions yet, as that of an adopted release, says
    nothing about the creation.
    """
    found = case.evaluation
    return (
        case.cluster.status == Status.UPDATE_FAILED
        and case.cluster.default_ng_master.status == Status.CREATE_FAILED
        and not (found.unreachable or found.unfinished_operations)
        and found.record is not None
        and found.unrecorded_revisions is None
        and found.record.revisions.last_applied == 0
    )


def _fail_creation(case: Case) -> None:
    why = case.cluster.default_ng_master.status_reason or case.cluster.status_reason or ""
    writer.set_creation_failed(
        case.cluster,
        "The cluster was not created, so it cannot be changed. Delete the cluster and create it "
        f"again. The creation failed: {why}",
    )


# Requests that no pass continues ------------------------------------------------------------------
def _is_in_progress(case: Case) -> bool:
    """Whether something is in progress, and the cluster's status does not say so."""
    return (
        deleting_nodegroups.needs_deleting_status(case.nodegroups, case.evaluation.record)
        or _is_overtaken(case)
        or _has_upgrade(case)
        or (case.is_complete() and case.evaluation.is_release_newer)
        or (_is_forgotten(case) and bool(case.evaluation.is_release_incomplete))
    )


def _show_update(case: Case) -> None:
    deleting_nodegroups.reassert_deleting(case.nodegroups, case.evaluation.record)
    writer.mark_in_progress(case.cluster, Status.UPDATE_IN_PROGRESS)


def _is_overtaken(case: Case) -> bool:
    """Whether no pass continues what a nodegroup's status says is in progress.

    A request and a reconciliation that had read before it crossed each other; or Magnum has made
    the whole cluster UPDATE_FAILED because one of several requests was refused.
    """
    rests = case.is_complete() or case.cluster.status == Status.UPDATE_FAILED
    return rests and any(
        (nodegroup.status or "").endswith("_IN_PROGRESS") for nodegroup in case.nodegroups
    )


def _has_upgrade(case: Case) -> bool:
    """Whether an upgrade was recorded, and its conductor died before it wrote the status."""
    return upgrade.pending_upgrade(case.evaluation.record) is not None and case.is_complete()


def _is_forgotten(case: Case) -> bool:
    """Whether no pass continues a count that Magnum has saved for ``PATCH node_count``.

    Magnum's objects do not show that such a request was received, and none takes longer than this
    to validate it; its conductor died.
    """
    requested = tuple(
        (nodegroup.uuid, nodegroup.updated_at, nodegroup.node_count)
        for nodegroup in case.nodegroups
    )
    times = [
        at
        for nodegroup in case.nodegroups
        for at in (nodegroup.updated_at, nodegroup.created_at)
        if at is not None
    ]
    age = case.run.clients.first_seen.age(
        (case.cluster.uuid, requested), max(times, default=None), case.run.now
    )
    return case.is_complete() and age >= lost_request.CHECKED_BY_THEN


# Failures that end --------------------------------------------------------------------------------
def _failed_and_unfinished(case: Case) -> bool:
    return case.is_failed() and bool(case.evaluation.unfinished_operations)


def _reconcile(case: Case) -> None:
    again = reconciliation.of_periodic_task(case.run.clients, case.run.settings)
    status_task.advance(again, case.context, case.cluster)


def _deletion_of_nodegroups_failed(case: Case) -> bool:
    return bool(case.evaluation.is_release_incomplete and _failed_deletions(case))


def _failed_deletions(case: Case) -> list[Any]:
    """Nodegroups whose deletion was refused, or did not end in its time."""
    return [nodegroup for nodegroup in case.nodegroups if nodegroup.status == Status.DELETE_FAILED]


def _delete_nodegroups(case: Case) -> None:
    """Request their deletion again, with its whole time; nothing else retries it.

    The reason stays until Helm accepts it.
    """
    rows = status_task.magnum_rows(case.run, case.context, case.cluster)
    reconciler.reconcile(case.run, rows)
    for nodegroup in _failed_deletions(case):
        new = pending_operation.NewOperation(
            Verb.NODEGROUP_DELETE, nodegroup.name, nodegroup_uuid=nodegroup.uuid
        )
        pending_operation.begin(case.run, case.cluster, new)


def _write(case: Case) -> None:
    """Write the status, which is COMPLETE where the cluster has recovered."""
    status_task.write(case.run, case.context, case.cluster, case.nodegroups, case.evaluation)


# Settled clusters ---------------------------------------------------------------------------------
def _is_outdated(case: Case) -> bool:
    """Whether a settled cluster has other node counts, or settings of its autoscaler, by now."""
    return case.is_complete() and (
        write_status.has_new_sizes(case.nodegroups, case.evaluation)
        or update_deadline.is_recorded(case.evaluation.record)
        or _corrects_autoscaler(case)
    )


def _corrects_autoscaler(case: Case) -> bool:
    is_allowed = case.run.settings.capi_helm.correct_autoscalers
    return bool(case.evaluation.autoscaler_is_due and is_allowed)


def _update_settled(case: Case) -> None:
    """Write the autoscaler's node counts, and correct its Deployment."""
    run, cluster = case.run, case.cluster
    write_status.write_sizes(case.context, cluster, case.nodegroups, case.evaluation)
    update_deadline.remove(run, cluster, case.evaluation.record)
    if _corrects_autoscaler(case):
        rows = status_task.magnum_rows(run, case.context, cluster)
        reconciler.reconcile(run, rows)


REPAIRS = (
    Repair("continue a deletion that failed", _deletion_failed, _continue_deletion),
    Repair("show a deletion that is recorded", _deletion_is_recorded, _show_deletion),
    Repair("show what is in progress", _is_in_progress, _show_update),
    Repair("fail a cluster that was never created", _was_never_created, _fail_creation),
    Repair("continue what has failed and is not applied", _failed_and_unfinished, _reconcile),
    Repair("delete nodegroups again", _deletion_of_nodegroups_failed, _delete_nodegroups),
    Repair("write the status of a cluster that recovered", Case.is_failed, _write),
    Repair("update a settled cluster", _is_outdated, _update_settled),
)
