# SPDX-License-Identifier: Apache-2.0
"""A fingerprint of objects, generations and request, to compare two snapshots.

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
from magnum.drivers.k8s_capi_helm.status.objects import machines


def cluster_fingerprint(observed: Observed, state: MagnumState) -> str:
    """SHA-256 in hexadecimal; equal for equal objects and equal wishes, in any order."""
    # A group that is being deleted is gone when everything is in place, and so is its row.
    desired = [_desired(nodegroup) for nodegroup in state.groups if not nodegroup.is_deleting]
    return _digest(state, desired, [*observed.objects(), *present(observed.addons)])


def nodegroup_fingerprint(nodegroup: GroupState, observed: Observed, state: MagnumState) -> str:
    """The same for one nodegroup and its own objects."""
    if nodegroup.is_control_plane:
        own = list(machines.of_control_plane(present(observed.machines)))
        own += present(observed.control_plane)
    else:
        owners = machines.deployments_of(nodegroup.name, present(observed.machine_deployments))
        own = list(owners)
        for objects in (observed.machine_sets, observed.machines):
            own += machines.of_nodegroup(present(objects), nodegroup.name, owners)
    return _digest(state, [_desired(nodegroup), [nodegroup.status]], own)


def _desired(nodegroup: GroupState) -> list[str]:
    # The count of an autoscaled group follows what was found, which the generations tell of.
    return [nodegroup.name, "autoscaled" if nodegroup.is_autoscaled else str(nodegroup.count)]


def _digest(state: MagnumState, desired: list[list[str]], objects: Iterable[Json]) -> str:
    started = state.started_at.isoformat() if state.started_at else ""
    document = [state.kubernetes_version, started, sorted(desired)]
    text = json.dumps([document, sorted(_identity(obj) for obj in objects)])
    return hashlib.sha256(text.encode()).hexdigest()


def _identity(obj: Mapping[str, object]) -> list[str]:
    meta = conditions.mapping(obj.get("metadata"))
    fields = (obj.get("kind"), meta.get("name"), meta.get("uid"), meta.get("generation"))
    return [str(field) for field in fields]
