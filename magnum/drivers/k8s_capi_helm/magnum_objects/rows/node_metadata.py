# SPDX-License-Identifier: Apache-2.0
"""Labels and taints of a nodegroup's Nodes, which Magnum has since release 23."""

from __future__ import annotations

from magnum.drivers.k8s_capi_helm.magnum_objects.rows.types import NodeGroup


def node_labels(nodegroup: NodeGroup) -> dict[str, str]:
    """Labels by key, {} without any."""
    return dict(getattr(nodegroup, "node_labels", None) or {})


def node_taints(nodegroup: NodeGroup) -> list[dict[str, str]]:
    """Taints with ``key``, ``effect`` and perhaps ``value``, [] without any."""
    return list(getattr(nodegroup, "node_taints", None) or ())
