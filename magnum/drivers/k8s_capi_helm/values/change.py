# SPDX-License-Identifier: Apache-2.0
"""Deployed values + desired values + allowed changes of the operation -> next values.

The live release is the record of a cluster: whatever no pending operation is entitled to stays as
it is there, however much configuration, images or volume types have changed since. So a resize
never replaces a machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import copy
import dataclasses
import datetime
from typing import Any

from magnum.drivers.k8s_capi_helm.model import (
    ClusterRequest,
    Json,
    NodeGroupRequest,
    Operation,
    Verb,
)
from magnum.drivers.k8s_capi_helm.values.sections import nodegroups
from magnum.drivers.k8s_capi_helm.values.tree import live as values_live

#: Fields of a nodegroup's row that bound the autoscaler.
BOUNDS = ("min_node_count", "max_node_count")

#: Start of operations that are read off the rows, where nobody knows when they were asked for.
_UNKNOWN_START = datetime.datetime.min.replace(tzinfo=datetime.timezone.utc)


@dataclasses.dataclass(frozen=True, slots=True)
class AllowedChanges:
    """What a set of operations may touch together: the union of what each may.

    :ivar all_values: the whole of the values.
    :ivar control_plane: the control plane's number of machines.
    :ivar all_counts: counts and bounds of every nodegroup, besides those in ``counts``.
    :ivar counts: nodegroups whose count and bounds may move.
    :ivar details: nodegroups whose labels and taints may move, besides count and bounds.
    :ivar entries: nodegroups whose entry may be added or replaced.
    :ivar deletions: nodegroups whose entry may be removed.
    """

    all_values: bool = False
    control_plane: bool = False
    all_counts: bool = False
    counts: frozenset[str] = frozenset()
    details: frozenset[str] = frozenset()
    entries: frozenset[str] = frozenset()
    deletions: frozenset[str] = frozenset()

    @classmethod
    def of(cls, operations: Iterable[Operation]) -> AllowedChanges:
        """The union over *operations*; deleting a cluster touches no values."""
        by_verb: dict[Verb, set[str]] = {verb: set() for verb in Verb}
        verbs, whole = set(), False
        for operation in operations:
            verbs.add(operation.verb)
            by_verb[operation.verb].update(operation.groups)
            whole = whole or (operation.verb is Verb.RESIZE and not operation.groups)
        return cls(
            all_values=Verb.CREATE in verbs,
            control_plane=whole or values_live.CONTROL_PLANE in by_verb[Verb.RESIZE],
            all_counts=whole,
            counts=frozenset(by_verb[Verb.RESIZE] | by_verb[Verb.NODEGROUP_UPDATE]),
            details=frozenset(by_verb[Verb.NODEGROUP_UPDATE]),
            entries=frozenset(by_verb[Verb.NODEGROUP_CREATE]),
            deletions=frozenset(by_verb[Verb.NODEGROUP_DELETE]),
        )

    def may_count(self, nodegroup: str) -> bool:
        """Whether count and bounds of *nodegroup* may move."""
        return self.all_counts or nodegroup in self.counts


def next_values(live: Json | None, target: Json, operations: Iterable[Operation]) -> Json:
    """The values to give to Helm.

    :param live: values of the live release; None if there is none, then *target* is taken whole.
    :param target: what the rows ask for now. For operations that only resize or delete,
        :func:`with_sizes` is enough.
    :param operations: the pending ones; a resize without groups means the whole cluster, and
        :data:`CONTROL_PLANE` among its groups the control plane.
    :returns: new values that share nothing with the arguments, which are left alone. Without an
        operation they equal *live*.
    """
    allowed = AllowedChanges.of(operations)
    if live is None or allowed.all_values:
        return copy.deepcopy(target)
    result = copy.deepcopy(live)
    if allowed.control_plane:
        count = target["controlPlane"]["machineCount"]
        result["controlPlane"] = {**result.get("controlPlane", {}), "machineCount": count}
    if allowed.all_counts or allowed.counts or allowed.entries or allowed.deletions:
        result["nodeGroups"] = _next_groups(
            values_live.node_groups(result), values_live.node_groups(target), allowed
        )
    return result


def with_sizes(live: Json, request: ClusterRequest, operations: Iterable[Operation] = ()) -> Json:
    """The part of the values that rows of a running cluster move, as they ask for it.

    Whether a group is sized by the autoscaler, and between which bounds of the labels, was settled
    when it was made: a site's new defaults of these labels are nobody's request. An update of the
    group's bounds settles it anew.

    :param operations: what is on record; an update of a nodegroup there may take labels and taints
        away, which the rows alone do not tell from never having asked.
    """
    current, target = values_live.node_groups(live), nodegroups.sizes(request)
    entries = zip(request.node_groups, target["nodeGroups"], strict=True)
    operations = tuple(operations)
    requested, bounds, sized = _changed_details(operations), changed_bounds(operations), []
    for nodegroup, entry in entries:
        name, deployed = nodegroup.name, current.get(nodegroup.name)
        is_requested = deployed is None or name in requested
        details = _details(deployed or {}, entry, is_requested=is_requested)
        size = _desired_size(deployed, nodegroup, entry, bounds.get(name, frozenset()))
        sized.append({**size, **details})
    return {**target, "nodeGroups": sized}


def pending_changes(
    live: Json | None, request: ClusterRequest, operations: Iterable[Operation] = ()
) -> tuple[Operation, ...]:
    """What still has to be done so that the live release says what the rows ask for.

    Only what an operation can be entitled to is compared, and by meaning: a release that another
    driver made with ``autoscale: "true"`` has nothing pending.

    :param live: values of the live release, None if there is none.
    :param operations: as for :func:`with_sizes`.
    :returns: operations in the order delete, create, update, resize; () when nothing is missing.
    """
    if live is None:
        return (_operation(Verb.CREATE, ()),)
    current = values_live.node_groups(live)
    target = values_live.node_groups(with_sizes(live, request, operations))
    common = [name for name in target if name in current]
    resized = [name for name in common if _meaning(current[name]) != _meaning(target[name])]
    updated = [name for name in common if _metadata(current[name]) != _metadata(target[name])]
    if live.get("controlPlane", {}).get("machineCount") != request.control_plane.count:
        resized.insert(0, values_live.CONTROL_PLANE)
    changes = (
        (Verb.NODEGROUP_DELETE, [name for name in request.deleted_groups if name in current]),
        (Verb.NODEGROUP_CREATE, [name for name in target if name not in current]),
        (Verb.NODEGROUP_UPDATE, updated),
        (Verb.RESIZE, resized),
    )
    return tuple(_operation(verb, tuple(nodegroups)) for verb, nodegroups in changes if nodegroups)


def without_unaccepted(failed_values: Json, deployed_values: Json) -> Json:
    """The values of a failed revision, with sizes, labels and taints as they were deployed.

    :param failed_values: of the newest revision; *deployed_values* of the last one that was
        applied as a whole.
    :returns: without groups that were never deployed; what an upgrade has set stays.
    """
    deployed_entries = values_live.node_groups(deployed_values)
    keys = (*values_live.COUNT_KEYS, *values_live.DETAIL_KEYS)
    entries = []
    for entry in failed_values.get("nodeGroups") or ():
        if before := deployed_entries.get(entry["name"]):
            unchanged = {key: value for key, value in entry.items() if key not in keys}
            entries.append({**unchanged, **{key: before[key] for key in keys if key in before}})
    result = {**failed_values, "nodeGroups": entries}
    if count := (deployed_values.get("controlPlane") or {}).get("machineCount"):
        result["controlPlane"] = {
            **(failed_values.get("controlPlane") or {}),
            "machineCount": count,
        }
    return result


def nodegroup_fields(values: Json, name: str | None, operations: Iterable[Operation]) -> Json:
    """Fields of a nodegroup's row that say what the live values have, for a change was refused.

    :param name: its name, None for the control plane.
    :param operations: what was wanted of it.
    """
    if name is None:
        return {"node_count": values_live.count(values, None)}
    entry, operations = values_live.node_groups(values)[name], tuple(operations)
    fields: Json = (
        {} if values_live.is_autoscaled(entry) else {"node_count": values_live.count(values, name)}
    )
    if _changed_details(operations):
        marks = {"node_labels": "nodeLabels", "node_taints": "nodeTaints"}
        fields |= {field: copy.deepcopy(entry.get(key)) for field, key in marks.items()}
    previous = [
        bounds
        for operation in operations
        for bounds in (*operation.earlier, operation.previous_bounds)
        if bounds is not None
    ]
    if values_live.is_autoscaled(entry):
        # The newest that led to these; a row without an upper bound left it to the labels.
        current = values_live.bounds(entry)
        matching = (
            pair
            for pair in reversed(previous)
            if pair[1] is None or (pair[0] or 0, pair[1]) == current
        )
        previous = [next(matching, current)]
    return {**fields, **dict(zip(BOUNDS, previous[0], strict=True))} if previous else fields


def _changed_details(operations: Iterable[Operation]) -> frozenset[str]:
    """Nodegroups whose labels and taints somebody has spoken of."""
    return frozenset(
        name
        for operation in operations
        if operation.verb is Verb.NODEGROUP_UPDATE
        for name in operation.groups
    )


def changed_bounds(operations: Iterable[Operation]) -> dict[str, frozenset[str]]:
    """Nodegroups with requested bounds, and which of :data:`BOUNDS` are requested."""
    fields_by_nodegroup: dict[str, frozenset[str]] = {}
    for operation in operations:
        fields = frozenset(operation.fields) & frozenset(BOUNDS)
        if operation.verb is Verb.NODEGROUP_UPDATE and fields:
            for name in operation.groups:
                fields_by_nodegroup[name] = fields_by_nodegroup.get(name, frozenset()) | fields
    return fields_by_nodegroup


def _next_groups(
    live: Mapping[str, Json], target: Mapping[str, Json], allowed: AllowedChanges
) -> list[Json]:
    """Live's order is kept and new groups come last, so that nothing looks changed that is not."""
    result = []
    for name, entry in live.items():
        if name not in target:
            if name not in allowed.deletions:
                result.append(entry)
        elif name in allowed.entries:
            result.append(copy.deepcopy(target[name]))
        elif name in allowed.details:
            unchanged = {
                key: value for key, value in entry.items() if key not in values_live.DETAIL_KEYS
            }
            result.append({**_with_counts(unchanged, target[name]), **_metadata(target[name])})
        elif allowed.may_count(name):
            result.append(_with_counts(entry, target[name]))
        else:
            result.append(entry)
    new = (name for name in target if name not in live and name in allowed.entries)
    return result + [copy.deepcopy(target[name]) for name in new]


def _with_counts(entry: Json, target: Json) -> Json:
    unchanged = {key: value for key, value in entry.items() if key not in values_live.COUNT_KEYS}
    return {**unchanged, **{key: target[key] for key in values_live.COUNT_KEYS if key in target}}


def _metadata(entry: Mapping[str, Any]) -> Json:
    """Labels and taints of an entry; empty ones are as good as none."""
    return {key: copy.deepcopy(entry[key]) for key in values_live.DETAIL_KEYS if entry.get(key)}


def _details(current: Json, target: Json, *, is_requested: bool) -> Json:
    """The labels and taints that a nodegroup is to have, without empty ones.

    :param is_requested: a request is about them, so what it leaves out is deleted. Otherwise an
        operator may have set it by other means, and it stays.
    """
    requested = {key: is_requested or bool(target.get(key)) for key in values_live.DETAIL_KEYS}
    details = {
        key: (target if requested[key] else current).get(key) for key in values_live.DETAIL_KEYS
    }
    return {key: value for key, value in details.items() if value}


def _desired_size(
    current: Json | None, nodegroup: NodeGroupRequest, target: Json, bounds: frozenset[str]
) -> Json:
    """The wanted size of a group in the way in which the live one has its size.

    :param bounds: the bounds that a request is about; then the desired scaling counts.
    """
    if current is None:
        return target
    fixed: Json = {"name": nodegroup.name, "machineCount": nodegroup.count}
    if not values_live.is_autoscaled(current):
        return target if bounds and values_live.is_autoscaled(target) else fixed
    counts = {key: current[key] for key in values_live.COUNT_KEYS if key in current}
    if not bounds and current["autoscale"] is not True:
        # As magnum-capi-helm writes it, which lets labels win over what the row has.
        return {"name": nodegroup.name, **counts}
    if not values_live.is_autoscaled(target):
        return fixed if bounds else {"name": nodegroup.name, **counts}
    if nodegroup.maximum is None and "max_node_count" not in bounds:
        # The upper bound is still that of the labels with which the group was made.
        lower = {"machineCountMin": nodegroup.minimum} if bounds else {}
        return {"name": nodegroup.name, **counts, **lower}
    capacity = (values_live.CAPACITY,) if values_live.CAPACITY in current else ()
    return {**target, **{key: current[key] for key in capacity}}


def _meaning(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    """Who sets the size of a nodegroup, and to what; other spellings of it are equal."""
    if values_live.is_autoscaled(entry):
        return "autoscaled", entry.get("machineCountMin"), entry.get("machineCountMax")
    return "fixed", entry.get("machineCount")


def _operation(verb: Verb, nodegroups: tuple[str, ...]) -> Operation:
    name = f"{verb}:{','.join(nodegroups)}" if nodegroups else str(verb)
    return Operation(id=name, verb=verb, started_at=_UNKNOWN_START, groups=nodegroups)
