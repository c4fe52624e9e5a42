# SPDX-License-Identifier: Apache-2.0
"""What an upgrade still owes the nodegroups: new values that must not reach their machines yet.

While the control plane is on its way, no machine of a nodegroup may change; and one that an upgrade
does not take along never does. So what the templates differ in for workers waits in the release's
Lease, and each nodegroup gets it in the one step in which it takes the new version.

A nodegroup is what its entry says over ``nodeGroupDefaults``: maps key by key, anything else as a
whole, null for nothing (the chart's README). Values that only some groups take move from the
defaults into entries, so that for every other group the sum stays what it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
import copy
import dataclasses
import json
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import DeferredChange, Json
from magnum.drivers.k8s_capi_helm.values import live as values_live
from magnum.drivers.k8s_capi_helm.values import merge

DEFAULTS = "nodeGroupDefaults"
#: Top-level values with which the machines of nodegroups are set up besides, all alike (measured
#: by ``charts/openstack-cluster/tests/rolls.yaml``).
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
#: Characters of what waits in one Lease; Kubernetes takes 256 KiB of annotations of an object.
LIMIT = 128 * 1024


def of_upgrade(operation: str, live: Json, base: Json, theirs: Json) -> DeferredChange:
    """What two renders differ in for the machines of nodegroups, but for how many there are.

    :param operation: id of the upgrade.
    :param base: a render with the labels that the cluster has, *theirs* with those it is to have.
    """
    defaults = _machines(_defaults(base)), _machines(_defaults(theirs))
    old, new = values_live.node_groups(base), values_live.node_groups(theirs)
    groups = {}
    for name in values_live.node_groups(live):
        pair = defaults
        if name in old and name in new:
            pair = (
                _laid(defaults[0], _machines(old[name])),
                _laid(defaults[1], _machines(new[name])),
            )
        groups[name] = merge.difference(*pair)
    return DeferredChange(
        id=operation,
        defaults=merge.difference(*defaults),
        groups={name: pair for name, pair in groups.items() if any(pair)},
        shared=merge.difference(_shared(base), _shared(theirs)),
    )


def check_size(owed: Iterable[DeferredChange]) -> None:
    """Refuse what is too much to wait in a Lease.

    :raises errors.InvalidRequest: with a sentence.
    """
    listed = [dataclasses.asdict(one) for one in owed]
    size = len(json.dumps(listed))
    if size > LIMIT:
        waiting = sorted({name for one in listed[:-1] for name in one["groups"]})
        first = f"the nodegroups {', '.join(waiting)}" if waiting else "some of the nodegroups"
        raise errors.InvalidRequest(
            "The changes of nodegroups that wait for the upgrade of the control plane are too "
            f"large: {size // 1024} KiB, at most {LIMIT // 1024}. Upgrade {first} by name first, "
            "or use a template with fewer changes for nodegroups."
        )


def hold_back(values: Json, live: Json) -> Json:
    """*values* with everything that decides about the machines of nodegroups as *live* has it."""
    kept = (*SHARED, DEFAULTS, "nodeGroups")
    rest = {key: value for key, value in values.items() if key not in kept}
    return {**rest, **copy.deepcopy({key: live[key] for key in kept if key in live})}


def apply(
    values: Json, takers: Collection[str], owed: Iterable[DeferredChange], *, shared: bool
) -> Json:
    """The values with which some nodegroups take what they are owed, and no other one changes.

    :param shared: whether what all machines have in common is taken as well.
    :returns: new values.
    """
    owed = tuple(owed)
    result = copy.deepcopy(values)
    for one in owed if shared else ():
        result = merge.carry_over(result, *one.shared)
    entries, below = values_live.node_groups(result), _defaults(result)
    if not any(name in one.groups for one in owed for name in takers if name in entries):
        return result
    wanted = {name: _laid(below, entry) for name, entry in entries.items()}
    for one in owed:
        for name in takers:
            if name in entries and name in one.groups:
                wanted[name] = _taken(wanted[name], entries[name], *one.groups[name])
    return _said(result, wanted, owed)


def expand_defaults(values: Json, owed: Iterable[DeferredChange]) -> Json:
    """The same machines, with nothing in the defaults that only those have who wait.

    An entry cannot take a key of the defaults away: neither could that of a new nodegroup.

    :returns: new values.
    """
    entries, below = values_live.node_groups(values), _defaults(values)
    wanted = {name: _laid(below, entry) for name, entry in entries.items()}
    return _said(copy.deepcopy(values), wanted, owed)


def remaining(
    owed: Iterable[DeferredChange], takers: Collection[str], values: Json, *, shared: bool
) -> tuple[DeferredChange, ...]:
    """What is still owed when the release has *values*, in which *takers* got theirs.

    What nobody waits for stays until the defaults say it: a new nodegroup has it from here.
    """
    there, below = values_live.node_groups(values), _defaults(values)
    left = [_left(one, frozenset(there) - frozenset(takers), shared) for one in owed]
    for one in tuple(left):
        others = [other for other in left if other is not one]
        said = _carried(below, others) == _carried(below, left)
        if said and not (one.groups or any(one.shared)):
            left = others
    return tuple(left)


def new_nodegroup_entry(entry: Json, values: Json, owed: Iterable[DeferredChange]) -> Json:
    """The entry of a new nodegroup, which has at once what the defaults do not say yet.

    :param values: as :func:`expand_defaults` returns them.
    """
    below = _defaults(values)
    return _over(below, _laid(_carried(below, owed), entry), entry, below)


def _left(one: DeferredChange, waiting: Collection[str], shared: bool) -> DeferredChange:
    groups = {name: pair for name, pair in one.groups.items() if name in waiting}
    return dataclasses.replace(one, groups=groups, shared=({}, {}) if shared else one.shared)


def _said(values: Json, wanted: Mapping[str, Json], owed: Iterable[DeferredChange]) -> Json:
    """*values*, in which nodegroups are as *wanted*: by new defaults, and entries over them."""
    entries, below = values_live.node_groups(values), _defaults(values)
    common = _common(_carried(below, owed), list(wanted.values()))
    if common or DEFAULTS in values:
        values[DEFAULTS] = common
    values["nodeGroups"] = [_over(common, wanted[name], entries[name], below) for name in entries]
    return values


def _carried(defaults: Json, owed: Iterable[DeferredChange]) -> Json:
    """What the defaults become once everybody has everything."""
    for one in owed:
        defaults = merge.carry_over(defaults, *one.defaults)
    return defaults


def _defaults(values: Mapping[str, Any]) -> Json:
    return values.get(DEFAULTS) or {}


def _machines(entry: Mapping[str, Any]) -> Json:
    return {key: value for key, value in entry.items() if key not in _ASKED}


def _shared(values: Mapping[str, Any]) -> Json:
    defaults = {key: value for key, value in _defaults(values).items() if key in _ASKED}
    return {**{key: value for key, value in values.items() if key in SHARED}, DEFAULTS: defaults}


def _laid(below: Mapping[str, Any], above: Mapping[str, Any]) -> Json:
    """As the chart lays an entry over the defaults: null above is as good as nothing."""
    result: Json = merge.merge(below, above, nulls=False)
    return result


def _taken(whole: Json, entry: Mapping[str, Any], old: Json, new: Json) -> Json:
    """A group with what it is owed; what somebody else has put into its entry stays."""
    result = dict(whole)
    for key in {**old, **new}:
        mine, have = entry.get(key), whole.get(key)
        parts = [one.get(key, {}) for one in (whole, old, new)]
        if isinstance(mine, Mapping) and all(isinstance(one, Mapping) for one in parts):
            result[key] = _taken(parts[0], mine, parts[1], parts[2])
            if not result[key] and key not in new:
                del result[key]
        elif mine is not None and have != old.get(key):
            continue
        elif key in new:
            result[key] = merge.carry_over(have, old.get(key), new[key])
        else:
            result.pop(key, None)
    return result


def _common(defaults: Mapping[str, Any], groups: list[Json]) -> Json:
    """Of new defaults, what every group can be told from: an entry cannot take a key away."""
    result: Json = {}
    for key, value in defaults.items():
        if any(key not in group for group in groups):
            continue
        mine = [group[key] for group in groups]
        if any(one is None for one in mine):
            result[key] = None
        elif isinstance(value, Mapping):
            result[key] = _common(value, [one for one in mine if isinstance(one, dict)])
        else:
            result[key] = copy.deepcopy(value)
    return result


def _over(
    below: Mapping[str, Any], whole: Json, entry: Mapping[str, Any], before: Mapping[str, Any]
) -> Json:
    """The entry that makes *whole* of the defaults *below*.

    :param entry: the one until now, over the defaults *before*; what it said twice it goes on to.
    """
    result: Json = {}
    for key, value in whole.items():
        low, mine, last = below.get(key), entry.get(key), before.get(key)
        if isinstance(low, Mapping) and isinstance(value, dict):
            part = _over(low, value, _map(mine), _map(last))
            if part or mine == {}:
                result[key] = part
        elif key not in below or value != low or (mine == value and last == value):
            result[key] = copy.deepcopy(value)
    nulls = {key: None for key, value in entry.items() if value is None and key not in result}
    return {**result, **nulls}


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
