# SPDX-License-Identifier: Apache-2.0
"""Read the values of a deployed release: nodegroups, sizes, bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from magnum.drivers.k8s_capi_helm.model import Json

#: Stands in ``Operation.groups`` for the control plane; no nodegroup can be called like that.
CONTROL_PLANE = "controlPlane"


#: What the autoscaler is told of a Node of a group that has none.
CAPACITY = "capacity"


#: What a resize may move in a nodegroup's entry.
COUNT_KEYS = ("autoscale", "machineCount", "machineCountMin", "machineCountMax", CAPACITY)


#: What an update may move besides that; its taints and most of its labels replace machines.
DETAIL_KEYS = ("nodeLabels", "nodeTaints")


def count(values: Mapping[str, Any], nodegroup: str | None) -> int:
    """Machines that the live values ask for, of a nodegroup or (for None) of the control plane."""
    entry = values.get("controlPlane") if nodegroup is None else node_groups(values).get(nodegroup)
    return int((entry or {}).get("machineCount") or 0)


def is_autoscaled(entry: Mapping[str, Any]) -> bool:
    """Whether the autoscaler sets the size of the nodegroup that a values entry is about."""
    return str(entry.get("autoscale", False)).lower() == "true"


def bounds(entry: Mapping[str, Any]) -> tuple[int, int]:
    """The fewest and the most machines that the entry of an autoscaled nodegroup allows."""
    return int(entry.get("machineCountMin") or 0), int(entry.get("machineCountMax") or 0)


def node_groups(values: Mapping[str, Any]) -> dict[str, Json]:
    """The entries of the nodegroups by name."""
    return {entry["name"]: entry for entry in values.get("nodeGroups") or ()}
