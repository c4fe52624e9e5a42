# SPDX-License-Identifier: Apache-2.0
"""Evidence: what is true of a recorded look, told without the judge, and what others believe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import dataclasses

from magnum.drivers.k8s_capi_helm import model
from magnum.drivers.k8s_capi_helm.model import conditions, names
from magnum.tests.unit.drivers.k8s_capi_helm.builders import Json


def has_node(machine: Json) -> bool:
    """The machine's node is ready; told by the node's own condition, not by a summary."""
    said = conditions.at_path(machine, "status", "v1beta2", "conditions") or conditions.at_path(
        machine, "status", "conditions"
    )
    ready = {one["type"]: one["status"] for one in said or ()}
    return ready.get("NodeReady") == "True" and not conditions.is_terminating(machine)


def made_of(machine: Json, observed: model.Observed) -> Json | None:
    """The template that the machine was made of: its MachineSet's."""
    owners = {one["name"] for one in machine["metadata"].get("ownerReferences", ())}
    for one in observed.machine_sets:
        if one["metadata"]["name"] in owners:
            return dict(one["spec"]["template"]["spec"])
    return None


def truth(observed: model.Observed) -> bool:
    """As many ready nodes of the wanted template as are wanted, and no other machine."""
    if isinstance(observed.control_plane, model.Missing):
        return False
    wanted = observed.control_plane["spec"]["replicas"]
    active = {
        one["metadata"]["name"]
        for one in observed.servers
        if one.get("status", {}).get("instanceState") == "ACTIVE"
    }
    good = set()
    for machine in observed.machines:
        name = machine["metadata"]["name"]
        server = machine["spec"]["infrastructureRef"]["name"]
        if has_node(machine) and server in active and is_new(machine, observed):
            good.add(name)
    wanted += sum(one["spec"]["replicas"] for one in observed.machine_deployments)
    return len(good) == wanted == len(observed.machines)


def is_new(machine: Json, observed: model.Observed) -> bool:
    """The machine is of the newest template of its group."""
    labels = machine["metadata"]["labels"]
    if names.LABEL_CONTROL_PLANE in labels:
        return bool(machine["spec"]["version"] == observed.control_plane["spec"]["version"])
    for one in observed.machine_deployments:
        if one["metadata"]["name"] == labels.get(names.LABEL_DEPLOYMENT_NAME):
            made, wanted = made_of(machine, observed), one["spec"]["template"]["spec"]
            return made is not None and all(
                made.get(key) == wanted.get(key)
                for key in ("version", "infrastructureRef", "bootstrap")
            )
    return False


def wanted_machines(observed: model.Observed) -> list[Json]:
    """All machines but those of groups on their way out."""
    kept = {
        one["metadata"]["name"]
        for one in observed.machine_deployments
        if not conditions.is_terminating(one)
    }
    return [
        one
        for one in observed.machines
        if names.LABEL_CONTROL_PLANE in one["metadata"]["labels"]
        or one["metadata"]["labels"].get(names.LABEL_DEPLOYMENT_NAME) in kept
    ]


def group_of(machine: Json) -> str:
    """The nodegroup of a machine by the chart's label."""
    labels = machine["metadata"]["labels"]
    master = names.LABEL_CONTROL_PLANE in labels
    return "default-master" if master else str(labels.get(names.LABEL_NODE_GROUP, ""))


# What other drivers take for done -----------------------------------------------------------------
def phase_running(observed: model.Observed) -> bool:
    return all(
        one.get("status", {}).get("phase") == "Running" for one in observed.machine_deployments
    )


def cluster_available(observed: model.Observed) -> bool:
    return conditions.condition(observed.cluster, "Available").good


def cluster_available_and_quiet(observed: model.Observed) -> bool:
    quiet = ("RollingOut", "ScalingUp", "ScalingDown")
    return (
        cluster_available(observed)
        and conditions.generation_seen(observed.cluster)
        and all(conditions.condition(observed.cluster, kind).good for kind in quiet)
    )


def counters_equal(observed: model.Observed) -> bool:
    keys = ("replicas", "readyReplicas", "availableReplicas", "upToDateReplicas")
    return all(
        conditions.generation_seen(one)
        and conditions.condition(one, "RollingOut").good
        and {conditions.counter(one, key) for key in keys} == {one["spec"]["replicas"]}
        for one in observed.machine_deployments
    )


def breaks(observed: model.Observed) -> Iterator[model.Observed]:
    """Looks that lack one object, or have one that its controller has not seen yet."""
    for kind in ("cluster", "infrastructure", "control_plane"):
        for why in model.Missing:
            yield dataclasses.replace(observed, **{kind: why})
    for kind in ("machine_deployments", "machine_sets", "machines", "servers"):
        listed = getattr(observed, kind)
        yield dataclasses.replace(observed, **{kind: model.Missing.UNREADABLE})
        for index, thing in enumerate(listed):
            rest = (*listed[:index], *listed[index + 1 :])
            if not is_leftover(thing):
                yield dataclasses.replace(observed, **{kind: rest})
            if kind != "servers" and not is_leftover(thing):
                meta = {**thing["metadata"], "generation": thing["metadata"]["generation"] + 1}
                aged = (*rest, {**thing, "metadata": meta})
                yield dataclasses.replace(observed, **{kind: aged})


def is_leftover(thing: Json) -> bool:
    """An old, empty MachineSet, which may stay or go."""
    return thing["kind"] == "MachineSet" and thing["spec"].get("replicas") == 0


NAIVE: dict[str, Callable[[model.Observed], bool]] = {
    "MachineDeployments are Running": phase_running,
    "the Cluster is Available": cluster_available,
    "the Cluster is Available and nothing rolls or scales": cluster_available_and_quiet,
    "generations and counters are equal": counters_equal,
}
