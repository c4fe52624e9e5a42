# SPDX-License-Identifier: Apache-2.0
"""Write a verdict into Magnum's objects, unless a newer request has changed them."""

from __future__ import annotations

from collections.abc import Iterable
import dataclasses
import os
import threading
from typing import Any

from magnum.drivers.k8s_capi_helm.magnum_objects import reader, refresh, saving, writer
from magnum.drivers.k8s_capi_helm.magnum_objects.saving import save as put
from magnum.drivers.k8s_capi_helm.model import (
    GroupVerdict,
    Operation,
    operation,
    ReleaseRecord,
    Verb,
    Verdict,
)
from magnum.drivers.k8s_capi_helm.reconcile.clients import Clients
from magnum.drivers.k8s_capi_helm.reconcile.observe import Evaluation
from magnum.drivers.k8s_capi_helm.status import reasons

_locks: dict[tuple[int, int], threading.Lock] = {}


_MANY = 64


def reassert_deleting(nodegroups: Iterable[Any], record: ReleaseRecord | None) -> bool:
    """Say again of nodegroups that they go, where a request has overwritten that.

    :returns: whether there was one.
    """
    gone, found = operation.deleted_nodegroups(record), False
    for row in nodegroups:
        if row.uuid in gone and not writer.is_deleting(row):
            writer.LOG.info("Nodegroup %s is being deleted, and stays so.", row.uuid)
            writer.mark_in_progress(row, writer.Status.DELETE_IN_PROGRESS)
            found = True
    return found


def write(
    context: Any,
    cluster: Any,
    judged: list[Any],
    found: Evaluation,
    ports: Clients,
    namespace: str,
) -> None:
    """Write a verdict, unless what it judged has been overtaken meanwhile; then the next pass
    judges.

    :param judged: the nodegroup rows as they were when the verdict was made.
    """
    if _as_judged(context, cluster, judged) is None:
        return
    readable = found.record is not None and not found.unreachable
    if readable and _says_nothing_new(cluster, judged, found):
        return
    latest = _settle(cluster, found, ports, namespace) if readable else None
    if readable and latest is None:
        return
    # To settle takes time, and passes of one process meet: none writes after one that has ended it.
    with _writing(cluster.uuid):
        fresh = _as_judged(context, cluster, judged)
        if fresh is None:
            return
        called = reader.entry_names_of(fresh)
        verdicts = {group.name: group for group in found.verdict.groups}
        noted = found.record.operations if found.record else ()
        for row in fresh:
            if called[row.name] in verdicts:
                own, name = verdicts[called[row.name]], called[row.name]
                if own.gone and latest is not None and latest.holder:
                    # Who has the lock may be about to create it: its row stays until then.
                    continue
                asked = operation.is_creation_recorded(noted, name, row.uuid)
                if _is_unheard(cluster, row) and not asked:
                    own = dataclasses.replace(own, reason=reasons.starting_reason(own.status))
                _write_group(row, own)
        verdict = found.verdict
        over = [op.id for op in noted if op.id not in found.unfinished and _is_over(op, verdict)]
        if latest is not None and not latest.holder and over:
            # Off the record last: as long as its row is there, its deletion stands.
            ports.leases.finish(namespace, cluster.stack_id, over)
        put(
            cluster,
            status=verdict.status,
            status_reason=verdict.reason,
            api_address=verdict.api_address or cluster.api_address,
            coe_version=verdict.coe_version or cluster.coe_version,
        )


def _writing(uuid: str) -> threading.Lock:
    """Held by whoever writes a verdict about a cluster; workers are forked while others hold it."""
    return _locks.setdefault((os.getpid(), hash(uuid) % _MANY), threading.Lock())


def reset_refused(context: Any, cluster: Any, judged: list[Any]) -> None:
    """Let a cluster be changed again that is as it was before a refused request; the words stay.

    :param judged: the nodegroup rows as they were when that was seen.
    """
    fresh = list(cluster.nodegroups)
    if not refresh.is_unchanged(cluster, context) or _marks(judged) != _marks(fresh):
        return
    for row in (*fresh, cluster):
        if row.status == writer.Status.UPDATE_FAILED:
            put(row, status=writer.Status.UPDATE_COMPLETE)


def write_sizes(judged: list[Any], fresh: list[Any], found: Evaluation) -> None:
    """Write numbers and addresses of a cluster at rest: the autoscaler and auto healing go on.

    :param judged: the nodegroup rows as they were when the verdict was made.
    :param fresh: as they are now; nothing is written when a request has come in between.
    """
    if found.unreachable or _marks(judged) != _marks(fresh):
        return
    verdicts, called = (
        {group.name: group for group in found.verdict.groups},
        reader.entry_names_of(fresh),
    )
    for row in fresh:
        if called[row.name] in verdicts and (row.status or "").endswith("_COMPLETE"):
            _write_sizes(row, verdicts[called[row.name]])


def _says_nothing_new(cluster: Any, judged: list[Any], found: Evaluation) -> bool:
    """Whether a verdict neither ends an operation nor changes Magnum's objects or the record.

    So the record need not be read again: nothing that it says by now is written over.
    """
    verdict, record = found.verdict, found.record
    called = reader.entry_names_of(judged)
    rows = {called[row.name]: row for row in judged}
    looks = {one.name: one.fingerprint for one in verdict.groups if one.fingerprint}
    return (
        record is not None
        and verdict.status.endswith("_IN_PROGRESS")
        and (verdict.status, verdict.reason) == (cluster.status, cluster.status_reason)
        and verdict.api_address in (None, "", cluster.api_address)
        and verdict.coe_version in (None, "", cluster.coe_version)
        and verdict.fingerprint == record.ready_fingerprint
        and looks == record.nodegroup_ready_fingerprints
        and all(_is_as_written(rows[one.name], one) for one in verdict.groups if one.name in rows)
    )


def _is_as_written(row: Any, verdict: GroupVerdict) -> bool:
    return (
        not verdict.gone
        and (verdict.status, verdict.reason) == (row.status, row.status_reason)
        and verdict.node_count in (None, row.node_count)
        and (verdict.addresses is None or list(verdict.addresses) == row.node_addresses)
    )


def _settle(
    cluster: Any, found: Evaluation, ports: Clients, namespace: str
) -> ReleaseRecord | None:
    """Keep what the verdict leaves in the record.

    :returns: the record as it was read for that; None when an operation has come in since.
    """
    release, verdict = cluster.stack_id, found.verdict
    latest = ports.leases.read(namespace, release)
    if latest is None or found.record is None or latest.operations != found.record.operations:
        return None
    fresh = list(cluster.nodegroups)
    if reassert_deleting(fresh, latest):
        return None
    looks = {one.name: one.fingerprint for one in verdict.groups if one.fingerprint}
    if (verdict.fingerprint, looks) != (
        latest.ready_fingerprint,
        latest.nodegroup_ready_fingerprints,
    ):
        ports.leases.remember(namespace, release, first_look=verdict.fingerprint, group_looks=looks)
    if verdict.status.endswith(("_COMPLETE", "_FAILED")):
        stays = found.unfinished | _handed_over_deletions(fresh, found, latest)
        done = [
            op.id for op in latest.operations if op.id not in stays and not _is_over(op, verdict)
        ]
        ports.leases.finish(namespace, release, done)
    return latest


def _handed_over_deletions(
    nodegroups: Iterable[Any], found: Evaluation, record: ReleaseRecord
) -> frozenset[str]:
    """Deletions that only their own end ends: Cluster API is at it, however late that is.

    One whose nodegroup the release still has was refused, and is none: who wants to keep it can.
    """
    there = {row.uuid for row in nodegroups}
    deletions = (one for one in record.operations if one.verb is Verb.NODEGROUP_DELETE)
    return frozenset(
        one.id
        for one in deletions
        if one.nodegroup_uuid in there and found.rendered.isdisjoint(one.groups)
    )


def _is_over(operation: Operation, verdict: Verdict) -> bool:
    """Whether all that an operation is about are nodegroups that are gone."""
    gone = {one.name for one in verdict.groups if one.gone}
    return bool(operation.groups) and gone.issuperset(operation.groups)


def _is_unheard(cluster: Any, row: Any) -> bool:
    """Whether a new nodegroup may still be being checked by the worker that was asked for it.

    It has no reason of its own until it is refused: a request about it that comes meanwhile goes by
    that.
    """
    is_late = cluster.status.startswith("UPDATE_") and not row.is_default
    is_creating = row.status == writer.Status.CREATE_IN_PROGRESS
    return is_late and is_creating and reasons.is_starting(row.status_reason)


def _write_group(row: Any, verdict: GroupVerdict) -> None:
    if verdict.gone:
        saving.destroy(row)
        return
    _write_sizes(row, verdict, status=verdict.status, status_reason=verdict.reason)


def _write_sizes(row: Any, verdict: GroupVerdict, **more: Any) -> None:
    count = row.node_count if verdict.node_count is None else verdict.node_count
    known = verdict.addresses is not None
    addresses = list(verdict.addresses or ()) if known else row.node_addresses
    put(row, node_count=count, node_addresses=addresses, **more)


def _as_judged(context: Any, cluster: Any, judged: list[Any]) -> list[Any] | None:
    """The nodegroup rows as they are now, None when what was judged has been overtaken."""
    fresh = list(cluster.nodegroups)
    same = refresh.is_unchanged(cluster, context) and _marks(judged) == _marks(fresh)
    return fresh if same else None


def _marks(rows: list[Any]) -> dict[str, tuple[str, int]]:
    """What of nodegroups a verdict depends on."""
    return {row.uuid: (row.status, row.node_count) for row in rows}
