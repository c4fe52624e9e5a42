# SPDX-License-Identifier: Apache-2.0
"""What one node group is told moves its own objects only, for every key in every scenario."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent import futures
import os
from typing import Any
import unittest

from magnum.tests.functional.k8s_capi_helm.charts import changes, keys, other_values, rendering
from magnum.tests.functional.k8s_capi_helm.charts.keys import Key
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Scenario, Values
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one

#: Stands beside the group that is changed, and keeps the autoscaler there.
BESIDE: Values = {
    "name": "beside",
    "machineFlavor": "m1.small",
    "autoscale": True,
    "machineCountMin": 1,
    "machineCountMax": 2,
}
GROUP = ("nodeGroups", keys.ITEMS)
#: Keys that say which MachineDeployments the autoscaler may scale: its Role names them.
NAMED_IN_ROLE = frozenset({"name", "autoscale"})


def group_keys() -> list[Key]:
    """Every leaf of a node group."""
    return list(keys.leaves(rendering.CLUSTER, *GROUP))


def started(scenario: Scenario, key: Key) -> Values:
    """A scenario with what the key needs beside it in its first group, and with another group."""
    groups = scenario.values.get("nodeGroups") or changes.defaults()["nodeGroups"]
    names = [".".join(key.path[2:end]) for end in range(len(key.path), 2, -1)]
    beside = other_values.GROUP_COMPANIONS
    needs = next((beside[name] for name in names if name in beside), {})
    first = changes.filled(needs, groups[0])
    return {**scenario.values, "nodeGroups": [first, *groups[1:], BESIDE]}


def changed(start: Values, key: Key) -> Values:
    """The same with another value of the key in the first group."""
    merged = changes.filled(start, changes.defaults())
    group = changes.filled(merged["nodeGroups"][0], merged["nodeGroupDefaults"])
    current = keys.value_at(group, key.path[2:])
    other = keys.other(rendering.CLUSTER, key.path, current, other_values.TABLE)
    # The whole entry of the defaults below which the key stands, so that lists are not cut.
    whole = {**start["nodeGroups"][0]}
    if len(key.path) > 3 and key.path[2] in group:
        whole[key.path[2]] = group[key.path[2]]
    place = {**start, "nodeGroups": [whole, *start["nodeGroups"][1:]]}
    return keys.placed(rendering.CLUSTER, place, key.path, other)


def outcome(scenario: Scenario, key: Key) -> tuple[str, str] | str:
    """What helm prints before and after the change; or why it refuses the change."""
    start = started(scenario, key)
    try:
        return (
            rendering.text(rendering.CLUSTER, start, flags=changes.FLAGS),
            rendering.text(rendering.CLUSTER, changed(start, key), flags=changes.FLAGS),
        )
    except rendering.HelmRefused as error:
        return str(error)


def strangers(before: str, after: str, allowed: set[Any]) -> list[tuple[str, str]]:
    """Objects that moved and belong to another group, or to none."""
    return [
        rendering.identity(found)
        for side in changes.moved(before, after)
        for found in side
        if changes.group_of(found) not in allowed
    ]


def names_groups_only(before: str, after: str) -> bool:
    """Whether a Role that moved gives the same rights as before, to other MachineDeployments."""
    old, new = (
        [changes.without_names(one) for one in side if one["kind"] == "Role"]
        for side in changes.moved(before, after)
    )
    return bool(old) and old == new


class GroupIsolationTest(unittest.TestCase):
    maxDiff = None

    def outcomes(self, wanted: list[tuple[Scenario, Key]]) -> Iterator[tuple[str, str] | str]:
        with futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            yield from pool.map(lambda one: outcome(*one), wanted)

    def test_each_key_in_some_scenario(self) -> None:
        """Each key alone, in the scenarios that set it: it does something, to its group only."""
        wanted = [(scenario, key) for key in group_keys() for scenario in changes.setters(key)]
        does: dict[str, list[str]] = {key.name: [] for key in group_keys()}
        for (scenario, key), found in zip(wanted, self.outcomes(wanted), strict=True):
            with self.subTest(key=key.name, scenario=scenario.name):
                if isinstance(found, str):
                    self.assertIn("validate.yaml", found)
                    does[key.name].append(found.strip())
                    continue
                self.only_this_group(scenario, key, *found)
                if found[0] != found[1]:
                    does.pop(key.name, None)
        self.assertEqual({}, does, "these keys of a group do nothing, or are refused everywhere")

    def test_each_key_in_every_scenario(self) -> None:
        """For each key and each scenario one of the leaves below the key, another one each time."""
        below: dict[str, list[Key]] = {}
        for key in group_keys():
            below.setdefault(key.path[2], []).append(key)
        wanted = [
            (scenario, leaves[number % len(leaves)])
            for leaves in below.values()
            for number, scenario in enumerate(rendering.scenarios(rendering.CLUSTER).values())
        ]
        for (scenario, key), found in at_least_one(zip(wanted, self.outcomes(wanted), strict=True)):
            with self.subTest(key=key.name, scenario=scenario.name):
                if isinstance(found, str):
                    self.assertIn("validate.yaml", found)
                else:
                    self.only_this_group(scenario, key, *found)

    def only_this_group(self, scenario: Scenario, key: Key, before: str, after: str) -> None:
        """What moved is of the first group, under its old name or its new one."""
        first: Mapping[str, Any] = started(scenario, key)["nodeGroups"][0]
        now = changed(started(scenario, key), key)["nodeGroups"][0]["name"]
        others = strangers(before, after, {first["name"], now})
        if key.path[2] in NAMED_IN_ROLE and names_groups_only(before, after):
            others = [one for one in others if one[0] != "Role"]
        self.assertEqual([], others)
        follows = changes.consequences(before, after)
        self.assertLessEqual(follows, {changes.GROUPS})
        if key.path[2] in other_values.NEVER_ROLL:
            self.assertEqual(set(), follows)
        if key.path[2] in other_values.ALWAYS_ROLL and before != after:
            self.assertEqual({changes.GROUPS}, follows)
