# SPDX-License-Identifier: Apache-2.0
"""The values that roll the machines of nodegroups; an upgrade defers their changes."""

from __future__ import annotations

from collections.abc import Mapping
import copy
from typing import Any

from magnum.drivers.k8s_capi_helm.model import Json
from magnum.drivers.k8s_capi_helm.values.tree import live as values_live

DEFAULTS = "nodeGroupDefaults"
#: Top-level values with which the machines of nodegroups are set up besides, all alike (measured
#: by the tests of the charts, in ``effects/rolls.yaml``).
SHARED = (
    "global",
    "machineSSHKeyName",
    "machineMetadata",
    "clusterApi",
    "registryMirrors",
    "registryAuth",
    "trustedCAs",
    "additionalPackages",
    "additionalFiles",
    "proxy",
    "kubelet",
    "tls",
)
#: Of the defaults, what waits with those: in a nodegroup's entry it would be what its row asks for.
_ASKED = (*values_live.COUNT_KEYS, *values_live.DETAIL_KEYS)


def keep_machines(values: Json, live: Json) -> Json:
    """*values* with everything that decides about the machines of nodegroups as *live* has it."""
    held_keys = (*SHARED, DEFAULTS, "nodeGroups")
    others = {key: value for key, value in values.items() if key not in held_keys}
    return {**others, **copy.deepcopy({key: live[key] for key in held_keys if key in live})}


def nodegroup_defaults(values: Mapping[str, Any]) -> Json:
    """What the machines of all nodegroups have, unless an entry says otherwise."""
    return values.get(DEFAULTS) or {}


def machine_values(entry: Mapping[str, Any]) -> Json:
    """Of an entry, or of the defaults, what rolls machines; counts, labels and taints do not."""
    return {key: value for key, value in entry.items() if key not in _ASKED}


def shared_values(values: Mapping[str, Any]) -> Json:
    """What all nodegroups have alike and no entry can have otherwise."""
    defaults = {key: value for key, value in nodegroup_defaults(values).items() if key in _ASKED}
    return {**{key: value for key, value in values.items() if key in SHARED}, DEFAULTS: defaults}
