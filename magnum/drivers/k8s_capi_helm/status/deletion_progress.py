# SPDX-License-Identifier: Apache-2.0
"""Blocking: what is left of a cluster that is being deleted, and which of it holds up the rest."""

from __future__ import annotations

from collections.abc import Iterator

from magnum.drivers.k8s_capi_helm.model import conditions, Json, Missing, Observed
from magnum.drivers.k8s_capi_helm.status import failure_events, messages
from magnum.drivers.k8s_capi_helm.status.public_text import first_bullet, public
from magnum.drivers.k8s_capi_helm.status.scope import items

#: The object's own controller has done its part: whoever else holds it has to be named.
_ENDED = "DeletionCompleted"


def remaining_objects(observed: Observed) -> Iterator[Json | Missing]:
    """What is left or could not be read, the deepest first."""
    for listed in (
        observed.servers,
        observed.machines,
        observed.machine_sets,
        observed.machine_deployments,
    ):
        if isinstance(listed, Missing):
            yield Missing.UNREADABLE
        else:
            yield from listed
    for one in (observed.infrastructure, observed.control_plane, observed.cluster):
        if one is not Missing.NOT_FOUND:
            yield one


def describe(observed: Observed) -> str:
    """What a deletion waits for, as an ending of "waiting: ..."."""
    if observed.unreachable:
        return "the management cluster cannot be reached"
    left = list(remaining_objects(observed))
    things = [one for one in left if not isinstance(one, Missing)]
    if not left:
        return "deletion of the last Secrets and the application credential"
    if not things:
        return "the remaining objects cannot be read"
    paused = next((one for one in things if conditions.condition(one, "Paused").bad), None)
    if paused is not None:
        return f"{title(paused)} is paused: the deletion continues when it is unpaused"
    # The first that was told to go; above it everything waits, beside it some were not told yet.
    first = next((one for one in things if conditions.deleting(one)), things[0])
    words = _words(first, observed)
    machines = len(items(observed.machines))
    count = f" ({machines} machines left)" if machines > 1 else ""
    return f"deletion of {title(first)}{count}{': ' + words if words else ''}"


def title(thing: Json) -> str:
    """Kind and name of an object."""
    return f"{thing.get('kind') or 'object'} {conditions.name(thing)}"


def _words(thing: Json, observed: Observed) -> str:
    """Why the object is still there: its controller's words, else since when and held by whom."""
    ready = conditions.condition(thing, "InstanceReady")
    if ready.bad and "Delete" in ready.reason and ready.message:
        return public(ready.message)
    failed = failure_events.newest_failure(
        observed, {(str(thing.get("kind")), conditions.name(thing))}
    )
    if failed is not None:
        return messages.of_neutron(failed.text)
    said = conditions.condition(thing, "Deleting")
    if said.bad and said.message and said.reason != _ENDED:
        return first_bullet(said.message)
    asked = conditions.instant(conditions.metadata(thing).get("deletionTimestamp"))
    if asked is None:
        return ""
    listed = conditions.metadata(thing).get("finalizers")
    held = ", ".join(str(one) for one in listed) if isinstance(listed, list) else ""
    return f"requested at {asked:%Y-%m-%d %H:%M} UTC{', held by ' + held if held else ''}"
