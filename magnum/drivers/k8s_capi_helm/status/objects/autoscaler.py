# SPDX-License-Identifier: Apache-2.0
"""Whether the cluster autoscaler's Deployment runs."""

from __future__ import annotations

from magnum.drivers.k8s_capi_helm.model import conditions, Json, Missing
from magnum.drivers.k8s_capi_helm.status.texts.public_text import public


def issue_of(deployments: tuple[Json, ...] | Missing) -> str | None:
    """The issue of the autoscaler, "" if it runs; None if unknown."""
    if isinstance(deployments, Missing):
        return None
    if not deployments:
        return "does not exist: nodegroups keep their node counts"
    available = conditions.condition(deployments[0], "Available")
    if available.bad:
        cause = public(available.message or available.reason)
        return f"does not run, nodegroups keep their node counts: {cause}"
    return "" if available.good else None
