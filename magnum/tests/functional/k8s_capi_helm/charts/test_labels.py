# SPDX-License-Identifier: Apache-2.0
"""Every cluster label and field reaches the objects: the driver's values, what the charts render.

What each label, and each field of Magnum's objects, moves is written down in effects/labels.yaml
and effects/fields.yaml of the driver, which the documentation and the operator's command show.
UPDATE_GOLDEN=1 writes them anew.
"""

from __future__ import annotations

import functools
import os
import re
import unittest

import yaml

from magnum.drivers.k8s_capi_helm import labels
from magnum.drivers.k8s_capi_helm.commands.explain import effects
from magnum.drivers.k8s_capi_helm.magnum_objects.validation import fields
from magnum.drivers.k8s_capi_helm.model import Json
from magnum.tests.functional.k8s_capi_helm.charts import rendering
from magnum.tests.unit.drivers.k8s_capi_helm import test_helm_values as driver
from magnum.tests.unit.drivers.k8s_capi_helm import test_magnum_fields
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one

LABELS, FIELDS = (effects.DIRECTORY / f"{name}.yaml" for name in ("labels", "fields"))
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


def moved_by(pairs: dict[str, tuple[Json, Json]]) -> dict[str, dict[str, list[str]]]:
    """What differs between the values of each pair, and what they are rendered to."""
    rendering.texts([(rendering.CLUSTER, values) for pair in pairs.values() for values in pair])
    return {name: moved(*pair) for name, pair in pairs.items()}


@functools.cache
def of_labels() -> dict[str, dict[str, list[str]]]:
    """What every label moves."""
    known = [label for label in labels.REGISTRY if label.name not in driver.NO_VALUE]
    return moved_by({label.name: driver.pair(label) for label in known})


@functools.cache
def of_fields() -> dict[str, dict[str, dict[str, list[str]]]]:
    """What every field moves that a template, a cluster or a nodegroup has."""
    honoured = {
        (one.owner, one.name)
        for one in fields.FIELDS
        if one.effect is fields.Effect.HONOURED
        and (one.owner, one.name) not in test_magnum_fields.NO_VALUE
    }
    return {
        str(owner): moved_by(
            {
                name: test_magnum_fields.pair(owner, name)
                for place, name in sorted(honoured)
                if place is owner
            }
        )
        for owner in fields.FieldOwner
    }


class LabelTest(unittest.TestCase):
    maxDiff = None

    def test_every_label_moves_values_and_objects(self) -> None:
        for name, found in at_least_one(of_labels().items()):
            with self.subTest(label=name):
                self.assertTrue(found["values"] and found["objects"], found)

    def test_every_field_moves_values_and_objects(self) -> None:
        for owner, found in at_least_one(of_fields().items()):
            for name, one in at_least_one(found.items()):
                with self.subTest(owner=owner, field=name):
                    self.assertTrue(one["values"] and one["objects"], one)

    def test_what_they_move_is_on_record(self) -> None:
        for path, found in ((LABELS, of_labels()), (FIELDS, of_fields())):
            if os.environ.get("UPDATE_GOLDEN"):
                path.write_text(yaml.safe_dump(found, sort_keys=True, width=100))
            with self.subTest(path=path.name):
                self.assertEqual(found, yaml.safe_load(path.read_text()))

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
