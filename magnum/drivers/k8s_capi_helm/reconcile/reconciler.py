# SPDX-License-Identifier: Apache-2.0
"""One pass over a release: what the rows ask for and the release lacks is applied under the lock.

A pass renders from the database under the lock and skips Helm when the live release already says
so: of many requests that arrive together the first pass applies all, the others find nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
import dataclasses
import datetime
import functools
from typing import Any

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.cloud import Cloud
from magnum.drivers.k8s_capi_helm.lease import HeldLease
from magnum.drivers.k8s_capi_helm.model import (
    ClusterRequest,
    LiveRelease,
    Operation,
    ReleaseRecord,
    UpgradeTarget,
    Verb,
)
from magnum.drivers.k8s_capi_helm.model import operation as model_operation
from magnum.drivers.k8s_capi_helm.model import request as model_request
from magnum.drivers.k8s_capi_helm.reconcile import (
    adoption,
    apply,
    autoscaler_deployment,
    autoscaling,
    bisect,
    install,
    nodegroups,
    prerequisites,
    revisions,
    upgrade,
)
from magnum.drivers.k8s_capi_helm.reconcile.clients import Clients
from magnum.drivers.k8s_capi_helm.reconcile.context import ReleaseSnapshot
from magnum.drivers.k8s_capi_helm.values import change, deferred, rollout
from magnum.drivers.k8s_capi_helm.values import upgrade as values_upgrade

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterRows:
    """How a pass reads Magnum's rows, and says that an upgrade was accepted.

    :ivar request: what the rows ask for; called under the lock, so that it is not outdated.
    :ivar whole: the same, as if no nodegroup was to go.
    :ivar target: what a pending upgrade leads to.
    :ivar accept: saves the target in the rows, after Helm has taken it; told are the nodegroups
        that keep an image of their own.
    :ivar refuse: says in the row of a new nodegroup why it cannot be made.
    :ivar restore: puts fields of the row of a nodegroup back that cannot be changed, or of
        :data:`change.CONTROL_PLANE`, and says why.
    """

    request: Callable[[], ClusterRequest]
    whole: Callable[[], ClusterRequest]
    target: Callable[[Operation], UpgradeTarget]
    accept: Callable[[Operation, UpgradeTarget, Collection[str]], None]
    refuse: Callable[[str, errors.DriverError], None]
    restore: Callable[[str, errors.DriverError, Mapping[str, Any]], None]


def reconcile(
    ports: Clients,
    rows: ClusterRows,
    cloud: Callable[[], Cloud],
    conf: Any,
    now: datetime.datetime,
    patient: bool = True,
    record: ReleaseRecord | None = None,
) -> ReleaseSnapshot | None:
    """Bring the release to what the rows ask for, and an upgrade its next step on.

    :param cloud: asked only when something new has to be rendered.
    :param now: time of this pass (aware, UTC).
    :param patient: whether to wait for somebody else who works on the release.
    :param record: of the release, as it was read a moment ago; None to read it.
    :returns: record and release as they are then; None where that is not known.
    :raises errors.DriverError: it is not what they ask for yet. A retryable one (somebody else
        works on the release, the management cluster is away) is left to a later pass.
    """
    request = rows.request()
    record, live = revisions.read_record_and_release(
        ports, request.namespace, request.release, record
    )
    request = model_operation.without_deleted(request, record)
    due = upgrade.is_due(ports, record, live, request) or autoscaler_deployment.is_due(live, conf)
    if is_deployed(live, request, record) and not (due or autoscaling.is_due(record)):
        return ReleaseSnapshot(record, live)
    if live is None and record and not prerequisites.has_credential(ports, request):
        unfounded = prerequisites.create_interrupted(ports, record, now)
        if unfounded.retryable:  # and the lock is left to whoever founds it
            raise unfounded
    wait = conf.capi_helm.lock_wait if patient else 0
    with ports.leases.hold(request.namespace, request.release, wait=wait) as hold:
        if live is None and not prerequisites.has_credential(ports, request):
            raise prerequisites.create_interrupted(ports, hold.record, now)
        live = reconcile_held(ports, hold, rows, cloud, conf)
    return ReleaseSnapshot(hold.final_record, live) if hold.final_record else None


def reconcile_held(
    ports: Clients,
    hold: HeldLease,
    rows: ClusterRows,
    cloud: Callable[[], Cloud],
    conf: Any,
    *,
    created: install.CreatedCluster | None = None,
) -> LiveRelease | None:
    """The same for a caller that holds the lock already.

    :param created: a new cluster, as it was checked a moment ago; None for any other one.
    :returns: the release as it is then.
    :raises errors.DriverError: as :func:`reconcile`.
    """
    request = rows.request()
    record, live = revisions.read_record_and_release(ports, request.namespace, request.release)
    if model_operation.is_being_deleted(record):
        raise errors.Busy("The cluster is being deleted.")
    # Read after the rows: what a later request has written over a deletion there was before that.
    request = model_operation.without_deleted(request, record)
    if not is_deployed(live, request, record) or autoscaler_deployment.is_due(live, conf):
        goes_on = live is not None
        if live is None:
            # What was taken over is as it was: what the rows ask for besides comes now.
            live, adopted = _found(ports, hold, rows, request, cloud, conf, created)
            goes_on = adopted and not is_deployed(live, request, record)
        if goes_on:
            live = _bring_on(ports, hold, rows, request, live, record, cloud, conf)
            if upgrade.pending(record) or autoscaling.is_due(record):
                # New nodegroups may have joined it, and refused changes are off the record.
                record = ports.leases.read(request.namespace, request.release)
    if live is not None and record is not None and autoscaling.is_due(record):
        autoscaling.hand_over_size(ports, live, record)
    if live is not None and upgrade.is_due(ports, record, live, request):
        live = _upgrade(ports, hold, rows, live, record, cloud, conf)
    return live


def _upgrade(
    ports: Clients,
    hold: HeldLease,
    rows: ClusterRows,
    live: LiveRelease,
    record: ReleaseRecord | None,
    cloud: Callable[[], Cloud],
    conf: Any,
) -> LiveRelease:
    """Take the next step of an upgrade: begin with the control plane, or let the groups follow."""
    operation = upgrade.pending(record)
    if operation is None or record is None:
        return live
    request, owing = model_operation.without_deleted(rows.request(), record), record.deferred
    if operation.accepted:
        groups = rollout.due_nodegroups(live.values, operation, request, owing)
        whole = rollout.is_complete(live.values, operation, request)
        values = values_upgrade.unpin_nodegroups(
            live.values, groups, operation.max_batch_size, owing, shared=whole
        )
        if values != live.values:
            old = ports.charts.of_release(live, hold.record.chart_digest)
            live = apply.apply_release(ports, hold, request, old, values, (operation,), conf)
        left = deferred.remaining(owing, groups, values, shared=whole)
        ports.leases.defer(live.namespace, live.name, left)
        return live
    target = rows.target(operation)
    operation = upgrade.with_deferred(operation, request, live.values, target)
    facts = upgrade.software_facts(cloud(), target, operation, conf)
    values, owing = upgrade.begin_upgrade(
        live.values, request, target, operation, facts, conf, owing
    )
    new = upgrade.chart(ports, operation, target, live, conf)
    chart = new or ports.charts.of_release(live, hold.record.chart_digest)
    # Once Helm has it and the rows follow, they do not tell any more what is new.
    ports.leases.defer(live.namespace, live.name, owing)
    own = upgrade.own_images(request, live.values)
    if values != live.values or chart.digest != hold.record.chart_digest:
        live = apply.apply_release(ports, hold, request, chart, values, (operation,), conf)
    ports.leases.defer(
        live.namespace, live.name, upgrade.waiting_nodegroups(owing, operation, values)
    )
    hold.check()
    rows.accept(operation, target, own - frozenset(operation.groups))
    ports.leases.add(live.namespace, live.name, dataclasses.replace(operation, accepted=True))
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
    begun = operation is None or operation.accepted
    return begun and not autoscaling.is_due(record) and is_deployed(live, request, record)


def is_joining(
    live: LiveRelease | None, request: ClusterRequest, record: ReleaseRecord | None
) -> bool:
    """Whether a release lacks nothing but nodegroups whose requests are still being checked.

    Their conductor may have died; the groups beside them do not wait until that is known.
    """
    if live is None:
        return False
    noted = record.operations if record else ()
    return is_applied(live, nodegroups.without_unvalidated(request, noted, live.values), record)


def _found(
    ports: Clients,
    hold: HeldLease,
    rows: ClusterRows,
    request: ClusterRequest,
    cloud: Callable[[], Cloud],
    conf: Any,
    created: install.CreatedCluster | None,
) -> tuple[LiveRelease, bool]:
    """Create a release that does not exist (any more).

    :returns: the release, and whether its objects existed and were adopted.
    """
    request = model_request.initial_nodegroups(request)
    plan = install.plan_install(ports, hold.record, request, rows.whole, cloud, conf, created)
    prerequisites.record_start(ports, request, plan.chart, hold.record)
    asked = () if plan.adopts else change.pending_changes(None, request)
    done = apply.apply_release(
        ports, hold, request, plan.chart, plan.values, asked, conf, adopt=plan.adopts
    )
    return done, plan.adopts


def _bring_on(
    ports: Clients,
    hold: HeldLease,
    rows: ClusterRows,
    request: ClusterRequest,
    live: LiveRelease,
    record: ReleaseRecord | None,
    cloud: Callable[[], Cloud],
    conf: Any,
) -> LiveRelease:
    """Change a release that is there; what cannot be of single nodegroups is refused alone."""
    base, noted = bisect.record(ports, live), record.operations if record else ()
    request = nodegroups.without_unvalidated(request, noted, base.values)
    operations = change.pending_changes(base.values, request, noted)
    new = [n for one in operations if one.verb is Verb.NODEGROUP_CREATE for n in one.groups]
    changed = bisect.changed(operations)
    groups = [group for group in request.node_groups if group.name in new]
    found = nodegroups.render_new(groups, request, noted, cloud, conf, base)
    wanted = change.with_sizes(base.values, request, noted)
    autoscaling.add_capacity(base, wanted, request, noted, cloud)
    base, ready = upgrade.with_new_nodegroups(ports, record, base, request, found.ready)
    wanted["nodeGroups"] = [ready.get(one["name"], one) for one in wanted["nodeGroups"]]
    chart = upgrade.interrupted_chart(ports, record, live, rows.target)
    chart = chart or ports.charts.of_release(base, hold.record.chart_digest)
    adopts, refused = adoption.is_half_done(live, hold.record), list[str]()

    def attempt(some: Collection[str], *, anew: bool = False) -> LiveRelease:
        chosen = bisect.without(operations, {*new, *changed} - set(some))
        values = change.next_values(base.values, wanted, chosen)
        values = autoscaler_deployment.with_operators_settings(values, chart, conf)
        deployed = None if anew else ports.helm.live(request.namespace, request.release)
        if deployed is not None and autoscaler_deployment.is_in_place(deployed, values, conf):
            return deployed
        return apply.apply_release(ports, hold, request, chart, values, chosen, conf, adopt=adopts)

    def refuse(name: str, error: errors.DriverError) -> None:
        if name in new:
            refused.append(name)
            rows.refuse(name, error)
        else:
            put = functools.partial(rows.restore, name, error)
            bisect.roll_back(ports, request, rows.request(), base, noted, operations, name, put)

    for name, error in found.refused.items():
        rows.refuse(name, error)
    # What runs now goes through Helm once more before a change of it is blamed.
    sound = functools.partial(attempt, (), anew=bool(changed))
    done = bisect.apply_with_bisect([*found.ready, *changed], attempt, sound, refuse)
    if found.waiting is not None:
        raise found.waiting
    for group in (one for one in groups if one.is_new and one.name in refused):
        nodegroups.delete_objects(ports, request.namespace, request.release, group.name)
    return done
