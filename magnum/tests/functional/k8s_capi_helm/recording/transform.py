# SPDX-License-Identifier: Apache-2.0
"""What is kept of a recorded object: what somebody could judge by, and nothing secret.

A spec is cut to the keys below: the others hold files, users and cloud settings. A status is kept
but for copies. The spec of an addon stands twice, in the object and in an annotation of the addon
provider, and only whether both are equal is judged; so each is cut to a digest.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

Json = dict[str, Any]

ADDONS = ("HelmRelease", "Manifests")
HANDLED = "addons.stackhpc.com/last-handled-configuration"
_TEMPLATE = ("version", "infrastructureRef", "bootstrap", "failureDomain", "providerID")
_SPECS = {
    "Cluster": ("paused", "controlPlaneEndpoint", "controlPlaneRef", "infrastructureRef"),
    "KubeadmControlPlane": ("replicas", "version", "machineTemplate"),
    "MachineDeployment": ("replicas", "template", "paused"),
    "MachineSet": ("replicas", "template"),
    "Machine": (*_TEMPLATE, "clusterName"),
    "OpenStackCluster": ("controlPlaneEndpoint",),
}
_META = (
    "name",
    "namespace",
    "uid",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "finalizers",
    "labels",
)
_ANNOTATIONS = (
    HANDLED,
    "addons.stackhpc.com/handle_addon_updated",
    "cluster.x-k8s.io/delete-machine",
    "cluster.x-k8s.io/paused",
    "machinedeployment.clusters.x-k8s.io/revision",
)
#: Parts of a status that repeat others, or tell of OpenStack only.
_NO_STATUS = (
    "apiServerLoadBalancer",
    "bastion",
    "controlPlaneSecurityGroup",
    "deprecated",
    "externalNetwork",
    "failureDomains",
    "network",
    "notes",
    "resources",
    "router",
    "selector",
    "workerSecurityGroup",
)
_EVENT = (
    "involvedObject",
    "reason",
    "message",
    "type",
    "lastTimestamp",
    "eventTime",
    "series",
    "count",
)


def trimmed(thing: Json) -> Json:
    """An object of the management cluster as it stands in a recording."""
    kind = str(thing["kind"])
    meta = thing["metadata"]
    kept: Json = {key: meta[key] for key in _META if key in meta}
    notes = {key: text for key, text in (meta.get("annotations") or {}).items() if _noted(key)}
    if HANDLED in notes and kind in ADDONS:
        handled = json.loads(notes[HANDLED])
        notes[HANDLED] = json.dumps({"spec": _digest(handled.get("spec"))})
    if notes:
        kept["annotations"] = notes
    owners = meta.get("ownerReferences") or ()
    if owners:
        kept["ownerReferences"] = [{"kind": one["kind"], "name": one["name"]} for one in owners]
    found: Json = {"apiVersion": thing["apiVersion"], "kind": kind, "metadata": kept}
    if kind == "Event":
        return {**found, **{key: thing[key] for key in _EVENT if thing.get(key)}}
    spec = thing.get("spec") or {}
    found["spec"] = _digest(spec) if kind in ADDONS else _spec(kind, spec)
    if "status" in thing:
        found["status"] = _status(thing["status"], str(thing["apiVersion"]))
    return found


def _noted(key: str) -> bool:
    return key.startswith(_ANNOTATIONS)


def _digest(spec: object) -> Json:
    text = json.dumps(spec, sort_keys=True)
    name = spec.get("clusterName", "") if isinstance(spec, dict) else ""
    return {"clusterName": name, "digest": hashlib.sha256(text.encode()).hexdigest()[:16]}


def _spec(kind: str, spec: Json) -> Json:
    found = {key: spec[key] for key in _SPECS.get(kind, ()) if key in spec}
    template = found.get("template")
    if template:
        inner = template.get("spec") or {}
        found["template"] = {"spec": {key: inner[key] for key in _TEMPLATE if key in inner}}
    machine = found.get("machineTemplate")
    if machine:
        inner = machine.get("spec") or machine
        found["machineTemplate"] = {
            key: inner[key] for key in ("infrastructureRef",) if key in inner
        }
    return found


def _status(status: Json, version: str) -> Json:
    found = {key: value for key, value in status.items() if key not in _NO_STATUS}
    if "nodeInfo" in found:
        found["nodeInfo"] = {"kubeletVersion": found["nodeInfo"].get("kubeletVersion")}
    if version == "cluster.x-k8s.io/v1beta1" or version == "controlplane.cluster.x-k8s.io/v1beta1":
        # They mean something older; who reads them shall be misled as by the real ones.
        found["conditions"] = [
            {"type": one["type"], "status": one["status"]} for one in status.get("conditions") or ()
        ]
    return found
