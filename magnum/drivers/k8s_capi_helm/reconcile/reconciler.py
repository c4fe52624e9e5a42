# SPDX-License-Identifier: Apache-2.0
"""One reconciliation: apply the difference between records and release under the lock.

A pass renders from the database under the lock and skips Helm when the live release already says
so: of many requests that arrive together the first pass applies all, the others find nothing to do.
"""

from __future__ import annotations

import dataclasses

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.lease import HeldLease
from magnum.drivers.k8s_capi_helm.model import (
    ClusterRequest,
    DeferredChange,
    LiveRelease,
    Operation,
    ReleaseRecord,
)
from magnum.drivers.k8s_capi_helm.model import operation as model_operation
from magnum.drivers.k8s_capi_helm.model import request as model_request
from magnum.drivers.k8s_capi_helm.reconcile import (
    apply,
    autoscaler_deployment,
    autoscaling,
    changes,
    install,
    lost_nodegroup_request,
    prerequisites,
    revisions,
    upgrade,
)
from magnum.drivers.k8s_capi_helm.reconcile.cluster_rows import ClusterRows
from magnum.drivers.k8s_capi_helm.reconcile.context import Reconciliation, ReleaseSnapshot, UNKNOWN
from magnum.drivers.k8s_capi_helm.values import change, deferred, upgrade_nodegroups
from magnum.drivers.k8s_capi_helm.values import upgrade as values_upgrade

LOG = logging.getLogger(__name__)


def reconcile(
    run: Reconciliation,
    cluster_rows: ClusterRows,
    *,
    wait_for_lock: bool = True,
    snapshot: ReleaseSnapshot = UNKNOWN,
) -> ReleaseSnapshot | None:
    """Bring the release to what the rows ask for, and an upgrade its next step on.

    :param wait_for_lock: whether to wait for somebody else who works on the release.
    :param snapshot: what was read a moment ago; what is None there is read.
    :returns: record and release as they are then; None where that is not known.
    :raises errors.DriverError: it is not what they ask for yet. A retryable one (somebody else
        works on the release, the management cluster is away) is left to a later pass.
    """
    ports, request = run.clients, cluster_rows.request()
    record, live = revisions.read_record_and_release(
        ports, request.namespace, request.release, snapshot.record, snapshot.live
    )
    observed = snapshot.observed if live is snapshot.live else None
    request = model_operation.without_deleted(request, record)
    due = upgrade.is_due(ports, record, live, request) or autoscaler_deployment.is_due(
        live, run.settings
    )
    if is_deployed(live, request, record) and not (due or autoscaling.is_due(record)):
        return ReleaseSnapshot(record, live, observed)
    if live is None and record and not prerequisites.has_credential(ports, request):
        interrupted = prerequisites.create_interrupted(ports, record, run.now)
        if interrupted.retryable:  # the request that creates it needs the lock
            raise interrupted
    lock_wait = run.settings.capi_helm.lock_wait if wait_for_lock else 0
    with ports.leases.acquire(request.namespace, request.release, wait=lock_wait) as held_lease:
        if live is None and not prerequisites.has_credential(ports, request):
            raise prerequisites.create_interrupted(ports, held_lease.record, run.now)
        live = reconcile_held(run, held_lease, cluster_rows)
    if held_lease.final_record is None:
        return None
    return ReleaseSnapshot(held_lease.final_record, live, is_changed=True)


def reconcile_held(
    run: Reconciliation,
    held_lease: HeldLease,
    cluster_rows: ClusterRows,
    *,
    created: install.CreatedCluster | None = None,
) -> LiveRelease | None:
    """The same for a caller that holds the lock already.

    :param created: a new cluster, as it was checked a moment ago; None for any other one.
    :returns: the release as it is then.
    :raises errors.DriverError: as :func:`reconcile`.
    """
    ports, request = run.clients, cluster_rows.request()
    ports.evaluations.forget(request.release)
    record, live = revisions.read_record_and_release(ports, request.namespace, request.release)
    if model_operation.is_being_deleted(record):
        raise errors.Busy("The cluster is being deleted.")
    # Read after the rows: what a later request has written over a deletion there was before that.
    request = model_operation.without_deleted(request, record)
    if not is_deployed(live, request, record) or autoscaler_deployment.is_due(live, run.settings):
        is_unfinished = live is not None
        if live is None:
            # What was taken over is as it was: what the rows ask for besides comes now.
            live, adopted = _install(run, held_lease, cluster_rows, request, created)
            is_unfinished = adopted and not is_deployed(live, request, record)
        if is_unfinished:
            live = changes.change_release(
                run, held_lease, cluster_rows, request, ReleaseSnapshot(record, live)
            )
            if upgrade.pending(record) or autoscaling.is_due(record):
                # New nodegroups may have joined it, and refused changes are off the record.
                record = ports.leases.read(request.namespace, request.release)
    if live is not None and record is not None and autoscaling.is_due(record):
        autoscaling.set_replicas(ports, live, record)
    if live is not None and upgrade.is_due(ports, record, live, request):
        live = _upgrade(run, held_lease, cluster_rows, live, record)
    return live


def _upgrade(
    run: Reconciliation,
    held_lease: HeldLease,
    cluster_rows: ClusterRows,
    live: LiveRelease,
    record: ReleaseRecord | None,
) -> LiveRelease:
    """Take the next step of an upgrade: begin with the control plane, or let the groups follow."""
    ports, conf, operation = run.clients, run.settings, upgrade.pending(record)
    if operation is None or record is None:
        return live
    request, deferred_changes = (
        model_operation.without_deleted(cluster_rows.request(), record),
        record.deferred,
    )
    if operation.accepted:
        return _upgrade_nodegroups(run, held_lease, request, live, operation, deferred_changes)
    target = cluster_rows.upgrade_target(operation)
    operation = upgrade_nodegroups.include_new(operation, request, live.values, target)
    facts = upgrade.software_facts(run.cloud(), target, operation, conf)
    values, deferred_changes = upgrade.begin_upgrade(
        live.values, request, target, operation, facts, conf, deferred_changes
    )
    new_chart = upgrade.chart(ports, operation, target, live, conf)
    chart = new_chart or ports.charts.of_release(live, held_lease.record.chart_digest)
    # Once Helm has it and the rows follow, they do not tell any more what is new.
    ports.leases.defer(live.namespace, live.name, deferred_changes)
    own_images = upgrade_nodegroups.own_images(request, live.values)
    if values != live.values or chart.digest != held_lease.record.chart_digest:
        live = apply.apply_release(
            run, held_lease, request, apply.Revision(chart, values, (operation,))
        )
    ports.leases.defer(
        live.namespace, live.name, upgrade.waiting_nodegroups(deferred_changes, operation, values)
    )
    held_lease.check()
    cluster_rows.accept_upgrade(operation, target, own_images - frozenset(operation.groups))
    ports.leases.add(live.namespace, live.name, dataclasses.replace(operation, accepted=True))
    return live


def _upgrade_nodegroups(
    run: Reconciliation,
    held_lease: HeldLease,
    request: ClusterRequest,
    live: LiveRelease,
    operation: Operation,
    deferred_changes: tuple[DeferredChange, ...],
) -> LiveRelease:
    """Let the nodegroups follow whose turn it is, once an upgrade is accepted."""
    ports = run.clients
    due_names = upgrade_nodegroups.due_nodegroups(live.values, operation, request, deferred_changes)
    is_complete = upgrade_nodegroups.is_complete(live.values, operation, request)
    values = values_upgrade.unpin_nodegroups(
        live.values, due_names, operation.max_batch_size, deferred_changes, shared=is_complete
    )
    if values != live.values:
        old_chart = ports.charts.of_release(live, held_lease.record.chart_digest)
        live = apply.apply_release(
            run, held_lease, request, apply.Revision(old_chart, values, (operation,))
        )
    remaining = deferred.left_over(deferred_changes, due_names, values, shared=is_complete)
    ports.leases.defer(live.namespace, live.name, remaining)
    return live


def is_deployed(
    live: LiveRelease | None, request: ClusterRequest, record: ReleaseRecord | None
) -> bool:
    """Whether Helm has deployed everything that the rows ask for."""
    if live is None or live.status != "deployed":
        return False
    return not change.pending_changes(live.values, request, record.operations if record else ())


def is_applied(
    live: LiveRelease | None, request: ClusterRequest, record: ReleaseRecord | None
) -> bool:
    """Whether the release is as it was asked for, an upgrade and numbers of machines included."""
    operation = upgrade.pending(record)
    is_begun = operation is None or operation.accepted
    return is_begun and not autoscaling.is_due(record) and is_deployed(live, request, record)


def is_joining(
    live: LiveRelease | None, request: ClusterRequest, record: ReleaseRecord | None
) -> bool:
    """Whether a release lacks nothing but nodegroups whose requests are still being checked.

    Their conductor may have died; the groups beside them do not wait until that is known.
    """
    if live is None:
        return False
    operations = record.operations if record else ()
    return is_applied(
        live, lost_nodegroup_request.without_unvalidated(request, operations, live.values), record
    )


def _install(
    run: Reconciliation,
    held_lease: HeldLease,
    cluster_rows: ClusterRows,
    request: ClusterRequest,
    created: install.CreatedCluster | None,
) -> tuple[LiveRelease, bool]:
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
