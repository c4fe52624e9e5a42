# SPDX-License-Identifier: Apache-2.0
"""What another value of a key moves: which objects, and whose machines are replaced for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import copy
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
_ZONES = ("controlPlaneAvailabilityZones", "controlPlaneOmitAvailabilityZone")
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


def without_names(found: Object) -> Object:
    """An object; a Role without which objects its rights are about."""
    if found["kind"] != "Role":
        return found
    return {**found, "rules": [{**rule, "resourceNames": []} for rule in found["rules"]]}


def consequences(before: str, after: str) -> set[str]:
    """Whose machines are replaced: CONTROL_PLANE, GROUPS; FIXED where the change is refused."""
    old, new = (
        {rendering.identity(found): found for found in side} for side in moved(before, after)
    )
    result = set()
    for name in old.keys() & new.keys():
        follows = _FOLLOWS.get(name[0])
        if not follows:
            continue
        if old[name]["apiVersion"] != new[name]["apiVersion"] and follows != GROUPS:
            continue  # another shape of the same; a group's names tell whether it is
        if old[name]["spec"].get("selector") != new[name]["spec"].get("selector"):
            follows = FIXED
        if lasting(old[name]) != lasting(new[name]):
            result.add(follows)
    return result


def lasting(found: Object) -> Any:
    """What of an object cannot change without consequences."""
    if found["kind"] != "OpenStackCluster":
        return released.lasting([found])
    # What the provider's webhook lets change is left out, and it refuses a change of the rest.
    spec = copy.deepcopy(found["spec"])
    for key in ("identityRef", "bastion", *_ZONES):
        spec.pop(key, None)
    # As v1beta1 and as v1beta2 have it.
    balancers = (spec, "apiServerLoadBalancer"), (spec.get("apiServer", {}), "managedLoadBalancer")
    for above, name in balancers:
        for key in ("allowedCIDRs", "monitor"):
            above.get(name, {}).pop(key, None)
    for subnet in spec.get("managedSubnets", ()):
        subnet.pop("dnsNameservers", None)
    if "managedSecurityGroups" in spec:
        spec["managedSecurityGroups"] = {}
    return spec


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
