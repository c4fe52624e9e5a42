# SPDX-License-Identifier: Apache-2.0
"""A cluster with one node group, and what a test asks about a group's objects."""

from __future__ import annotations

from typing import Any

from magnum.tests.functional.k8s_capi_helm.charts import rendering
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object, Values

GROUP = "capi.stackhpc.com/node-group"
CAPACITY = "capacity.cluster-autoscaler.kubernetes.io"
BOUNDS = "cluster.x-k8s.io/cluster-api-autoscaler-node-group"
#: What Cluster API puts from a Machine on its Node, as its documentation has it.
KEPT = ("node-role.kubernetes.io", "node-restriction.kubernetes.io", "node.cluster.x-k8s.io")


def rendered(group: Values | None = None, **change: Any) -> list[Object]:
    """A cluster with one node group, with other values at some paths ("__" for a dot)."""
    values = {
        **rendering.scenarios(rendering.CLUSTER)["minimal"].values,
        "addons": {"enabled": False},
        "nodeGroups": [{"name": "g", "machineCount": 1, **(group or {})}],
    }
    paths = {path.replace("__", "."): value for path, value in change.items()}
    return rendering.render(rendering.CLUSTER, rendering.changed(values, paths))


def of_group(objects: list[Object], kind: str, group: str = "g") -> Object:
    """The one object of a kind that belongs to a group."""
    return rendering.only(
        [found for found in objects if found["metadata"]["labels"].get(GROUP) == group], kind
    )


def deployment(group: Values | None = None, **change: Any) -> Object:
    """The MachineDeployment of :func:`rendered`."""
    return of_group(rendered(group, **change), "MachineDeployment")


def templates(objects: list[Object]) -> set[tuple[str, str]]:
    """Identities of all immutable templates."""
    return {
        rendering.identity(found)
        for found in objects
        if found["kind"] in ("OpenStackMachineTemplate", "KubeadmConfigTemplate")
    }


def registration(objects: list[Object], group: str = "g") -> Any:
    """How the kubelets of a group register their Nodes."""
    spec = of_group(objects, "KubeadmConfigTemplate", group)["spec"]["template"]["spec"]
    return spec["joinConfiguration"]["nodeRegistration"]


def kubelet_labels(objects: list[Object], group: str = "g") -> dict[str, str]:
    """Labels that the kubelets of a group give their Nodes."""
    given = registration(objects, group)["kubeletExtraArgs"]
    flags = given if isinstance(given, dict) else {one["name"]: one["value"] for one in given}
    return dict(pair.split("=", 1) for pair in flags["node-labels"].split(",") if pair)


def machine_labels(objects: list[Object], group: str = "g") -> dict[str, str]:
    """Labels of a group's Machines that a Cluster API without flags keeps on their Nodes."""
    labels = of_group(objects, "MachineDeployment", group)["spec"]["template"]["metadata"]["labels"]
    return {
        key: value
        for key, value in labels.items()
        if any(f".{key.partition('/')[0]}".endswith(f".{domain}") for domain in KEPT)
    }
