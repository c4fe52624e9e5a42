# SPDX-License-Identifier: Apache-2.0
"""Which value replaces whose machines: found by rendering, kept as data for the documents.

The record is effects/rolls.yaml of the driver: path of a key -> what another value of it
does to a cluster that is there. Keys below one path that all do the same are one row; of the addons
those that replace machines have a row, and all others one together.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent import futures
from dataclasses import dataclass, field
import os
from pathlib import Path

import yaml

from magnum.drivers.k8s_capi_helm.commands.explain import effects
from magnum.tests.functional.k8s_capi_helm.charts import changes, keys, other_values, rendering
from magnum.tests.functional.k8s_capi_helm.charts.keys import Key, Path_
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Scenario, Values

RECORD = effects.DIRECTORY / "rolls.yaml"
#: A key is looked at in so many scenarios at the most.
SCENARIOS = 2
#: Addons have their own chart, whose values stand here.
ADDONS = "addons"
#: What the templates look at in values that are Cilium's own, and no schema names.
CILIUM = (ADDONS, "cni", "cilium", "release", "values", "kubeProxyReplacement")
#: Keys of a group that are looked at by themselves; the others do for one group what defaults do.
OWN = {"machineCount", "machineCountMin", "machineCountMax"}
HEAD = """\
# What another value of a key does to a cluster that is there: whose machines are replaced for it.
# Made by rendering (test_rolls.py; UPDATE_GOLDEN=1 writes it), printed in the documents.
"""
NOTHING = "nothing is replaced"


@dataclass
class Found:
    """What came of other values of a key."""

    consequences: set[str] = field(default_factory=set)
    changed: bool = False
    refusals: list[str] = field(default_factory=list)

    @property
    def word(self) -> str:
        """The consequence as the record has it."""
        if changes.FIXED in self.consequences:
            return "cannot be changed"
        both = [one for one in (changes.CONTROL_PLANE, changes.GROUPS) if one in self.consequences]
        return " and ".join(both) or NOTHING


def cluster_keys() -> Iterator[Key]:
    """Every leaf outside of node groups; of the defaults of groups one below each key."""
    seen = set()
    for key in keys.leaves(rendering.CLUSTER):
        if key.path[0] == ADDONS or (key.path[0] == "nodeGroups" and key.path[2] not in OWN):
            continue
        if key.path[0] == "nodeGroupDefaults":
            if key.path[1] in seen:
                continue
            seen.add(key.path[1])
        yield key


def addon_keys() -> Iterator[Key]:
    """Every leaf of the addons' chart, by its path in this one."""
    for key in keys.leaves(rendering.ADDONS):
        yield Key((ADDONS, *key.path), key.definition)
    yield Key(CILIUM, "")


def home(key: Key) -> tuple[Path, Path_]:
    """The chart whose schema has a key, and its path there."""
    if key.path[0] == ADDONS:
        return rendering.ADDONS, key.path[1:]
    return rendering.CLUSTER, key.path


def placed(key: Key, start: Values, other: object) -> Values:
    """Values with another one of a key."""
    chart, path = home(key)
    if chart == rendering.CLUSTER:
        return keys.placed(chart, start, path, other)
    return {**start, ADDONS: keys.placed(chart, start.get(ADDONS, {}), path, other)}


def look(key: Key) -> Found:
    """Render some scenarios with another value of a key."""
    found = Found()
    chart, path = home(key)
    below = changes.filled(changes.defaults(), {ADDONS: keys.defaults(rendering.ADDONS)})
    for scenario in scenarios(key):
        start = changes.filled(companions(key), scenario.values)
        merged = changes.filled(start, below)
        try:
            other = keys.other(chart, path, keys.value_at(merged, key.path), other_values.TABLE)
            after = placed(key, start, other)
            before_text = rendering.text(rendering.CLUSTER, start, flags=changes.FLAGS)
            after_text = rendering.text(rendering.CLUSTER, after, flags=changes.FLAGS)
        except (rendering.HelmRefused, keys.NoSample) as error:
            found.refusals.append(f"{scenario.name}: {error}")
            continue
        found.changed |= before_text != after_text
        found.consequences |= changes.consequences(before_text, after_text)
    return found


def companions(key: Key) -> Values:
    """What a key needs beside it, by its name or by what stands above it."""
    for end in range(len(key.path), 0, -1):
        name = ".".join(key.path[:end])
        if name in other_values.COMPANIONS:
            return other_values.COMPANIONS[name]
    return {}


def scenarios(key: Key) -> list[Scenario]:
    """Some that set the key, and the last one of those that do not."""
    *setting, last = changes.setters(key)
    return [*setting[: SCENARIOS - 1], last]


def look_at_all() -> dict[str, Found]:
    """What comes of another value of each key."""
    wanted = [*cluster_keys(), *addon_keys()]
    with futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip((key.name for key in wanted), pool.map(look, wanted), strict=True))


def rows(words: dict[str, str]) -> dict[str, str]:
    """Key -> word, with one row for keys below a path if there are more and all have the same."""
    result: dict[str, str] = {}
    for name, word in words.items():
        steps = name.split(".")
        if steps[0] == ADDONS:
            result.setdefault(ADDONS, NOTHING)
            if word == NOTHING:
                continue
        for end in range(1, len(steps) + 1):
            above = ".".join(steps[:end])
            below = [
                other
                for path, other in words.items()
                if path == above or path.startswith(f"{above}.")
            ]
            alone = len(below) == 1 or steps[0] == "nodeGroups"
            if set(below) == {word} and (above == name or not alone):
                result[above.removesuffix(".[]").removesuffix(".*")] = word
                break
    return result


def record() -> dict[str, str]:
    """The rows on record."""
    found: dict[str, str] = yaml.safe_load(RECORD.read_text()) if RECORD.exists() else {}
    return found
