# SPDX-License-Identifier: Apache-2.0
"""What another value of a key moves: which objects, and whose machines are replaced for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import functools
import re
from typing import Any

import yaml

from magnum.tests.functional.k8s_capi_helm.charts import keys, other_values, released, rendering
from magnum.tests.functional.k8s_capi_helm.charts.keys import Key
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object, Scenario, Values

CHART = rendering.CLUSTER
#: The values are good: :mod:`keys` has asked the schema already, and helm is faster without.
FLAGS = ("--skip-schema-validation",)
CONTROL_PLANE, GROUPS, FIXED = "control plane", "node groups", "fixed"
#: What follows when the lasting part of an object changes: machines are replaced, or a webhook of
#: Cluster API or its OpenStack provider refuses the change of a cluster that is there.
_FOLLOWS = {
    "KubeadmControlPlane": CONTROL_PLANE,
    "MachineDeployment": GROUPS,
    "OpenStackCluster": FIXED,
    "Cluster": FIXED,
}
_GROUP = re.compile(r"/node-group$")
_DOCUMENT = re.compile(r"^---\n(?:# Source: .*\n)?", re.MULTILINE)


def parts(text: str) -> set[str]:
    """The documents that helm printed, as texts."""
    return {part.strip() for part in _DOCUMENT.split(text) if part.strip()}


def moved(before: str, after: str) -> tuple[list[Object], list[Object]]:
    """Objects of either text that are not in the other like that."""
    first, second = parts(before), parts(after)
    return (
        [yaml.safe_load(part) for part in sorted(first - second)],
        [yaml.safe_load(part) for part in sorted(second - first)],
    )


def group_of(found: Object) -> str | None:
    """The node group that an object belongs to, whatever the prefix of its labels."""
    labels: Mapping[str, str] = found["metadata"].get("labels", {})
    return next((value for name, value in labels.items() if _GROUP.search(name)), None)


def consequences(before: str, after: str) -> set[str]:
    """Whose machines are replaced: CONTROL_PLANE, GROUPS; FIXED where the change is refused."""
    old, new = (
        {rendering.identity(found): found for found in side} for side in moved(before, after)
    )
    return {
        _FOLLOWS[name[0]]
        for name in old.keys() & new.keys()
        if name[0] in _FOLLOWS and released.lasting([old[name]]) != released.lasting([new[name]])
    }


@functools.cache
def defaults() -> Values:
    """values.yaml of the chart."""
    found: Values = yaml.safe_load((CHART / "values.yaml").read_text())
    return found


def filled(above: Any, below: Any) -> Any:
    """Values over the chart's defaults, as helm lays them."""
    if isinstance(above, dict) and isinstance(below, dict):
        return {
            **below,
            **{key: filled(value, below.get(key)) for key, value in above.items()},
        }
    return above


def setters(key: Key) -> Iterator[Scenario]:
    """Scenarios in which a key may matter: those that set it, then the everyday one."""
    scenarios = rendering.scenarios(CHART)
    for scenario in scenarios.values():
        if keys.value_at(scenario.values, key.path) is not None:
            yield scenario
    yield scenarios["standard"]
    if key.path[-1] in other_values.ALSO_IN:
        yield scenarios[other_values.ALSO_IN[key.path[-1]]]
