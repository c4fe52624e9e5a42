# SPDX-License-Identifier: Apache-2.0
"""What Magnum shows of a cluster now, for the judge."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
import dataclasses
import datetime
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.labels.versions import plain
from magnum.drivers.k8s_capi_helm.magnum_objects import certificates
from magnum.drivers.k8s_capi_helm.magnum_objects.reader import MASTER, own_images, values_names
from magnum.drivers.k8s_capi_helm.magnum_objects.types import Cluster, NodeGroup
from magnum.drivers.k8s_capi_helm.model import GroupState, LiveRelease, MagnumState, ReleaseRecord
from magnum.drivers.k8s_capi_helm.status import addons, reasons
from magnum.drivers.k8s_capi_helm.values import live as values_live
from magnum.drivers.k8s_capi_helm.values import rollout, upgrade


def magnum_state(
    cluster: Cluster,
    nodegroups: Iterable[NodeGroup],
    record: ReleaseRecord | None,
    live: LiveRelease | None,
) -> MagnumState:
    """What the database and the operation record say, for the judge; nothing of it is applied."""
    rows, record = list(nodegroups), record or ReleaseRecord("", "")
    deadlines = [op.deadline for op in record.operations if op.deadline]
    values, reason = live.values if live else {}, cluster.status_reason or ""
    own, called = own_images(cluster, rows), values_names(rows)
    held = {
        name
        for one in record.operations
        for name in rollout.waiting_for_control_plane(values, one, own)
    }
    stays = cluster.status.endswith("_FAILED") and not _heals(reason)
    return MagnumState(
        release=cluster.stack_id or "",
        status=cluster.status,
        status_reason=cluster.status_reason,
        groups=tuple(_group_state(row, called[row.name], values, held, record) for row in rows),
        applied=False,
        kubernetes_version=plain(values.get("kubernetesVersion")),
        started=min((op.started for op in record.operations), default=None),
        deadline=max(deadlines, default=None),
        ready_fingerprint=record.ready_fingerprint,
        applied_generations=record.applied_generations,
        refusal=reason if stays else "",
        health_reason=dict(cluster.health_status_reason or {}),
        without_addons=addons.switched_off(values),
    )


def with_outcome(
    state: MagnumState,
    *,
    applied: bool,
    joining: bool = False,
    refusal: str = "",
    waiting: errors.DriverError | None = None,
) -> MagnumState:
    """*state* with what came of applying what the rows ask for."""
    return dataclasses.replace(
        state,
        applied=applied,
        only_new_nodegroups_missing=joining,
        refusal=refusal or state.refusal,
        waiting=str(waiting or ""),
        waiting_cause=None if waiting is None or waiting.transient else waiting.cause,
    )


def _heals(reason: str) -> bool:
    """Whether a failure is over as soon as everything is in place.

    A missed deadline is, and a rotation of authorities that was refused: it left the cluster as it
    was. Any other refusal stays until the next request.
    """
    return reasons.is_timeout(reason) or reason == certificates.ROTATION_REFUSED


def deadline(now: datetime.datetime, minutes: int | None) -> datetime.datetime | None:
    """When an operation that starts now has to be through; 0 or None is no limit."""
    return now + datetime.timedelta(minutes=minutes) if minutes else None


def _group_state(
    row: NodeGroup,
    name: str,
    values: Mapping[str, Any],
    held: Collection[str],
    record: ReleaseRecord,
) -> GroupState:
    live = values_live.node_groups(values).get(name, {})
    autoscaled = values_live.is_autoscaled(live)
    versions = upgrade.versions(values)
    place = values_live.CONTROL_PLANE if row.role == MASTER else name
    return GroupState(
        name=name,
        status=row.status or "",
        count=row.node_count,
        is_control_plane=row.role == MASTER,
        autoscaled=autoscaled,
        minimum=live.get("machineCountMin", 0) if autoscaled else row.min_node_count or 0,
        maximum=live.get("machineCountMax") if autoscaled else row.max_node_count,
        reason=row.status_reason,
        version=plain(versions.get(place)),
        waits_for_control_plane=name in held,
        scale_pending=any(
            name in one.groups and one.target_node_count is not None for one in record.operations
        ),
        ready_fingerprint=record.nodegroup_ready_fingerprints.get(name, ""),
    )
