# SPDX-License-Identifier: Apache-2.0
"""Changes of a deployed release: planned, applied as far as Helm accepts them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
import dataclasses
import functools

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.lease import HeldLease
from magnum.drivers.k8s_capi_helm.model import (
    Chart,
    ClusterRequest,
    Json,
    LiveRelease,
    Operation,
    ReleaseRecord,
    Verb,
)
from magnum.drivers.k8s_capi_helm.reconcile.context.cluster_rows import ClusterRows
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import (
    AppliedRelease,
    Reconciliation,
    ReleaseSnapshot,
)
from magnum.drivers.k8s_capi_helm.reconcile.nodegroups import (
    autoscaling,
    bisect,
    lost_request,
    nodegroups,
)
from magnum.drivers.k8s_capi_helm.reconcile.ownership import adoption
from magnum.drivers.k8s_capi_helm.reconcile.release import apply, autoscaler_deployment
from magnum.drivers.k8s_capi_helm.reconcile.upgrade import upgrade
from magnum.drivers.k8s_capi_helm.values import change


@dataclasses.dataclass(frozen=True, slots=True)
class DesiredChanges:
    """What Magnum's objects ask of a deployed release.

    :ivar request: of Magnum's objects, without nodegroups that are still being validated.
    :ivar base: the release without what only a failed revision says of nodegroups.
    :ivar target: values with everything that is asked for.
    :ivar operations: what *target* carries out.
    :ivar recorded_operations: the pending operations of the Lease.
    :ivar new: nodegroups that are to be added.
    :ivar entries: of the new nodegroups, and which of them are refused.
    """

    request: ClusterRequest
    base: LiveRelease
    target: Json
    operations: tuple[Operation, ...]
    recorded_operations: tuple[Operation, ...]
    new: tuple[str, ...]
    entries: nodegroups.NodegroupEntries


@dataclasses.dataclass(frozen=True, slots=True)
class ChangePlan(DesiredChanges):
    """What a deployed release is to become.

    :ivar changed_nodegroups: nodegroups that exist and are to be changed, and the control plane.
    :ivar adopts: whether objects that exist are made the release's.
    """

    changed_nodegroups: tuple[str, ...]
    chart: Chart
    adopts: bool


def change_release(
    run: Reconciliation,
    held_lease: HeldLease,
    cluster_rows: ClusterRows,
    request: ClusterRequest,
    snapshot: ReleaseSnapshot,
) -> AppliedRelease:
    """Change a release; what cannot be done of single nodegroups is refused alone.

    :param snapshot: record and release; there is a release.
    :returns: the release as it is then.
    :raises errors.DriverError: the release cannot be changed, or not yet.
    """
    plan = _plan(run, held_lease, cluster_rows, request, snapshot)
    refused: list[str] = []

    def refuse(name: str, error: errors.DriverError) -> None:
        if name in plan.new:
            refused.append(name)
            cluster_rows.reject_nodegroup(name, error)
        else:
            _roll_back(run, cluster_rows, plan, name, error)

    for name, error in plan.entries.refusals.items():
        cluster_rows.reject_nodegroup(name, error)
    attempt = functools.partial(_attempt, run, held_lease, plan)
    # What runs now goes through Helm once more before a change of it is blamed.
    known_good = functools.partial(attempt, (), force=bool(plan.changed_nodegroups))
    names = [*plan.entries.ready, *plan.changed_nodegroups]
    applied = bisect.apply_with_bisect(names, attempt, known_good, refuse)
    if plan.entries.waiting_error is not None:
        raise plan.entries.waiting_error
    for nodegroup in plan.request.node_groups:
        if nodegroup.is_new and nodegroup.name in refused:
            applied = dataclasses.replace(applied, objects=None)
            nodegroups.delete_objects(
                run.clients, request.namespace, request.release, nodegroup.name
            )
    return applied


def desired_changes(
    run: Reconciliation, request: ClusterRequest, record: ReleaseRecord | None, live: LiveRelease
) -> DesiredChanges:
    """What is asked of a release; nothing is touched.

    The entries of new nodegroups are in the target without what upgrades have brought meanwhile.

    :raises errors.DriverError: the cloud or the management cluster cannot be asked.
    """
    base, recorded = bisect.accepted_release(run.clients, live), record.operations if record else ()
    request = lost_request.without_unvalidated(request, recorded, base.values)
    operations = change.pending_changes(base.values, request, recorded)
    new = tuple(
        n for entry in operations if entry.verb is Verb.NODEGROUP_CREATE for n in entry.groups
    )
    new_requests = [nodegroup for nodegroup in request.node_groups if nodegroup.name in new]
    entries = nodegroups.render_new(new_requests, request, recorded, run.cloud, run.settings, base)
    target = change.with_sizes(base.values, request, recorded)
    autoscaling.add_capacity(base, target, request, recorded, run.cloud)
    return DesiredChanges(request, base, target, operations, tuple(recorded), new, entries)


def with_entries(target: Json, ready: Mapping[str, Json]) -> Json:
    """A target with the entries of new nodegroups.

    :param ready: entries by name.
    """
    entries = [ready.get(entry["name"], entry) for entry in target["nodeGroups"]]
    return {**target, "nodeGroups": entries}


def _plan(
    run: Reconciliation,
    held_lease: HeldLease,
    cluster_rows: ClusterRows,
    request: ClusterRequest,
    snapshot: ReleaseSnapshot,
) -> ChangePlan:
    """The plan; of the release nothing is touched.

    :raises errors.DriverError: the cloud or the management cluster cannot be asked.
    """
    clients, record, live = run.clients, snapshot.record, snapshot.live
    assert live is not None
    desired = desired_changes(run, request, record, live)
    current = dataclasses.replace(snapshot, live=desired.base)
    base, ready = upgrade.with_new_nodegroups(run, current, desired.request, desired.entries.ready)
    chart = upgrade.interrupted_chart(clients, record, live, cluster_rows.upgrade_target)
    return ChangePlan(
        request=desired.request,
        base=base,
        target=with_entries(desired.target, ready),
        operations=desired.operations,
        recorded_operations=desired.recorded_operations,
        new=desired.new,
        entries=desired.entries,
        changed_nodegroups=bisect.changed_nodegroups(desired.operations),
        chart=chart or clients.charts.of_release(base, held_lease.record.chart_digest),
        adopts=adoption.is_adoption_interrupted(live, held_lease.record),
    )


def _attempt(
    run: Reconciliation,
    held_lease: HeldLease,
    plan: ChangePlan,
    members: Collection[str],
    *,
    force: bool = False,
) -> AppliedRelease:
    """Bring the release to the plan as far as it is about *members* (nodegroups).

    :param force: whether Helm runs also where nothing differs.
    """
    operations = bisect.without_nodegroups(
        plan.operations, {*plan.new, *plan.changed_nodegroups} - set(members)
    )
    values = change.next_values(plan.base.values, plan.target, operations)
    values = autoscaler_deployment.with_operators_settings(values, plan.chart, run.settings)
    deployed = None if force else run.clients.helm.live(plan.base.namespace, plan.base.name)
    if deployed is not None and autoscaler_deployment.has_values(deployed, values, run.settings):
        return AppliedRelease(deployed)
    revision = apply.Revision(plan.chart, values, operations, adopts=plan.adopts)
    return apply.apply_release(run, held_lease, plan.request, revision)


def _roll_back(
    run: Reconciliation,
    cluster_rows: ClusterRows,
    plan: ChangePlan,
    name: str,
    error: errors.DriverError,
) -> None:
    """Roll the request about a nodegroup back that Helm does not take; it stays as it is."""
    if bisect.has_newer_request(plan.request, cluster_rows.request(), name):
        return
    fields, ids = bisect.previous_fields(
        plan.base, plan.request, plan.recorded_operations, plan.operations, name
    )
    bisect.remove_node_annotations(run.clients, plan.request, name)
    cluster_rows.restore_nodegroup(name, error, fields)
    # Off the record last: as long as it is on it, the next pass finds out what is to be restored.
    run.clients.leases.finish(plan.request.namespace, plan.request.release, ids)
