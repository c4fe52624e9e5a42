# SPDX-License-Identifier: Apache-2.0
"""Deferred changes of an upgrade for nodegroups outside its scope.

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
from magnum.drivers.k8s_capi_helm.values.tree import live as values_live
from magnum.drivers.k8s_capi_helm.values.tree import merge
from magnum.drivers.k8s_capi_helm.values.upgrade import rollout

#: Characters of what waits in one Lease; Kubernetes takes 256 KiB of annotations of an object.
LIMIT = 128 * 1024


def of_upgrade(operation: str, live: Json, base: Json, target: Json) -> DeferredChange:
    """What two renders differ in for the machines of nodegroups, but for how many there are.

    :param operation: id of the upgrade.
    :param base: a render with the labels that the cluster has, *target* with those it is to have.
    """
    defaults = (
        rollout.machine_values(rollout.nodegroup_defaults(base)),
        rollout.machine_values(rollout.nodegroup_defaults(target)),
    )
    old, new = values_live.node_groups(base), values_live.node_groups(target)
    nodegroups = {}
    for name in values_live.node_groups(live):
        pair = defaults
        if name in old and name in new:
            pair = (
                _over_defaults(defaults[0], rollout.machine_values(old[name])),
                _over_defaults(defaults[1], rollout.machine_values(new[name])),
            )
        nodegroups[name] = merge.difference(*pair)
    return DeferredChange(
        id=operation,
        defaults=merge.difference(*defaults),
        groups={name: pair for name, pair in nodegroups.items() if any(pair)},
        shared_values=merge.difference(rollout.shared_values(base), rollout.shared_values(target)),
    )


def check_size(changes: Iterable[DeferredChange]) -> None:
    """Refuse what is too much to wait in a Lease.

    :raises errors.InvalidRequest: with a sentence.
    """
    documents = [change.document for change in changes]
    size = len(json.dumps(documents))
    if size > LIMIT:
        waiting = sorted({name for change in documents[:-1] for name in change["groups"]})
        first = f"the nodegroups {', '.join(waiting)}" if waiting else "some of the nodegroups"
        raise errors.InvalidRequest(
            "The changes of nodegroups that wait for the upgrade of the control plane are too "
            f"large: {size // 1024} KiB, at most {LIMIT // 1024}. Upgrade {first} by name first, "
            "or use a template with fewer changes for nodegroups."
        )


def apply(
    values: Json,
    nodegroups: Collection[str],
    changes: Iterable[DeferredChange],
    *,
    include_shared: bool,
) -> Json:
    """The values with which some nodegroups take what is deferred for them; others stay unchanged.

    :param include_shared: whether what all machines have in common is taken as well.
    :returns: new values.
    """
    changes = tuple(changes)
    result = copy.deepcopy(values)
    for change in changes if include_shared else ():
        result = merge.carry_over(result, *change.shared_values)
    entries, defaults = values_live.node_groups(result), rollout.nodegroup_defaults(result)
    if not any(
        name in change.groups for change in changes for name in nodegroups if name in entries
    ):
        return result
    target = {name: _over_defaults(defaults, entry) for name, entry in entries.items()}
    for change in changes:
        for name in nodegroups:
            if name in entries and name in change.groups:
                target[name] = _with_change(target[name], entries[name], *change.groups[name])
    return _with_nodegroups(result, target, changes)


def expand_defaults(values: Json, changes: Iterable[DeferredChange]) -> Json:
    """The same machines, with nothing in the defaults that only those have who wait.

    An entry cannot take a key of the defaults away: neither could that of a new nodegroup.

    :returns: new values.
    """
    entries, defaults = values_live.node_groups(values), rollout.nodegroup_defaults(values)
    target = {name: _over_defaults(defaults, entry) for name, entry in entries.items()}
    return _with_nodegroups(copy.deepcopy(values), target, changes)


def expand_for_new(
    values: Json, entries: Mapping[str, Json], changes: tuple[DeferredChange, ...]
) -> tuple[Json, dict[str, Json]]:
    """Values to which entries of new nodegroups can be added, and these entries.

    They have at once what upgrades have brought and the defaults do not have yet.
    """
    if not (entries and changes):
        return values, dict(entries)
    values = expand_defaults(values, changes)
    return values, {
        name: new_nodegroup_entry(entry, values, changes) for name, entry in entries.items()
    }


def left_over(
    changes: Iterable[DeferredChange],
    nodegroups: Collection[str],
    values: Json,
    *,
    include_shared: bool,
) -> tuple[DeferredChange, ...]:
    """What is still deferred when the release has *values*, in which *nodegroups* got theirs.

    What nobody waits for stays until the defaults say it: a new nodegroup has it from here.
    """
    entries, defaults = values_live.node_groups(values), rollout.nodegroup_defaults(values)
    changes_left = [
        _without_applied(change, frozenset(entries) - frozenset(nodegroups), include_shared)
        for change in changes
    ]
    for change in tuple(changes_left):
        others = [other_change for other_change in changes_left if other_change is not change]
        is_in_defaults = _with_changes(defaults, others) == _with_changes(defaults, changes_left)
        if is_in_defaults and not (change.groups or any(change.shared_values)):
            changes_left = others
    return tuple(changes_left)


def new_nodegroup_entry(entry: Json, values: Json, changes: Iterable[DeferredChange]) -> Json:
    """The entry of a new nodegroup, which has at once what the defaults do not say yet.

    :param values: as :func:`expand_defaults` returns them.
    """
    defaults = rollout.nodegroup_defaults(values)
    return _entry(
        defaults, _over_defaults(_with_changes(defaults, changes), entry), entry, defaults
    )


def _without_applied(
    change: DeferredChange, waiting: Collection[str], include_shared: bool
) -> DeferredChange:
    nodegroups = {name: pair for name, pair in change.groups.items() if name in waiting}
    return dataclasses.replace(
        change,
        groups=nodegroups,
        shared_values=({}, {}) if include_shared else change.shared_values,
    )


def _with_nodegroups(
    values: Json, target: Mapping[str, Json], changes: Iterable[DeferredChange]
) -> Json:
    """*values*, in which nodegroups are as *target*: by new defaults, and entries over them."""
    entries, defaults = values_live.node_groups(values), rollout.nodegroup_defaults(values)
    common = _common_defaults(_with_changes(defaults, changes), list(target.values()))
    if common or rollout.DEFAULTS in values:
        values[rollout.DEFAULTS] = common
    values["nodeGroups"] = [
        _entry(common, target[name], entries[name], defaults) for name in entries
    ]
    return values


def _with_changes(defaults: Json, changes: Iterable[DeferredChange]) -> Json:
    """What the defaults become once everybody has everything."""
    for change in changes:
        defaults = merge.carry_over(defaults, *change.defaults)
    return defaults


def _over_defaults(defaults: Mapping[str, Any], entry: Mapping[str, Any]) -> Json:
    """As the chart lays an entry over the defaults: null above is as good as nothing."""
    result: Json = merge.merge(defaults, entry, nulls=False)
    return result


def _with_change(expanded: Json, entry: Mapping[str, Any], old: Json, new: Json) -> Json:
    """A group with the changes deferred for it; other changes of its entry stay."""
    result = dict(expanded)
    for key in {**old, **new}:
        own, current = entry.get(key), expanded.get(key)
        mappings = [value.get(key, {}) for value in (expanded, old, new)]
        if isinstance(own, Mapping) and all(isinstance(value, Mapping) for value in mappings):
            result[key] = _with_change(mappings[0], own, mappings[1], mappings[2])
            if not result[key] and key not in new:
                del result[key]
        elif own is not None and current != old.get(key):
            continue
        elif key in new:
            result[key] = merge.carry_over(current, old.get(key), new[key])
        else:
            result.pop(key, None)
    return result


def _common_defaults(defaults: Mapping[str, Any], nodegroups: list[Json]) -> Json:
    """Of new defaults, what every group can be told from: an entry cannot take a key away."""
    result: Json = {}
    for key, value in defaults.items():
        if any(key not in expanded for expanded in nodegroups):
            continue
        nodegroup_values = [expanded[key] for expanded in nodegroups]
        if any(nodegroup_value is None for nodegroup_value in nodegroup_values):
            result[key] = None
        elif isinstance(value, Mapping):
            result[key] = _common_defaults(
                value,
                [
                    nodegroup_value
                    for nodegroup_value in nodegroup_values
                    if isinstance(nodegroup_value, dict)
                ],
            )
        else:
            result[key] = copy.deepcopy(value)
    return result


def _entry(
    defaults: Mapping[str, Any],
    expanded: Json,
    entry: Mapping[str, Any],
    previous_defaults: Mapping[str, Any],
) -> Json:
    """The entry that makes *expanded* of the defaults *defaults*.

    :param entry: the one until now, over the defaults *previous_defaults*; what it said twice it
        goes on to.
    """
    result: Json = {}
    for key, value in expanded.items():
        default, own, previous_default = (
            defaults.get(key),
            entry.get(key),
            previous_defaults.get(key),
        )
        if isinstance(default, Mapping) and isinstance(value, dict):
            nested = _entry(default, value, _mapping(own), _mapping(previous_default))
            if nested or own == {}:
                result[key] = nested
        elif (
            key not in defaults or value != default or (own == value and previous_default == value)
        ):
            result[key] = copy.deepcopy(value)
    nulls = {key: None for key, value in entry.items() if value is None and key not in result}
    return {**result, **nulls}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
