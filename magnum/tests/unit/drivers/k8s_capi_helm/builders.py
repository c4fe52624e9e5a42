# SPDX-License-Identifier: Apache-2.0
"""Builders of what a management cluster shows: a cluster that is in place, to be broken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import copy
import dataclasses
import datetime
import json
from typing import Any

from magnum.drivers.k8s_capi_helm import model
from magnum.drivers.k8s_capi_helm.model import names

Json = dict[str, Any]
NOW = datetime.datetime(2026, 11, 21, 12, 0, tzinfo=datetime.timezone.utc)
RELEASE = "demo-abcdefghijkl"
NAMESPACE = "magnum-p1"
VERSION = "1.34.4"
CORE_COMPONENTS = ("cni-calico", "cloud-config", "ccm-openstack", "csi-cinder")

_CLUSTER = {
    "InfrastructureReady": "True",
    "ControlPlaneInitialized": "True",
    "Available": "True",
    "RemoteConnectionProbe": "True",
    "Paused": "False",
    "Deleting": "False",
}
_CONTROL_PLANE = {
    "Available": "True",
    "Initialized": "True",
    "CertificatesAvailable": "True",
    "RollingOut": "False",
    "ScalingUp": "False",
    "ScalingDown": "False",
    "Remediating": "False",
    "Paused": "False",
    "Deleting": "False",
}
_DEPLOYMENT = {
    "Available": "True",
    "RollingOut": "False",
    "ScalingUp": "False",
    "ScalingDown": "False",
    "Paused": "False",
    "Deleting": "False",
}
_MACHINE_SET = {"ScalingUp": "False", "ScalingDown": "False", "Paused": "False"}
_MACHINE = {
    "Ready": "True",
    "Available": "True",
    "UpToDate": "True",
    "InfrastructureReady": "True",
    "BootstrapConfigReady": "True",
    "NodeHealthy": "True",
    "Deleting": "False",
    "Paused": "False",
}


def thing(
    kind: names.Kind,
    name: str,
    *,
    version: str | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    spec: Json | None = None,
    status: Json | None = None,
) -> Json:
    """An object as the API server sends it, with a generation, a uid and no owner."""
    group = f"{kind.group}/" if kind.group else ""
    return {
        "apiVersion": f"{group}{version or kind.versions[0]}",
        "kind": kind.name,
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": f"uid-{kind.plural}-{name}",
            "generation": 2,
            "creationTimestamp": "2026-11-21T11:00:00Z",
            "labels": {names.LABEL_CLUSTER_NAME: RELEASE, **(labels or {})},
            "annotations": dict(annotations or {}),
        },
        "spec": copy.deepcopy(spec or {}),
        "status": copy.deepcopy(status or {}),
    }


def conditions(states: Mapping[str, str]) -> list[Json]:
    """Conditions of generation 2, without messages."""
    return [
        {
            "type": kind,
            "status": state,
            "reason": kind,
            "message": "",
            "observedGeneration": 2,
            "lastTransitionTime": "2026-11-21T11:10:00Z",
        }
        for kind, state in states.items()
    ]


def say(
    target: Json, kind: str, state: str, message: str = "", reason: str = "Because", **more: Any
) -> None:
    """Set one condition of an object, wherever its version keeps them."""
    status = target["status"]
    holder = status.get("v1beta2", status)
    listed = holder.setdefault("conditions", [])
    listed[:] = [one for one in listed if one["type"] != kind]
    one = {
        "type": kind,
        "status": state,
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-11-21T11:10:00Z",
    }
    listed.append({**one, **more})


def core_status(version: str, states: Mapping[str, str], counters: Json | None = None) -> Json:
    """The status of a core object in the shape of its API version."""
    counters = counters or {}
    own: Json = {"observedGeneration": 2}
    if version == "v1beta2":
        return {**own, **counters, "conditions": conditions(states)}
    old = {key: value for key, value in counters.items() if key == "replicas"}
    new = {key: value for key, value in counters.items() if key != "replicas"}
    # What v1beta1 calls conditions means something else; here it contradicts, to catch its readers.
    wrong = [{"type": kind, "status": "Unknown"} for kind in states]
    return {**own, **old, "conditions": wrong, "v1beta2": {**new, "conditions": conditions(states)}}


def _counts(number: int) -> Json:
    keys = ("replicas", "readyReplicas", "availableReplicas", "upToDateReplicas")
    return dict.fromkeys(keys, number)


def cluster(version: str = "v1beta2") -> Json:
    status = core_status(version, _CLUSTER)
    if version == "v1beta2":
        status["initialization"] = {
            "infrastructureProvisioned": True,
            "controlPlaneInitialized": True,
        }
    spec = {
        "controlPlaneEndpoint": {"host": "127.64.0.10", "port": 6443},
        "controlPlaneRef": {
            "kind": "KubeadmControlPlane",
            "name": names.kubeadm_control_plane(RELEASE),
        },
        "infrastructureRef": {"kind": "OpenStackCluster", "name": RELEASE},
    }
    return thing(names.CLUSTER, RELEASE, version=version, spec=spec, status=status)


def openstack_cluster() -> Json:
    states = dict.fromkeys(
        ("Ready", "NetworkReady", "RouterReady", "SecurityGroupsReady", "APIEndpointReady"), "True"
    )
    status = {
        "ready": True,
        "initialization": {"provisioned": True},
        "conditions": [{"type": kind, "status": one} for kind, one in states.items()],
    }
    spec = {"apiServerLoadBalancer": {"enabled": True}}
    return thing(names.OPENSTACK_CLUSTER, RELEASE, spec=spec, status=status)


def control_plane(count: int = 3, version: str = "v1beta2") -> Json:
    status = core_status(version, _CONTROL_PLANE, _counts(count))
    status["version"] = f"v{VERSION}"
    return thing(
        names.CONTROL_PLANE,
        names.kubeadm_control_plane(RELEASE),
        version=version,
        labels={names.LABEL_CHART_COMPONENT: "control-plane"},
        spec={"replicas": count, "version": f"v{VERSION}"},
        status=status,
    )


def _template(group: str) -> Json:
    return {
        "version": f"v{VERSION}",
        "infrastructureRef": {"kind": "OpenStackMachineTemplate", "name": f"{RELEASE}-{group}-1a"},
        "bootstrap": {"configRef": {"kind": "KubeadmConfigTemplate", "name": f"{group}-1b"}},
    }


def deployment(group: str, count: int = 2, version: str = "v1beta2") -> Json:
    return thing(
        names.MACHINE_DEPLOYMENT,
        f"{RELEASE}-{group}",
        version=version,
        labels={names.LABEL_NODE_GROUP: group, names.LABEL_CHART_COMPONENT: "worker"},
        spec={"replicas": count, "template": {"spec": _template(group)}},
        status={**core_status(version, _DEPLOYMENT, _counts(count)), "phase": "Running"},
    )


def machine_set(group: str, count: int = 2, version: str = "v1beta2", revision: int = 1) -> Json:
    return thing(
        names.MACHINE_SET,
        f"{RELEASE}-{group}-rs{revision}",
        version=version,
        labels={names.LABEL_DEPLOYMENT_NAME: f"{RELEASE}-{group}"},
        annotations={"machinedeployment.clusters.x-k8s.io/revision": str(revision)},
        spec={"replicas": count, "template": {"spec": _template(group)}},
        status=core_status(version, _MACHINE_SET, _counts(count)),
    )


def machine(group: str | None, number: int, version: str = "v1beta2") -> Json:
    """A Machine of a group, or of the control plane for None."""
    name = f"{RELEASE}-{group or 'control-plane'}-m{number}"
    labels = (
        {names.LABEL_CONTROL_PLANE: ""}
        if group is None
        else {
            names.LABEL_DEPLOYMENT_NAME: f"{RELEASE}-{group}",
            names.LABEL_NODE_GROUP: group,
        }
    )
    status = core_status(version, _MACHINE)
    status["nodeRef"] = {"name": name}
    status["addresses"] = [
        {"type": "InternalIP", "address": f"10.0.{len(name)}.{number}"},
        {"type": "InternalDNS", "address": name},
    ]
    spec = {
        "version": f"v{VERSION}",
        "infrastructureRef": {"kind": "OpenStackMachine", "name": name},
    }
    return thing(names.MACHINE, name, version=version, labels=labels, spec=spec, status=status)


def server(name: str) -> Json:
    status = {
        "instanceID": f"id-{name}",
        "instanceState": "ACTIVE",
        "ready": True,
        "resolved": {"imageID": "i", "flavorID": "f"},
        "conditions": [{"type": kind, "status": "True"} for kind in ("Ready", "InstanceReady")],
    }
    return thing(names.OPENSTACK_SERVER, name, spec={"flavor": "m1.small"}, status=status)


def addon(
    component: str, cluster_name: str = RELEASE, kind: names.Kind = names.HELM_RELEASE
) -> Json:
    """A deployed addon."""
    spec = {"clusterName": cluster_name, "releaseName": component}
    return thing(
        kind,
        f"{cluster_name}-{component}",
        labels={names.LABEL_CHART_CLUSTER: cluster_name, names.LABEL_CHART_COMPONENT: component},
        annotations={
            f"{names.ADDONS_GROUP}/last-handled-configuration": json.dumps({"spec": spec})
        },
        spec=spec,
        status={"phase": "Deployed", "revision": 1},
    )


def core_addons(cluster_name: str = RELEASE) -> tuple[Json, ...]:
    return tuple(addon(one, cluster_name) for one in CORE_COMPONENTS)


def event(kind: str, name: str, reason: str, message: str, at: datetime.datetime = NOW) -> Json:
    one = thing(names.EVENT, f"{name}.1")
    stamp = at.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        **one,
        "involvedObject": {"kind": kind, "name": name},
        "reason": reason,
        "message": message,
        "lastTimestamp": stamp,
        "type": "Warning",
    }


def observed(
    groups: Mapping[str, int] | None = None, masters: int = 3, version: str = "v1beta2"
) -> model.Observed:
    """Everything of a cluster that is in place."""
    wanted = {"default-worker": 2} if groups is None else groups
    machines = [machine(None, number, version) for number in range(masters)]
    machines += [machine(g, i, version) for g, count in wanted.items() for i in range(count)]
    return model.Observed(
        at=NOW,
        asof=NOW,
        cluster=cluster(version),
        infrastructure=openstack_cluster(),
        control_plane=control_plane(masters, version),
        machine_deployments=tuple(deployment(g, n, version) for g, n in wanted.items()),
        machine_sets=tuple(machine_set(g, n, version) for g, n in wanted.items()),
        machines=tuple(machines),
        servers=tuple(server(one["metadata"]["name"]) for one in machines),
        addons=core_addons(),
    )


def objects(look: model.Observed) -> Iterable[Json]:
    """Every object of a look, single ones and listed ones."""
    for field in dataclasses.fields(look):
        value = getattr(look, field.name)
        if isinstance(value, dict) and "metadata" in value:
            yield value
        if isinstance(value, tuple):
            yield from value


def state(
    status: str = "CREATE_IN_PROGRESS",
    groups: Mapping[str, int] | None = None,
    masters: int = 3,
    **more: Any,
) -> model.MagnumState:
    """Magnum's rows for such a cluster; the groups have the cluster's status."""
    wanted = {"default-worker": 2} if groups is None else groups
    rows = [model.GroupState("default-master", status, masters, is_control_plane=True)]
    rows += [model.GroupState(name, status, count) for name, count in wanted.items()]
    defaults: dict[str, Any] = {
        "release": RELEASE,
        "status": status,
        "status_reason": None,
        "groups": tuple(rows),
        "is_applied": True,
        "kubernetes_version": VERSION,
        "started_at": NOW - datetime.timedelta(minutes=10),
        "deadline": NOW + datetime.timedelta(minutes=50),
    }
    return model.MagnumState(**{**defaults, **more})
