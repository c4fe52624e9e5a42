# SPDX-License-Identifier: Apache-2.0
"""The request to resize a nodegroup or change its bounds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
import dataclasses
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.cloud.preflight import quota_usage
from magnum.drivers.k8s_capi_helm.handlers.requests import pending_operation, preflight
from magnum.drivers.k8s_capi_helm.handlers.tasks import status_task
from magnum.drivers.k8s_capi_helm.kube.watch import snapshot
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import reader, saving, writer
from magnum.drivers.k8s_capi_helm.magnum_objects.rows.writer import Status
from magnum.drivers.k8s_capi_helm.magnum_objects.validation import validate_cluster
from magnum.drivers.k8s_capi_helm.model import ClusterRequest, Json, LiveRelease, Verb
from magnum.drivers.k8s_capi_helm.model.management_cluster import release_of
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import (
    Reconciliation,
    ReleaseSnapshot,
)
from magnum.drivers.k8s_capi_helm.reconcile.nodegroups import autoscaling, node_removal
from magnum.drivers.k8s_capi_helm.reconcile.ownership import ownership
from magnum.drivers.k8s_capi_helm.reconcile.policy import policy_check
from magnum.drivers.k8s_capi_helm.reconcile.release import revisions
from magnum.drivers.k8s_capi_helm.values import change
from magnum.drivers.k8s_capi_helm.values.tree import live as values_live


@dataclasses.dataclass(frozen=True, slots=True)
class BoundsChange:
    """What an update of a nodegroup means for its size.

    :ivar must_be_recorded: only the record can tell that the autoscaler's bounds are to change.
    :ivar count: machines to hand over, because the group has fewer or more than its new bounds.
    :ivar scales: whether the group may be turned over to the autoscaler, which is told then what
        its flavor has.
    """

    must_be_recorded: bool = False
    count: int | None = None
    scales: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class _ResizedGroup:
    """A nodegroup as the release has it.

    :ivar name: of its entry in the values, None for the control plane.
    :ivar count: machines that it has.
    :ivar is_creating: it is still being made, and has only to get another size.
    """

    name: str | None
    count: int
    is_autoscaled: bool
    is_creating: bool


def resize(
    run: Reconciliation,
    context: Any,
    cluster: Any,
    nodegroup: Any,
    nodes_to_remove: list[str] | None,
) -> None:
    """Resize one nodegroup, also one that the autoscaler sizes, within its bounds.

    :raises errors.DriverError: nothing has changed, and Magnum puts the count back.
    """
    record = ownership.require(run.clients, cluster, run.settings)
    release_key = reader.cluster_namespace(cluster, run.settings), release_of(cluster.stack_id)
    release_snapshot, error = revisions.read_for_request(run.clients, *release_key, record)
    if pending_operation.not_allowed(run, cluster, nodegroup, release_snapshot):
        return
    live = release_of_request(release_snapshot, error)
    request = status_task.request(run, cluster)
    values = live.values if live else {}
    name = reader.entry_names_of(cluster.nodegroups)[nodegroup.name]
    validate_cluster.validate_resize(cluster, nodegroup, name, request, values)
    group = _resized_group(run, nodegroup, name, request, live)
    wanted = nodegroup.node_count
    demand = quota_usage.resize_demand(values, group.name, group.count, wanted - group.count)
    policy_check.check_size_policy(run.settings, request, group.name, group.count, count=wanted)
    preflight.for_resize(run, request, demand)
    machine_names = _annotate_machines(run, request, group, wanted, nodes_to_remove or ())
    writer.mark_in_progress(
        nodegroup, Status.CREATE_IN_PROGRESS if group.is_creating else Status.UPDATE_IN_PROGRESS
    )
    new = pending_operation.NewOperation(
        Verb.RESIZE,
        nodegroup.name,
        must_be_recorded=group.is_autoscaled,
        target_node_count=wanted if group.is_autoscaled else None,
    )
    try:
        _, record = pending_operation.begin(run, cluster, new)
    except errors.DriverError:
        node_removal.remove_annotations(run.clients.kube, request.namespace, machine_names)
        raise
    pending_operation.reassert_deletion(cluster, nodegroup, record)
    pending_operation.reconcile_now(run, context, cluster, record)


def _resized_group(
    run: Reconciliation,
    nodegroup: Any,
    name: str,
    request: ClusterRequest,
    live: LiveRelease | None,
) -> _ResizedGroup:
    """What the release has of the nodegroup that is to be resized.

    :param name: of its entry in the values.
    :param live: None while the management cluster does not answer.
    """
    values = live.values if live else {}
    entries = values_live.node_groups(values)
    # No row holds the number of a group that the autoscaler sizes: its row follows the autoscaler.
    is_autoscaled = values_live.is_autoscaled(entries.get(name, {})) or (
        live is None and request.labels.auto_scaling_enabled
    )
    group_name = None if nodegroup.role == reader.MASTER else name
    count = values_live.count(values, group_name)
    if is_autoscaled and live is not None:
        count = (
            autoscaling.desired_replicas(run.clients, request.namespace, request.release, name) or 0
        )
    is_creating = live is not None and group_name is not None and name not in entries
    return _ResizedGroup(group_name, count, is_autoscaled, is_creating)


def _annotate_machines(
    run: Reconciliation,
    request: ClusterRequest,
    group: _ResizedGroup,
    wanted: int,
    nodes_to_remove: Sequence[str],
) -> tuple[str, ...]:
    """Have Cluster API delete the machines of the nodes that are to go; returns their names.

    :param wanted: machines that the nodegroup is to have.
    :raises errors.InvalidRequest: these nodes cannot be those that go.
    """
    if not nodes_to_remove:
        return ()
    kube = run.clients.kube
    observed = snapshot.take_snapshot(kube, request.namespace, request.release, run.clients.clock())
    machine_names = node_removal.nodes_to_delete(
        nodes_to_remove, observed, group.name, group.count - wanted
    )
    node_removal.annotate_machines(kube, request.namespace, machine_names)
    return machine_names


def update_count(run: Reconciliation, context: Any, cluster: Any) -> None:
    """Resize the default worker group to the count that Magnum has saved (``PATCH node_count``).

    :raises errors.DriverError: nothing has changed, and Magnum puts the count back.
    """
    nodegroup = cluster.default_ng_worker
    previous = {"status": nodegroup.status, "status_reason": nodegroup.status_reason}
    writer.mark_in_progress(nodegroup, Status.UPDATE_IN_PROGRESS)
    try:
        resize(run, context, cluster, nodegroup, None)
    except Exception:  # whatever it is, Magnum puts the count back and says it of the cluster
        saving.save(nodegroup, **previous)
        raise


def change_bounds(
    run: Reconciliation,
    cluster: Any,
    nodegroup: Any,
    fields: Iterable[str],
    release_snapshot: ReleaseSnapshot,
) -> BoundsChange:
    """What new bounds of a nodegroup mean.

    :param nodegroup: with the new fields, which are not saved yet. Its count is set where a group
        gets a fixed size and has what the autoscaler gave it.
    :param fields: those that the request changes.
    :param release_snapshot: record and release, as they were read for the request.
    :raises errors.InvalidRequest: the bounds contradict each other.
    """
    if not set(fields) & set(change.BOUNDS):
        return BoundsChange()
    request = status_task.request(run, cluster)
    name = reader.entry_names_of(cluster.nodegroups)[nodegroup.name]
    policy_check.check_size_policy(
        run.settings, request, name, nodegroup.node_count, maximum=nodegroup.max_node_count
    )
    if not request.labels.auto_scaling_enabled:
        return BoundsChange()
    live, record = release_snapshot.live, release_snapshot.record
    entry = values_live.node_groups(live.values if live else {}).get(name, {})
    if not values_live.is_autoscaled(entry):
        return BoundsChange(must_be_recorded=True, scales=True)
    current = autoscaling.desired_replicas(run.clients, request.namespace, request.release, name)
    operations = record.operations if record else ()
    changed_fields = {*fields, *change.changed_bounds(operations).get(name, ())}
    stored = {row.uuid: row for row in cluster.nodegroups}[nodegroup.uuid]
    if (
        nodegroup.is_default
        and stored.max_node_count is None
        and "min_node_count" not in changed_fields
    ):
        _keep_minimum(nodegroup, values_live.bounds(entry)[0])
    minimum, maximum = nodegroup.min_node_count or 0, _maximum(nodegroup, fields, entry)
    if current is None or maximum is None:
        nodegroup.node_count = nodegroup.node_count if current is None else current
        return BoundsChange(must_be_recorded=True)
    fitted = min(max(current, minimum), maximum)
    return BoundsChange(must_be_recorded=True, count=None if fitted == current else fitted)


def _maximum(nodegroup: Any, fields: Iterable[str], entry: Json) -> int | None:
    """The maximum of an autoscaled nodegroup from now on: its row's, else that of the labels.

    :param entry: of the nodegroup in the release's values.
    :raises errors.InvalidRequest: the minimum is greater than that of the labels.
    """
    if nodegroup.max_node_count is not None or "max_node_count" in fields:
        return nodegroup.max_node_count  # type: ignore[no-any-return]
    minimum, maximum = nodegroup.min_node_count or 0, values_live.bounds(entry)[1]
    if minimum > maximum:
        raise errors.InvalidRequest(
            f"min_node_count of nodegroup '{nodegroup.name}' is greater than its maximum. "
            f"min_node_count would be {minimum}, and the label max_node_count sets the maximum "
            f"to {maximum}: set max_node_count as well."
        )
    return maximum


def _keep_minimum(nodegroup: Any, minimum: int) -> None:
    """Write down the minimum that the labels gave until now, where only a maximum is asked for.

    With a maximum of its own a group's bounds are its row's, and Magnum's minimum there is 0 where
    nobody chose one.
    """
    maximum = nodegroup.max_node_count
    if maximum is None:
        return
    if minimum > maximum:
        raise errors.InvalidRequest(
            f"max_node_count of nodegroup '{nodegroup.name}' is less than its minimum. "
            f"max_node_count would be {maximum}, and the minimum is {minimum}: set min_node_count "
            "as well."
        )
    nodegroup.min_node_count = max(nodegroup.min_node_count or 0, minimum)


def release_of_request(
    release_snapshot: ReleaseSnapshot, error: errors.DriverError | None
) -> LiveRelease | None:
    """The release that a request has read; None while the management cluster does not answer.

    :raises errors.ReleaseOutdated: it is older than what runs.
    :raises errors.DriverError: the management cluster refuses.
    """
    if error is not None and not isinstance(error, errors.ManagementUnreachable):
        raise error
    return release_snapshot.live
