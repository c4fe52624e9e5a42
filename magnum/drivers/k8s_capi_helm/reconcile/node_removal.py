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
from magnum.drivers.k8s_capi_helm.status import machine_deployment, machines

LOG = logging.getLogger(__name__)

#: The annotation's value does not matter to Cluster API; ours says whose mark it is.
_MARK = "cluster.x-k8s.io/delete-machine"
_OURS = "magnum"


def nodes_to_delete(
    wanted: Sequence[str], observed: Observed, group: str | None, fewer: int
) -> tuple[str, ...]:
    """Names of the Machines that a tenant means.

    :param wanted: each the id or the name of a server, or the name of a node.
    :param group: name of the nodegroup, None for the control plane.
    :param fewer: how many machines the group is to lose.
    :raises errors.ManagementUnreachable: the machines could not be read.
    :raises errors.InvalidRequest: one is not there, or the numbers do not fit.
    """
    if isinstance(observed.machines, Missing) or isinstance(observed.servers, Missing):
        raise errors.ManagementUnreachable(
            "The management cluster cannot be reached, so the nodes to remove cannot be found. "
            "Try again later."
        )
    mine = _machines(observed, group)
    known = _by_every_name(mine, observed.servers)
    found: dict[str, None] = {}
    for text in wanted:
        if text not in known:
            listed = ", ".join(sorted({one.rpartition("/")[2] for one in known})) or "none"
            raise errors.InvalidRequest(
                "nodes_to_remove names a node that this nodegroup does not have. The entry is "
                f"'{text}': give ids or names of servers out of: {listed}."
            )
        found[known[text]] = None
    if len(found) > fewer:
        raise errors.InvalidRequest(
            f"nodes_to_remove names {len(found)} nodes, and the new node count removes "
            f"{max(fewer, 0)}. Lower the count by the number of nodes to remove."
        )
    if group is not None and _is_rolling(observed, group):
        raise errors.InvalidRequest(
            f"Nodes of nodegroup '{group}' are being replaced, so it is not certain that the named "
            "ones are removed. Resize when the cluster is COMPLETE, or without nodes_to_remove."
        )
    return tuple(found)


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


def remove_group_annotations(
    kube: KubeClient, namespace: str, release: str, group: str | None
) -> None:
    """Take the marks of a resize back that was refused; those that others have set stay.

    :param group: name of the nodegroup, None for the control plane.
    :raises errors.DriverError: the machines could not be read.
    """
    selector = {names.LABEL_CLUSTER_NAME: release}
    listed = kube.list(names.MACHINE, namespace, selector)
    if group is None:
        mine = machines.of_control_plane(listed)
    else:
        deployments = kube.list(names.MACHINE_DEPLOYMENT, namespace, selector)
        owners = machines.deployments_of(group, deployments)
        mine = machines.of_nodegroup(listed, group, owners)
    marked = (
        one for one in mine if conditions.at_path(one, "metadata", "annotations", _MARK) == _OURS
    )
    remove_annotations(kube, namespace, [conditions.name(one) for one in marked])


def _patch(mark: str | None) -> Json:
    return {"metadata": {"annotations": {_MARK: mark}}}


def _is_rolling(observed: Observed, group: str) -> bool:
    """Whether machines of more than one template are there."""
    if isinstance(observed.machine_sets, Missing):
        return True
    sets = machines.of_nodegroup(observed.machine_sets, group, _deployments(observed, group))
    counts = (
        conditions.counter(one, "replicas") or machine_deployment.replicas(one) for one in sets
    )
    return sum(1 for count in counts if count) > 1


def _machines(observed: Observed, group: str | None) -> tuple[Json, ...]:
    listed = () if isinstance(observed.machines, Missing) else observed.machines
    if group is None:
        return machines.of_control_plane(listed)
    return machines.of_nodegroup(listed, group, _deployments(observed, group))


def _deployments(observed: Observed, group: str) -> tuple[Json, ...]:
    listed = observed.machine_deployments
    return () if isinstance(listed, Missing) else machines.deployments_of(group, listed)


def _by_every_name(mine: Iterable[Json], servers: Iterable[Json]) -> Mapping[str, str]:
    """Name of the Machine by everything that a tenant may call it."""
    ids = {
        conditions.name(one): str(conditions.at_path(one, "status", "instanceID") or "")
        for one in servers
    }
    known: dict[str, str] = {}
    for one in mine:
        name, server = conditions.name(one), machines.server_name(one)
        node = str(conditions.at_path(one, "status", "nodeRef", "name") or "")
        provider = str(conditions.at_path(one, "spec", "providerID") or "").rpartition("/")[2]
        known.update(
            {text: name for text in (name, server, node, provider, ids.get(server)) if text}
        )
    return known
