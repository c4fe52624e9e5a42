# SPDX-License-Identifier: Apache-2.0
"""Changes of a deployed release: planned, applied as far as Helm accepts them."""

from __future__ import annotations

from collections.abc import Collection
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
    Verb,
)
from magnum.drivers.k8s_capi_helm.reconcile import (
    adoption,
    apply,
    autoscaler_deployment,
    autoscaling,
    bisect,
    nodegroups,
    upgrade,
)
from magnum.drivers.k8s_capi_helm.reconcile.cluster_rows import ClusterRows
from magnum.drivers.k8s_capi_helm.reconcile.context import Reconciliation, ReleaseSnapshot
from magnum.drivers.k8s_capi_helm.values import change


@dataclasses.dataclass(frozen=True, slots=True)
class ChangePlan:
    """What a deployed release is to become.

    :ivar request: of Magnum's objects, without nodegroups that are still being validated.
    :ivar base: the release without what only a failed revision says of nodegroups.
    :ivar wanted: values with everything that is asked for.
    :ivar operations: what *wanted* carries out.
    :ivar recorded: the pending operations of the Lease.
    :ivar new: nodegroups that are to be added.
    :ivar changed: nodegroups that exist and are to be changed, and the control plane.
    :ivar entries: of the new nodegroups, and which of them are refused.
    :ivar adopts: whether objects that exist are made the release's.
    """

    request: ClusterRequest
    base: LiveRelease
    wanted: Json
    operations: tuple[Operation, ...]
    recorded: tuple[Operation, ...]
    new: tuple[str, ...]
    changed: tuple[str, ...]
    entries: nodegroups.NodegroupEntries
    chart: Chart
    adopts: bool


def change_release(
    run: Reconciliation,
    hold: HeldLease,
    rows: ClusterRows,
    request: ClusterRequest,
    known: ReleaseSnapshot,
) -> LiveRelease:
    """Change a release; what cannot be done of single nodegroups is refused alone.

    :param known: record and release; there is a release.
    :returns: the release as it is then.
    :raises errors.DriverError: the release cannot be changed, or not yet.
    """
    plan = _plan(run, hold, rows, request, known)
    refused: list[str] = []

    def refuse(name: str, error: errors.DriverError) -> None:
        if name in plan.new:
            refused.append(name)
            rows.reject_nodegroup(name, error)
        else:
            _roll_back(run, rows, plan, name, error)

    for name, error in plan.entries.refused.items():
        rows.reject_nodegroup(name, error)
    attempt = functools.partial(_attempt, run, hold, plan)
    # What runs now goes through Helm once more before a change of it is blamed.
    known_good = functools.partial(attempt, (), force=bool(plan.changed))
    groups = [*plan.entries.ready, *plan.changed]
    done = bisect.apply_with_bisect(groups, attempt, known_good, refuse)
    if plan.entries.waiting is not None:
        raise plan.entries.waiting
    for group in plan.request.node_groups:
        if group.is_new and group.name in refused:
            nodegroups.delete_objects(run.clients, request.namespace, request.release, group.name)
    return done


def _plan(
    run: Reconciliation,
    hold: HeldLease,
    rows: ClusterRows,
    request: ClusterRequest,
    known: ReleaseSnapshot,
) -> ChangePlan:
    """The plan; nothing is touched.

    :raises errors.DriverError: the cloud or the management cluster cannot be asked.
    """
    ports, record, live = run.clients, known.record, known.live
    assert live is not None
    base, recorded = bisect.record(ports, live), record.operations if record else ()
    request = nodegroups.without_unvalidated(request, recorded, base.values)
    operations = change.pending_changes(base.values, request, recorded)
    new = tuple(n for one in operations if one.verb is Verb.NODEGROUP_CREATE for n in one.groups)
    groups = [group for group in request.node_groups if group.name in new]
    entries = nodegroups.render_new(groups, request, recorded, run.cloud, run.settings, base)
    wanted = change.with_sizes(base.values, request, recorded)
    autoscaling.add_capacity(base, wanted, request, recorded, run.cloud)
    base, ready = upgrade.with_new_nodegroups(ports, record, base, request, entries.ready)
    wanted["nodeGroups"] = [ready.get(one["name"], one) for one in wanted["nodeGroups"]]
    chart = upgrade.interrupted_chart(ports, record, live, rows.upgrade_target)
    return ChangePlan(
        request=request,
        base=base,
        wanted=wanted,
        operations=operations,
        recorded=tuple(recorded),
        new=new,
        changed=bisect.changed(operations),
        entries=entries,
        chart=chart or ports.charts.of_release(base, hold.record.chart_digest),
        adopts=adoption.is_half_done(live, hold.record),
    )


def _attempt(
    run: Reconciliation,
    hold: HeldLease,
    plan: ChangePlan,
    chosen: Collection[str],
    *,
    force: bool = False,
) -> LiveRelease:
    """Bring the release to the plan as far as it is about *chosen*, new nodegroups and others.

    :param force: whether Helm runs also where nothing differs.
    """
    operations = bisect.without(plan.operations, {*plan.new, *plan.changed} - set(chosen))
    values = change.next_values(plan.base.values, plan.wanted, operations)
    values = autoscaler_deployment.with_operators_settings(values, plan.chart, run.settings)
    deployed = None if force else run.clients.helm.live(plan.base.namespace, plan.base.name)
    if deployed is not None and autoscaler_deployment.is_in_place(deployed, values, run.settings):
        return deployed
    revision = apply.Revision(plan.chart, values, operations, adopts=plan.adopts)
    return apply.apply_release(run, hold, plan.request, revision)


def _roll_back(
    run: Reconciliation, rows: ClusterRows, plan: ChangePlan, name: str, error: errors.DriverError
) -> None:
    """Roll the request about a nodegroup back that Helm does not take; it stays as it is."""
    if bisect.is_requested_anew(plan.request, rows.request(), name):
        return
    fields, ids = bisect.fields_before(
        plan.base, plan.request, plan.recorded, plan.operations, name
    )
    bisect.remove_node_annotations(run.clients, plan.request, name)
    rows.restore_nodegroup(name, error, fields)
    # Off the record last: as long as it is on it, the next pass finds out what is to be restored.
    run.clients.leases.finish(plan.request.namespace, plan.request.release, ids)
