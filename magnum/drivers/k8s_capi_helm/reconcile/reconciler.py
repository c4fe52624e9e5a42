# SPDX-License-Identifier: Apache-2.0
"""One reconciliation: apply the difference between records and release under the lock.

A pass renders from the database under the lock and skips Helm when the live release already says
so. Of many requests that arrive together the first one takes the lock, and the others do not wait:
each has recorded what it asks for, and the holder, which compares once more after releasing the
lock, applies that, too.
"""

from __future__ import annotations

import dataclasses

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import deadline, errors
from magnum.drivers.k8s_capi_helm.lease import HeldLease
from magnum.drivers.k8s_capi_helm.model import (
    ClusterRequest,
    Operation,
)
from magnum.drivers.k8s_capi_helm.model import operation as model_operation
from magnum.drivers.k8s_capi_helm.model import request as model_request
from magnum.drivers.k8s_capi_helm.reconcile import changes, install
from magnum.drivers.k8s_capi_helm.reconcile.context.cluster_rows import ClusterRows
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import (
    AppliedRelease,
    Reconciliation,
    ReleaseSnapshot,
    UNKNOWN,
)
from magnum.drivers.k8s_capi_helm.reconcile.nodegroups import autoscaling
from magnum.drivers.k8s_capi_helm.reconcile.observe import newer_release, pending
from magnum.drivers.k8s_capi_helm.reconcile.ownership import adoption
from magnum.drivers.k8s_capi_helm.reconcile.release import (
    apply,
    autoscaler_deployment,
    prerequisites,
    revisions,
)
from magnum.drivers.k8s_capi_helm.reconcile.upgrade import plan as upgrade_plan
from magnum.drivers.k8s_capi_helm.reconcile.upgrade import upgrade
from magnum.drivers.k8s_capi_helm.values import change
from magnum.drivers.k8s_capi_helm.values.upgrade import deferred, upgrade_nodegroups
from magnum.drivers.k8s_capi_helm.values.upgrade import upgrade as values_upgrade

LOG = logging.getLogger(__name__)
#: How often one reconciliation takes the lock at most: requests that keep arriving do not occupy it
#: for ever, and the next periodic task continues.
_ROUNDS = 4


def reconcile(
    run: Reconciliation,
    cluster_rows: ClusterRows,
    *,
    lock_wait: float = 0,
    snapshot: ReleaseSnapshot = UNKNOWN,
) -> ReleaseSnapshot | None:
    """Bring the release to what the rows ask for, and an upgrade its next step on.

    :param lock_wait: seconds to wait for another holder of the lock.
    :param snapshot: what was read a moment ago; what is None there is read.
    :returns: record and release as they are then; None where that is not known.
    :raises errors.LockHeld: another holder has the lock, and applies what is on record by now.
    :raises errors.DriverError: it is not what the rows ask for yet. A retryable one (the lock is
        held, the management cluster does not answer) is left to a later pass.
    """
    clients, request = run.clients, cluster_rows.request()
    record, live = revisions.read_record_and_release(
        clients, request.namespace, request.release, snapshot.record, snapshot.live
    )
    request = newer_release.correct_rows(cluster_rows, request, record, live)
    remaining = model_operation.without_deleted(request, record)
    current = upgrade.read_objects(run, snapshot.with_release(record, live), remaining)
    due = upgrade.is_step_due(
        record, live, remaining, current.objects
    ) or autoscaler_deployment.is_due(live, run.settings)
    if not (due or pending.is_pending(request, record, live)):
        return current
    applied = _reconcile_locked(run, cluster_rows, current, request, lock_wait)
    for _ in range(_ROUNDS - 1):
        if applied is None or deadline.is_expired():
            break
        # A request that has been recorded since has found the lock held, and has ended.
        handled = request, record.operations if record else ()
        request, record = cluster_rows.request(), applied.record
        is_new = handled != (request, record.operations if record else ())
        if not is_new or not pending.is_pending(request, record, applied.live):
            break
        applied = _reconcile_locked(run, cluster_rows, applied, request)
    return applied


def _reconcile_locked(
    run: Reconciliation,
    cluster_rows: ClusterRows,
    current: ReleaseSnapshot,
    request: ClusterRequest,
    lock_wait: float = 0,
) -> ReleaseSnapshot | None:
    """Take the lock and reconcile; as :func:`reconcile`.

    :param current: what was read before.
    """
    clients, before, live = run.clients, current.objects, current.live
    if live is None and current.record:
        adoption.require_cluster(run, current.record, request)
    if live is None and current.record and not prerequisites.has_credential(clients, request):
        interrupted = prerequisites.create_interrupted(clients, current.record, run.now)
        if interrupted.retryable:  # the request that creates it needs the lock
            raise interrupted
    with clients.leases.acquire(request.namespace, request.release, wait=lock_wait) as held_lease:
        if live is None and not prerequisites.has_credential(clients, request):
            raise prerequisites.create_interrupted(clients, held_lease.record, run.now)
        current = reconcile_held(run, held_lease, cluster_rows, snapshot=current)
    if held_lease.final_record is None:
        return None
    # Who had the lock before may have changed them, without a new revision too.
    objects = None if current.objects is before else current.objects
    return dataclasses.replace(
        current, record=held_lease.final_record, observed=None, objects=objects, is_changed=True
    )


def reconcile_held(
    run: Reconciliation,
    held_lease: HeldLease,
    cluster_rows: ClusterRows,
    *,
    created_cluster: install.CreatedCluster | None = None,
    snapshot: ReleaseSnapshot = UNKNOWN,
) -> ReleaseSnapshot:
    """The same for a caller that holds the lock already.

    :param created_cluster: a new cluster, as it was checked a moment ago; None for any other one.
    :param snapshot: what was read before the lock was taken; record and release are read again.
    :returns: record, release and objects as they are then.
    :raises errors.DriverError: as :func:`reconcile`.
    """
    clients, request = run.clients, cluster_rows.request()
    clients.evaluations.forget(request.release)
    record, live = revisions.read_record_and_release(clients, request.namespace, request.release)
    if model_operation.is_being_deleted(record):
        raise errors.Busy("The cluster is being deleted.")
    request = newer_release.correct_rows(cluster_rows, request, record, live)
    # Read after the rows: what a later request has written over a deletion there was before that.
    request = model_operation.without_deleted(request, record)
    current = snapshot.with_release(record, live)
    if not pending.is_deployed(live, request, record) or autoscaler_deployment.is_due(
        live, run.settings
    ):
        current = _deploy(run, held_lease, cluster_rows, request, current, created_cluster)
    live, record = current.live, current.record
    if live is not None and record is not None and autoscaling.is_due(record):
        autoscaling.set_replicas(clients, live, record)
        current = dataclasses.replace(current, objects=None)
    current = upgrade.read_objects(run, current, request)
    if upgrade.is_step_due(record, live, request, current.objects):
        current = _upgrade(run, held_lease, cluster_rows, current)
    return current


def _deploy(
    run: Reconciliation,
    held_lease: HeldLease,
    cluster_rows: ClusterRows,
    request: ClusterRequest,
    current: ReleaseSnapshot,
    created_cluster: install.CreatedCluster | None,
) -> ReleaseSnapshot:
    """Create the release, or change it to what Magnum's objects ask for."""
    record, is_unfinished = current.record, current.live is not None
    if current.live is None:
        # What was taken over is as it was: what the rows ask for besides comes now.
        applied, adopted = _install(run, held_lease, cluster_rows, request, created_cluster)
        current = _applied(current, applied)
        is_unfinished = adopted and not pending.is_deployed(applied.live, request, record)
    if is_unfinished:
        applied = changes.change_release(run, held_lease, cluster_rows, request, current)
        if upgrade.pending_upgrade(record) or autoscaling.is_due(record):
            # New nodegroups may have joined it, and refused changes are off the record.
            record = run.clients.leases.read(request.namespace, request.release)
        current = ReleaseSnapshot(record, applied.live, objects=applied.objects)
    return current


def _upgrade(
    run: Reconciliation,
    held_lease: HeldLease,
    cluster_rows: ClusterRows,
    current: ReleaseSnapshot,
) -> ReleaseSnapshot:
    """Take the next step of an upgrade: begin with the control plane, or let the groups follow."""
    clients, live, record = run.clients, current.live, current.record
    operation = upgrade.pending_upgrade(record)
    if operation is None or record is None or live is None:
        return current
    request = model_operation.without_deleted(cluster_rows.request(), record)
    if operation.is_accepted:
        return _upgrade_nodegroups(run, held_lease, request, current, operation)
    target = cluster_rows.upgrade_target(operation)
    operation = upgrade_nodegroups.include_new(operation, request, live.values, target)
    plan = upgrade_plan.plan_upgrade(run, request, target, operation)
    values, changes_for_workers = upgrade_plan.begin_upgrade(
        live.values, plan, run.settings, record.deferred
    )
    new_chart = upgrade.chart(clients, operation, target, live, run.settings)
    chart = new_chart or clients.charts.of_release(live, held_lease.record.chart_digest)
    # Once Helm has it and the rows follow, they do not tell any more what is new.
    clients.leases.defer(live.namespace, live.name, changes_for_workers)
    own_images = upgrade_nodegroups.nodegroups_with_own_image(request, live.values)
    if values != live.values or chart.digest != held_lease.record.chart_digest:
        revision = apply.Revision(chart, values, (operation,))
        current = _applied(current, apply.apply_release(run, held_lease, request, revision))
    remaining = upgrade_plan.waiting_nodegroups(changes_for_workers, operation, values)
    clients.leases.defer(live.namespace, live.name, remaining)
    held_lease.check()
    cluster_rows.accept_upgrade(operation, target, own_images - frozenset(operation.groups))
    clients.leases.add(live.namespace, live.name, dataclasses.replace(operation, is_accepted=True))
    return current


def _applied(current: ReleaseSnapshot, applied: AppliedRelease) -> ReleaseSnapshot:
    return dataclasses.replace(current, live=applied.live, objects=applied.objects)


def _upgrade_nodegroups(
    run: Reconciliation,
    held_lease: HeldLease,
    request: ClusterRequest,
    current: ReleaseSnapshot,
    operation: Operation,
) -> ReleaseSnapshot:
    """Let the nodegroups follow whose turn it is, once an upgrade is accepted."""
    clients, live, record = run.clients, current.live, current.record
    assert live is not None and record is not None
    due_names = upgrade_nodegroups.due_nodegroups(live.values, operation, request, record.deferred)
    is_complete = upgrade_nodegroups.is_complete(live.values, operation, request)
    values = values_upgrade.unpin_nodegroups(
        live.values,
        due_names,
        operation.max_batch_size,
        record.deferred,
        include_shared=is_complete,
    )
    if values != live.values:
        old_chart = clients.charts.of_release(live, held_lease.record.chart_digest)
        revision = apply.Revision(old_chart, values, (operation,))
        current = _applied(current, apply.apply_release(run, held_lease, request, revision))
    remaining = deferred.left_over(record.deferred, due_names, values, include_shared=is_complete)
    clients.leases.defer(live.namespace, live.name, remaining)
    return current


def _install(
    run: Reconciliation,
    held_lease: HeldLease,
    cluster_rows: ClusterRows,
    request: ClusterRequest,
    created: install.CreatedCluster | None,
) -> tuple[AppliedRelease, bool]:
    """Create a release that does not exist (any more).

    :returns: the release, and whether its objects existed and were adopted.
    """
    request = model_request.initial_nodegroups(request)
    plan = install.plan_install(
        run, held_lease.record, request, cluster_rows.request_with_deleted, created
    )
    prerequisites.record_start(run.clients, request, plan.chart, held_lease.record)
    operations = () if plan.adopts else change.pending_changes(None, request)
    revision = apply.Revision(plan.chart, plan.values, operations, adopts=plan.adopts)
    return apply.apply_release(run, held_lease, request, revision), plan.adopts
