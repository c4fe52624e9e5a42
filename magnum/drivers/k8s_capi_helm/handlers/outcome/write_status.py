# SPDX-License-Identifier: Apache-2.0
"""Write a verdict into Magnum's objects, unless a newer request has changed them."""

from __future__ import annotations

from collections.abc import Iterator
import dataclasses
import datetime
from typing import Any

from magnum.drivers.k8s_capi_helm.handlers.outcome import notifications, record_verdict
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import reader, refresh, saving, writer
from magnum.drivers.k8s_capi_helm.magnum_objects.rows.saving import save as put
from magnum.drivers.k8s_capi_helm.metrics import record
from magnum.drivers.k8s_capi_helm.model import (
    GroupVerdict,
    Operation,
    operation,
    ReleaseRecord,
    Verdict,
)
from magnum.drivers.k8s_capi_helm.model.management_cluster import release_of
from magnum.drivers.k8s_capi_helm.reconcile.observe.evaluation import Evaluation
from magnum.drivers.k8s_capi_helm.reconcile.process.clients import Clients
from magnum.drivers.k8s_capi_helm.status.causes import reasons


def write(
    context: Any,
    cluster: Any,
    nodegroups_observed: list[Any],
    evaluation: Evaluation,
    clients: Clients,
    namespace: str,
) -> bool:
    """Write a verdict, unless what it judged has been overtaken: then the next pass judges.

    :param nodegroups_observed: the nodegroup rows as they were when the verdict was made.
    :returns: False where nothing had to be written, and nothing has changed meanwhile.
    """
    current = _current_nodegroups(context, cluster, nodegroups_observed)
    if current is None:
        return True
    if evaluation.is_readable and _is_unchanged(cluster, nodegroups_observed, evaluation):
        return False
    clients.evaluations.forget_verdict(release_of(cluster.stack_id))
    _write(context, cluster, current, evaluation, clients, namespace)
    return True


def _write(
    context: Any,
    cluster: Any,
    nodegroups_observed: list[Any],
    evaluation: Evaluation,
    clients: Clients,
    namespace: str,
) -> None:
    latest = None
    if evaluation.is_readable:
        latest = record_verdict.record_verdict(
            cluster, nodegroups_observed, evaluation, clients, namespace
        )
        if latest is None:
            return
    # To settle takes time, and passes of one process meet: none writes after one that has ended it.
    with clients.verdict_locks.get(cluster.uuid):
        current = _current_nodegroups(context, cluster, nodegroups_observed)
        if current is None:
            return
        _write_nodegroups(cluster, current, evaluation)
        verdict = evaluation.verdict
        finished = [
            op.id
            for op in _operations(evaluation)
            if op.id not in evaluation.unfinished_operations
            and record_verdict.is_finished(op, verdict)
        ]
        if latest is not None and finished:
            # Off the record last: as long as its row is there, its deletion stands.
            clients.leases.finish(namespace, release_of(cluster.stack_id), finished)
        if not _write_cluster(context, cluster, verdict):
            return
        if latest is not None:
            _count_ended(evaluation, latest, finished, clients.clock())


def _write_cluster(context: Any, cluster: Any, verdict: Verdict) -> bool:
    """Write the status of a cluster; False if another conductor has.

    Of a recovery only the one that writes it tells the notification bus; of what ends otherwise,
    Magnum's own job does.
    """
    fields = {
        "status": verdict.status,
        "status_reason": verdict.reason,
        "api_address": verdict.api_address or cluster.api_address,
        "coe_version": verdict.coe_version or cluster.coe_version,
    }
    if not (cluster.status.endswith("_FAILED") and verdict.status.endswith("_COMPLETE")):
        put(cluster, **fields)
        return True
    if not saving.claim(cluster, "status", **fields):
        return False
    notifications.notify_ended(context, cluster)
    return True


def _count_ended(
    evaluation: Evaluation, latest: ReleaseRecord, finished: list[str], now: datetime.datetime
) -> None:
    """Count the operations that a verdict has ended.

    :param latest: the record without those that it ends as a whole.
    :param finished: ids of those whose nodegroups are gone.
    :param now: the time of this host (aware, UTC).
    """
    status = evaluation.verdict.status
    pending = {operation.id for operation in latest.operations}
    for ended in _operations(evaluation):
        is_ended = ended.id not in pending and not status.endswith("_IN_PROGRESS")
        if ended.id in finished or is_ended:
            record.operation_ended(
                str(ended.verb),
                is_failed=status.endswith("_FAILED") and ended.id not in finished,
                seconds=(now - ended.started_at).total_seconds(),
            )


def _operations(evaluation: Evaluation) -> tuple[Operation, ...]:
    """The pending operations when the verdict was made."""
    return evaluation.record.operations if evaluation.record else ()


def _write_nodegroups(cluster: Any, current: list[Any], evaluation: Evaluation) -> None:
    """Write the verdicts of nodegroups into their rows."""
    entry_names = reader.entry_names_of(current)
    verdicts = {item.name: item for item in evaluation.verdict.groups}
    operations = _operations(evaluation)
    for nodegroup in current:
        name = entry_names[nodegroup.name]
        verdict = verdicts.get(name)
        if verdict is None:
            continue
        is_recorded = operation.is_creation_recorded(operations, name, nodegroup.uuid)
        if _may_be_unvalidated(cluster, nodegroup) and not is_recorded:
            verdict = dataclasses.replace(verdict, reason=reasons.starting_reason(verdict.status))
        _write_nodegroup(nodegroup, verdict)


def reset_refused(context: Any, cluster: Any, nodegroups_observed: list[Any]) -> None:
    """Let a cluster be changed again that is as it was before a refused request; the words stay.

    :param nodegroups_observed: the nodegroup rows as they were when that was seen.
    """
    current = list(cluster.nodegroups)
    if not refresh.is_unchanged(cluster, context) or _statuses(nodegroups_observed) != _statuses(
        current
    ):
        return
    for nodegroup in current:
        if nodegroup.status == writer.Status.UPDATE_FAILED:
            put(nodegroup, status=writer.Status.UPDATE_COMPLETE)
    if cluster.status == writer.Status.UPDATE_FAILED and saving.claim(
        cluster, "status", status=writer.Status.UPDATE_COMPLETE
    ):
        notifications.notify_ended(context, cluster)


def has_new_sizes(nodegroups_observed: list[Any], evaluation: Evaluation) -> bool:
    """Whether Magnum shows other numbers or addresses of a cluster at rest than there are."""
    return not evaluation.unreachable and any(_new_sizes(nodegroups_observed, evaluation))


def write_sizes(
    context: Any, cluster: Any, nodegroups_observed: list[Any], evaluation: Evaluation
) -> None:
    """Write numbers and addresses of a cluster at rest: the autoscaler and auto healing go on.

    Nothing is written when a request has come in between. The conductor that writes another number
    of nodes tells the notification bus.

    :param nodegroups_observed: the nodegroup rows as they were when the verdict was made.
    """
    if not has_new_sizes(nodegroups_observed, evaluation):
        return
    current = list(cluster.nodegroups)
    if _statuses(nodegroups_observed) != _statuses(current):
        return
    is_claimed = False
    for nodegroup, sizes in _new_sizes(current, evaluation):
        if sizes["node_count"] == nodegroup.node_count:
            put(nodegroup, **sizes)
        else:
            is_claimed |= saving.claim(nodegroup, "node_count", **sizes)
    if is_claimed:
        notifications.notify_node_counts(context, cluster)


def _new_sizes(
    nodegroups: list[Any], evaluation: Evaluation
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """The settled nodegroups of which Magnum shows other numbers or addresses, with these."""
    verdicts = {item.name: item for item in evaluation.verdict.groups}
    entry_names = reader.entry_names_of(nodegroups)
    for nodegroup in nodegroups:
        verdict = verdicts.get(entry_names[nodegroup.name])
        if verdict is not None and (nodegroup.status or "").endswith("_COMPLETE"):
            sizes = _sizes(nodegroup, verdict)
            if any(getattr(nodegroup, field) != value for field, value in sizes.items()):
                yield nodegroup, sizes


def _is_unchanged(cluster: Any, nodegroups_observed: list[Any], evaluation: Evaluation) -> bool:
    """Whether a verdict neither ends an operation nor changes Magnum's objects or the record.

    So the record need not be read again: nothing that it says by now is written over.
    """
    verdict, record = evaluation.verdict, evaluation.record
    entry_names = reader.entry_names_of(nodegroups_observed)
    by_entry_name = {entry_names[nodegroup.name]: nodegroup for nodegroup in nodegroups_observed}
    return (
        record is not None
        and verdict.status.endswith("_IN_PROGRESS")
        and (verdict.status, verdict.reason) == (cluster.status, cluster.status_reason)
        and verdict.api_address in (None, "", cluster.api_address)
        and verdict.coe_version in (None, "", cluster.coe_version)
        and verdict.fingerprint == record.ready_fingerprint
        and record_verdict.fingerprints(verdict) == record.nodegroup_ready_fingerprints
        and all(
            _is_nodegroup_unchanged(by_entry_name[nodegroup_verdict.name], nodegroup_verdict)
            for nodegroup_verdict in verdict.groups
            if nodegroup_verdict.name in by_entry_name
        )
    )


def _is_nodegroup_unchanged(nodegroup: Any, verdict: GroupVerdict) -> bool:
    return (
        not verdict.is_deleted
        and (verdict.status, verdict.reason) == (nodegroup.status, nodegroup.status_reason)
        and verdict.node_count in (None, nodegroup.node_count)
        and (verdict.addresses is None or list(verdict.addresses) == nodegroup.node_addresses)
    )


def _may_be_unvalidated(cluster: Any, nodegroup: Any) -> bool:
    """Whether a new nodegroup may still be being checked by the worker that was asked for it.

    It has no reason of its own until it is refused: a request about it that comes meanwhile goes by
    that.
    """
    is_late = cluster.status.startswith("UPDATE_") and not nodegroup.is_default
    is_creating = nodegroup.status == writer.Status.CREATE_IN_PROGRESS
    return is_late and is_creating and reasons.is_starting(nodegroup.status_reason)


def _write_nodegroup(nodegroup: Any, verdict: GroupVerdict) -> None:
    if verdict.is_deleted:
        saving.destroy(nodegroup)
        return
    sizes = _sizes(nodegroup, verdict)
    put(nodegroup, status=verdict.status, status_reason=verdict.reason, **sizes)


def _sizes(nodegroup: Any, verdict: GroupVerdict) -> dict[str, Any]:
    """Number and addresses of a nodegroup by a verdict, and what Magnum shows where it has none."""
    count = nodegroup.node_count if verdict.node_count is None else verdict.node_count
    is_known = verdict.addresses is not None
    addresses = list(verdict.addresses or ()) if is_known else nodegroup.node_addresses
    return {"node_count": count, "node_addresses": addresses}


def _current_nodegroups(
    context: Any, cluster: Any, nodegroups_observed: list[Any]
) -> list[Any] | None:
    """The nodegroup rows as they are now, None when what was judged has been overtaken."""
    current = list(cluster.nodegroups)
    is_unchanged = refresh.is_row_unchanged(cluster, context) and _statuses(
        nodegroups_observed
    ) == _statuses(current)
    return current if is_unchanged else None


def _statuses(nodegroups: list[Any]) -> dict[str, tuple[str, int]]:
    """What of nodegroups a verdict depends on."""
    return {nodegroup.uuid: (nodegroup.status, nodegroup.node_count) for nodegroup in nodegroups}
