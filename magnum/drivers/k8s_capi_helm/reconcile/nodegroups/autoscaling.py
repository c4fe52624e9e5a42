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
from magnum.drivers.k8s_capi_helm.reconcile.process.clients import Clients
from magnum.drivers.k8s_capi_helm.status.objects import machine_deployment, machines
from magnum.drivers.k8s_capi_helm.values.sections import nodegroups
from magnum.drivers.k8s_capi_helm.values.tree import live as values_live

LOG = logging.getLogger(__name__)


def requested_bounds(operations: Iterable[Operation]) -> dict[str, int]:
    """Machines that are still to be handed over, by nodegroup; the last request counts."""
    counts: dict[str, int] = {}
    for operation in operations:
        if operation.target_node_count is not None:
            counts |= dict.fromkeys(operation.groups, operation.target_node_count)
    return counts


def first_replicas(
    new_nodegroups: Iterable[NodeGroupRequest], cluster_labels: Labels
) -> dict[str, int]:
    """Machines to hand over to new nodegroups, by name: of those that the autoscaler will size.

    With the fewest that its bounds allow Cluster API begins on its own.

    :param cluster_labels: labels of the cluster.
    """
    counts = {}
    for nodegroup in new_nodegroups:
        count = nodegroups.initial_count(nodegroup, cluster_labels)
        if (
            nodegroups.nodegroup_counts(nodegroup, cluster_labels).get("machineCountMin", count)
            < count
        ):
            counts[nodegroup.name] = count
    return counts


def is_due(record: ReleaseRecord | None) -> bool:
    """Whether a number is still to be handed over."""
    return record is not None and bool(requested_bounds(record.operations))


def set_replicas(clients: Clients, live: LiveRelease, record: ReleaseRecord) -> None:
    """Set the numbers that are asked for, and take note that it was done.

    A group that has a fixed size by now has its number from its row, by Helm. One that is not there
    yet keeps no other from its number.

    :raises errors.DriverError: a number could not be set; it is still due.
    """
    entries, failed = values_live.node_groups(live.values), dict[str, errors.Conflict]()
    for nodegroup, count in requested_bounds(record.operations).items():
        entry = entries.get(nodegroup, {})
        if values_live.is_autoscaled(entry):
            minimum, maximum = values_live.bounds(entry)
            try:
                _set_replicas(clients, live, nodegroup, min(max(count, minimum), maximum))
            except errors.Conflict as error:
                failed[nodegroup] = error
    for operation in record.operations:
        if operation.target_node_count is not None and failed.keys().isdisjoint(operation.groups):
            done = dataclasses.replace(operation, target_node_count=None)
            clients.leases.update(live.namespace, live.name, done)
    for failure in failed.values():
        raise failure


def desired_replicas(clients: Clients, namespace: str, release: str, nodegroup: str) -> int | None:
    """Desired replicas of a nodegroup's MachineDeployment, None if unknown."""
    deployments = _deployments(clients, namespace, release, nodegroup)
    return machine_deployment.replicas(deployments[0]) if len(deployments) == 1 else None


def add_capacity(
    live: LiveRelease,
    target: Json,
    request: ClusterRequest,
    operations: Iterable[Operation],
    cloud: Callable[[], Cloud],
) -> None:
    """Add to the entries of groups that are turned over to the autoscaler what their Nodes have.

    :param operations: the operations on record, with the flavors that were found when they were
        asked for.
    :raises errors.CloudUnreachable: Nova does not answer.
    """
    if not names.tells_capacity(live.chart_family, live.chart_version):
        return
    current, target_entries = values_live.node_groups(live.values), values_live.node_groups(target)
    flavors = {nodegroup.name: nodegroup.flavor for nodegroup in request.node_groups}
    known = {key: flavor for op in operations for key, flavor in op.resolved_names.flavors.items()}
    for name in current.keys() & target_entries.keys():
        if values_live.is_autoscaled(target_entries[name]) and not values_live.is_autoscaled(
            current[name]
        ):
            try:
                text = flavors[name]
                known_flavors = (
                    known if text in known else cloud().flavors(request.project_id, [text])
                )
            except errors.CloudRefused as error:
                LOG.warning(
                    "Cluster %s: nodegroup %s cannot scale up from zero: %s",
                    request.uuid,
                    name,
                    error,
                )
                continue
            disk = nodegroups.boot_volume_size(live.values, current[name])
            target_entries[name][values_live.CAPACITY] = nodegroups.capacity(
                known_flavors[text], disk
            )


def _set_replicas(clients: Clients, live: LiveRelease, nodegroup: str, count: int) -> None:
    deployments = _deployments(clients, live.namespace, live.name, nodegroup)
    if len(deployments) != 1:
        raise errors.Conflict(
            f"Nodegroup '{nodegroup}' has {len(deployments)} MachineDeployments on the management "
            "cluster instead of one, so its node count cannot be set yet.",
            f"{live.namespace}/{live.name}",
        )
    if machine_deployment.replicas(deployments[0]) == count:
        return
    name = deployments[0]["metadata"]["name"]
    clients.kube.patch(
        names.MACHINE_DEPLOYMENT, live.namespace, name, {"spec": {"replicas": count}}
    )
    LOG.info("MachineDeployment %s is scaled to %d replicas.", name, count)


def _deployments(clients: Clients, namespace: str, release: str, nodegroup: str) -> list[Json]:
    """Found by label, as every chart of the contract sets it; its name is the chart's affair."""
    selector = {names.LABEL_CLUSTER_NAME: release}
    deployments = clients.kube.list(names.MACHINE_DEPLOYMENT, namespace, selector)
    return list(machines.deployments_of(nodegroup, deployments))
