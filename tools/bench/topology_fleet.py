# SPDX-License-Identifier: Apache-2.0
"""The clusters of the benchmark of a pass as magnum-cluster-api has them.

That driver has all clusters in one namespace, makes each a Cluster with a managed topology
(https://cluster-api.sigs.k8s.io/tasks/experimental-features/cluster-class/), and finds what belongs
to a nodegroup by the labels of the topology. Its health task refuses objects without the fields
that their CRDs require. Names, versions, conditions and counters are those of
:mod:`tools.bench.peer_fleet`; kinds that none of its passes reads are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
import copy

from magnum.drivers.k8s_capi_helm.model import names
from tools.bench import peer_fleet
from tools.bench.fleet import builders, Json

#: All its clusters are here; no other namespace can be chosen. The role that this driver's user
#: has in each namespace of a fleet covers all that a pass of magnum-cluster-api asks for.
NAMESPACE = "magnum-system"
_VERSION = f"v{builders.VERSION}"
_CLASS = "magnum-v0.38.2"
_LABEL_GROUP = "topology.cluster.x-k8s.io/deployment-name"
_LABEL_OWNED = "topology.cluster.x-k8s.io/owned"
#: What its passes read, besides what is made here.
_READ = frozenset(
    kind.name
    for kind in (
        names.CLUSTER,
        names.OPENSTACK_CLUSTER,
        names.CONTROL_PLANE,
        names.MACHINE_DEPLOYMENT,
        names.MACHINE,
        names.EVENT,
    )
)
_IMAGE, _FLAVOR = "ubuntu-kube", "small"


def cluster(given: Json) -> Json:
    """A cluster of :mod:`tools.bench.peer_fleet` with the same rows and these objects."""
    release = {**given["release"], "namespace": NAMESPACE}
    return {**given, "release": release, "things": list(objects(given["things"]))}


def objects(things: Iterable[Json]) -> Iterator[Json]:
    """The objects of a cluster, with an OpenStackMachine for each Machine."""
    for given in things:
        if given["kind"] not in _READ:
            continue
        one = copy.deepcopy(given)
        one["metadata"]["namespace"] = NAMESPACE
        if one["kind"] == names.EVENT.name:
            one["involvedObject"]["namespace"] = NAMESPACE
            yield one
            continue
        _set_labels(one)
        _complete(one)
        yield one
        if one["kind"] == names.MACHINE.name:
            yield _openstack_machine(one)


def _set_labels(one: Json) -> None:
    """Only those of the topology: the chart's have no place here."""
    labels = one["metadata"]["labels"]
    group = labels.get(names.LABEL_NODE_GROUP)
    kept = {key: text for key, text in labels.items() if not key.startswith(names.CHART_PREFIX)}
    if one["kind"] != names.CLUSTER.name:
        kept[_LABEL_OWNED] = ""
    if group:
        kept[_LABEL_GROUP] = group
    one["metadata"]["labels"] = kept


def _complete(one: Json) -> None:
    """Add what that driver reads, and what the CRDs of Cluster API require."""
    name, spec = one["metadata"]["name"], one["spec"]
    if one["kind"] == names.CLUSTER.name:
        spec["topology"] = _topology()
    if one["kind"] == names.CONTROL_PLANE.name:
        spec["kubeadmConfigSpec"] = {}
        template = _reference("OpenStackMachineTemplate", f"{name}-template")
        spec["machineTemplate"] = {"infrastructureRef": template}
        # As Cluster API sets them in v1beta1 for one machine.
        ready = one["status"]["readyReplicas"] > 0
        one["status"].update(ready=ready, initialized=ready)
    if one["kind"] == names.MACHINE.name:
        release = one["metadata"]["labels"][names.LABEL_CLUSTER_NAME]
        spec.update(clusterName=release, bootstrap={"dataSecretName": name})
        spec["infrastructureRef"] = _reference("OpenStackMachine", name)


def _topology() -> Json:
    groups = [
        {
            "class": "default-worker",
            "name": name,
            "replicas": number,
            "metadata": {"annotations": {}},
            "variables": {"overrides": _variables()},
        }
        for name, number in peer_fleet.GROUPS.items()
    ]
    return {
        "class": _CLASS,
        "version": _VERSION,
        "controlPlane": {"replicas": 1},
        "workers": {"machineDeployments": groups},
        "variables": _variables(),
    }


def _variables() -> list[Json]:
    return [{"name": "flavor", "value": _FLAVOR}, {"name": "imageUUID", "value": _IMAGE}]


def _reference(kind: str, name: str) -> Json:
    version = f"{names.INFRASTRUCTURE_GROUP}/v1beta1"
    return {"apiVersion": version, "kind": kind, "name": name, "namespace": NAMESPACE}


def _openstack_machine(machine: Json) -> Json:
    """The server of a Machine, as CAPO has it."""
    kind = names.OPENSTACK_MACHINE
    return {
        "apiVersion": f"{kind.group}/{kind.versions[0]}",
        "kind": kind.name,
        "metadata": copy.deepcopy(machine["metadata"]),
        "spec": {"flavor": _FLAVOR, "image": {"id": _IMAGE}},
        "status": {"ready": True, "instanceState": "ACTIVE"},
    }
