# SPDX-License-Identifier: Apache-2.0
"""The request to upgrade a cluster: its checks and its first pass."""

from __future__ import annotations

from typing import Any

from oslo_log import log as logging
from oslo_utils import uuidutils

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.handlers.tasks import status_task
from magnum.drivers.k8s_capi_helm.magnum_objects import state
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import reader, saving, writer
from magnum.drivers.k8s_capi_helm.magnum_objects.rows.writer import Status
from magnum.drivers.k8s_capi_helm.magnum_objects.validation import validate_cluster
from magnum.drivers.k8s_capi_helm.model import (
    Chart,
    ClusterRequest,
    Json,
    LiveRelease,
    log_scope,
    Operation,
    ReleaseRecord,
    UpgradeTarget,
    Verb,
)
from magnum.drivers.k8s_capi_helm.reconcile import reconciler
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import (
    Reconciliation,
    ReleaseSnapshot,
)
from magnum.drivers.k8s_capi_helm.reconcile.nodegroups import autoscaling
from magnum.drivers.k8s_capi_helm.reconcile.ownership import ownership
from magnum.drivers.k8s_capi_helm.reconcile.policy import policy_check
from magnum.drivers.k8s_capi_helm.reconcile.process.clients import Clients
from magnum.drivers.k8s_capi_helm.reconcile.release import render, revisions
from magnum.drivers.k8s_capi_helm.reconcile.upgrade import plan as upgrade_plan
from magnum.drivers.k8s_capi_helm.reconcile.upgrade import upgrade as reconcile_upgrade
from magnum.drivers.k8s_capi_helm.values.tree import live as values_live

LOG = logging.getLogger(__name__)

_NO_RELEASE = (
    "The cluster has no Helm release on the management cluster, so it is not known what it runs. "
    "Resize it to its current size, which adopts its objects, and upgrade it when its status is "
    "COMPLETE again."
)


def begin(
    run: Reconciliation, context: Any, cluster: Any, template: Any, batch: int, nodegroup: Any
) -> None:
    """Check an upgrade, write it down, and take its first step.

    :raises errors.DriverError: it was refused, and nothing has changed.
    """
    record = ownership.require(run.clients, cluster, run.settings)
    validate_cluster.validate_upgrade(cluster, template)
    _refuse_leaving(nodegroup)
    request, record, live = _read(run, cluster, record)
    nodegroup_names = reconcile_upgrade.groups(
        nodegroup,
        reader.entry_names_of(cluster.nodegroups)[nodegroup.name],
        request,
        live.values,
        template.image_id,
    )
    operation = _operation(run, template, batch, nodegroup_names)
    target = reader.upgrade_target(cluster, cluster.nodegroups, run.settings, template)
    operation = _check(run, operation, request, target, record, live)
    # Magnum refuses one while another is in progress, by a row that may be some seconds old.
    leases = run.clients.leases
    record = leases.add(request.namespace, request.release, operation, alone=True)
    previous = _mark_in_progress(cluster, operation)
    try:
        cluster_rows = status_task.magnum_rows(run, context, cluster)
        wait = run.settings.capi_helm.lock_wait
        snapshot = ReleaseSnapshot(record, None)
        reconciler.reconcile(run, cluster_rows, lock_wait=wait, snapshot=snapshot)
    except errors.DriverError as error:
        if error.retryable or _has_new_revision(run.clients, live):
            LOG.warning("Cluster %s: upgrade: %s %s", cluster.uuid, error, error.detail)
        elif _roll_back(run.clients, cluster, request, operation, previous):
            raise
    except Exception:  # whatever it is, the intent stands, and a later pass meets it again
        LOG.exception(
            "Cluster %s: the first pass of an upgrade failed with an unexpected error; the status "
            "task continues.",
            cluster.uuid,
        )


def _read(
    run: Reconciliation, cluster: Any, record: ReleaseRecord | None
) -> tuple[ClusterRequest, ReleaseRecord | None, LiveRelease]:
    """What the rows ask for, with what the autoscaler has set, and record and release.

    :param record: of the release, as it was read a moment ago.
    :raises errors.InvalidRequest: there is no release.
    """
    request = status_task.request(run, cluster)
    record, live = revisions.read_record_and_release(
        run.clients, request.namespace, request.release, record
    )
    if live is None:
        raise errors.InvalidRequest(_NO_RELEASE)
    if _save_autoscaled_counts(run.clients, cluster, live):
        request = status_task.request(run, cluster)
    return request, record, live


def _operation(
    run: Reconciliation, template: Any, batch: int, nodegroup_names: tuple[str, ...]
) -> Operation:
    return Operation(
        id=f"{Verb.UPGRADE}-{uuidutils.generate_uuid()[:8]}",
        verb=Verb.UPGRADE,
        started_at=run.now,
        groups=nodegroup_names,
        deadline=state.deadline(run.now, run.settings.capi_helm.update_timeout),
        template=template.uuid,
        max_batch_size=batch or 1,
        request_ids=log_scope.request_ids(),
    )


def _check(
    run: Reconciliation,
    operation: Operation,
    request: ClusterRequest,
    target: UpgradeTarget,
    record: ReleaseRecord | None,
    live: LiveRelease,
) -> Operation:
    """Refuse what the upgrade would meet now and when the nodegroups follow.

    :returns: the operation with what the names of the template stand for.
    :raises errors.DriverError: it is refused; nothing was touched.
    """
    current = ReleaseSnapshot(record, live)
    result = upgrade_plan.upgrade_result(run, current, request, target, operation)
    policy_check.check_upgrade_policy(
        run.settings, request, target.request, result.version, live.values
    )
    if result.chart is not None:
        _check_values(run.clients, target.request, result.chart, result.values, run.settings)
    return result.operation


def _roll_back(
    clients: Clients,
    cluster: Any,
    request: ClusterRequest,
    operation: Operation,
    previous: list[tuple[Any, str, str | None]],
) -> bool:
    """Whether a refused upgrade is off the record, and the rows say what they said before."""
    try:
        clients.leases.finish(request.namespace, request.release, [operation.id])
    except errors.DriverError as error:
        # It is on record still, so that it will be tried again: nothing is refused yet.
        LOG.warning("Cluster %s: upgrade: %s %s", cluster.uuid, error, error.detail)
        return False
    for obj, status, reason in previous:
        saving.save(obj, status=status, status_reason=reason)
    return True


def _check_values(
    clients: Clients, request: ClusterRequest, chart: Chart, values: Json, conf: Settings
) -> None:
    """Refuse now what the chart's schema would refuse when the nodegroups follow.

    Helm sees the nodegroups' new values only then. What else keeps it from telling will be met by
    the run that applies them.

    :raises errors.DriverError: the chart does not take the values.
    """
    try:
        clients.helm.check(request.namespace, request.release, chart, values)
    except errors.ValuesRefused as error:
        raise render.explain_refusal(error, request, conf) from None
    except errors.DriverError as error:
        LOG.warning(
            "Cluster %s: the values of the upgrade are not validated: %s %s",
            request.uuid,
            error,
            error.detail,
        )


def _refuse_leaving(nodegroup: Any) -> None:
    if (nodegroup.status or "").startswith("DELETE_"):
        raise errors.InvalidRequest(
            f"Nodegroup '{nodegroup.name}' is being deleted, so it cannot be upgraded."
        )


def _save_autoscaled_counts(clients: Clients, cluster: Any, live: LiveRelease) -> bool:
    """Whether the autoscaler has set numbers since the last look; the rows have them now.

    Where the upgrade takes the autoscaler away, the row's number is the group's from then on.
    """
    has_changed, all_nodegroups = False, list(cluster.nodegroups)
    entries, entry_names = (
        values_live.node_groups(live.values),
        reader.entry_names_of(all_nodegroups),
    )
    for nodegroup in all_nodegroups:
        if values_live.is_autoscaled(entries.get(entry_names[nodegroup.name], {})):
            current = autoscaling.desired_replicas(
                clients, live.namespace, live.name, entry_names[nodegroup.name]
            )
            if current is not None and current != nodegroup.node_count:
                saving.save(nodegroup, node_count=current)
                has_changed = True
    return has_changed


def _has_new_revision(clients: Clients, before: LiveRelease) -> bool:
    """Whether Helm has made a revision, so that it would be a lie to say that nothing changed.

    The periodic pass then looks what became of it. When nobody can tell, it does so as well.
    """
    try:
        live = clients.helm.live(before.namespace, before.name)
    except errors.DriverError:
        return True
    return live is None or live.revision != before.revision


def _mark_in_progress(cluster: Any, operation: Operation) -> list[tuple[Any, str, str | None]]:
    """Say that the upgrade has begun; returns what the rows said before."""
    all_nodegroups = list(cluster.nodegroups)
    entry_names = reader.entry_names_of(all_nodegroups)
    upgraded = [
        nodegroup
        for nodegroup in all_nodegroups
        if entry_names[nodegroup.name] in operation.groups
        or (nodegroup.role == reader.MASTER and values_live.CONTROL_PLANE in operation.groups)
        # What another request says of a nodegroup since is true still: it goes, or was refused.
        if nodegroup.status not in ("CREATE_IN_PROGRESS", "CREATE_FAILED")
        and not writer.is_deleting(nodegroup)
    ]
    previous = [
        (nodegroup, nodegroup.status, nodegroup.status_reason) for nodegroup in (*upgraded, cluster)
    ]
    for nodegroup, _, _ in previous:
        writer.mark_in_progress(nodegroup, Status.UPDATE_IN_PROGRESS)
    return previous
