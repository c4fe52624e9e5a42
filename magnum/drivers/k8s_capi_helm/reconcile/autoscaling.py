# SPDX-License-Identifier: Apache-2.0
"""Set the initial number of machines of an autoscaled nodegroup, once.

The chart renders no number for such a group, because the autoscaler sets it. So what a tenant asks
for is set beside Helm, once; from then on the number is the autoscaler's again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
import dataclasses

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.cloud import Cloud
from magnum.drivers.k8s_capi_helm.labels import Labels
from magnum.drivers.k8s_capi_helm.model import (
    ClusterRequest,
    Json,
    LiveRelease,
    names,
    NodeGroupRequest,
    Operation,
    ReleaseRecord,
)
from magnum.drivers.k8s_capi_helm.reconcile.clients import Clients
from magnum.drivers.k8s_capi_helm.status import machine_deployment, machines
from magnum.drivers.k8s_capi_helm.values import live as values_live
from magnum.drivers.k8s_capi_helm.values import nodegroups

LOG = logging.getLogger(__name__)


def requested_bounds(operations: Iterable[Operation]) -> dict[str, int]:
    """Machines that are still to be handed over, by nodegroup; the last request counts."""
    found: dict[str, int] = {}
    for one in operations:
        if one.target_node_count is not None:
            found |= dict.fromkeys(one.groups, one.target_node_count)
    return found


def first_replicas(groups: Iterable[NodeGroupRequest], wanted: Labels) -> dict[str, int]:
    """Machines to hand over to new nodegroups, by name: of those that the autoscaler will size.

    With the fewest that its bounds allow Cluster API begins on its own.

    :param wanted: labels of the cluster.
    """
    found = {}
    for group in groups:
        count = nodegroups.initial_count(group, wanted)
        if nodegroups.nodegroup_counts(group, wanted).get("machineCountMin", count) < count:
            found[group.name] = count
    return found


def is_due(record: ReleaseRecord | None) -> bool:
    """Whether a number is still to be handed over."""
    return record is not None and bool(requested_bounds(record.operations))


def hand_over_size(ports: Clients, live: LiveRelease, record: ReleaseRecord) -> None:
    """Set the numbers that are asked for, and take note that it was done.

    A group that has a fixed size by now has its number from its row, by Helm. One that is not there
    yet keeps no other from its number.

    :raises errors.DriverError: a number could not be set; it is still due.
    """
    entries, due = values_live.node_groups(live.values), dict[str, errors.Conflict]()
    for group, count in requested_bounds(record.operations).items():
        entry = entries.get(group, {})
        if values_live.is_autoscaled(entry):
            least, most = values_live.bounds(entry)
            try:
                _set(ports, live, group, min(max(count, least), most))
            except errors.Conflict as error:
                due[group] = error
    for one in record.operations:
        if one.target_node_count is not None and due.keys().isdisjoint(one.groups):
            done = dataclasses.replace(one, target_node_count=None)
            ports.leases.update(live.namespace, live.name, done)
    for late in due.values():
        raise late


def replicas(ports: Clients, namespace: str, release: str, group: str) -> int | None:
    """Desired replicas of a nodegroup's MachineDeployment, None if unknown."""
    found = _deployments(ports, namespace, release, group)
    return machine_deployment.replicas(found[0]) if len(found) == 1 else None


def add_capacity(
    live: LiveRelease,
    wanted: Json,
    request: ClusterRequest,
    noted: Iterable[Operation],
    cloud: Callable[[], Cloud],
) -> None:
    """Add to the entries of groups that are turned over to the autoscaler what their Nodes have.

    :param noted: the operations on record, with the flavors that were found when they were asked
        for.
    :raises errors.CloudUnreachable: Nova does not answer.
    """
    if not names.tells_capacity(live.chart_family, live.chart_version):
        return
    have, want = values_live.node_groups(live.values), values_live.node_groups(wanted)
    flavors = {group.name: group.flavor for group in request.node_groups}
    for name in have.keys() & want.keys():
        if values_live.is_autoscaled(want[name]) and not values_live.is_autoscaled(have[name]):
            known = {key: one for op in noted for key, one in op.resolved.flavors.items()}
            try:
                text = flavors[name]
                found = known if text in known else cloud().flavors(request.project_id, [text])
            except errors.CloudRefused as error:
                LOG.warning(
                    "Cluster %s: nodegroup %s cannot scale up from zero: %s",
                    request.uuid,
                    name,
                    error,
                )
                continue
            disk = nodegroups.boot_volume_size(live.values, have[name])
            want[name][values_live.CAPACITY] = nodegroups.capacity(found[text], disk)


def _set(ports: Clients, live: LiveRelease, group: str, count: int) -> None:
    found = _deployments(ports, live.namespace, live.name, group)
    if len(found) != 1:
        raise errors.Conflict(
            f"Nodegroup '{group}' has {len(found)} MachineDeployments on the management "
            "cluster instead of one, so its node count cannot be set yet.",
            f"{live.namespace}/{live.name}",
        )
    if machine_deployment.replicas(found[0]) == count:
        return
    name = found[0]["metadata"]["name"]
    ports.kube.patch(names.MACHINE_DEPLOYMENT, live.namespace, name, {"spec": {"replicas": count}})
    LOG.info("MachineDeployment %s is scaled to %d replicas.", name, count)


def _deployments(ports: Clients, namespace: str, release: str, group: str) -> list[Json]:
    """Found by label, as every chart of the contract sets it; its name is the chart's affair."""
    selector = {names.LABEL_CLUSTER_NAME: release}
    listed = ports.kube.list(names.MACHINE_DEPLOYMENT, namespace, selector)
    return list(machines.deployments_of(group, listed))
