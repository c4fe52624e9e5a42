# SPDX-License-Identifier: Apache-2.0
"""Writing Magnum's rows: intents before anything slow, verdicts unless they were overtaken."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
import dataclasses
import os
import threading
from typing import Any

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import change, errors, intake, newcomers, ownership, upgrade
from magnum.drivers.k8s_capi_helm.assembly import Ports
from magnum.drivers.k8s_capi_helm.driver import current, saving
from magnum.drivers.k8s_capi_helm.driver.saving import put as put
from magnum.drivers.k8s_capi_helm.model import (
    GroupVerdict,
    Operation,
    Record,
    Target,
    Verb,
    Verdict,
)
from magnum.drivers.k8s_capi_helm.status import reasons
from magnum.drivers.k8s_capi_helm.survey import Finding
from magnum.objects import fields

LOG = logging.getLogger(__name__)
Status = fields.ClusterStatus
_MARKS = ("node_labels", "node_taints")
_locks: dict[tuple[int, int], threading.Lock] = {}
_MANY = 64


def intend(row: Any, status: str) -> None:
    """Say that something has begun, before it has: clients poll at once."""
    put(row, status=status, status_reason=None)


def insist(nodegroups: Iterable[Any], record: Record | None) -> bool:
    """Say again of nodegroups that they go, where a request has overwritten that.

    :returns: whether there was one.
    """
    gone, found = ownership.leaving(record), False
    for row in nodegroups:
        if row.uuid in gone and not is_leaving(row):
            LOG.info("Nodegroup %s is being deleted, and stays so.", row.uuid)
            intend(row, Status.DELETE_IN_PROGRESS)
            found = True
    return found


def is_leaving(row: Any) -> bool:
    """Whether the row of a nodegroup says that it is to go."""
    return (row.status or "").startswith("DELETE_")


def refuse(row: Any, error: errors.DriverError, **kept: Any) -> None:
    """Say that a request about a nodegroup alone was refused; the cluster goes on as it is.

    :param kept: fields that were saved for the request, as they were before.
    """
    put(row, status=Status.UPDATE_FAILED, status_reason=reasons.refused(str(error)), **kept)


def empties(row: Any) -> bool:
    """Whether a request takes all labels or all taints of a nodegroup away."""
    changed = row.obj_what_changed()
    return any(field in changed and not getattr(row, field) for field in _MARKS)


def bounds(row: Any) -> tuple[int | None, int | None]:
    """The fewest and the most machines that a nodegroup's row allows."""
    return row.min_node_count, row.max_node_count


def changed_fields(row: Any) -> tuple[str, ...]:
    """Fields of a nodegroup that a request changes and that tenants may change."""
    changed = row.obj_what_changed()
    return tuple(field for field in (*change.BOUNDS, *_MARKS) if field in changed)


def write(
    context: Any,
    cluster: Any,
    judged: list[Any],
    found: Finding,
    ports: Ports,
    namespace: str,
) -> None:
    """Write a verdict, unless what it judged has been overtaken meanwhile; then the next pass
    judges.

    :param judged: the nodegroup rows as they were when the verdict was made.
    """
    if _as_judged(context, cluster, judged) is None:
        return
    readable = found.record is not None and not found.unreachable
    if readable and not _settle(cluster, found, ports, namespace):
        return
    # To settle takes time, and passes of one process meet: none writes after one that has ended it.
    with _writing(cluster.uuid):
        fresh = _as_judged(context, cluster, judged)
        if fresh is None:
            return
        called = intake.entries(fresh)
        verdicts = {group.name: group for group in found.verdict.groups}
        noted = found.record.operations if found.record else ()
        for row in fresh:
            if called[row.name] in verdicts:
                own, name = verdicts[called[row.name]], called[row.name]
                asked = newcomers.is_on_record(noted, name, row.uuid)
                if _is_unheard(cluster, row) and not asked:
                    own = dataclasses.replace(own, reason=None)
                _write_group(row, own)
        verdict = found.verdict
        over = [op.id for op in noted if op.id not in found.unfinished and _is_over(op, verdict)]
        if readable and over:
            # Off the record last: as long as its row is there, its deletion stands.
            ports.operations.finish(namespace, cluster.stack_id, over)
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


def accept(cluster: Any, template: Any, target: Target, kept: Collection[str]) -> None:
    """Say that an upgrade was accepted: the cluster follows *template* from now on.

    Nodegroups have copies of the cluster's labels and image, which follow the cluster.

    :param kept: nodegroups that keep an image of their own, by their names in the values.
    """
    old, rows = cluster.labels or {}, list(cluster.nodegroups)
    called = intake.entries(rows)
    for row in rows:
        texts = upgrade.merged_labels(old, target.texts, row.labels or {})
        image = row.image_id if called[row.name] in kept else template.image_id
        put(row, labels=texts, image_id=image)
    put(cluster, cluster_template_id=template.uuid, labels=dict(target.texts))
    cluster.cluster_template = template
    cluster.obj_reset_changes(["cluster_template"])


def release(context: Any, cluster: Any, judged: list[Any]) -> None:
    """Let a cluster be changed again that is as it was before a refused request; the words stay.

    :param judged: the nodegroup rows as they were when that was seen.
    """
    fresh = list(cluster.nodegroups)
    if not current.follow(cluster, context) or _marks(judged) != _marks(fresh):
        return
    for row in (*fresh, cluster):
        if row.status == Status.UPDATE_FAILED:
            put(row, status=Status.UPDATE_COMPLETE)


def reject(cluster: Any, name: str, error: errors.DriverError) -> None:
    """Say that a new nodegroup cannot be made; nobody asks for it any more.

    :param name: under which it would stand in the chart's values.
    """
    LOG.warning("Nodegroup %s of cluster %s: %s %s", name, cluster.uuid, error, error.detail)
    fresh = list(cluster.nodegroups)
    called = intake.entries(fresh)
    for row in fresh:
        if called[row.name] == name and not is_leaving(row):
            put(row, status=Status.CREATE_FAILED, status_reason=str(error))


def restore(cluster: Any, name: str, error: errors.DriverError, fields: Mapping[str, Any]) -> None:
    """Say that a nodegroup cannot be changed; its row asks for what the release has.

    :param name: under which it stands in the chart's values, or :data:`change.CONTROL_PLANE`.
    """
    LOG.warning("Nodegroup %s of cluster %s: %s %s", name, cluster.uuid, error, error.detail)
    fresh = list(cluster.nodegroups)
    called = intake.entries(fresh)
    for row in fresh:
        place = change.CONTROL_PLANE if row.role == intake.MASTER else called[row.name]
        if place == name and not is_leaving(row):
            refuse(row, error, **fields)


def show(judged: list[Any], fresh: list[Any], found: Finding) -> None:
    """Write numbers and addresses of a cluster at rest: the autoscaler and auto healing go on.

    :param judged: the nodegroup rows as they were when the verdict was made.
    :param fresh: as they are now; nothing is written when a request has come in between.
    """
    if found.unreachable or _marks(judged) != _marks(fresh):
        return
    verdicts, called = {group.name: group for group in found.verdict.groups}, intake.entries(fresh)
    for row in fresh:
        if called[row.name] in verdicts and (row.status or "").endswith("_COMPLETE"):
            _write_sizes(row, verdicts[called[row.name]])


def _settle(cluster: Any, found: Finding, ports: Ports, namespace: str) -> bool:
    """Keep what the verdict leaves in the record; False when an operation has come in since."""
    release, verdict = cluster.stack_id, found.verdict
    latest = ports.operations.read(namespace, release)
    if latest is None or found.record is None or latest.operations != found.record.operations:
        return False
    fresh = list(cluster.nodegroups)
    if insist(fresh, latest):
        return False
    looks = {one.name: one.fingerprint for one in verdict.groups if one.fingerprint}
    if (verdict.fingerprint, looks) != (latest.first_look, latest.group_looks):
        ports.operations.remember(
            namespace, release, first_look=verdict.fingerprint, group_looks=looks
        )
    if verdict.status.endswith(("_COMPLETE", "_FAILED")):
        stays = found.unfinished | _handed_over_deletions(fresh, found, latest)
        done = [
            op.id for op in latest.operations if op.id not in stays and not _is_over(op, verdict)
        ]
        ports.operations.finish(namespace, release, done)
    return True


def _handed_over_deletions(
    nodegroups: Iterable[Any], found: Finding, record: Record
) -> frozenset[str]:
    """Deletions that only their own end ends: Cluster API is at it, however late that is.

    One whose nodegroup the release still has was refused, and is none: who wants to keep it can.
    """
    there = {row.uuid for row in nodegroups}
    deletions = (one for one in record.operations if one.verb is Verb.NODEGROUP_DELETE)
    return frozenset(
        one.id for one in deletions if one.row in there and found.rendered.isdisjoint(one.groups)
    )


def _is_over(operation: Operation, verdict: Verdict) -> bool:
    """Whether all that an operation is about are nodegroups that are gone."""
    gone = {one.name for one in verdict.groups if one.gone}
    return bool(operation.groups) and gone.issuperset(operation.groups)


def _is_unheard(cluster: Any, row: Any) -> bool:
    """Whether a new nodegroup may still be being checked by the worker that was asked for it.

    It has no reason until it is refused: a request about it that comes meanwhile goes by that.
    """
    is_late = cluster.status.startswith("UPDATE_") and not row.is_default
    return is_late and row.status == Status.CREATE_IN_PROGRESS and not row.status_reason


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
    same = current.follow(cluster, context) and _marks(judged) == _marks(fresh)
    return fresh if same else None


def _marks(rows: list[Any]) -> dict[str, tuple[str, int]]:
    """What of nodegroups a verdict depends on."""
    return {row.uuid: (row.status, row.node_count) for row in rows}
