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
    nodegroups_observed = list(cluster.nodegroups)
    if ownership.is_cluster_deleting(nodegroups_observed) and not cluster.status.startswith(
        "DELETE_"
    ):
        # A request that failed has written its own status over the deletion.
        writer.mark_in_progress(cluster, Status.DELETE_IN_PROGRESS)
    if not cluster.stack_id:
        return None
    run = status_task.periodic(conf)
    evaluation = observe.evaluate(run, cluster, nodegroups_observed, include_health=True)
    try:
        _repair(run, context, cluster, nodegroups_observed, evaluation)
    except errors.DriverError as error:
        # What was seen is true all the same; the next poll tries again.
        LOG.warning("Cluster %s: %s %s", cluster.uuid, error, error.detail)
    return _with_refusal(run, context, cluster, nodegroups_observed, evaluation)


def _with_refusal(
    run: Reconciliation,
    context: Any,
    cluster: Any,
    nodegroups_observed: list[Any],
    evaluation: observe.Evaluation,
) -> Verdict:
    """The verdict; a cluster that a refused request left UPDATE_FAILED is released after a while.

    Magnum lets no upgrade and no update through from UPDATE_FAILED, and nothing else would ever
    end it. So the refusal is shown long enough for everybody who waits for the request; if
    everything is in place then, as it was before, the cluster is UPDATE_COMPLETE again and keeps
    the words. Since when stands in the health's reasons, for people and for conductors that come
    later; how long that is a conductor tells by what it has seen itself.
    """
    verdict = evaluation.verdict
    is_complete = (
        bool(verdict.fingerprint) and not evaluation.unreachable and not evaluation.unfinished
    )
    if not (is_complete and cluster.status == verdict.status == Status.UPDATE_FAILED):
        return verdict
    previous = (cluster.health_status_reason or {}).get(_REQUEST, "")
    since = conditions.instant(previous.removeprefix(_REFUSED)) or run.now
    since_text = f"{since:%Y-%m-%dT%H:%M:%SZ}"
    if (
        run.clients.first_seen.age((cluster.uuid, _REQUEST, since_text), since, run.now)
        >= _REFUSAL_SHOWN
    ):
        write_status.reset_refused(context, cluster, nodegroups_observed)
        return verdict
    texts = {**verdict.health_reason, _REQUEST: f"{_REFUSED}{since_text}"}
    return dataclasses.replace(verdict, health_reason=texts)


def _repair(
    run: Reconciliation,
    context: Any,
    cluster: Any,
    nodegroups_observed: list[Any],
    evaluation: observe.Evaluation,
) -> None:
    """What the health poll does for a cluster that Magnum's status task does not visit."""
    ports, conf, now = run.clients, run.settings, run.now
    if evaluation.record is not None and evaluation.unnoted is not None:
        release_key = reader.namespace(cluster, conf), cluster.stack_id
        ports.leases.record_revisions(*release_key, evaluation.record.revisions, evaluation.unnoted)
    credential_rotation.delete_retired(
        ports, ownership.owner(cluster, conf), evaluation.record, status_task.admin_cloud, now
    )
    if cluster.status == Status.DELETE_FAILED:
        if not evaluation.unreachable and ownership.proved_record(
            ports, ownership.owner(cluster, conf), evaluation.record
        ):
            _prolong_deletion(ports, cluster, conf, now)
            writer.mark_in_progress(cluster, Status.DELETE_IN_PROGRESS)
    elif model_operation.is_being_deleted(evaluation.record):
        if cluster.status != Status.DELETE_IN_PROGRESS:
            writer.mark_in_progress(cluster, Status.DELETE_IN_PROGRESS)
    elif (
        write_status.reassert_deleting(nodegroups_observed, evaluation.record)
        or _is_overtaken(cluster, nodegroups_observed)
        or _has_upgrade(cluster, evaluation.record)
        or (_is_forgotten(ports, cluster, nodegroups_observed, now) and evaluation.lacking)
    ):
        writer.mark_in_progress(cluster, Status.UPDATE_IN_PROGRESS)
    elif cluster.status.endswith("_FAILED") and evaluation.unfinished:
        status_task.advance(context, cluster, conf)
    elif evaluation.lacking and (refused_deletions := _refused_deletions(nodegroups_observed)):
        _retry_deletions(run, context, cluster, refused_deletions)
    elif cluster.status.endswith("_FAILED"):
        status_task.write(context, cluster, nodegroups_observed, evaluation, ports, conf)
    elif cluster.status.endswith("_COMPLETE"):
        write_status.write_sizes(nodegroups_observed, list(cluster.nodegroups), evaluation)
        status_task.forget_limit(ports, cluster, evaluation.record, conf)
        if evaluation.autoscaler_is_due and conf.capi_helm.correct_autoscalers:
            cluster_rows = status_task.magnum_rows(context, cluster, conf)
            reconciler.reconcile(run, cluster_rows, wait_for_lock=False)


def _unknown(cluster: Any, sentence: str) -> Verdict:
    """What is to be said of a cluster that cannot be looked at."""
    return Verdict(
        status=cluster.status,
        reason=cluster.status_reason,
        groups=(),
        health=fields.ClusterHealthStatus.UNKNOWN,
        health_reason={"management": sentence},
    )


def _is_overtaken(cluster: Any, nodegroups_observed: list[Any]) -> bool:
    """Whether nobody carries on what a nodegroup's row says is in progress.

    A verb and a pass that had looked before it crossed each other; or Magnum has made the whole
    cluster UPDATE_FAILED because one of several requests was refused.
    """
    is_settled = cluster.status.endswith("_COMPLETE") or cluster.status == Status.UPDATE_FAILED
    return is_settled and any(
        (nodegroup.status or "").endswith("_IN_PROGRESS") for nodegroup in nodegroups_observed
    )


def _has_upgrade(cluster: Any, record: ReleaseRecord | None) -> bool:
    """Whether an upgrade was written down, and its conductor died before it said so."""
    operation = upgrade.pending(record)
    return operation is not None and cluster.status.endswith("_COMPLETE")


def _refused_deletions(nodegroups_observed: list[Any]) -> list[Any]:
    """Nodegroups whose deletion was refused, or came to no end in its time."""
    return [
        nodegroup for nodegroup in nodegroups_observed if nodegroup.status == Status.DELETE_FAILED
    ]


def _retry_deletions(run: Reconciliation, context: Any, cluster: Any, refused: list[Any]) -> None:
    """Hand the deletion of nodegroups over that was refused; nobody else would ever try again.

    What is said stays until that is done. Then it is a request as it was, with its time anew.

    :raises errors.DriverError: it is refused still.
    """
    cluster_rows = status_task.magnum_rows(context, cluster, run.settings)
    reconciler.reconcile(run, cluster_rows, wait_for_lock=False)
    for nodegroup in refused:
        operation = pending_operation.NewOperation(
            Verb.NODEGROUP_DELETE, nodegroup.name, nodegroup_uuid=nodegroup.uuid
        )
        pending_operation.begin(cluster, run.settings, operation)


def _is_forgotten(
    ports: clients.Clients, cluster: Any, nodegroups_observed: list[Any], now: datetime.datetime
) -> bool:
    """Whether a count that Magnum has saved for a request (``PATCH node_count``) is nobody's task.

    Nothing in the rows says that such a request has begun, and none takes longer than this to check
    it; its conductor died.
    """
    requested_counts = tuple(
        (nodegroup.uuid, nodegroup.updated_at, nodegroup.node_count)
        for nodegroup in nodegroups_observed
    )
    times = [
        at
        for nodegroup in nodegroups_observed
        for at in (nodegroup.updated_at, nodegroup.created_at)
        if at is not None
    ]
    age = ports.first_seen.age((cluster.uuid, requested_counts), max(times, default=None), now)
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
