# SPDX-License-Identifier: Apache-2.0
"""A management cluster whose controllers are as quick as can be.

Objects are the API server's own, made by the real helm. What controllers would add to them is made
up whenever they are read: each object is what its spec says, at once, and its machines are there.
So nothing of it is written, and nothing has to be played in time.
"""

from __future__ import annotations

from collections.abc import Iterator
import json
from typing import Any

from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.model import conditions, Json, names

_COUNTERS = ("replicas", "readyReplicas", "availableReplicas", "upToDateReplicas")
_GOOD = [{"type": kind, "status": good, "reason": kind} for kind, good in conditions.GOOD.items()]
_ADDONS = (names.HELM_RELEASE, names.MANIFESTS)
#: What controllers make, which is nowhere but in answers.
MADE = (names.MACHINE_SET, names.MACHINE, names.OPENSTACK_SERVER)
_OWN = (names.CLUSTER, names.OPENSTACK_CLUSTER, names.CONTROL_PLANE, names.MACHINE_DEPLOYMENT)


class QuickClusters(KubeClient):
    """The driver's own client, which sees what controllers would have made by now."""

    def get(self, kind: names.Kind, namespace: str | None, name: str) -> Json | None:
        found = super().get(kind, namespace, name)
        return None if found is None else settled(kind, found)

    def list(
        self,
        kind: names.Kind,
        namespace: str | None,
        selector: Any = None,
        *,
        metadata_only: bool = False,
    ) -> list[Json]:
        if metadata_only:
            return super().list(kind, namespace, selector, metadata_only=True)
        if kind not in MADE or not selector:
            return [settled(kind, one) for one in super().list(kind, namespace, selector)]
        groups = super().list(names.MACHINE_DEPLOYMENT, namespace, selector)
        if kind is names.MACHINE_SET:
            return [_machine_set(one) for one in groups]
        release = selector[names.LABEL_CLUSTER_NAME]
        masters = super().get(names.CONTROL_PLANE, namespace, names.kubeadm_control_plane(release))
        owners = groups if masters is None else [*groups, masters]
        machines = [machine for owner in owners for machine in _machines(owner)]
        return [_server(one) for one in machines] if kind is names.OPENSTACK_SERVER else machines


def settled(kind: names.Kind, thing: Json) -> Json:
    """The object, when its controller is through with it."""
    if kind in _ADDONS:
        notes = thing["metadata"].setdefault("annotations", {})
        notes[f"{names.ADDONS_GROUP}/last-handled-configuration"] = json.dumps(
            {"spec": thing.get("spec")}
        )
        thing["status"] = {"phase": "Deployed", "revision": 1}
    elif kind in _OWN:
        thing["status"] = _status(thing)
        if kind is names.CLUSTER:
            thing["spec"]["controlPlaneEndpoint"] = {"host": "192.0.2.10", "port": 6443}
    return thing


def _status(thing: Json) -> Json:
    """Everything is so, counters included, wherever a version of the API keeps it."""
    counted = dict.fromkeys(_COUNTERS, conditions.at_path(thing, "spec", "replicas"))
    return {
        **counted,
        "observedGeneration": thing["metadata"]["generation"],
        "ready": True,
        "initialization": {"provisioned": True},
        "version": conditions.at_path(thing, "spec", "version"),
        "conditions": _GOOD,
        "v1beta2": {**counted, "conditions": _GOOD},
    }


def _machine_set(group: Json) -> Json:
    made = _made(group, "MachineSet", "newest")
    revision = {"machinedeployment.clusters.x-k8s.io/revision": "1"}
    made["metadata"]["annotations"] = revision
    made["spec"] = {key: group["spec"].get(key) for key in ("replicas", "template")}
    made["status"] = _status(made)
    return made


def _machines(owner: Json) -> Iterator[Json]:
    """The machines of a control plane, or of a nodegroup."""
    template = conditions.at_path(owner, "spec", "template", "spec") or {}
    version = template.get("version") or owner["spec"].get("version")
    for number in range(owner["spec"].get("replicas") or 0):
        made = _made(owner, "Machine", f"m{number}")
        if owner["kind"] == names.CONTROL_PLANE.name:
            made["metadata"]["labels"][names.LABEL_CONTROL_PLANE] = ""
        name = made["metadata"]["name"]
        made["spec"] = {"version": version, "infrastructureRef": {"name": name}}
        made["status"] = {**_status(made), "nodeRef": {"name": name}}
        yield made


def _server(machine: Json) -> Json:
    made = _made(machine, "OpenStackServer", "")
    made["metadata"]["name"] = machine["metadata"]["name"]
    return {**made, "status": {**_status(made), "instanceState": "ACTIVE"}}


def _made(owner: Json, kind: str, suffix: str) -> Json:
    """An object that a controller makes for another one."""
    metadata = owner["metadata"]
    labels = dict(metadata.get("labels") or {})
    if owner["kind"] == names.MACHINE_DEPLOYMENT.name:
        labels[names.LABEL_DEPLOYMENT_NAME] = metadata["name"]
    name = f"{metadata['name']}-{suffix}"
    made = {"name": name, "uid": f"{metadata['uid']}-{name}", "generation": 1, "labels": labels}
    return {"apiVersion": owner["apiVersion"], "kind": kind, "metadata": made, "spec": {}}
