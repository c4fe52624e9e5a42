# SPDX-License-Identifier: Apache-2.0
"""Every cluster label reaches the objects: label, the driver's values, what the charts render."""

from __future__ import annotations

from typing import Any
import unittest

import yaml

from magnum.drivers.k8s_capi_helm import labels
from magnum.tests.functional.k8s_capi_helm.charts import rendering
from magnum.tests.unit.drivers.k8s_capi_helm import test_helm_values as driver


class LabelTest(unittest.TestCase):
    def objects(self, texts: dict[str, str], fields: dict[str, Any]) -> dict[tuple[str, str], str]:
        """What a cluster with some labels is rendered to."""
        values = driver.rendered(texts, **fields)
        return {
            rendering.identity(found): yaml.safe_dump(found)
            for found in rendering.render(rendering.CLUSTER, values)
        }

    def test_every_label_moves_the_objects(self) -> None:
        for label in labels.REGISTRY:
            if label.name in driver.NO_VALUE or label.name == "kube_tag":
                continue
            with self.subTest(label=label.name):
                beside = driver.COMPANIONS.get(label.name, {})
                fields = driver.FIELDS.get(label.name, {})
                self.assertNotEqual(
                    self.objects(beside, fields),
                    self.objects({**beside, label.name: label.example}, fields),
                )

    def test_the_version_of_the_label_is_the_machines(self) -> None:
        values = {**driver.rendered(), "kubernetesVersion": "1.34.9"}
        objects = rendering.render(rendering.CLUSTER, values)
        found = rendering.only(objects, "KubeadmControlPlane")
        self.assertEqual("v1.34.9", found["spec"]["version"])
