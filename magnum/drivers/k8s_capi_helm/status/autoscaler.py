# SPDX-License-Identifier: Apache-2.0
"""The autoscaler: a Deployment of the chart on the management cluster, and whether it runs."""

from __future__ import annotations

from magnum.drivers.k8s_capi_helm.model import conditions, Json, Missing
from magnum.drivers.k8s_capi_helm.status.public_text import public


def issue_of(found: tuple[Json, ...] | Missing) -> str | None:
    """What is wrong with it, "" if it runs; None where nobody knows."""
    if isinstance(found, Missing):
        return None
    if not found:
        return "does not exist: nodegroups keep their node counts"
    said = conditions.condition(found[0], "Available")
    if said.bad:
        why = public(said.message or said.reason)
        return f"does not run, nodegroups keep their node counts: {why}"
    return "" if said.good else None
