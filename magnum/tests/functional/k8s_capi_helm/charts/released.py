# SPDX-License-Identifier: Apache-2.0
"""Releases of the charts on record: the values that were valid, and what they must not move.

A release keeps in ``tests/released/<version>/`` of its chart

* ``values.yaml`` and ``ci/<scenario>-values.yaml``, as they were,
* ``lasting/<scenario>.yaml``: every object that the scenario rendered, with what of it cannot
  change without replacing machines, being refused, or installing an addon a second time,
* ``changes.yaml``: what a later version changes of that on purpose, with the reason.

Templates are not kept: git has them. ``python -m ...charts.released`` records the charts as they
are as the release of their version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import copy
from dataclasses import dataclass
from pathlib import Path
import shutil
import sys
from typing import Any

import yaml

from magnum.tests.functional.k8s_capi_helm.charts import infrastructure, rendering
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object, Scenario, Values

#: What of an object must stay for the same values; what is not there is left out. A dot goes down,
#: a dot at the end goes all the way down, so that each flag and file is a fact of its own. Both API
#: versions are told in the words of v1beta1, as a change of the version alone replaces nothing.
LASTING: Mapping[str, tuple[str, ...]] = {
    # A change of these replaces the control plane's machines.
    "KubeadmControlPlane": (
        "spec.version",
        "spec.machineTemplate.infrastructureRef.name",
        "spec.kubeadmConfigSpec.",
    ),
    # A change of the template's parts replaces machines; the selector cannot be changed at all.
    "MachineDeployment": (
        "spec.clusterName",
        "spec.selector",
        "spec.template.spec.version",
        "spec.template.spec.failureDomain",
        "spec.template.spec.bootstrap.configRef.name",
        "spec.template.spec.infrastructureRef.name",
    ),
    # The OpenStack provider's webhook refuses every change but those of CHANGEABLE.
    "OpenStackCluster": ("spec.",),
    "Cluster": ("spec.clusterNetwork", "spec.controlPlaneRef.name", "spec.infrastructureRef.name"),
    # The API server refuses changes of these.
    "Deployment": ("spec.selector",),
    "RoleBinding": ("roleRef",),
    # Another name or namespace is another Helm release in the workload cluster.
    "HelmRelease": ("spec.clusterName", "spec.releaseName", "spec.targetNamespace"),
    "Manifests": ("spec.clusterName", "spec.releaseName", "spec.targetNamespace"),
}


#: What of an OpenStackCluster its provider does change; "[]" stands for each item of a list.
CHANGEABLE = (
    "apiServerLoadBalancer.allowedCIDRs",
    "apiServerLoadBalancer.monitor",
    "bastion",
    "controlPlaneAvailabilityZones",
    "controlPlaneOmitAvailabilityZone",
    "identityRef",
    "managedSecurityGroups.allNodesSecurityGroupRules",
    "managedSecurityGroups.allowAllInClusterTraffic",
    "managedSecurityGroups.controlPlaneNodesSecurityGroupRules",
    "managedSecurityGroups.workerNodesSecurityGroupRules",
    "managedSubnets.[].dnsNameservers",
)
#: Where v1beta2 has something else.
ELSEWHERE = {
    "spec.machineTemplate.infrastructureRef.name": (
        "spec.machineTemplate.spec.infrastructureRef.name"
    ),
}


def lasting(objects: list[Object]) -> dict[str, Values]:
    """Kind/name of each object -> what must stay of it, by path."""
    return {
        "/".join(rendering.identity(found)): dict(
            fact
            for path in LASTING.get(found["kind"], ())
            for fact in _facts(_settled(infrastructure.in_v1beta1(found)), path)
        )
        for found in objects
    }


def _settled(found: Object) -> Object:
    """An object without what can be changed of it, if it is one that mostly cannot."""
    if found["kind"] != "OpenStackCluster":
        return found
    result = copy.deepcopy(found)
    for path in CHANGEABLE:
        *above, last = path.split(".")
        places = [result["spec"]]
        for step in above:
            places = [
                inner
                for place in places
                for inner in (place if step == "[]" else [place.get(step, {})])
            ]
        for place in places:
            place.pop(last, None)
    return result


def _facts(found: Object, path: str) -> Iterator[tuple[str, Any]]:
    value = _at(found, path.removesuffix("."))
    if value is None and path in ELSEWHERE:
        value = _at(found, ELSEWHERE[path])
    if value is not None:
        yield from _leaves(path[:-1], value) if path.endswith(".") else [(path, value)]


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """What is below a value by path; items of a list by their name or path, if all have one."""
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        for key in ("name", "path"):
            if all(key in item for item in value):
                names = [item[key] for item in value]
                rest = [_rest(item, key) for item in value]
                if len(set(names)) == len(names):
                    value = dict(zip(names, rest, strict=True))
                break
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(f"{path}.{key}", inner)
    else:
        yield path, value


def _rest(item: Values, key: str) -> Any:
    """An item of a list without its name; of a flag only its value, as in a map of flags."""
    rest = {name: inner for name, inner in item.items() if name != key}
    return rest["value"] if rest.keys() == {"value"} else rest


def _at(found: Any, path: str) -> Any:
    for step in path.split("."):
        if not isinstance(found, dict):
            return None
        found = found.get(step)
    return found


@dataclass(frozen=True)
class Release:
    """A version of a chart that is out there."""

    chart: Path
    version: str

    @property
    def place(self) -> Path:
        """The directory that has its record."""
        return self.chart / "tests" / "released" / self.version

    @property
    def defaults(self) -> Values:
        """Its values.yaml."""
        values: Values = yaml.safe_load((self.place / "values.yaml").read_text())
        return values

    def scenarios(self) -> Iterator[Scenario]:
        """The scenarios that it came with; rendering one means the chart as it is now."""
        suffix = "-values.yaml"
        for path in sorted((self.place / "ci").glob(f"*{suffix}")):
            name = path.name.removesuffix(suffix)
            yield Scenario(self.chart, name, yaml.safe_load(path.read_text()))

    def lasting(self, scenario: str) -> dict[str, Values]:
        """What a scenario rendered then."""
        text = (self.place / "lasting" / f"{scenario}.yaml").read_text()
        found: dict[str, Values] = yaml.safe_load(text)
        return found

    def changes(self) -> list[dict[str, str]]:
        """What is changed on purpose since: object, path ("" is all of it; both patterns), why."""
        path = self.place / "changes.yaml"
        return (yaml.safe_load(path.read_text()) or []) if path.is_file() else []


def releases() -> Iterator[Release]:
    """Every release on record."""
    for chart in (rendering.CLUSTER, rendering.ADDONS):
        for place in sorted((chart / "tests" / "released").iterdir()):
            yield Release(chart, place.name)


def record(chart: Path, place: Path) -> None:
    """Write down what a chart is now; what stood there is replaced."""
    shutil.rmtree(place, ignore_errors=True)
    (place / "lasting").mkdir(parents=True)
    shutil.copyfile(chart / "values.yaml", place / "values.yaml")
    shutil.copytree(chart / "ci", place / "ci")
    for scenario in rendering.scenarios(chart).values():
        text = yaml.safe_dump(lasting(scenario.objects), allow_unicode=True, width=100)
        (place / "lasting" / f"{scenario.name}.yaml").write_text(text)


def main() -> None:
    for chart in (rendering.CLUSTER, rendering.ADDONS):
        version = yaml.safe_load((chart / "Chart.yaml").read_text())["version"]
        record(chart, Release(chart, version).place)
        sys.stdout.write(f"{chart.name} {version} is on record\n")


if __name__ == "__main__":
    main()
