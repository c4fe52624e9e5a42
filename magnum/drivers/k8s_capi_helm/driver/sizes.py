# SPDX-License-Identifier: Apache-2.0
"""A resize, and new bounds of a nodegroup: what is refused, and what is written down."""

from __future__ import annotations

from collections.abc import Iterable
import dataclasses
from typing import Any

from magnum.drivers.k8s_capi_helm import (
    assembly,
    change,
    errors,
    intake,
    observer,
    ownership,
    removal,
    revisions,
    scaling,
)
from magnum.drivers.k8s_capi_helm.driver import intents, passes, room, rows
from magnum.drivers.k8s_capi_helm.driver.rows import Status
from magnum.drivers.k8s_capi_helm.model import ClusterRequest, LiveRelease, Verb


@dataclasses.dataclass(frozen=True, slots=True)
class Bounds:
    """What an update of a nodegroup means for its size.

    :ivar must_be_known: only the record can tell that the autoscaler's bounds are to change.
    :ivar count: machines to hand over, because the group has fewer or more than its new bounds.
    :ivar scales: whether the group may be turned over to the autoscaler, which is told then what
        its flavor has.
    """

    must_be_known: bool = False
    count: int | None = None
    scales: bool = False


def resize(
    context: Any, cluster: Any, nodegroup: Any, nodes_to_remove: list[str] | None, conf: Any
) -> None:
    """Resize one nodegroup, also one that the autoscaler sizes, within its bounds.

    :raises errors.DriverError: nothing has changed, and Magnum puts the count back.
    """
    ports = assembly.ports(conf)
    ownership.require(ports, cluster, conf)
    if intents.cannot_be_asked(cluster, nodegroup, conf):
        return
    request = passes.request(cluster, conf)
    live = _live(ports, request)
    values = live.values if live else {}
    name = intake.entries(cluster.nodegroups)[nodegroup.name]
    intake.validate_resize(cluster, nodegroup, name, request, values)
    # No row holds the number of a group that the autoscaler sizes: its row follows the autoscaler.
    scaled = change.is_autoscaled(change.node_groups(values).get(name, {}))
    scaled = scaled or (live is None and request.labels.auto_scaling_enabled)
    group = None if nodegroup.role == intake.MASTER else name
    have = change.count(values, group)
    if scaled and live is not None:
        have = scaling.replicas(ports, request.namespace, request.release, name) or 0
    room.for_resize(context, request, values, group, have, nodegroup.node_count - have, conf)
    chosen: tuple[str, ...] = ()
    if nodes_to_remove:
        look = observer.look(ports.kube, request.namespace, request.release, passes.utc_now())
        chosen = removal.chosen(nodes_to_remove, look, group, have - nodegroup.node_count)
        removal.mark(ports.kube, request.namespace, chosen)
    # One that is still being made has only to get another size.
    making = live is not None and group is not None and name not in change.node_groups(values)
    rows.intend(nodegroup, Status.CREATE_IN_PROGRESS if making else Status.UPDATE_IN_PROGRESS)
    try:
        operation = intents.begin(
            cluster,
            conf,
            Verb.RESIZE,
            nodegroup.name,
            must_be_known=scaled,
            count=nodegroup.node_count if scaled else None,
        )
    except errors.DriverError:
        removal.unmark(ports.kube, request.namespace, chosen)
        raise
    intents.insist(cluster, nodegroup, conf, operation)
    intents.carry_on(context, cluster, conf)


def rebound(
    ports: assembly.Ports, cluster: Any, nodegroup: Any, fields: Iterable[str], conf: Any
) -> Bounds:
    """What new bounds of a nodegroup mean.

    :param nodegroup: with the new fields, which are not saved yet. Its count is set where a group
        gets a fixed size and has what the autoscaler gave it.
    :param fields: those that the request changes.
    :raises errors.InvalidRequest: the bounds contradict each other.
    """
    if not set(fields) & set(change.BOUNDS):
        return Bounds()
    request = passes.request(cluster, conf)
    if not request.labels.auto_scaling_enabled:
        return Bounds()
    live = _live(ports, request)
    name = intake.entries(cluster.nodegroups)[nodegroup.name]
    entry = change.node_groups(live.values if live else {}).get(name, {})
    if not change.is_autoscaled(entry):
        return Bounds(must_be_known=True, scales=True)
    have = scaling.replicas(ports, request.namespace, request.release, name)
    record = ports.operations.read(request.namespace, request.release)
    spoken = {*fields, *change.rebounded(record.operations if record else ()).get(name, ())}
    old = {row.uuid: row for row in cluster.nodegroups}[nodegroup.uuid]
    if nodegroup.is_default and old.max_node_count is None and "min_node_count" not in spoken:
        _keep_minimum(nodegroup, change.bounds(entry)[0])
    least, most = nodegroup.min_node_count or 0, nodegroup.max_node_count
    if most is None and "max_node_count" not in fields:
        most = change.bounds(entry)[1]
        if least > most:
            raise errors.InvalidRequest(
                f"min_node_count of nodegroup '{nodegroup.name}' is to be {least}, and its maximum "
                f"is {most}, from the label max_node_count. Give it a max_node_count as well."
            )
    if have is None or most is None:
        nodegroup.node_count = nodegroup.node_count if have is None else have
        return Bounds(must_be_known=True)
    fits = min(max(have, least), most)
    return Bounds(must_be_known=True, count=None if fits == have else fits)


def _keep_minimum(nodegroup: Any, least: int) -> None:
    """Write down the minimum that the labels gave until now, where only a maximum is asked for.

    With a maximum of its own a group's bounds are its row's, and Magnum's minimum there is 0 where
    nobody chose one.
    """
    most = nodegroup.max_node_count
    if most is None:
        return
    if least > most:
        raise errors.InvalidRequest(
            f"max_node_count of nodegroup '{nodegroup.name}' is to be {most}, and its minimum is "
            f"{least}. Give it a min_node_count as well."
        )
    nodegroup.min_node_count = max(nodegroup.min_node_count or 0, least)


def _live(ports: assembly.Ports, request: ClusterRequest) -> LiveRelease | None:
    """None while nobody can read it.

    :raises errors.ReleaseOutdated: it is older than what runs.
    """
    try:
        return revisions.live(ports, request.namespace, request.release)
    except errors.ManagementUnreachable:
        return None
