# SPDX-License-Identifier: Apache-2.0
"""Recorded watch streams of real controllers, replayed as looks.

A recording is a gzipped file of JSON lines in order of arrival: objects (``type``, ``api``,
``kind``, ``name``, ``object``) and marks of whoever drove it (``mark``: "apply: ...", "applied",
"reached: ..."). Recordings have no addons; a replay takes them for deployed.
"""

from __future__ import annotations

from collections.abc import Iterator
import dataclasses
import datetime
import gzip
import json
import os
import pathlib
from typing import Any

from magnum.drivers.k8s_capi_helm import model, names
from magnum.tests.unit.drivers.k8s_capi_helm import scenes

#: Directory with ``<version>/<scenario>.jsonl.gz``.
ENVIRONMENT = "K8S_CAPI_HELM_RECORDINGS"
OWN = pathlib.Path(__file__).parent / "recordings"

_SINGLE = {
    "Cluster": names.CLUSTER,
    "OpenStackCluster": names.OPENSTACK_CLUSTER,
    "KubeadmControlPlane": names.CONTROL_PLANE,
}


def files() -> list[pathlib.Path]:
    """Our own recordings, and those of the directory that the environment names."""
    extra = os.environ.get(ENVIRONMENT)
    roots = [OWN, *([pathlib.Path(extra)] if extra else [])]
    return sorted(path for root in roots for path in root.glob("**/*.jsonl.gz"))


@dataclasses.dataclass
class World:
    """What a watcher knows at one moment; objects of one API version of Cluster API."""

    core: str
    things: dict[str, dict[str, dict[str, Any]]] = dataclasses.field(default_factory=dict)

    def take(self, line: dict[str, Any]) -> bool:
        """Take in one recorded line; False if it is of another version."""
        group = str(line["object"].get("apiVersion", "")).partition("/")[0]
        ours = group in (names.CORE_GROUP, names.CONTROL_PLANE_GROUP)
        if ours and line["api"] != self.core:
            return False
        kind = self.things.setdefault(line["kind"], {})
        if line["type"] == "DELETED":
            kind.pop(line["name"], None)
        else:
            kind[line["name"]] = _renamed(line["object"])
        return True

    def of(self, kind: str, cluster: str) -> tuple[dict[str, Any], ...]:
        """The objects of a kind that belong to a cluster, as a look would find them."""
        found = []
        for name, thing in self.things.get(kind, {}).items():
            if kind == "Event":
                mine = str(thing["involvedObject"].get("name", "")).startswith(cluster)
            else:
                labels = thing["metadata"].get("labels") or {}
                mine = labels.get(names.LABEL_CLUSTER_NAME) == cluster or name == cluster
            if mine:
                found.append(thing)
        return tuple(found)

    def observed(self, cluster: str, at: datetime.datetime) -> model.Observed:
        single = {
            kind: (self.of(kind, cluster) or (model.Missing.NOT_FOUND,))[0] for kind in _SINGLE
        }
        return model.Observed(
            at=at,
            cluster=single["Cluster"],
            infrastructure=single["OpenStackCluster"],
            control_plane=single["KubeadmControlPlane"],
            machine_deployments=self.of("MachineDeployment", cluster),
            machine_sets=self.of("MachineSet", cluster),
            machines=self.of("Machine", cluster),
            servers=self.of("OpenStackServer", cluster),
            addons=scenes.core_addons(cluster),
            events=self.of("Event", cluster),
        )

    def wanted(self, cluster: str) -> tuple[model.GroupState, ...]:
        """The rows that ask for just what the specs ask for now."""
        groups = [
            model.GroupState("default-master", "UPDATE_IN_PROGRESS", one["spec"]["replicas"], True)
            for one in self.of("KubeadmControlPlane", cluster)
        ]
        for one in self.of("MachineDeployment", cluster):
            if not one["metadata"].get("deletionTimestamp"):
                name = one["metadata"]["labels"][names.LABEL_NODE_GROUP]
                groups.append(model.GroupState(name, "UPDATE_IN_PROGRESS", one["spec"]["replicas"]))
        return tuple(groups)


def _renamed(thing: dict[str, Any]) -> dict[str, Any]:
    """The recordings were made with labels of an example domain."""
    labels = thing.get("metadata", {}).get("labels")
    if labels:
        thing["metadata"]["labels"] = {
            key.replace("capi.example.org/", f"{names.CHART_PREFIX}/"): value
            for key, value in labels.items()
        }
    return thing


def lines(path: pathlib.Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        for line in stream:
            yield json.loads(line)


def moment(line: dict[str, Any]) -> datetime.datetime:
    """When a line arrived, aware."""
    parsed = datetime.datetime.fromisoformat(line["ts"])
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=datetime.UTC)
