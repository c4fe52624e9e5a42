# SPDX-License-Identifier: Apache-2.0
"""A worker group: whether its MachineDeployment, MachineSets and Machines are what was asked for.

The MachineDeployment's own phase, counters and conditions can all look finished for the template
before the newest one, and they count machines, not nodes. So the newest MachineSet and every
Machine are asked. Source: the Cluster API book, "MachineDeployment" and "Machine" status.
"""

from __future__ import annotations

from collections.abc import Sequence

from magnum.drivers.k8s_capi_helm.labels import versions
from magnum.drivers.k8s_capi_helm.model import (
    conditions,
    GroupState,
    Json,
    Missing,
    names,
    Observed,
    present,
)
from magnum.drivers.k8s_capi_helm.status import machines
from magnum.drivers.k8s_capi_helm.status.issue import Issue

_REVISION = "machinedeployment.clusters.x-k8s.io/revision"
#: The parts of a template whose change replaces machines.
_TEMPLATE = (
    ("version",),
    ("infrastructureRef", "name"),
    ("bootstrap", "configRef", "name"),
    ("failureDomain",),
)


def missing(group: GroupState, observed: Observed, version: str) -> Issue | None:
    """What the group still lacks, None when it is in place.

    :param version: wanted Kubernetes version without ``v``, "" to take the MachineDeployment's own.
    """
    if isinstance(observed.machine_deployments, Missing):
        return Issue("MachineDeployments cannot be read")
    if isinstance(observed.machine_sets, Missing):
        return Issue("MachineSets cannot be read")
    if isinstance(observed.machines, Missing):
        return Issue("Machines cannot be read")
    owners = machines.deployments_of(group.name, observed.machine_deployments)
    if len(owners) != 1:
        has = f"{len(owners)} MachineDeployments" if owners else "no MachineDeployment yet"
        return Issue(f"nodegroup {group.name} has {has}")
    owner = owners[0]
    version = version or versions.plain(_template(owner, "version"))
    wanted = replicas(owner)
    sets = machines.of_group(observed.machine_sets, group.name, owners)
    mine = machines.of_group(observed.machines, group.name, owners)
    # The machines' own words are the most useful ones, so they come before the counters.
    return (
        _deployment_behind(group, owner, version)
        or machines.shortfall(mine, wanted or 0, version, group.name)
        or _sets_behind(group, owner, sets, wanted or 0)
        or machines.servers_missing(mine, observed.servers)
    )


def replicas(owner: Json) -> int | None:
    """Machines that the MachineDeployment asks for, None when it does not say."""
    value = conditions.at_path(owner, "spec", "replicas")
    return value if isinstance(value, int) else None


def _template(thing: Json, *path: str) -> object:
    return conditions.at_path(thing, "spec", "template", "spec", *path)


def _deployment_behind(group: GroupState, owner: Json, version: str) -> Issue | None:
    if conditions.deleting(owner):
        return Issue(f"nodegroup {group.name} is being deleted on the management cluster")
    if conditions.condition(owner, "Paused").bad:
        return Issue(f"nodegroup {group.name} is paused on the management cluster")
    if not conditions.generation_seen(owner):
        return Issue(f"Cluster API has not processed the change of nodegroup {group.name} yet")
    count = replicas(owner)
    if count is None or not _count_fits(group, count):
        wanted = _wanted_text(group)
        return Issue(f"nodegroup {group.name} is set to {count} machines instead of {wanted}")
    if versions.plain(_template(owner, "version")) != version:
        return Issue(f"nodegroup {group.name} is not set to version {version} yet")
    return None


def _count_fits(group: GroupState, count: int) -> bool:
    if not group.autoscaled:
        return count == group.count
    return group.minimum <= count and (group.maximum is None or count <= group.maximum)


def _wanted_text(group: GroupState) -> str:
    return f"{group.minimum} to {group.maximum}" if group.autoscaled else str(group.count)


def _sets_behind(group: GroupState, owner: Json, sets: Sequence[Json], wanted: int) -> Issue | None:
    newest = max(sets, key=_revision, default=None)
    if newest is None or any(_template(newest, *p) != _template(owner, *p) for p in _TEMPLATE):
        return Issue(f"the machines of nodegroup {group.name} still have its old template")
    counts = {conditions.counter(newest, key) for key in ("replicas", "readyReplicas")}
    counts |= {conditions.counter(newest, "availableReplicas"), replicas(newest)}
    settled = conditions.generation_seen(newest) and not conditions.deleting(newest)
    if not settled or counts != {wanted}:
        return Issue(f"not all machines of nodegroup {group.name} are available yet")
    for old in sets:
        if old is not newest and (replicas(old) != 0 or conditions.counter(old, "replicas") != 0):
            return Issue(f"old machines of nodegroup {group.name} still exist")
    return None


def _revision(machine_set: Json) -> int:
    text = conditions.mapping(conditions.metadata(machine_set).get("annotations")).get(_REVISION)
    return int(text) if isinstance(text, str) and text.isdigit() else -1


def leftover_machines(observed: Observed) -> Issue | None:
    """Machines that no group holds any more, and groups on their way out."""
    if isinstance(observed.machine_deployments, Missing):
        return Issue("MachineDeployments cannot be read")
    for deployment in observed.machine_deployments:
        if conditions.deleting(deployment):
            return Issue(f"{conditions.name(deployment)} is being deleted")
    return _orphans(observed)


def _orphans(observed: Observed) -> Issue | None:
    """Machines and MachineSets whose MachineDeployment is gone; unreadable counts as there."""
    if (
        isinstance(observed.machine_deployments, Missing)
        or isinstance(observed.machine_sets, Missing)
        or isinstance(observed.machines, Missing)
    ):
        return Issue("the machines cannot be read")
    known = {conditions.name(one) for one in observed.machine_deployments}
    for one in (*observed.machines, *observed.machine_sets):
        owner = conditions.label(one, names.LABEL_DEPLOYMENT_NAME)
        if owner not in known and not machines.is_control_plane(one):
            return Issue(f"{conditions.name(one)} of a deleted nodegroup still exists")
    held = {machines.server_name(one) for one in observed.machines}
    for one in present(observed.servers):
        if conditions.name(one) not in held and machines.is_of_machine(one):
            return Issue(f"server {conditions.name(one)} of a deleted machine still exists")
    return None


def is_gone(group: GroupState, observed: Observed) -> bool:
    """Nothing of the group is left, and that could be read."""
    if isinstance(observed.machine_deployments, Missing) or _orphans(observed) is not None:
        return False
    if machines.deployments_of(group.name, observed.machine_deployments):
        return False
    return not any(
        machines.of_group(listed, group.name, ())
        for listed in (observed.machine_sets, observed.machines)
        if not isinstance(listed, Missing)
    )
