# SPDX-License-Identifier: Apache-2.0
"""Begin a request: set Magnum's status and record the pending operation."""

from __future__ import annotations

import dataclasses
from typing import Any

from oslo_log import log as logging
from oslo_utils import uuidutils

from magnum.drivers.k8s_capi_helm import deadline, errors
from magnum.drivers.k8s_capi_helm.handlers.entry import reconciliation
from magnum.drivers.k8s_capi_helm.handlers.tasks import status_task
from magnum.drivers.k8s_capi_helm.magnum_objects import state
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import reader, saving, writer
from magnum.drivers.k8s_capi_helm.magnum_objects.rows.writer import Status
from magnum.drivers.k8s_capi_helm.model import (
    log_scope,
    NOTHING,
    Operation,
    ReleaseRecord,
    ResolvedNames,
    Verb,
)
from magnum.drivers.k8s_capi_helm.model import operation as model_operation
from magnum.drivers.k8s_capi_helm.model.management_cluster import release_of
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import (
    Reconciliation,
    ReleaseSnapshot,
)
from magnum.drivers.k8s_capi_helm.reconcile.nodegroups import lost_request
from magnum.drivers.k8s_capi_helm.reconcile.process.clients import Clients
from magnum.drivers.k8s_capi_helm.status.causes import reasons
from magnum.drivers.k8s_capi_helm.values.tree import live as values_live

LOG = logging.getLogger(__name__)

#: Seconds that there are at least to write a request down.
_WRITING = 2.0


@dataclasses.dataclass(frozen=True, slots=True)
class NewOperation:
    """What a request asks for, besides what Magnum's objects say.

    :ivar nodegroup: name of the nodegroup that it is about, "" for the cluster.
    :ivar must_be_recorded: the rows alone do not say what is asked for.
    :ivar target_node_count: machines that an autoscaled nodegroup is to be given.
    :ivar fields: of a nodegroup's update, the fields that it changes.
    :ivar previous_bounds: of an update that changes them, what they were.
    :ivar nodegroup_uuid: of a nodegroup's creation or deletion, uuid of its row.
    :ivar resolved_names: what the names of the request stand for, as the person who asks sees it.
    """

    verb: Verb
    nodegroup: str = ""
    must_be_recorded: bool = False
    target_node_count: int | None = None
    fields: tuple[str, ...] = ()
    previous_bounds: tuple[int | None, int | None] | None = None
    nodegroup_uuid: str = ""
    resolved_names: ResolvedNames = NOTHING


def begin(
    run: Reconciliation, cluster: Any, new: NewOperation
) -> tuple[Operation, ReleaseRecord | None]:
    """Save the intent: Magnum's status first, then the pending operation.

    The rows are what is carried out; the operation adds when it began and when it has to be
    through. When the management cluster is away the operation is simply not known there, and
    the periodic pass works from the rows.

    :returns: the operation, and the record that it was written into; None where it was not.
    :raises errors.DriverError: the operation could not be written down, and had to be.
    """
    operation, record = _operation(run, cluster, new), None
    try:
        record = _record(run, cluster, operation)
    except errors.DriverError as error:
        if new.must_be_recorded or not error.retryable:
            raise
        LOG.warning("Cluster %s: %s %s", cluster.uuid, error, error.detail)
        if new.verb is Verb.NODEGROUP_CREATE:
            # Off the record and without a reason it would be one that is still being checked.
            for nodegroup in _nodegroups_of(cluster, new.nodegroup_uuid):
                saving.save(nodegroup, status_reason=str(error))
    if new.verb is Verb.NODEGROUP_DELETE:
        # A request at another worker that came first may have written its own status since.
        for nodegroup in _nodegroups_of(cluster, new.nodegroup_uuid):
            writer.mark_in_progress(nodegroup, Status.DELETE_IN_PROGRESS)
    if new.verb is Verb.NODEGROUP_CREATE and not _nodegroups_of(cluster, new.nodegroup_uuid):
        # It was deleted meanwhile, and nobody else would ever take this off the record.
        namespace = reader.cluster_namespace(cluster, run.settings)
        record = run.clients.leases.finish(namespace, release_of(cluster.stack_id), [operation.id])
    return operation, record


def _operation(run: Reconciliation, cluster: Any, new: NewOperation) -> Operation:
    """The pending operation, and Magnum's status that says so."""
    deleting = new.verb is Verb.DELETE
    writer.mark_in_progress(
        cluster, Status.DELETE_IN_PROGRESS if deleting else Status.UPDATE_IN_PROGRESS
    )
    now, options = run.clients.clock(), run.settings.capi_helm
    minutes = options.delete_timeout if deleting else options.update_timeout
    called = reader.entry_names_of(cluster.nodegroups)
    return Operation(
        id=str(new.verb) if deleting else f"{new.verb}-{uuidutils.generate_uuid()[:8]}",
        verb=new.verb,
        started_at=now,
        # One whose row has gone by now is about nobody any more.
        groups=(called.get(new.nodegroup, new.nodegroup),) if new.nodegroup else (),
        deadline=state.deadline(now, minutes),
        target_node_count=new.target_node_count,
        fields=new.fields,
        previous_bounds=new.previous_bounds,
        nodegroup_uuid=new.nodegroup_uuid,
        resolved_names=new.resolved_names,
        request_ids=log_scope.request_ids(),
    )


def _nodegroups_of(cluster: Any, uuid: str) -> list[Any]:
    return [nodegroup for nodegroup in cluster.nodegroups if nodegroup.uuid == uuid]


def retry(
    run: Reconciliation, cluster: Any, nodegroup: Any, operation: Operation
) -> ReleaseRecord | None:
    """Write an operation down again, now that the row says what it is about.

    A pass that looked in between has found nothing to do, and may have taken it off the record.

    :returns: the record as it is then, None while nobody can tell.
    """
    try:
        namespace = reader.cluster_namespace(cluster, run.settings)
        record = run.clients.leases.read(namespace, release_of(cluster.stack_id))
        if not reassert_deletion(cluster, nodegroup, record) and not any(
            recorded.id == operation.id for recorded in (record.operations if record else ())
        ):
            record = _record(run, cluster, operation)
    except errors.DriverError as error:
        LOG.warning("Cluster %s: %s %s", cluster.uuid, error, error.detail)
        return None
    return record


def reassert_deletion(cluster: Any, nodegroup: Any, record: ReleaseRecord | None) -> bool:
    """Whether a nodegroup was asked to go meanwhile, at another worker; its row says so again.

    :param record: as it was after the row was written.
    """
    name = reader.entry_names_of(cluster.nodegroups).get(nodegroup.name, nodegroup.name)
    is_deleted = model_operation.is_nodegroup_deleted(record, nodegroup, name)
    if is_deleted:
        writer.mark_in_progress(nodegroup, Status.DELETE_IN_PROGRESS)
    return is_deleted


def _record(run: Reconciliation, cluster: Any, operation: Operation) -> ReleaseRecord:
    namespace = reader.cluster_namespace(cluster, run.settings)
    # Also when a cloud that is slow has used the time up: some requests are nowhere else.
    with deadline.at_least(_WRITING):
        return run.clients.leases.add(namespace, release_of(cluster.stack_id), operation)


def not_allowed(
    run: Reconciliation, cluster: Any, nodegroup: Any, release_snapshot: ReleaseSnapshot
) -> bool:
    """Whether a nodegroup is being deleted or was never made, so that nothing can be asked of it.

    Its row, whose status Magnum has overwritten, says so again, and nothing of the request is kept.
    Raising would leave the row UPDATE_FAILED, which is rendered like any group that there is.

    :param release_snapshot: record and release; what cannot be read is None, and the passes
        work from the rows then.
    """
    name = reader.entry_names_of(cluster.nodegroups).get(nodegroup.name)
    if name is None:  # its row has gone meanwhile
        nodegroup.obj_reset_changes()
        return True
    if model_operation.is_nodegroup_deleted(release_snapshot.record, nodegroup, name):
        status, sentence = Status.DELETE_IN_PROGRESS, "is being deleted."
    elif _was_never_created(run.clients, nodegroup, name, release_snapshot):
        status, sentence = (
            Status.CREATE_FAILED,
            "was never created. Delete it, and create it again.",
        )
    else:
        return False
    nodegroup.obj_reset_changes()
    reason = reasons.refused_reason(f"Nodegroup '{nodegroup.name}' {sentence}")
    saving.save(nodegroup, status=status, status_reason=reason)
    return True


def _was_never_created(
    clients: Clients, nodegroup: Any, name: str, release_snapshot: ReleaseSnapshot
) -> bool:
    live, record = release_snapshot.live, release_snapshot.record
    if (
        nodegroup.role == reader.MASTER
        or live is None
        or name in values_live.node_groups(live.values)
    ):
        return False
    is_recent = lost_request.is_recent(clients, clients.clock())
    if reader.may_be_unchecked(nodegroup) and is_recent(nodegroup):
        return False
    operations = record.operations if record else ()
    return not model_operation.is_creation_recorded(operations, name, nodegroup.uuid)


def reconcile_now(
    run: Reconciliation, context: Any, cluster: Any, record: ReleaseRecord | None = None
) -> None:
    """The first pass of a request that is written down; what it cannot do the periodic one does.

    It does not wait for the holder of the lock, who applies what is on record by now.
    Nothing is raised, whatever happens: Magnum would take the request's fields back in its rows and
    call it failed, and the passes would carry it out or undo it all the same.

    :param record: of the release, as it was read or written when Magnum's objects said what is
        asked for; None to read it.
    """
    if record is not None and run.clients.leases.is_locked(record):
        LOG.info(
            "Cluster %s: the request is recorded. %s holds the lock of its release and applies it.",
            cluster.uuid,
            record.holder,
        )
        return
    try:
        first_pass = reconciliation.of_periodic_task(run.clients, run.settings)
        trigger = reconciliation.Trigger.REQUEST
        status_task.advance(first_pass, context, cluster, trigger=trigger, record=record)
    except Exception:  # whatever it is, the intent stands, and a later pass meets it again
        LOG.exception(
            "Cluster %s: the first pass of a request failed with an unexpected error; the status "
            "task continues.",
            cluster.uuid,
        )
