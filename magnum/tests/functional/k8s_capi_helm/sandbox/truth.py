# SPDX-License-Identifier: Apache-2.0
"""What is really there of a cluster, against what was asked for; written without the driver's code.

The rules are those of Cluster API's own documentation of its controllers and their conditions
(https://cluster-api.sigs.k8s.io/developer/core/controllers/): a change is through when every
controller has observed the newest generation, the newest MachineSet alone has all machines, and
every machine is ready, current and a Ready node of the cluster that a tenant reaches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import dataclasses
import json
from typing import Any

from magnum.tests.functional.k8s_capi_helm.sandbox.management import management
from magnum.tests.functional.k8s_capi_helm.sandbox.tenant import Tenant
from magnum.tests.functional.k8s_capi_helm.sandbox.workload import Workload

Json = dict[str, Any]

_CLUSTER = "cluster.x-k8s.io/cluster-name"
_DEPLOYMENT = "cluster.x-k8s.io/deployment-name"
_CONTROL_PLANE = "cluster.x-k8s.io/control-plane"
_GROUP = "capi.stackhpc.com/node-group"
_REVISION = "machinedeployment.clusters.x-k8s.io/revision"
_HANDLED = "addons.stackhpc.com/last-handled-configuration"
_COMPONENT = "capi.stackhpc.com/component"
#: Addons without which nodes or volumes cannot be used; others may still be on their way.
_NEEDED = frozenset({"cni-calico", "cni-cilium", "cloud-config", "ccm-openstack", "csi-cinder"})
_MASTERS = "default-master"
_KINDS = (
    "Cluster",
    "KubeadmControlPlane",
    "MachineDeployment",
    "MachineSet",
    "Machine",
    "OpenStackCluster",
    "OpenStackServer",
    "HelmRelease",
    "Manifests",
)


@dataclasses.dataclass(frozen=True)
class Intent:
    """What a tenant asked for in all: machines of the control plane and of each worker group.

    :ivar version: Kubernetes version with ``v``.
    :ivar versions: those of worker groups that have another one, by name.
    """

    version: str
    control_plane: int
    groups: Mapping[str, int]
    versions: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def with_groups(self, **counts: int | None) -> Intent:
        """The same with other counts; None takes a group away, ``_`` stands for ``-``."""
        named = {name.replace("_", "-"): count for name, count in counts.items()}
        groups = {**self.groups, **named}
        kept = {name: count for name, count in groups.items() if count is not None}
        return dataclasses.replace(self, groups=kept)

    @property
    def counts(self) -> dict[str, int]:
        """Machines by the name of Magnum's nodegroup."""
        return {_MASTERS: self.control_plane, **self.groups}

    def version_of(self, group: str) -> str:
        """Kubernetes version of a nodegroup's machines."""
        return self.versions.get(group, self.version)


class Look:
    """One look at everything that is there of a release."""

    def __init__(self, tenant: Tenant, release: str) -> None:
        self.release = release
        self.objects = {
            kind: [one for one in management().objects(kind, tenant.namespace) if _of(one, release)]
            for kind in _KINDS
        }
        self.servers = tenant.servers()

    def one(self, kind: str) -> Json | None:
        found = self.objects[kind]
        return found[0] if len(found) == 1 else None


def untruths(look: Look, intent: Intent) -> list[str]:
    """What is not (yet) as it was asked for; empty means that all of it is true."""
    groups = {one["metadata"]["labels"].get(_GROUP) for one in look.objects["MachineDeployment"]}
    found = [f"group {name} is still there" for name in sorted(groups - set(intent.groups))]
    found += _cluster(look)
    for name in intent.counts:
        found += group_untruths(look, intent, name)
    found += _servers(look, sum(intent.counts.values()))
    found += _addons(look)
    return found


def group_untruths(look: Look, intent: Intent, name: str) -> list[str]:
    """The same for one nodegroup."""
    count = intent.counts[name]
    if name == _MASTERS:
        return [f"{name}: {why}" for why in _masters(look, intent, count)]
    return [f"{name}: {why}" for why in _workers(look, intent, name, count)]


def node_untruths(workload: Workload, look: Look, intent: Intent) -> list[str]:
    """What the tenant's own ``kubectl get nodes`` shows that was not asked for."""
    # A node whose server was replaced before Cluster API knew the node is the cloud controller's to
    # remove, which is not played.
    nodes = [node for node in workload.nodes() if _server(node) in look.servers]
    wanted = sum(intent.counts.values())
    found = [] if len(nodes) == wanted else [f"{len(nodes)} nodes of {wanted}"]
    for node in nodes:
        name, version = node["metadata"]["name"], node["status"]["nodeInfo"]["kubeletVersion"]
        if version != intent.version_of(node["metadata"]["labels"].get(_GROUP, _MASTERS)):
            found.append(f"node {name} has {version}")
        if condition(node, "Ready") != "True" or node["spec"].get("unschedulable"):
            found.append(f"node {name} is not ready")
    return found


def _server(node: Json) -> str:
    """Id of the Nova server that a node runs on."""
    return str(node["spec"].get("providerID", "")).rpartition("/")[2]


def condition(thing: Json, name: str) -> str:
    """A condition's status; Unknown without one."""
    conditions = thing.get("status", {}).get("conditions") or ()
    return next((one["status"] for one in conditions if one["type"] == name), "Unknown")


def _of(thing: Json, release: str) -> bool:
    labels = thing["metadata"].get("labels") or {}
    marks = (labels.get(_CLUSTER), labels.get("capi.stackhpc.com/cluster"))
    return release in marks or thing["metadata"]["name"] == release


def _is_observed(thing: Json) -> bool:
    return bool(
        thing["metadata"]["generation"] == thing.get("status", {}).get("observedGeneration")
    )


def _cluster(look: Look) -> Iterator[str]:
    cluster, infrastructure = look.one("Cluster"), look.one("OpenStackCluster")
    if cluster is None or infrastructure is None:
        yield "no Cluster or no OpenStackCluster"
        return
    if condition(cluster, "Available") != "True":
        yield "Cluster is not Available"
    if not infrastructure.get("status", {}).get("ready"):
        yield "OpenStackCluster is not ready"
    if cluster["metadata"].get("deletionTimestamp"):
        yield "Cluster is being deleted"


def _masters(look: Look, intent: Intent, count: int) -> Iterator[str]:
    control_plane = look.one("KubeadmControlPlane")
    if control_plane is None:
        yield "no KubeadmControlPlane"
        return
    spec, status = control_plane["spec"], control_plane.get("status", {})
    if (spec["replicas"], spec["version"]) != (count, intent.version):
        yield f"asked for {spec['replicas']} of {spec['version']}"
    if not _is_observed(control_plane):
        yield "its newest generation is not observed"
    yield from _counters(status, count, "replicas", "upToDateReplicas")
    if condition(control_plane, "Available") != "True":
        yield "not Available"
    yield from _machines(
        [m for m in look.objects["Machine"] if _CONTROL_PLANE in m["metadata"]["labels"]],
        count,
        intent.version,
    )


def _workers(look: Look, intent: Intent, name: str, count: int) -> Iterator[str]:
    deployments = [
        one
        for one in look.objects["MachineDeployment"]
        if one["metadata"]["labels"].get(_GROUP) == name
    ]
    if len(deployments) != 1:
        yield f"{len(deployments)} MachineDeployments"
        return
    deployment, version = deployments[0], intent.version_of(name)
    template = deployment["spec"]["template"]["spec"]
    if (deployment["spec"]["replicas"], template["version"]) != (count, version):
        yield f"asked for {deployment['spec']['replicas']} of {template['version']}"
    if not _is_observed(deployment):
        yield "its newest generation is not observed"
    own = deployment["metadata"]["name"]
    sets = sorted(
        (s for s in look.objects["MachineSet"] if s["metadata"]["labels"].get(_DEPLOYMENT) == own),
        key=lambda one: int(one["metadata"].get("annotations", {}).get(_REVISION, 0)),
    )
    if not sets or _template(sets[-1]) != _template(deployment):
        yield "its newest MachineSet has an older template"
    else:
        yield from _counters(sets[-1].get("status", {}), count, "replicas")
        if any(one.get("status", {}).get("replicas") for one in sets[:-1]):
            yield "an older MachineSet still has machines"
    machines = [
        m for m in look.objects["Machine"] if m["metadata"]["labels"].get(_DEPLOYMENT) == own
    ]
    yield from _machines(machines, count, version)


def _template(thing: Json) -> tuple[str, str, str]:
    """What decides whether a machine is of the newest template."""
    spec = thing["spec"]["template"]["spec"]
    bootstrap = spec["bootstrap"]["configRef"]["name"]
    return spec["version"], spec["infrastructureRef"]["name"], bootstrap


def _counters(status: Json, count: int, *more: str) -> Iterator[str]:
    for counter in (*more, "readyReplicas", "availableReplicas"):
        if status.get(counter, 0) != count:
            yield f"{counter} is {status.get(counter)}, not {count}"


def _machines(machines: list[Json], count: int, version: str) -> Iterator[str]:
    if len(machines) != count:
        yield f"{len(machines)} machines of {count}"
    for machine in machines:
        name = machine["metadata"]["name"]
        if machine["metadata"].get("deletionTimestamp"):
            yield f"{name} is being deleted"
        if machine["spec"].get("version") != version:
            yield f"{name} is of {machine['spec'].get('version')}"
        for wanted in ("Ready", "UpToDate"):
            if condition(machine, wanted) != "True":
                yield f"{name} has {wanted}={condition(machine, wanted)}"


def _servers(look: Look, count: int) -> Iterator[str]:
    known = {one.get("status", {}).get("instanceID") for one in look.objects["OpenStackServer"]}
    if known != set(look.servers):
        yield f"Cluster API knows the servers {known}, Nova {set(look.servers)}"
    if len(look.servers) != count:
        yield f"{len(look.servers)} servers of {count}"
    states = {id_: state for id_, state in look.servers.items() if state != "ACTIVE"}
    if states:
        yield f"not every server is ACTIVE: {states}"


def _addons(look: Look) -> Iterator[str]:
    addons = look.objects["HelmRelease"] + look.objects["Manifests"]
    if not addons:
        yield "no addons"
    for addon in addons:
        handled = json.loads(addon["metadata"].get("annotations", {}).get(_HANDLED, "{}"))
        phase = addon.get("status", {}).get("phase")
        is_through = phase == "Deployed" and handled.get("spec") == addon["spec"]
        is_needed = addon["metadata"]["labels"][_COMPONENT] in _NEEDED
        if phase == "Failed" or (is_needed and not is_through):
            yield f"addon {addon['metadata']['name']} is {phase}"
