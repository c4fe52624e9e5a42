# SPDX-License-Identifier: Apache-2.0
"""The stage of one machine: bootstrap data, server, node, ready; or being deleted."""

from __future__ import annotations

from magnum.drivers.k8s_capi_helm.model import conditions, Json
from magnum.drivers.k8s_capi_helm.status.texts.issue import clause, Issue
from magnum.drivers.k8s_capi_helm.status.texts.public_text import first_sentence


def stage(machine: Json) -> Issue:
    """How far one machine is, and since when; no fault."""
    name = conditions.name(machine)
    if conditions.is_terminating(machine):
        condition = conditions.condition(machine, "Deleting")
        requested_at = conditions.instant(conditions.metadata(machine).get("deletionTimestamp"))
        return Issue(
            _with(
                f"machine {name} is being deleted", first_sentence(_first_item(condition.message))
            ),
            since=requested_at,
        )
    up_to_date = conditions.condition(machine, "UpToDate")
    if up_to_date.bad:
        text = _with(f"machine {name} is not up to date", first_sentence(up_to_date.message))
        return Issue(text, since=up_to_date.since)
    bootstrap_ready = conditions.condition(machine, "BootstrapConfigReady")
    if not _is_over(bootstrap_ready, machine, "bootstrap", "dataSecretName"):
        return Issue(f"machine {name} waits for its bootstrap data", since=bootstrap_ready.since)
    infrastructure_ready = conditions.condition(machine, "InfrastructureReady")
    if not _is_over(infrastructure_ready, machine, "providerID"):
        return Issue(
            f"the server for machine {name} is being created", since=infrastructure_ready.since
        )
    if not has_node(machine):
        text = f"the server for machine {name} runs, its node has not joined yet"
        return Issue(text, since=infrastructure_ready.since)
    node_healthy = conditions.condition(machine, "NodeHealthy")
    condition = conditions.condition(machine, "Ready") if node_healthy.good else node_healthy
    return Issue(
        _with(f"machine {name} is not ready", first_sentence(condition.message)),
        since=condition.since,
    )


def has_node(machine: Json) -> bool:
    """Whether the machine's node has ever joined the cluster."""
    return bool(conditions.at_path(machine, "status", "nodeRef", "name"))


def is_node_unreachable(machine: Json) -> bool:
    """Whether the machine's kubelet does not report to the API server of the cluster any more.

    Cluster API copies the node's Unknown, with this reason; where it does not reach the cluster
    itself it has another one (its api/core/v1beta2, ``MachineNodeReadyUnknownReason``).
    """
    node_ready = conditions.condition(machine, "NodeReady")
    return not node_ready.stale and node_ready.reason == "NodeReadyUnknown"


def _with(text: str, words: str) -> str:
    """A stage with the controller's words, if it has any."""
    return f"{text}: {clause(words)}" if words else text


def _first_item(message: str) -> str:
    """A message without its headline, if that is above a list.

    Cluster API lists the Pods that hold up a drain below "Drain not completed yet (started at
    ...):" (https://cluster-api.sigs.k8s.io/tasks/automated-machine-management/machine_deletions).
    """
    headline, _, items = message.partition("\n")
    item = items.strip()
    is_list = headline.endswith(":") and item.startswith("* ")
    return item if is_list else message


def _is_over(condition: conditions.Condition, machine: Json, *outcome: str) -> bool:
    """Whether a machine is past a step.

    At its end Cluster API writes the outcome into the machine's spec, and until it has processed
    that, all of the machine's conditions are of an older spec.

    :param outcome: path in the spec.
    """
    return condition.good or (
        condition.stale and bool(conditions.at_path(machine, "spec", *outcome))
    )
