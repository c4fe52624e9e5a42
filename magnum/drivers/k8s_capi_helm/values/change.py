# SPDX-License-Identifier: Apache-2.0
"""Live values + wanted values + what this operation may touch -> next values.

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
from magnum.drivers.k8s_capi_helm.values import live as values_live
from magnum.drivers.k8s_capi_helm.values import nodegroups

#: Fields of a nodegroup's row that bound the autoscaler.
BOUNDS = ("min_node_count", "max_node_count")

#: Start of operations that are read off the rows, where nobody knows when they were asked for.
_UNKNOWN_START = datetime.datetime.min.replace(tzinfo=datetime.UTC)


@dataclasses.dataclass(frozen=True, slots=True)
class AllowedChanges:
    """What a set of operations may touch together: the union of what each may.

    :ivar everything: the whole of the values.
    :ivar control_plane: the control plane's number of machines.
    :ivar all_counts: counts and bounds of every nodegroup, besides those in ``counts``.
    :ivar counts: nodegroups whose count and bounds may move.
    :ivar details: nodegroups whose labels and taints may move, besides count and bounds.
    :ivar entries: nodegroups whose entry may be added or replaced.
    :ivar gone: nodegroups whose entry may be removed.
    """

    everything: bool = False
    control_plane: bool = False
    all_counts: bool = False
    counts: frozenset[str] = frozenset()
    details: frozenset[str] = frozenset()
    entries: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()

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
            everything=Verb.CREATE in verbs,
            control_plane=whole or values_live.CONTROL_PLANE in by_verb[Verb.RESIZE],
            all_counts=whole,
            counts=frozenset(by_verb[Verb.RESIZE] | by_verb[Verb.NODEGROUP_UPDATE]),
            details=frozenset(by_verb[Verb.NODEGROUP_UPDATE]),
            entries=frozenset(by_verb[Verb.NODEGROUP_CREATE]),
            gone=frozenset(by_verb[Verb.NODEGROUP_DELETE]),
        )

    def may_count(self, group: str) -> bool:
        """Whether count and bounds of *group* may move."""
        return self.all_counts or group in self.counts


def next_values(live: Json | None, wanted: Json, operations: Iterable[Operation]) -> Json:
    """The values to give to Helm.

    :param live: values of the live release; None if there is none, then *wanted* is taken whole.
    :param wanted: what the rows ask for now. For operations that only resize or delete,
        :func:`with_sizes` is enough.
    :param operations: the pending ones; a resize without groups means the whole cluster, and
        :data:`CONTROL_PLANE` among its groups the control plane.
    :returns: new values that share nothing with the arguments, which are left alone. Without an
        operation they equal *live*.
    """
    entitled = AllowedChanges.of(operations)
    if live is None or entitled.everything:
        return copy.deepcopy(wanted)
    result = copy.deepcopy(live)
    if entitled.control_plane:
        count = wanted["controlPlane"]["machineCount"]
        result["controlPlane"] = {**result.get("controlPlane", {}), "machineCount": count}
    if entitled.all_counts or entitled.counts or entitled.entries or entitled.gone:
        result["nodeGroups"] = _next_groups(
            values_live.node_groups(result), values_live.node_groups(wanted), entitled
        )
    return result


def with_sizes(live: Json, request: ClusterRequest, recorded: Iterable[Operation] = ()) -> Json:
    """The part of the values that rows of a running cluster move, as they ask for it.

    Whether a group is sized by the autoscaler, and between which bounds of the labels, was settled
    when it was made: a site's new defaults of these labels are nobody's request. An update of the
    group's bounds settles it anew.

    :param recorded: what is on record; an update of a nodegroup there may take labels and taints
        away, which the rows alone do not tell from never having asked.
    """
    have, wanted = values_live.node_groups(live), nodegroups.sizes(request)
    entries = zip(request.node_groups, wanted["nodeGroups"], strict=True)
    recorded = tuple(recorded)
    told, bounded, groups = _told(recorded), changed_bounds(recorded), []
    for group, entry in entries:
        before = have.get(group.name)
        details = _details(before or {}, entry, told=before is None or group.name in told)
        size = _settled(before, group, entry, bounded.get(group.name, frozenset()))
        groups.append({**size, **details})
    return {**wanted, "nodeGroups": groups}


def pending_changes(
    live: Json | None, request: ClusterRequest, recorded: Iterable[Operation] = ()
) -> tuple[Operation, ...]:
    """What still has to be done so that the live release says what the rows ask for.

    Only what an operation can be entitled to is compared, and by meaning: a release that another
    driver made with ``autoscale: "true"`` has nothing pending.

    :param live: values of the live release, None if there is none.
    :param recorded: as for :func:`with_sizes`.
    :returns: operations in the order delete, create, update, resize; () when nothing is missing.
    """
    if live is None:
        return (_operation(Verb.CREATE, ()),)
    have = values_live.node_groups(live)
    want = values_live.node_groups(with_sizes(live, request, recorded))
    both = [name for name in want if name in have]
    resized = [name for name in both if _meaning(have[name]) != _meaning(want[name])]
    updated = [name for name in both if _marks(have[name]) != _marks(want[name])]
    if live.get("controlPlane", {}).get("machineCount") != request.control_plane.count:
        resized.insert(0, values_live.CONTROL_PLANE)
    found = (
        (Verb.NODEGROUP_DELETE, [name for name in request.deleted_groups if name in have]),
        (Verb.NODEGROUP_CREATE, [name for name in want if name not in have]),
        (Verb.NODEGROUP_UPDATE, updated),
        (Verb.RESIZE, resized),
    )
    return tuple(_operation(verb, tuple(groups)) for verb, groups in found if groups)


def without_unaccepted(failed: Json, deployed: Json) -> Json:
    """The values of a failed revision, with sizes, labels and taints as they were deployed.

    :param failed: of the newest revision; *deployed* of the last one that was applied as a whole.
    :returns: without groups that were never deployed; what an upgrade has set stays.
    """
    made, keys = (
        values_live.node_groups(deployed),
        (*values_live.COUNT_KEYS, *values_live.DETAIL_KEYS),
    )
    groups = []
    for entry in failed.get("nodeGroups") or ():
        if before := made.get(entry["name"]):
            kept = {key: value for key, value in entry.items() if key not in keys}
            groups.append({**kept, **{key: before[key] for key in keys if key in before}})
    result = {**failed, "nodeGroups": groups}
    if have := (deployed.get("controlPlane") or {}).get("machineCount"):
        result["controlPlane"] = {**(failed.get("controlPlane") or {}), "machineCount": have}
    return result


def row_of(values: Json, group: str | None, operations: Iterable[Operation]) -> Json:
    """Fields of a nodegroup's row that say what the live values have, for a change was refused.

    :param group: its name, None for the control plane.
    :param operations: what was wanted of it.
    """
    if group is None:
        return {"node_count": values_live.count(values, None)}
    entry, operations = values_live.node_groups(values)[group], tuple(operations)
    fields: Json = (
        {} if values_live.is_autoscaled(entry) else {"node_count": values_live.count(values, group)}
    )
    if _told(operations):
        marks = {"node_labels": "nodeLabels", "node_taints": "nodeTaints"}
        fields |= {field: copy.deepcopy(entry.get(key)) for field, key in marks.items()}
    before = [
        row for one in operations for row in (*one.earlier, one.previous_bounds) if row is not None
    ]
    if values_live.is_autoscaled(entry):
        # The newest that led to these; a row without an upper bound left it to the labels.
        current = values_live.bounds(entry)
        led = (
            row for row in reversed(before) if row[1] is None or (row[0] or 0, row[1]) == current
        )
        before = [next(led, current)]
    return {**fields, **dict(zip(BOUNDS, before[0], strict=True))} if before else fields


def _told(operations: Iterable[Operation]) -> frozenset[str]:
    """Nodegroups whose labels and taints somebody has spoken of."""
    return frozenset(
        name for one in operations if one.verb is Verb.NODEGROUP_UPDATE for name in one.groups
    )


def changed_bounds(operations: Iterable[Operation]) -> dict[str, frozenset[str]]:
    """Nodegroups whose bounds somebody has spoken of, and of which of :data:`BOUNDS`."""
    found: dict[str, frozenset[str]] = {}
    for one in operations:
        spoken = frozenset(one.fields) & frozenset(BOUNDS)
        if one.verb is Verb.NODEGROUP_UPDATE and spoken:
            found |= {name: found.get(name, frozenset()) | spoken for name in one.groups}
    return found


def _next_groups(
    live: Mapping[str, Json], wanted: Mapping[str, Json], entitled: AllowedChanges
) -> list[Json]:
    """Live's order is kept and new groups come last, so that nothing looks changed that is not."""
    result = []
    for name, entry in live.items():
        if name not in wanted:
            if name not in entitled.gone:
                result.append(entry)
        elif name in entitled.entries:
            result.append(copy.deepcopy(wanted[name]))
        elif name in entitled.details:
            kept = {
                key: value for key, value in entry.items() if key not in values_live.DETAIL_KEYS
            }
            result.append({**_counted(kept, wanted[name]), **_marks(wanted[name])})
        elif entitled.may_count(name):
            result.append(_counted(entry, wanted[name]))
        else:
            result.append(entry)
    new = (name for name in wanted if name not in live and name in entitled.entries)
    return result + [copy.deepcopy(wanted[name]) for name in new]


def _counted(entry: Json, wanted: Json) -> Json:
    kept = {key: value for key, value in entry.items() if key not in values_live.COUNT_KEYS}
    return {**kept, **{key: wanted[key] for key in values_live.COUNT_KEYS if key in wanted}}


def _marks(entry: Mapping[str, Any]) -> Json:
    """Labels and taints of an entry; empty ones are as good as none."""
    return {key: copy.deepcopy(entry[key]) for key in values_live.DETAIL_KEYS if entry.get(key)}


def _details(have: Json, wanted: Json, *, told: bool) -> Json:
    """The labels and taints that a nodegroup is to have, without empty ones.

    :param told: somebody has spoken of them, so what is not wanted is to go. Otherwise an operator
        may have set it by other means, and it stays.
    """
    spoken = {key: told or bool(wanted.get(key)) for key in values_live.DETAIL_KEYS}
    found = {key: (wanted if spoken[key] else have).get(key) for key in values_live.DETAIL_KEYS}
    return {key: value for key, value in found.items() if value}


def _settled(
    have: Json | None, group: NodeGroupRequest, wanted: Json, bounded: frozenset[str]
) -> Json:
    """The wanted size of a group in the way in which the live one has its size.

    :param bounded: the bounds that somebody has spoken of; then the wanted way counts.
    """
    if have is None:
        return wanted
    fixed: Json = {"name": group.name, "machineCount": group.count}
    if not values_live.is_autoscaled(have):
        return wanted if bounded and values_live.is_autoscaled(wanted) else fixed
    kept = {key: have[key] for key in values_live.COUNT_KEYS if key in have}
    if not bounded and have["autoscale"] is not True:
        # As magnum-capi-helm writes it, which lets labels win over what the row has.
        return {"name": group.name, **kept}
    if not values_live.is_autoscaled(wanted):
        return fixed if bounded else {"name": group.name, **kept}
    if group.maximum is None and "max_node_count" not in bounded:
        # The upper bound is still that of the labels with which the group was made.
        lower = {"machineCountMin": group.minimum} if bounded else {}
        return {"name": group.name, **kept, **lower}
    return {
        **wanted,
        **(
            {values_live.CAPACITY: have[values_live.CAPACITY]}
            if values_live.CAPACITY in have
            else {}
        ),
    }


def _meaning(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    """Who sets the size of a nodegroup, and to what; other spellings of it are equal."""
    if values_live.is_autoscaled(entry):
        return "autoscaled", entry.get("machineCountMin"), entry.get("machineCountMax")
    return "fixed", entry.get("machineCount")


def _operation(verb: Verb, groups: tuple[str, ...]) -> Operation:
    name = f"{verb}:{','.join(groups)}" if groups else str(verb)
    return Operation(id=name, verb=verb, started=_UNKNOWN_START, groups=groups)
