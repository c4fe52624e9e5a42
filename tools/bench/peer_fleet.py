# SPDX-License-Identifier: Apache-2.0
"""Clusters that this driver and magnum-capi-helm understand alike, for the benchmark of a pass.

Their objects have version v1beta1 of Cluster API, the only one that the peer reads, with what each
driver reads of it: conditions of that version and those of v1beta2 below ``status.v1beta2``, as
Cluster API 1.9 and 1.10 write them (https://cluster-api.sigs.k8s.io/developer/providers/migrations/).
"""

from __future__ import annotations

from collections.abc import Iterator
import dataclasses
from typing import Any

from magnum.drivers.k8s_capi_helm.kube.watch.informers import KINDS
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.model import names
from sandbox.management import server
from tools.bench import fleet
from tools.bench.fleet import builders, Json

_VERSION = "v1beta1"
GROUPS = {"default-worker": 1}
#: What only the peer looks for.
_PROXY = names.Kind("addons.cluster.x-k8s.io", "HelmChartProxy", "helmchartproxies", ("v1alpha1",))
_LABEL_PEERS_ADDON = f"{names.ADDONS_GROUP}/cluster"
#: Conditions of v1beta1 that are True in the end, by kind.
_CONDITIONS = {
    "Cluster": ("Ready", "InfrastructureReady", "ControlPlaneReady", "ControlPlaneInitialized"),
    "KubeadmControlPlane": (
        *("Ready", "Available", "CertificatesAvailable", "MachinesReady"),
        *("EtcdClusterHealthy", "ControlPlaneComponentsHealthy"),
    ),
    "MachineDeployment": ("Ready", "Available", "MachineSetReady"),
    "MachineSet": ("Ready", "MachinesCreated", "MachinesReady"),
    "Machine": ("Ready", "InfrastructureReady", "BootstrapReady", "NodeHealthy"),
}
_BY_NAME = {kind.name: kind for kind in KINDS}


def kinds() -> list[names.Kind]:
    """What the management cluster serves, each in the version that both drivers read."""
    ours = [
        dataclasses.replace(kind, versions=(_VERSION,)) if _VERSION in kind.versions else kind
        for kind in KINDS
        if kind.group
    ]
    return [*ours, _PROXY]


def let_peer_read(admin: KubeClient) -> None:
    """Give Magnum's user the right to look for what only the peer looks for."""
    name = "benchmark-peer"
    group = "rbac.authorization.k8s.io"
    role = names.Kind(group, "ClusterRole", "clusterroles", ("v1",), namespaced=False)
    binding = names.Kind(group, "ClusterRoleBinding", "clusterrolebindings", ("v1",), False)
    rule = {"apiGroups": [_PROXY.group], "resources": [_PROXY.plural], "verbs": ["get", "list"]}
    admin.apply(role, {"metadata": {"name": name}, "rules": [rule]})
    user = {"apiGroup": group, "kind": "User", "name": server.DRIVER}
    reference = {"apiGroup": group, "kind": "ClusterRole", "name": name}
    admin.apply(binding, {"metadata": {"name": name}, "subjects": [user], "roleRef": reference})


def at_rest() -> Json:
    """A cluster that is CREATE_COMPLETE and healthy."""

    def live(case: Any) -> None:
        case.create()
        _show(case, ready=True)
        case.status_task(2)
        case.health_task()

    return _checked(fleet.played(live), "CREATE_COMPLETE")


def pending() -> Json:
    """A cluster whose infrastructure is being made, in the middle of it."""

    def live(case: Any) -> None:
        case.create()
        _show(case, ready=False)
        case.status_task(3)

    return _checked(fleet.played(live), "CREATE_IN_PROGRESS")


def ready() -> Json:
    """The same one when Cluster API is through, and Magnum does not know yet."""

    def live(case: Any) -> None:
        case.create()
        _show(case, ready=True)

    return _checked(fleet.played(live), "CREATE_IN_PROGRESS")


def rows(cluster: Json) -> Json:
    """The rows of a cluster, with the label without which magnum-cluster-api refuses a health task.

    The other drivers do not read it in a pass.
    """
    labels = {**cluster["cluster"]["labels"], "kube_tag": f"v{builders.VERSION}"}
    found = {key: cluster[key] for key in ("template", "cluster", "groups")}
    return {**found, "cluster": {**found["cluster"], "labels": labels}}


def written_by_controllers(cluster: Json) -> list[Json]:
    """The objects of a cluster that Cluster API and the addon provider write."""
    return [one for one in cluster["things"] if one["kind"] in _BY_NAME and one["kind"] != "Event"]


def _checked(cluster: Json, status: str) -> Json:
    if cluster["cluster"]["status"] != status:
        raise RuntimeError(f"not {status}: {cluster['cluster']}")
    return cluster


def _show(case: Any, *, ready: bool) -> None:
    for one in _ready_objects() if ready else _pending_objects():
        case.kube.put(_BY_NAME[one["kind"]], one)


def _ready_objects() -> Iterator[Json]:
    for one in builders.objects(builders.observed(GROUPS, masters=1, version=_VERSION)):
        _set_old_conditions(one, "True")
        if one["kind"] in ("KubeadmControlPlane", "MachineDeployment"):
            one["status"].update(readyReplicas=1, updatedReplicas=1)
        if one["kind"] == names.HELM_RELEASE.name:
            one["metadata"]["labels"][_LABEL_PEERS_ADDON] = builders.RELEASE
        yield one


def _pending_objects() -> Iterator[Json]:
    """No machine yet: CAPO makes the network, and everything waits for it."""
    for one in _ready_objects():
        if one["kind"] in ("Machine", "MachineSet", "OpenStackServer"):
            continue
        status = one["status"]
        _set_old_conditions(one, "False")
        if one["kind"] == names.CLUSTER.name:
            del one["spec"]["controlPlaneEndpoint"]
            for kind in ("InfrastructureReady", "ControlPlaneInitialized", "Available"):
                builders.say(one, kind, "False", observedGeneration=2)
        if one["kind"] == names.OPENSTACK_CLUSTER.name:
            status.update(ready=False, initialization={"provisioned": False})
            builders.say(one, "Ready", "False")
        if one["kind"] in ("KubeadmControlPlane", "MachineDeployment"):
            new = status["v1beta2"]
            new.update(readyReplicas=0, availableReplicas=0, upToDateReplicas=0)
            status.update(replicas=0, readyReplicas=0, updatedReplicas=0)
            builders.say(one, "Available", "False", observedGeneration=2)
            builders.say(one, "ScalingUp", "True", observedGeneration=2)
        if one["kind"] == names.MACHINE_DEPLOYMENT.name:
            status["phase"] = "ScalingUp"
        if one["kind"] == names.HELM_RELEASE.name:
            one["status"] = {"phase": "Pending"}
        yield one


def _set_old_conditions(one: Json, state: str) -> None:
    if one["kind"] in _CONDITIONS:
        at = "2026-11-21T11:10:00Z"
        one["status"]["conditions"] = [
            {"type": kind, "status": state, "lastTransitionTime": at}
            for kind in _CONDITIONS[one["kind"]]
        ]
