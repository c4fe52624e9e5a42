# SPDX-License-Identifier: Apache-2.0
"""The stage of one machine: bootstrap data, server, node, ready; or being deleted."""

from __future__ import annotations

from magnum.drivers.k8s_capi_helm.model import conditions, Json
from magnum.drivers.k8s_capi_helm.status.issue import clause, Issue
from magnum.drivers.k8s_capi_helm.status.public_text import first_bullet


def stage(machine: Json) -> Issue:
    """How far one machine is, and since when; no fault."""
    name = conditions.name(machine)
    if conditions.deleting(machine):
        said = conditions.condition(machine, "Deleting")
        asked = conditions.instant(conditions.metadata(machine).get("deletionTimestamp"))
        return Issue(
            _with(f"machine {name} is being deleted", first_bullet(said.message)), since=asked
        )
    current = conditions.condition(machine, "UpToDate")
    if current.bad:
        text = _with(f"machine {name} is not up to date", first_bullet(current.message))
        return Issue(text, since=current.since)
    boot = conditions.condition(machine, "BootstrapConfigReady")
    if not _is_over(boot, machine, "bootstrap", "dataSecretName"):
        return Issue(f"machine {name} waits for its bootstrap data", since=boot.since)
    up = conditions.condition(machine, "InfrastructureReady")
    if not _is_over(up, machine, "providerID"):
        return Issue(f"the server for machine {name} is being created", since=up.since)
    if not has_node(machine):
        text = f"the server for machine {name} runs, its node has not joined yet"
        return Issue(text, since=up.since)
    node = conditions.condition(machine, "NodeHealthy")
    said = conditions.condition(machine, "Ready") if node.good else node
    return Issue(
        _with(f"machine {name} is not ready", first_bullet(said.message)), since=said.since
    )


def has_node(machine: Json) -> bool:
    """Whether the machine's node has ever joined the cluster."""
    return bool(conditions.at_path(machine, "status", "nodeRef", "name"))


def _with(text: str, words: str) -> str:
    """A stage with the controller's words, if it has any."""
    return f"{text}: {clause(words)}" if words else text


def _is_over(said: conditions.Condition, machine: Json, *outcome: str) -> bool:
    """Whether a machine is past a step.

    At its end Cluster API writes the outcome into the machine's spec, and until it has processed
    that, all of the machine's conditions are of an older spec.

    :param outcome: path in the spec.
    """
    return said.good or (said.stale and bool(conditions.at_path(machine, "spec", *outcome)))
