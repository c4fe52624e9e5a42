# SPDX-License-Identifier: Apache-2.0
"""Whether a nodegroup's MachineDeployment and Machines have the desired state.

The MachineDeployment's own phase, counters and conditions can all look finished for the template
before the newest one, and they count machines, not nodes. So the newest MachineSet and every
Machine are asked. Source: the Cluster API book, "MachineDeployment" and "Machine" status.
"""

from __future__ import annotations

from collections.abc import Sequence

from magnum.drivers.k8s_capi_helm.labels.value_types import versions
from magnum.drivers.k8s_capi_helm.model import (
    conditions,
    GroupState,
    Json,
    Missing,
    names,
    Observed,
    present,
)
from magnum.drivers.k8s_capi_helm.status.objects import machines
from magnum.drivers.k8s_capi_helm.status.texts.issue import Issue

_REVISION = "machinedeployment.clusters.x-k8s.io/revision"
#: The parts of a template whose change replaces machines.
_TEMPLATE = (
    ("version",),
    ("infrastructureRef", "name"),
    ("bootstrap", "configRef", "name"),
    ("failureDomain",),
)


def missing(nodegroup: GroupState, observed: Observed, version: str) -> Issue | None:
    """What the group still lacks, None when it is in place.

    :param version: wanted Kubernetes version without ``v``, "" to take the MachineDeployment's own.
    """
    if isinstance(observed.machine_deployments, Missing):
        return Issue("MachineDeployments cannot be read")
    if isinstance(observed.machine_sets, Missing):
        return Issue("MachineSets cannot be read")
    if isinstance(observed.machines, Missing):
        return Issue("Machines cannot be read")
    owners = machines.deployments_of(nodegroup.name, observed.machine_deployments)
    if len(owners) != 1:
        count_text = f"{len(owners)} MachineDeployments" if owners else "no MachineDeployment yet"
        return Issue(f"nodegroup {nodegroup.name} has {count_text}")
    owner = owners[0]
    version = version or versions.plain(_template(owner, "version"))
    count = replicas(owner)
    sets = machines.of_nodegroup(observed.machine_sets, nodegroup.name, owners)
    own_machines = machines.of_nodegroup(observed.machines, nodegroup.name, owners)
    # The machines' own words are the most useful ones, so they come before the counters.
    return (
        _deployment_issue(nodegroup, owner, version)
        or machines.count_issue(own_machines, count or 0, version, nodegroup.name)
        or _machine_set_issue(nodegroup, owner, sets, count or 0)
        or machines.server_issue(own_machines, observed.servers)
    )


def replicas(owner: Json) -> int | None:
    """Machines that the MachineDeployment asks for, None when it does not say."""
    value = conditions.at_path(owner, "spec", "replicas")
    return value if isinstance(value, int) else None


def _template(obj: Json, *path: str) -> object:
    return conditions.at_path(obj, "spec", "template", "spec", *path)


def _deployment_issue(nodegroup: GroupState, owner: Json, version: str) -> Issue | None:
    if conditions.is_terminating(owner):
        return Issue(f"nodegroup {nodegroup.name} is being deleted on the management cluster")
    if conditions.condition(owner, "Paused").bad:
        return Issue(f"nodegroup {nodegroup.name} is paused on the management cluster")
    if not conditions.generation_seen(owner):
        return Issue(f"Cluster API has not processed the change of nodegroup {nodegroup.name} yet")
    count = replicas(owner)
    if count is None or not _count_fits(nodegroup, count):
        expected = _count_text(nodegroup)
        return Issue(f"nodegroup {nodegroup.name} is set to {count} machines instead of {expected}")
    if versions.plain(_template(owner, "version")) != version:
        return Issue(f"nodegroup {nodegroup.name} is not set to version {version} yet")
    return None


def _count_fits(nodegroup: GroupState, count: int) -> bool:
    if not nodegroup.is_autoscaled:
        return count == nodegroup.count
    return nodegroup.minimum <= count and (nodegroup.maximum is None or count <= nodegroup.maximum)


def _count_text(nodegroup: GroupState) -> str:
    return (
        f"{nodegroup.minimum} to {nodegroup.maximum}"
        if nodegroup.is_autoscaled
        else str(nodegroup.count)
    )


def _machine_set_issue(
    nodegroup: GroupState, owner: Json, sets: Sequence[Json], count: int
) -> Issue | None:
    newest = max(sets, key=_revision, default=None)
    if newest is None or any(_template(newest, *p) != _template(owner, *p) for p in _TEMPLATE):
        return Issue(f"the machines of nodegroup {nodegroup.name} still have its old template")
    counts = {conditions.counter(newest, key) for key in ("replicas", "readyReplicas")}
    counts |= {conditions.counter(newest, "availableReplicas"), replicas(newest)}
    settled = conditions.generation_seen(newest) and not conditions.is_terminating(newest)
    if not settled or counts != {count}:
        return Issue(f"not all machines of nodegroup {nodegroup.name} are available yet")
    for old in sets:
        if old is not newest and (replicas(old) != 0 or conditions.counter(old, "replicas") != 0):
            return Issue(f"old machines of nodegroup {nodegroup.name} still exist")
    return None


def _revision(machine_set: Json) -> int:
    text = conditions.mapping(conditions.metadata(machine_set).get("annotations")).get(_REVISION)
    return int(text) if isinstance(text, str) and text.isdigit() else -1


def deletion_issue(observed: Observed) -> Issue | None:
    """Machines that no group holds any more, and groups on their way out."""
    if isinstance(observed.machine_deployments, Missing):
        return Issue("MachineDeployments cannot be read")
    for deployment in observed.machine_deployments:
        if conditions.is_terminating(deployment):
            return Issue(f"{conditions.name(deployment)} is being deleted")
    return _orphan_issue(observed)


def _orphan_issue(observed: Observed) -> Issue | None:
    """Machines and MachineSets whose MachineDeployment is gone; unreadable counts as there."""
    if (
        isinstance(observed.machine_deployments, Missing)
        or isinstance(observed.machine_sets, Missing)
        or isinstance(observed.machines, Missing)
    ):
        return Issue("the machines cannot be read")
    known = {conditions.name(obj) for obj in observed.machine_deployments}
    for obj in (*observed.machines, *observed.machine_sets):
        owner = conditions.object_label(obj, names.LABEL_DEPLOYMENT_NAME)
        if owner not in known and not machines.is_control_plane(obj):
            return Issue(f"{conditions.name(obj)} of a deleted nodegroup still exists")
    server_names = {machines.server_name(machine) for machine in observed.machines}
    for server in present(observed.servers):
        if conditions.name(server) not in server_names and machines.is_of_machine(server):
            return Issue(f"server {conditions.name(server)} of a deleted machine still exists")
    return None


def is_deleted(nodegroup: GroupState, observed: Observed) -> bool:
    """Nothing of the group is left, and that could be read."""
    if isinstance(observed.machine_deployments, Missing) or _orphan_issue(observed) is not None:
        return False
    if machines.deployments_of(nodegroup.name, observed.machine_deployments):
        return False
    return not any(
        machines.of_nodegroup(objects, nodegroup.name, ())
        for objects in (observed.machine_sets, observed.machines)
        if not isinstance(objects, Missing)
    )
