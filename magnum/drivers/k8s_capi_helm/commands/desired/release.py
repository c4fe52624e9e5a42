# SPDX-License-Identifier: Apache-2.0
"""What is desired of a cluster's release, now or after an upgrade; nothing is written.

The same functions decide as in the driver's own passes and requests: what Magnum's objects ask for,
what an upgrade brings to which machines, and what is refused.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.lookup.clusters import find_record
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import reader
from magnum.drivers.k8s_capi_helm.magnum_objects.rows.cluster_rows import MagnumRows
from magnum.drivers.k8s_capi_helm.magnum_objects.validation import validate_cluster
from magnum.drivers.k8s_capi_helm.model import (
    Chart,
    ClusterRequest,
    Json,
    LiveRelease,
    Operation,
    ReleaseRecord,
    Verb,
)
from magnum.drivers.k8s_capi_helm.model import operation as model_operation
from magnum.drivers.k8s_capi_helm.reconcile import changes
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import (
    Reconciliation,
    ReleaseSnapshot,
)
from magnum.drivers.k8s_capi_helm.reconcile.nodegroups import bisect
from magnum.drivers.k8s_capi_helm.reconcile.policy import policy_check
from magnum.drivers.k8s_capi_helm.reconcile.release import autoscaler_deployment, revisions
from magnum.drivers.k8s_capi_helm.reconcile.upgrade import plan as upgrade_plan
from magnum.drivers.k8s_capi_helm.reconcile.upgrade import upgrade
from magnum.drivers.k8s_capi_helm.values import change
from magnum.drivers.k8s_capi_helm.values.tree import live as values_live
from magnum.drivers.k8s_capi_helm.values.upgrade import deferred, upgrade_nodegroups
from magnum.drivers.k8s_capi_helm.values.upgrade import upgrade as values_upgrade

_ID = "dry-run"


@dataclasses.dataclass(frozen=True, slots=True)
class DesiredRelease:
    """The desired state of a release.

    :ivar live: the current release.
    :ivar values: that Helm gets in the end.
    :ivar notes: sentences about what is not in the values, and why.
    """

    live: LiveRelease
    chart: Chart
    values: Json
    notes: tuple[str, ...] = ()

    def manifests(self, run: Reconciliation) -> list[Json]:
        """The objects that Helm renders of it.

        :raises errors.DriverError: Helm, or the chart, refuses.
        """
        live = self.live
        return run.clients.helm.preview(live.namespace, live.name, self.chart, self.values)


def desired_release(
    run: Reconciliation, cluster: Any, template: Any | None, max_batch_size: int = 1
) -> DesiredRelease:
    """What is desired of a cluster.

    :param template: that the cluster is upgraded to; None for what Magnum's objects ask for now.
    :param max_batch_size: of the upgrade.
    :raises errors.InvalidRequest: there is no release, or the driver would refuse the upgrade.
    :raises errors.DriverError: it cannot be found out.
    """
    record, live = _read(run, cluster)
    request = reader.cluster_request(cluster, list(cluster.nodegroups), run.settings)
    request = model_operation.without_deleted(request, record)
    if template is None:
        desired = _now(run, cluster, request, record, live)
    else:
        desired = _upgraded(
            run, cluster, request, ReleaseSnapshot(record, live), template, max_batch_size
        )
    values = autoscaler_deployment.with_operators_settings(
        desired.values, desired.chart, run.settings
    )
    return dataclasses.replace(desired, values=values)


def _read(run: Reconciliation, cluster: Any) -> tuple[ReleaseRecord, LiveRelease]:
    """Record and release.

    :raises errors.InvalidRequest: one of them is missing.
    :raises errors.NotOwned: the release is another cluster's.
    :raises errors.ReleaseOutdated: Helm's record is older than the Lease says.
    """
    owner, record = find_record(run, cluster)
    live = run.clients.helm.live(owner.namespace, owner.release)
    if refused := revisions.outdated(record, live):
        raise refused
    if live is None:
        raise errors.InvalidRequest(
            "The cluster has no Helm release, so there is nothing to compare. Release "
            f"'{owner.release}' is not in namespace '{owner.namespace}'."
        )
    return record, live


def _now(
    run: Reconciliation,
    cluster: Any,
    request: ClusterRequest,
    record: ReleaseRecord,
    live: LiveRelease,
) -> DesiredRelease:
    """What the driver's next passes bring, to the end of an upgrade that is in progress."""
    desired_changes = changes.desired_changes(run, request, record, live)
    base, entries = desired_changes.base, desired_changes.entries
    if entries.waiting_error is not None:
        raise entries.waiting_error
    values, ready = deferred.expand_for_new(base.values, entries.ready, record.deferred)
    desired_values = changes.with_entries(desired_changes.target, ready)
    operations = bisect.without_nodegroups(desired_changes.operations, set(entries.refusals))
    values = change.next_values(values, desired_values, operations)
    notes = tuple(f"Nodegroup '{name}': {error}" for name, error in entries.refusals.items())
    chart = run.clients.charts.of_release(base, record.chart_digest)
    desired = DesiredRelease(live, chart, values, notes)
    operation = upgrade.pending_upgrade(record)
    if operation is None:
        return desired
    if operation.is_accepted:
        return dataclasses.replace(
            desired, values=_followed_values(request, record, operation, values)
        )
    rows = MagnumRows(cluster.obj_context, cluster, run.settings, lambda nodegroup: False)
    target = rows.upgrade_target(operation)
    current = ReleaseSnapshot(record, dataclasses.replace(base, values=values))
    result = upgrade_plan.upgrade_result(run, current, request, target, operation)
    return dataclasses.replace(desired, chart=result.chart or chart, values=result.values)


def _followed_values(
    request: ClusterRequest, record: ReleaseRecord, operation: Operation, values: Json
) -> Json:
    """The values once the nodegroups have followed an upgrade that is in progress."""
    due = upgrade_nodegroups.due_nodegroups(values, operation, request, record.deferred)
    return values_upgrade.unpin_nodegroups(
        values,
        due,
        operation.max_batch_size,
        record.deferred,
        include_shared=upgrade_nodegroups.is_complete(values, operation, request),
    )


def _upgraded(
    run: Reconciliation,
    cluster: Any,
    request: ClusterRequest,
    current: ReleaseSnapshot,
    template: Any,
    max_batch_size: int,
) -> DesiredRelease:
    """What an upgrade of the whole cluster comes to.

    :param current: record and release; both are there.
    """
    record, live = current.record, current.live
    assert record is not None and live is not None
    if pending := [operation.verb for operation in record.operations]:
        raise errors.InvalidRequest(
            "An operation is in progress, so it is not known what an upgrade would find. Wait "
            f"until it has ended: {', '.join(pending)}. Without options the command shows where "
            "it leads."
        )
    validate_cluster.validate_upgrade(cluster, template)
    following = upgrade_nodegroups.nodegroups_to_upgrade(request, live.values, template.image_id)
    operation = Operation(
        id=_ID,
        verb=Verb.UPGRADE,
        started_at=run.now,
        groups=(values_live.CONTROL_PLANE, *following),
        template=template.uuid,
        max_batch_size=max_batch_size,
    )
    target = reader.upgrade_target(cluster, cluster.nodegroups, run.settings, template)
    result = upgrade_plan.upgrade_result(run, current, request, target, operation)
    policy_check.check_upgrade_policy(
        run.settings, request, target.request, result.version, live.values
    )
    chart = result.chart or run.clients.charts.of_release(live, record.chart_digest)
    return DesiredRelease(live, chart, result.values)
