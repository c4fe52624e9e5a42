# SPDX-License-Identifier: Apache-2.0
"""A values file of the reference chart gives an equivalent cluster, but for what is listed here.

Skipped unless REFERENCE_CHART names a checkout of azimuth-cloud/capi-helm-charts: its values.yaml
and the values of its own tests are read from there. What is made of each key stands in the charts'
tests/parity.yaml, which other tests check.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
import contextlib
from fnmatch import fnmatchcase
from pathlib import Path
import re
from typing import Any
import unittest

import yaml

from magnum.tests.functional.k8s_capi_helm.charts import (
    changes,
    reference,
    rendering,
    test_contract,
)
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object, Values
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one

#: Files of the reference's tests/ that are laid over one another.
COMBINATIONS = (("base",), ("base", "full"), ("base", "ovn"))
#: Keys of those files that the charts refuse, and why.
REFUSED: Mapping[str, str] = {
    "addons.etcDefrag": "a misspelt key, which does nothing there: addons.etcdDefrag is meant",
}
#: Text that stands in those files as a template, and what it means there.
TEMPLATES = {"ubuntu-jammy-kube-v{{ .Values.kubernetesVersion }}": "ubuntu-jammy-kube-v1.29.2"}
#: Where the objects differ, and why: kind and path, as a pattern.
DIFFERENCES: Mapping[str, str] = {
    "Cluster *.namespace": "a reference stays in its namespace anyway",
    "KubeadmControlPlane *.namespace": "likewise",
    "OpenStackMachineTemplate *.identityRef.*": "the cluster's is taken, so it replaces no machine",
    "OpenStackCluster *Rules.*.description": "rules of the chart say what they are for",
    "KubeadmControlPlane rolloutBefore.*": "certificates are renewed before they expire",
    "MachineDeployment *.labels.*": "labels that Cluster API keeps on the nodes",
    "*.files./etc/containerd/*": "no file keeps a directory; mirrors differ (registryMirrors)",
    "*.files.*.owner": "files are root's where nothing is said",
    "*.files.*.permissions": "likewise",
    "*.preKubeadmCommands": "commands are other ones, to the same end",
    "*.files./etc/kubernetes/admission/*": "only with admissionConfiguration",
    "*.apiServer.extraVolumes*": "likewise",
    "*.extraArgs.admission-control-config-file": "likewise",
}
#: Objects of our own making are compared; addons are data of their own chart.
KINDS = (
    *("Cluster", "OpenStackCluster", "KubeadmControlPlane", "MachineDeployment"),
    *("OpenStackMachineTemplate", "KubeadmConfigTemplate", "MachineHealthCheck"),
)
_HASH = re.compile(r"-[0-9a-f]{8}$")
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")


def flat(found: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """What is in an object by path; files by where they go, durations in seconds."""
    if path.endswith(".files"):
        found = {one["path"]: {k: v for k, v in one.items() if k != "path"} for one in found}
    if path.endswith("Commands"):
        found = str(found)
    if isinstance(found, dict) and found:
        for key, inner in found.items():
            yield from flat(inner, f"{path}.{key}")
    elif isinstance(found, list) and found:
        for number, inner in enumerate(found):
            yield from flat(inner, f"{path}.{number}")
    else:
        yield path.removeprefix("."), plain(path, found)


def plain(path: str, found: Any) -> Any:
    """A value without what does not matter."""
    if path.endswith("Ref.name"):
        return _HASH.sub("", found)
    match = _DURATION.fullmatch(found) if isinstance(found, str) and found else None
    if not match:
        return found
    hours, minutes, seconds = (int(number or 0) for number in match.groups())
    return (hours * 60 + minutes) * 60 + seconds


def cluster(objects: Sequence[Object]) -> dict[str, dict[str, Any]]:
    """Kind and name of each object of the cluster -> what is in its spec."""
    return {
        f"{found['kind']} {_HASH.sub('', found['metadata']['name'])}": dict(flat(found["spec"]))
        for found in objects
        if found["kind"] in KINDS
    }


def meant(values: Any) -> Any:
    """Values with the templates in their texts filled in."""
    if isinstance(values, dict):
        return {key: meant(inner) for key, inner in values.items()}
    if isinstance(values, list):
        return [meant(inner) for inner in values]
    return TEMPLATES.get(values, values) if isinstance(values, str) else values


def without(values: Values, path: str) -> Values:
    """Values without a key."""
    step, _, rest = path.partition(".")
    if step not in values:
        return values
    inner = without(values[step], rest) if rest else None
    return {k: inner if k == step else v for k, v in values.items() if rest or k != step}


class ReferenceTest(unittest.TestCase):
    maxDiff = None
    chart: Path

    def setUp(self) -> None:
        super().setUp()
        place = contextlib.ExitStack()
        self.addCleanup(place.close)
        try:
            self.chart = place.enter_context(reference.chart())
        except reference.NotGiven as error:
            self.skipTest(str(error))

    def test_every_key_of_its_values_is_taken_or_refused_with_a_reason(self) -> None:
        for ours, theirs in (
            (rendering.CLUSTER, self.chart),
            (rendering.ADDONS, self.chart.parent / "cluster-addons"),
        ):
            rows = test_contract.read(ours, "parity")
            values = yaml.safe_load((theirs / "values.yaml").read_text())
            for path in at_least_one(paths(values)):
                with self.subTest(chart=ours.name, key=path):
                    listed = any(path == key or path.startswith(f"{key}.") for key in rows)
                    self.assertTrue(listed or test_contract.known(ours, path), "not in the tables")

    def test_its_own_test_values_give_an_equivalent_cluster(self) -> None:
        used = set()
        # An older release does not have all of these files.
        combinations = [names for names in COMBINATIONS if all(map(self.has_values, names))]
        for names in at_least_one(combinations):
            with self.subTest(values=names):
                values: Values = {}
                for name in names:
                    text = self.values_file(name).read_text()
                    values = changes.filled(yaml.safe_load(text), values)
                theirs = cluster(rendering.render(self.chart, values))
                for key in REFUSED:
                    values = without(values, key)
                versions = {"core": "v1beta1", "infrastructure": "v1beta1"}
                ours = cluster(
                    rendering.render(rendering.CLUSTER, {**meant(values), "apiVersions": versions})
                )
                self.assertEqual(theirs.keys(), ours.keys())
                for name, one in theirs.items():
                    other = ours[name]
                    for path in one.keys() | other.keys():
                        if one.get(path) != other.get(path):
                            pattern = listed(name.partition(" ")[0], path)
                            used.add(pattern)
                            with self.subTest(found=name, path=path):
                                self.assertTrue(pattern, (one.get(path), other.get(path)))
        if len(combinations) == len(COMBINATIONS):
            self.assertEqual(set(DIFFERENCES), used, "these are no differences any more")

    def values_file(self, name: str) -> Path:
        """Where the reference has values for its own tests."""
        return self.chart / "tests" / f"values_{name}.yaml"

    def has_values(self, name: str) -> bool:
        return self.values_file(name).exists()

    def test_what_it_takes_and_we_refuse(self) -> None:
        for key, why in REFUSED.items():
            with self.subTest(key=key, why=why):
                values = rendering.scenarios(rendering.CLUSTER)["minimal"].values
                with self.assertRaisesRegex(rendering.HelmRefused, key.rpartition(".")[2]):
                    rendering.render(rendering.CLUSTER, rendering.changed(values, {key: {}}))


def listed(kind: str, path: str) -> str:
    """The listed difference that the objects of a kind have at a path, if they may."""
    return next((one for one in DIFFERENCES if fnmatchcase(f"{kind} {path}", one)), "")


def paths(values: Any, above: str = "") -> Iterator[str]:
    """The paths of values at which the reference has a value of its own."""
    if isinstance(values, dict) and values:
        for key, inner in values.items():
            yield from paths(inner, f"{above}.{key}" if above else key)
    else:
        yield above
