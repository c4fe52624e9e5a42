# SPDX-License-Identifier: Apache-2.0
"""Mark the machines in ``nodes_to_remove`` for deletion.

Cluster API takes Machines with a certain annotation first when a MachineSet, or the control plane,
gets smaller ("Marking a Machine for deletion" in the Cluster API book). That holds within one
MachineSet, so nothing is marked while machines of a group are being replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.model import conditions, Json, Missing, names, Observed
from magnum.drivers.k8s_capi_helm.status.objects import machine_deployment, machines

LOG = logging.getLogger(__name__)

#: The annotation's value does not matter to Cluster API; ours says whose mark it is.
_MARK = "cluster.x-k8s.io/delete-machine"
_OURS = "magnum"


def nodes_to_delete(
    texts: Sequence[str], observed: Observed, nodegroup: str | None, removed_count: int
) -> tuple[str, ...]:
    """Names of the Machines that a tenant means.

    :param texts: each the id or the name of a server, or the name of a node.
    :param nodegroup: name of the nodegroup, None for the control plane.
    :param removed_count: how many machines the group is to lose.
    :raises errors.ManagementUnreachable: the machines could not be read.
    :raises errors.InvalidRequest: one is not there, or the numbers do not fit.
    """
    if isinstance(observed.machines, Missing) or isinstance(observed.servers, Missing):
        raise errors.ManagementUnreachable(
            "The management cluster cannot be reached, so the nodes to remove cannot be found. "
            "Try again later."
        )
    own_machines = _machines(observed, nodegroup)
    machine_names = _machine_names(texts, _names_of_machines(own_machines, observed.servers))
    if len(machine_names) > removed_count:
        raise errors.InvalidRequest(
            f"nodes_to_remove names {len(machine_names)} nodes, and the new node count removes "
            f"{max(removed_count, 0)}. Lower the count by the number of nodes to remove."
        )
    if nodegroup is not None and _is_rolling(observed, nodegroup):
        raise errors.InvalidRequest(
            f"Nodes of nodegroup '{nodegroup}' are being replaced, so it is not certain that the "
            "named ones are removed. Resize when the cluster is COMPLETE, or without "
            "nodes_to_remove."
        )
    return machine_names


def _machine_names(texts: Sequence[str], names_of_machines: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the Machines that *texts* stand for, each once.

    :raises errors.InvalidRequest: a text stands for none.
    """
    for text in texts:
        if text not in names_of_machines:
            shown = (
                ", ".join(sorted({name.rpartition("/")[2] for name in names_of_machines})) or "none"
            )
            raise errors.InvalidRequest(
                "nodes_to_remove names a node that this nodegroup does not have. The entry is "
                f"'{text}': give ids or names of servers out of: {shown}."
            )
    return tuple(dict.fromkeys(names_of_machines[text] for text in texts))


def annotate_machines(kube: KubeClient, namespace: str, machine_names: Iterable[str]) -> None:
    """Make Machines go first.

    :raises errors.DriverError: none of them is marked.
    """
    done: list[str] = []
    try:
        for name in machine_names:
            kube.patch(names.MACHINE, namespace, name, _patch(_OURS))
            done.append(name)
    except errors.DriverError:
        remove_annotations(kube, namespace, done)
        raise


def remove_annotations(kube: KubeClient, namespace: str, machine_names: Iterable[str]) -> None:
    """Take marks back; one that cannot be is logged."""
    for name in machine_names:
        try:
            kube.patch(names.MACHINE, namespace, name, _patch(None))
        except errors.DriverError as error:
            LOG.error("Machine %s keeps its delete annotation: %s", name, error.detail)


def remove_nodegroup_annotations(
    kube: KubeClient, namespace: str, release: str, nodegroup: str | None
) -> None:
    """Take the marks of a resize back that was refused; those that others have set stay.

    :param nodegroup: name of the nodegroup, None for the control plane.
    :raises errors.DriverError: the machines could not be read.
    """
    selector = {names.LABEL_CLUSTER_NAME: release}
    all_machines = kube.list(names.MACHINE, namespace, selector)
    if nodegroup is None:
        own_machines = machines.of_control_plane(all_machines)
    else:
        deployments = kube.list(names.MACHINE_DEPLOYMENT, namespace, selector)
        owners = machines.deployments_of(nodegroup, deployments)
        own_machines = machines.of_nodegroup(all_machines, nodegroup, owners)
    marked = (
        machine
        for machine in own_machines
        if conditions.at_path(machine, "metadata", "annotations", _MARK) == _OURS
    )
    remove_annotations(kube, namespace, [conditions.name(machine) for machine in marked])


def _patch(mark: str | None) -> Json:
    return {"metadata": {"annotations": {_MARK: mark}}}


def _is_rolling(observed: Observed, nodegroup: str) -> bool:
    """Whether machines of more than one template are there."""
    if isinstance(observed.machine_sets, Missing):
        return True
    sets = machines.of_nodegroup(
        observed.machine_sets, nodegroup, _deployments(observed, nodegroup)
    )
    counts = (
        conditions.counter(machine_set, "replicas") or machine_deployment.replicas(machine_set)
        for machine_set in sets
    )
    return sum(1 for count in counts if count) > 1


def _machines(observed: Observed, nodegroup: str | None) -> tuple[Json, ...]:
    all_machines = () if isinstance(observed.machines, Missing) else observed.machines
    if nodegroup is None:
        return machines.of_control_plane(all_machines)
    return machines.of_nodegroup(all_machines, nodegroup, _deployments(observed, nodegroup))


def _deployments(observed: Observed, nodegroup: str) -> tuple[Json, ...]:
    deployments = observed.machine_deployments
    return (
        () if isinstance(deployments, Missing) else machines.deployments_of(nodegroup, deployments)
    )


def _names_of_machines(own_machines: Iterable[Json], servers: Iterable[Json]) -> Mapping[str, str]:
    """Name of the Machine by everything that a tenant may call it."""
    ids = {
        conditions.name(server): str(conditions.at_path(server, "status", "instanceID") or "")
        for server in servers
    }
    names: dict[str, str] = {}
    for machine in own_machines:
        name, server = conditions.name(machine), machines.server_name(machine)
        node = str(conditions.at_path(machine, "status", "nodeRef", "name") or "")
        provider = str(conditions.at_path(machine, "spec", "providerID") or "").rpartition("/")[2]
        names.update(
            {text: name for text in (name, server, node, provider, ids.get(server)) if text}
        )
    return names
