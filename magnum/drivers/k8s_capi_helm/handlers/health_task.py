# SPDX-License-Identifier: Apache-2.0
"""Magnum's health poll of one cluster: update health, and recover FAILED statuses."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.handlers import (
    pending_operation,
    status_task,
    write_status,
)
from magnum.drivers.k8s_capi_helm.magnum_objects import reader, state, writer
from magnum.drivers.k8s_capi_helm.magnum_objects.writer import Status
from magnum.drivers.k8s_capi_helm.model import (
    conditions,
    Operation,
    ReleaseRecord,
    Verb,
    Verdict,
)
from magnum.drivers.k8s_capi_helm.model import operation as model_operation
from magnum.drivers.k8s_capi_helm.reconcile import (
    clients,
    credential_rotation,
    nodegroups,
    observe,
    ownership,
    reconciler,
    upgrade,
)
from magnum.drivers.k8s_capi_helm.reconcile.context import Reconciliation
from magnum.objects import fields

LOG = logging.getLogger(__name__)

#: Clients poll every ten to twenty seconds, people look now and then.
_REFUSAL_SHOWN = datetime.timedelta(minutes=10)
_REQUEST, _REFUSED = "request", "refused, UPDATE_FAILED since "


def repair(context: Any, cluster: Any, conf: Settings) -> Verdict | None:
    """The health poll, which also brings FAILED clusters back that have come good."""
    if sentence := ownership.foreign_reason(cluster):
        return _unknown(cluster, sentence)
    judged = list(cluster.nodegroups)
    if ownership.is_cluster_deleting(judged) and not cluster.status.startswith("DELETE_"):
        # A request that failed has written its own status over the deletion.
        writer.mark_in_progress(cluster, Status.DELETE_IN_PROGRESS)
    if not cluster.stack_id:
        return None
    run = status_task.periodic(conf)
    found = observe.evaluate(run, cluster, judged, include_health=True)
    try:
        _go_on(run, context, cluster, judged, found)
    except errors.DriverError as error:
        # What was seen is true all the same; the next poll tries again.
        LOG.warning("Cluster %s: %s %s", cluster.uuid, error, error.detail)
    return _with_refusal(run, context, cluster, judged, found)


def _with_refusal(
    run: Reconciliation, context: Any, cluster: Any, judged: list[Any], found: observe.Evaluation
) -> Verdict:
    """The verdict; a cluster that a refused request left UPDATE_FAILED is released after a while.

    Magnum lets no upgrade and no update through from UPDATE_FAILED, and nothing else would ever
    end it. So the refusal is shown long enough for everybody who waits for the request; if
    everything is in place then, as it was before, the cluster is UPDATE_COMPLETE again and keeps
    the words. Since when stands in the health's reasons, for people and for conductors that come
    later; how long that is a conductor tells by what it has seen itself.
    """
    verdict = found.verdict
    whole = bool(verdict.fingerprint) and not found.unreachable and not found.unfinished
    if not (whole and cluster.status == verdict.status == Status.UPDATE_FAILED):
        return verdict
    before = (cluster.health_status_reason or {}).get(_REQUEST, "")
    since = conditions.instant(before.removeprefix(_REFUSED)) or run.now
    shown = f"{since:%Y-%m-%dT%H:%M:%SZ}"
    if (
        run.clients.first_seen.age((cluster.uuid, _REQUEST, shown), since, run.now)
        >= _REFUSAL_SHOWN
    ):
        write_status.reset_refused(context, cluster, judged)
        return verdict
    texts = {**verdict.health_reason, _REQUEST: f"{_REFUSED}{shown}"}
    return dataclasses.replace(verdict, health_reason=texts)


def _go_on(
    run: Reconciliation, context: Any, cluster: Any, judged: list[Any], found: observe.Evaluation
) -> None:
    """What the health poll does for a cluster that Magnum's status task does not visit."""
    ports, conf, now = run.clients, run.settings, run.now
    if found.record is not None and found.unnoted is not None:
        place = reader.namespace(cluster, conf), cluster.stack_id
        ports.leases.record_revisions(*place, found.record.revisions, found.unnoted)
    credential_rotation.delete_retired(
        ports, ownership.owner(cluster, conf), found.record, status_task.admin_cloud, now
    )
    if cluster.status == Status.DELETE_FAILED:
        if not found.unreachable and ownership.proved_record(
            ports, ownership.owner(cluster, conf), found.record
        ):
            _prolong_deletion(ports, cluster, conf, now)
            writer.mark_in_progress(cluster, Status.DELETE_IN_PROGRESS)
    elif model_operation.is_being_deleted(found.record):
        if cluster.status != Status.DELETE_IN_PROGRESS:
            writer.mark_in_progress(cluster, Status.DELETE_IN_PROGRESS)
    elif (
        write_status.reassert_deleting(judged, found.record)
        or _is_overtaken(cluster, judged)
        or _has_upgrade(cluster, found.record)
        or (_is_forgotten(ports, cluster, judged, now) and found.lacking)
    ):
        writer.mark_in_progress(cluster, Status.UPDATE_IN_PROGRESS)
    elif cluster.status.endswith("_FAILED") and found.unfinished:
        status_task.advance(context, cluster, conf)
    elif found.lacking and (refused := _refused_deletions(judged)):
        _delete_again(run, context, cluster, refused)
    elif cluster.status.endswith("_FAILED"):
        status_task.write(context, cluster, judged, found, ports, conf)
    elif cluster.status.endswith("_COMPLETE"):
        write_status.write_sizes(judged, list(cluster.nodegroups), found)
        status_task.forget_limit(ports, cluster, found.record, conf)
        if found.autoscaler_is_due and conf.capi_helm.correct_autoscalers:
            rows = status_task.magnum_rows(context, cluster, conf)
            reconciler.reconcile(run, rows, wait_for_lock=False)


def _unknown(cluster: Any, sentence: str) -> Verdict:
    """What is to be said of a cluster that cannot be looked at."""
    return Verdict(
        status=cluster.status,
        reason=cluster.status_reason,
        groups=(),
        health=fields.ClusterHealthStatus.UNKNOWN,
        health_reason={"management": sentence},
    )


def _is_overtaken(cluster: Any, groups: list[Any]) -> bool:
    """Whether nobody carries on what a nodegroup's row says is in progress.

    A verb and a pass that had looked before it crossed each other; or Magnum has made the whole
    cluster UPDATE_FAILED because one of several requests was refused.
    """
    rests = cluster.status.endswith("_COMPLETE") or cluster.status == Status.UPDATE_FAILED
    return rests and any((row.status or "").endswith("_IN_PROGRESS") for row in groups)


def _has_upgrade(cluster: Any, record: ReleaseRecord | None) -> bool:
    """Whether an upgrade was written down, and its conductor died before it said so."""
    operation = upgrade.pending(record)
    return operation is not None and cluster.status.endswith("_COMPLETE")


def _refused_deletions(groups: list[Any]) -> list[Any]:
    """Nodegroups whose deletion was refused, or came to no end in its time."""
    return [row for row in groups if row.status == Status.DELETE_FAILED]


def _delete_again(run: Reconciliation, context: Any, cluster: Any, leaving: list[Any]) -> None:
    """Hand the deletion of nodegroups over that was refused; nobody else would ever try again.

    What is said stays until that is done. Then it is a request as it was, with its time anew.

    :raises errors.DriverError: it is refused still.
    """
    rows = status_task.magnum_rows(context, cluster, run.settings)
    reconciler.reconcile(run, rows, wait_for_lock=False)
    for row in leaving:
        new = pending_operation.NewOperation(
            Verb.NODEGROUP_DELETE, row.name, nodegroup_uuid=row.uuid
        )
        pending_operation.begin(cluster, run.settings, new)


def _is_forgotten(
    ports: clients.Clients, cluster: Any, groups: list[Any], now: datetime.datetime
) -> bool:
    """Whether a count that Magnum has saved for a request (``PATCH node_count``) is nobody's task.

    Nothing in the rows says that such a request has begun, and none takes longer than this to check
    it; its conductor died.
    """
    asked = tuple((row.uuid, row.updated_at, row.node_count) for row in groups)
    times = [at for row in groups for at in (row.updated_at, row.created_at) if at is not None]
    age = ports.first_seen.age((cluster.uuid, asked), max(times, default=None), now)
    return cluster.status.endswith("_COMPLETE") and age >= nodegroups.CHECKED_BY_THEN


def _prolong_deletion(
    ports: clients.Clients, cluster: Any, conf: Settings, now: datetime.datetime
) -> None:
    """Give a deletion that goes on its time anew, or the next pass would call it late again."""
    limit = state.deadline(now, conf.capi_helm.delete_timeout)
    ports.leases.add(
        reader.namespace(cluster, conf),
        cluster.stack_id,
        Operation(id=str(Verb.DELETE), verb=Verb.DELETE, started=now, deadline=limit),
    )
