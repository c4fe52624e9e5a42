# SPDX-License-Identifier: Apache-2.0
"""Every cluster label reaches the objects: label, the driver's values, what the charts render.

What each label moves is written down in doc/source/user/label-effects.yaml, which the documentation
shows. UPDATE_GOLDEN=1 writes it anew.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path
import re
import unittest

import yaml

from magnum.drivers.k8s_capi_helm import labels
from magnum.drivers.k8s_capi_helm.model import Json
from magnum.tests.functional.k8s_capi_helm.charts import rendering
from magnum.tests.unit.drivers.k8s_capi_helm import test_helm_values as driver
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one

EFFECTS = Path(__file__).resolve().parents[5] / "doc" / "source" / "user" / "label-effects.yaml"
RELEASE = "demo"


def moved(before: Json, after: Json) -> dict[str, list[str]]:
    """Paths of the values and objects that are not the same."""
    changed = set(driver.leaves(before)) ^ set(driver.leaves(after))
    old, new = objects(before), objects(after)
    return {
        "values": sorted({path.lstrip(".") for path, _ in changed}),
        "objects": sorted({shown(*one) for one in {*old, *new} if old.get(one) != new.get(one)}),
    }


def objects(values: Json) -> dict[tuple[str, str], str]:
    """What a cluster with some values is rendered to."""
    return {
        rendering.identity(found): yaml.safe_dump(found)
        for found in rendering.render(rendering.CLUSTER, values, release=RELEASE)
    }


def shown(kind: str, name: str) -> str:
    """An object as a reader knows it: without the release's name and the hash of its text."""
    part = re.sub(r"-[0-9a-f]{8}$", "", name).removeprefix(RELEASE).strip("-")
    return f"{kind} {part.replace('default-worker', 'NODEGROUP')}".strip()


@functools.cache
def effects() -> dict[str, dict[str, list[str]]]:
    """What every label moves."""
    known = [label for label in labels.REGISTRY if label.name not in driver.NO_VALUE]
    pairs = {label.name: driver.pair(label) for label in known}
    rendering.texts([(rendering.CLUSTER, values) for pair in pairs.values() for values in pair])
    return {name: moved(*pair) for name, pair in pairs.items()}


class LabelTest(unittest.TestCase):
    def test_every_label_moves_values_and_objects(self) -> None:
        for name, found in at_least_one(effects().items()):
            with self.subTest(label=name):
                self.assertTrue(found["values"] and found["objects"], found)

    def test_the_documentation_has_what_they_move(self) -> None:
        if os.environ.get("UPDATE_GOLDEN"):
            EFFECTS.write_text(yaml.safe_dump(effects(), sort_keys=True, width=100))
        self.assertEqual(effects(), yaml.safe_load(EFFECTS.read_text()))

    def test_the_version_of_the_label_is_the_machines(self) -> None:
        values = {**driver.rendered(), "kubernetesVersion": "1.34.9"}
        found = rendering.only(rendering.render(rendering.CLUSTER, values), "KubeadmControlPlane")
        self.assertEqual("v1.34.9", found["spec"]["version"])

    def test_flags_are_not_taken_apart(self) -> None:
        texts = {"kubelet_options": "--x=a=1,b=[::1]:80/größe", "api_server_cert_sans": "::1"}
        found = rendering.render(rendering.CLUSTER, driver.rendered(texts))
        spec = rendering.only(found, "KubeadmControlPlane")["spec"]["kubeadmConfigSpec"]
        node = spec["joinConfiguration"]["nodeRegistration"]["kubeletExtraArgs"]
        self.assertIn({"name": "x", "value": "a=1,b=[::1]:80/größe"}, node)
        self.assertIn("::1", spec["clusterConfiguration"]["apiServer"]["certSANs"])
