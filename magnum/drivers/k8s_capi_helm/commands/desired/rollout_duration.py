# SPDX-License-Identifier: Apache-2.0
"""How many machines a change replaces, and about how many minutes that takes.

The minutes are an estimate: a rollout replaces machines batch by batch, and each batch takes about
as long as the machines of the cluster took that are there.
Source: https://cluster-api.sigs.k8s.io/tasks/upgrading-clusters (rollouts of a KubeadmControlPlane,
one by one, and of a MachineDeployment, by its strategy).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
import dataclasses
import math
import statistics
from typing import Any

from magnum.drivers.k8s_capi_helm.commands.desired.object_changes import ChangeKind, ObjectChange
from magnum.drivers.k8s_capi_helm.model import conditions, Json, LiveRelease, names
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation

#: Where the cluster has no machine to measure by.
DEFAULT_MINUTES = 5.0
#: What took longer was not the creation: the condition has changed since.
_LONGEST_MINUTES = 45.0
_DEPLOYMENT = "MachineDeployment"
_STRATEGIES = (("spec", "strategy"), ("spec", "rollout", "strategy"))
_READY = ("NodeHealthy", "Ready")


@dataclasses.dataclass(frozen=True, slots=True)
class MachineRollout:
    """The replacement of all machines of an object.

    :ivar title: kind and name of the MachineDeployment or KubeadmControlPlane.
    :ivar machines: that are replaced.
    :ivar minutes: that it takes, about.
    """

    title: str
    machines: int
    minutes: int


def release_rollouts(
    run: Reconciliation, live: LiveRelease, changes: Iterable[ObjectChange]
) -> list[MachineRollout]:
    """What changes of a release replace, by the machines that it has.

    :raises errors.DriverError: the management cluster cannot be read.
    """
    selector = {names.LABEL_CLUSTER_NAME: live.name}
    machines = run.clients.kube.list(names.MACHINE, live.namespace, selector)
    return list(machine_rollouts(changes, machines))


def machine_rollouts(
    changes: Iterable[ObjectChange], machines: Iterable[Json]
) -> Iterator[MachineRollout]:
    """What changes replace, object by object.

    :param changes: of a release.
    :param machines: all Machines of the cluster.
    """
    machines = list(machines)
    minutes = machine_minutes(machines)
    objects = {
        change.title: change.manifest
        for change in changes
        if change.kind is ChangeKind.CHANGED and change.replaces_machines
    }
    for title, manifest in objects.items():
        count = _count(manifest, machines)
        batches = math.ceil(count / _batch_size(manifest, count))
        yield MachineRollout(title, count, math.ceil(batches * minutes))


def _count(manifest: Json, machines: Iterable[Json]) -> int:
    """The machines of an object; where the autoscaler sets the number, those that exist."""
    replicas = conditions.at_path(manifest, "spec", "replicas")
    if replicas is not None:
        return int(replicas)
    name = manifest["metadata"]["name"]
    owners = (conditions.object_label(one, names.LABEL_DEPLOYMENT_NAME) for one in machines)
    return sum(owner == name for owner in owners)


def machine_minutes(machines: Iterable[Json]) -> float:
    """The median of the minutes from the creation of a Machine to its healthy Node."""
    found = [minutes for machine in machines if (minutes := _minutes(machine)) is not None]
    return statistics.median(found) if found else DEFAULT_MINUTES


def _minutes(machine: Json) -> float | None:
    created = conditions.instant(conditions.metadata(machine).get("creationTimestamp"))
    for condition_type in _READY:
        condition = conditions.condition(machine, condition_type)
        if created and condition.good and condition.since:
            minutes = (condition.since - created).total_seconds() / 60
            return minutes if 0 < minutes <= _LONGEST_MINUTES else None
    return None


def _batch_size(manifest: Json, count: int) -> int:
    """Machines that are replaced at once."""
    if manifest["kind"] != _DEPLOYMENT:
        return 1
    for path in _STRATEGIES:
        rolling = conditions.at_path(manifest, *path, "rollingUpdate")
        if isinstance(rolling, dict):
            surge = _share(rolling.get("maxSurge"), count, default=1)
            return max(1, surge + _share(rolling.get("maxUnavailable"), count, default=0))
    return 1


def _share(value: Any, count: int, *, default: int) -> int:
    """A number of machines, or a percentage of them."""
    if isinstance(value, str) and value.endswith("%"):
        return math.ceil(count * int(value[:-1]) / 100)
    return default if value is None else int(value)
