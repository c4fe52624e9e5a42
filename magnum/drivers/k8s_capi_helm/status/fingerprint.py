# SPDX-License-Identifier: Apache-2.0
"""Fingerprint: who was there in which generation, and what was asked for, to compare two looks.

Two looks that find everything in place agree only if nothing was made, changed or deleted between
them, and if they judged the same operation.
"""

from __future__ import annotations

from collections.abc import Mapping
import hashlib
import json

from magnum.drivers.k8s_capi_helm import conditions
from magnum.drivers.k8s_capi_helm.model import MagnumState, Missing, Observed


def of(observed: Observed, state: MagnumState) -> str:
    """SHA-256 in hexadecimal; equal for equal objects and equal wishes, in any order."""
    wanted: list[object] = [
        state.kubernetes_version,
        state.started.isoformat() if state.started else "",
        # A group that is being deleted is gone when everything is in place, and so is its row; the
        # count of an autoscaled one follows what was found, which the generations tell of.
        sorted(
            (one.name, "autoscaled" if one.autoscaled else str(one.count))
            for one in state.groups
            if not one.status.startswith("DELETE_")
        ),
    ]
    singles = (observed.cluster, observed.infrastructure, observed.control_plane)
    there = [_identity(one) for one in singles if not isinstance(one, Missing)]
    for listed in (
        observed.machine_deployments,
        observed.machine_sets,
        observed.machines,
        observed.servers,
        observed.addons,
    ):
        there += [] if isinstance(listed, Missing) else [_identity(one) for one in listed]
    text = json.dumps([wanted, sorted(there)])
    return hashlib.sha256(text.encode()).hexdigest()


def _identity(thing: Mapping[str, object]) -> list[str]:
    meta = conditions.mapping(thing.get("metadata"))
    who = (thing.get("kind"), meta.get("name"), meta.get("uid"), meta.get("generation"))
    return [str(one) for one in who]
