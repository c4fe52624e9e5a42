# SPDX-License-Identifier: Apache-2.0
"""Fingerprint: who was there in which generation, and what was asked for, to compare two looks.

Two looks that find everything in place agree only if nothing was made, changed or deleted between
them, and if they judged the same operation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import hashlib
import json

from magnum.drivers.k8s_capi_helm.model import (
    conditions,
    GroupState,
    Json,
    MagnumState,
    Observed,
    present,
)
from magnum.drivers.k8s_capi_helm.status import machines


def of_cluster(observed: Observed, state: MagnumState) -> str:
    """SHA-256 in hexadecimal; equal for equal objects and equal wishes, in any order."""
    # A group that is being deleted is gone when everything is in place, and so is its row.
    wanted = [_wish(one) for one in state.groups if not one.is_deleting]
    return _digest(state, wanted, [*observed.objects(), *present(observed.addons)])


def of_group(group: GroupState, observed: Observed, state: MagnumState) -> str:
    """The same for one nodegroup and its own objects."""
    if group.is_control_plane:
        mine = list(machines.of_control_plane(present(observed.machines)))
        mine += present(observed.control_plane)
    else:
        owners = machines.deployments_of(group.name, present(observed.machine_deployments))
        mine = list(owners)
        for listed in (observed.machine_sets, observed.machines):
            mine += machines.of_group(present(listed), group.name, owners)
    return _digest(state, [_wish(group), [group.status]], mine)


def _wish(group: GroupState) -> list[str]:
    # The count of an autoscaled group follows what was found, which the generations tell of.
    return [group.name, "autoscaled" if group.autoscaled else str(group.count)]


def _digest(state: MagnumState, wishes: list[list[str]], things: Iterable[Json]) -> str:
    started = state.started.isoformat() if state.started else ""
    wanted = [state.kubernetes_version, started, sorted(wishes)]
    text = json.dumps([wanted, sorted(_identity(one) for one in things)])
    return hashlib.sha256(text.encode()).hexdigest()


def _identity(thing: Mapping[str, object]) -> list[str]:
    meta = conditions.mapping(thing.get("metadata"))
    who = (thing.get("kind"), meta.get("name"), meta.get("uid"), meta.get("generation"))
    return [str(one) for one in who]
