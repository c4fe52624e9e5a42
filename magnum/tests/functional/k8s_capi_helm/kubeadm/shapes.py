# SPDX-License-Identifier: Apache-2.0
"""The shapes of clusters that are set up: each scenario of the chart, and each label.

Of labels, those count that change how machines are set up; the example of each stands in an
otherwise plain cluster.
"""

from __future__ import annotations

from typing import Any

import yaml

from magnum.drivers.k8s_capi_helm import labels
from magnum.tests.functional.k8s_capi_helm.charts import rendering, test_labels
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object, Values
from magnum.tests.unit.drivers.k8s_capi_helm import test_helm_values as driver
from sandbox.management.kubernetes_releases import KubernetesRelease


def rendered(release: KubernetesRelease) -> dict[str, list[Object]]:
    """The objects of every shape with a version of Kubernetes, by name."""
    scenarios = rendering.scenarios(rendering.CLUSTER)
    wanted = {name: scenario.values for name, scenario in scenarios.items()}
    wanted |= {f"label {label.name}": driver.pair(label)[1] for label in of_machines()}
    every = [(rendering.CLUSTER, with_version(one, release.version)) for one in wanted.values()]
    texts = rendering.texts(every)
    return {
        name: rendering.documents(text.result()) for name, text in zip(wanted, texts, strict=True)
    }


def of_machines() -> list[labels.Label]:
    """The labels that change how machines are set up, by the documentation of their effects."""
    effects = yaml.safe_load(test_labels.LABELS.read_text())
    names = {
        name
        for name, moved in effects.items()
        if any(one.startswith("Kubeadm") for one in moved["objects"])
    }
    return [label for label in labels.REGISTRY if label.name in names]


def with_version(values: Values, version: str) -> Values:
    """Values of a cluster without addons, all of whose machines have one version."""
    addons = {**(values.get("addons") or {}), "enabled": False}
    given = {**values, "kubernetesVersion": version, "addons": addons}
    found: Values = _replaced(given, version)
    return found


def _replaced(found: Any, version: str) -> Any:
    if isinstance(found, dict):
        return {
            key: version if key == "kubernetesVersion" else _replaced(value, version)
            for key, value in found.items()
        }
    return [_replaced(one, version) for one in found] if isinstance(found, list) else found
