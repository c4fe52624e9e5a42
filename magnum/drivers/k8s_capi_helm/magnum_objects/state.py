# SPDX-License-Identifier: Apache-2.0
"""The state of a cluster that Magnum shows now."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
import dataclasses
import datetime
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.labels.value_types.versions import plain
from magnum.drivers.k8s_capi_helm.magnum_objects import certificates
from magnum.drivers.k8s_capi_helm.magnum_objects.rows.reader import (
    entry_names_of,
    MASTER,
    own_images,
)
from magnum.drivers.k8s_capi_helm.magnum_objects.rows.types import Cluster, NodeGroup
from magnum.drivers.k8s_capi_helm.model import GroupState, LiveRelease, MagnumState, ReleaseRecord
from magnum.drivers.k8s_capi_helm.model.management_cluster import release_of
from magnum.drivers.k8s_capi_helm.status.causes import reasons
from magnum.drivers.k8s_capi_helm.status.objects import addons
from magnum.drivers.k8s_capi_helm.values.tree import live as values_live
from magnum.drivers.k8s_capi_helm.values.upgrade import upgrade, upgrade_nodegroups


def magnum_state(
    cluster: Cluster,
    nodegroups: Iterable[NodeGroup],
    record: ReleaseRecord | None,
    live: LiveRelease | None,
) -> MagnumState:
    """What the database and the operation record say, for the judge; nothing of it is applied."""
    all_nodegroups, record = list(nodegroups), record or ReleaseRecord("", "")
    deadlines = [op.deadline for op in record.operations if op.deadline]
    values, reason = live.values if live else {}, cluster.status_reason or ""
    own_image_names, entry_names = (
        own_images(cluster, all_nodegroups),
        entry_names_of(all_nodegroups),
    )
    waiting_nodegroups = {
        name
        for operation in record.operations
        for name in upgrade_nodegroups.waiting_for_control_plane(values, operation, own_image_names)
    }
    stays = cluster.status.endswith("_FAILED") and not _heals(reason)
    return MagnumState(
        release=release_of(cluster.stack_id),
        status=cluster.status,
        status_reason=cluster.status_reason,
        groups=tuple(
            _nodegroup_state(
                nodegroup, entry_names[nodegroup.name], values, waiting_nodegroups, record
            )
            for nodegroup in all_nodegroups
        ),
        is_applied=False,
        kubernetes_version=plain(values.get("kubernetesVersion")),
        started_at=min((op.started_at for op in record.operations), default=None),
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
    is_applied: bool,
    only_new_nodegroups_missing: bool = False,
    refusal: str = "",
    waiting_error: errors.DriverError | None = None,
) -> MagnumState:
    """*state* with what came of applying what the rows ask for."""
    return dataclasses.replace(
        state,
        is_applied=is_applied,
        only_new_nodegroups_missing=only_new_nodegroups_missing,
        refusal=refusal or state.refusal,
        waiting_reason=str(waiting_error or ""),
        waiting_cause=None
        if waiting_error is None or waiting_error.transient
        else waiting_error.cause,
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


def _nodegroup_state(
    nodegroup: NodeGroup,
    name: str,
    values: Mapping[str, Any],
    waiting_nodegroups: Collection[str],
    record: ReleaseRecord,
) -> GroupState:
    live = values_live.node_groups(values).get(name, {})
    autoscaled = values_live.is_autoscaled(live)
    versions = upgrade.versions(values)
    key = values_live.CONTROL_PLANE if nodegroup.role == MASTER else name
    return GroupState(
        name=name,
        status=nodegroup.status or "",
        count=nodegroup.node_count,
        is_control_plane=nodegroup.role == MASTER,
        is_autoscaled=autoscaled,
        minimum=live.get("machineCountMin", 0) if autoscaled else nodegroup.min_node_count or 0,
        maximum=live.get("machineCountMax") if autoscaled else nodegroup.max_node_count,
        reason=nodegroup.status_reason,
        version=plain(versions.get(key)),
        waits_for_control_plane=name in waiting_nodegroups,
        scale_pending=any(
            name in operation.groups and operation.target_node_count is not None
            for operation in record.operations
        ),
        ready_fingerprint=record.nodegroup_ready_fingerprints.get(name, ""),
    )
