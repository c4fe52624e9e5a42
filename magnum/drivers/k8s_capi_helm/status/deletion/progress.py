# SPDX-License-Identifier: Apache-2.0
"""Progress of a deletion: remaining objects, and those that block the others."""

from __future__ import annotations

from collections.abc import Iterator

from magnum.drivers.k8s_capi_helm.model import conditions, Json, Missing, Observed
from magnum.drivers.k8s_capi_helm.status.causes import failure_events
from magnum.drivers.k8s_capi_helm.status.causes.scope import readable_objects
from magnum.drivers.k8s_capi_helm.status.texts import messages
from magnum.drivers.k8s_capi_helm.status.texts.public_text import first_sentence, public

#: The object's own controller has done its part: whoever else holds it has to be named.
_ENDED = "DeletionCompleted"


def remaining_objects(observed: Observed) -> Iterator[Json | Missing]:
    """What is left or could not be read, the deepest first."""
    for objects in (
        observed.servers,
        observed.machines,
        observed.machine_sets,
        observed.machine_deployments,
    ):
        if isinstance(objects, Missing):
            yield Missing.UNREADABLE
        else:
            yield from objects
    for obj in (observed.infrastructure, observed.control_plane, observed.cluster):
        if obj is not Missing.NOT_FOUND:
            yield obj


def describe(observed: Observed) -> str:
    """What a deletion waits for, as an ending of "waiting: ..."."""
    if observed.unreachable:
        return "the management cluster cannot be reached"
    remaining = list(remaining_objects(observed))
    objects = [obj for obj in remaining if not isinstance(obj, Missing)]
    if not remaining:
        return "deletion of the last Secrets and the application credential"
    if not objects:
        return "the remaining objects cannot be read"
    paused_object = next((obj for obj in objects if conditions.condition(obj, "Paused").bad), None)
    if paused_object is not None:
        return f"{title(paused_object)} is paused: the deletion continues when it is unpaused"
    # The first that was told to go; above it everything waits, beside it some were not told yet.
    next_object = next((obj for obj in objects if conditions.is_terminating(obj)), objects[0])
    cause = _cause(next_object, observed)
    machines = len(readable_objects(observed.machines))
    count = f" ({machines} machines left)" if machines > 1 else ""
    return f"deletion of {title(next_object)}{count}{': ' + cause if cause else ''}"


def title(obj: Json) -> str:
    """Kind and name of an object."""
    return f"{obj.get('kind') or 'object'} {conditions.name(obj)}"


def _cause(obj: Json, observed: Observed) -> str:
    """Why the object is still there: its controller's words, else since when and held by whom."""
    instance_ready = conditions.condition(obj, "InstanceReady")
    if instance_ready.bad and "Delete" in instance_ready.reason and instance_ready.message:
        return public(instance_ready.message)
    failure = failure_events.newest_failure(
        observed, {(str(obj.get("kind")), conditions.name(obj))}
    )
    if failure is not None:
        return messages.of_neutron(failure.text)
    condition = conditions.condition(obj, "Deleting")
    if condition.bad and condition.message and condition.reason != _ENDED:
        return first_sentence(condition.message)
    requested_at = conditions.instant(conditions.metadata(obj).get("deletionTimestamp"))
    if requested_at is None:
        return ""
    finalizers = conditions.metadata(obj).get("finalizers")
    holders = (
        ", ".join(str(finalizer) for finalizer in finalizers)
        if isinstance(finalizers, list)
        else ""
    )
    return (
        f"requested at {requested_at:%Y-%m-%d %H:%M} UTC{', held by ' + holders if holders else ''}"
    )
