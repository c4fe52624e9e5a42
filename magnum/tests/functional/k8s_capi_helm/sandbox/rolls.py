# SPDX-License-Identifier: Apache-2.0
"""Which machines a cluster has while it changes: who stays, who is replaced, when and how often."""

from __future__ import annotations

from collections import defaultdict
import dataclasses

from magnum.tests.functional.k8s_capi_helm.sandbox.cluster import Cluster
from magnum.tests.functional.k8s_capi_helm.sandbox.magnum_api import Rows
from magnum.tests.functional.k8s_capi_helm.sandbox.management import Json, management

MASTERS = "default-master"
_GROUP = "capi.stackhpc.com/node-group"
_CONTROL_PLANE = "cluster.x-k8s.io/control-plane"
_REVISION = "machinedeployment.clusters.x-k8s.io/revision"


@dataclasses.dataclass(frozen=True)
class Machines:
    """One look: by nodegroup the uids of all Machines, also of those on their way out."""

    groups: dict[str, frozenset[str]]
    leaving: frozenset[str]

    @property
    def workers(self) -> set[str]:
        """Uids of the Machines of all worker groups."""
        return set().union(*(uids for name, uids in self.groups.items() if name != MASTERS))


class Watch:
    """Look at the machines of a cluster from now on, until it is complete.

    :ivar before: the machines that there were.
    :ivar seen: uids of all that there were at any look, by nodegroup.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.before = self.now = machines(cluster)
        self.seen = {name: set(uids) for name, uids in self.before.groups.items()}
        self._revisions = _revisions(cluster)
        self._release = _release(cluster)
        self._early: set[str] = set()

    def complete(self) -> None:
        """Wait until a change by Helm is through, which has to be true.

        Magnum answers some requests before it says that anything has begun.
        """

        def through(rows: Rows) -> bool:
            self._look()
            return rows.status == "UPDATE_COMPLETE" and _release(self._cluster) > self._release

        self._cluster.until(through, "UPDATE_COMPLETE")
        self._cluster.complete()
        self._look()

    def check(self, *rolled: str) -> None:
        """All machines of these nodegroups were replaced exactly once, and no other one.

        No worker has come or gone before the machines of the control plane had, if they were to go.
        """
        again = _revisions(self._cluster)
        for name, before in self.before.groups.items():
            now, seen = self.now.groups[name], self.seen[name]
            if name not in rolled:
                assert now == seen == before, f"{name}: {before}, then {seen}, at last {now}"
            else:
                assert not before & now, f"{name}: {before & now} stayed"
                assert seen == before | now, f"{name}: {seen - before - now} came and went"
            if name != MASTERS:
                times = again[name] - self._revisions[name]
                assert times == (name in rolled), f"{name} has rolled {times} times"
        if MASTERS in rolled:
            assert not self._early, f"went beside the control plane: {self._early}"

    def _look(self) -> None:
        self.now = machines(self._cluster)
        for name, uids in self.now.groups.items():
            self.seen.setdefault(name, set()).update(uids)
        if self.now.groups[MASTERS] & self.before.groups[MASTERS]:
            old = self.before.workers
            self._early |= (self.now.workers ^ old) | (self.now.leaving & old)


def machines(cluster: Cluster) -> Machines:
    """The machines that there are now."""
    groups = defaultdict(set)
    leaving = set()
    for one in management().objects("Machine", cluster.tenant.namespace):
        uid = one["metadata"]["uid"]
        groups[group_of(one)].add(uid)
        if "deletionTimestamp" in one["metadata"]:
            leaving.add(uid)
    return Machines({name: frozenset(uids) for name, uids in groups.items()}, frozenset(leaving))


def together(cluster: Cluster, group: str) -> bool:
    """Whether all machines of a nodegroup were begun before the first of them was a Node."""
    found = [
        one
        for one in management().objects("Machine", cluster.tenant.namespace)
        if group_of(one) == group
    ]
    names = {one["status"]["nodeRef"]["name"] for one in found}
    nodes = [one for one in cluster.workload().nodes() if one["metadata"]["name"] in names]
    assert len(nodes) == len(found) > 1, (len(nodes), len(found))
    begun = max(one["metadata"]["creationTimestamp"] for one in found)
    return bool(begun <= min(one["metadata"]["creationTimestamp"] for one in nodes))


def group_of(machine: Json) -> str:
    """Name of the nodegroup that a Machine belongs to."""
    labels = machine["metadata"]["labels"]
    return MASTERS if _CONTROL_PLANE in labels else str(labels[_GROUP])


def deployment(cluster: Cluster, group: str) -> Json:
    """The MachineDeployment of a worker group."""
    (found,) = (
        one
        for one in management().objects("MachineDeployment", cluster.tenant.namespace)
        if one["metadata"]["labels"][_GROUP] == group
    )
    return found


def _release(cluster: Cluster) -> int:
    """Helm's revision."""
    found = management().release(cluster.tenant.namespace, cluster.release)
    assert found is not None, "there is no Helm release"
    return int(found["version"])


def _revisions(cluster: Cluster) -> dict[str, int]:
    """How often each worker group has got another template, as Cluster API counts it."""
    found = management().objects("MachineDeployment", cluster.tenant.namespace)
    return {
        one["metadata"]["labels"][_GROUP]: int(one["metadata"]["annotations"][_REVISION])
        for one in found
    }
