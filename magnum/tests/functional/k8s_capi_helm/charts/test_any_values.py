# SPDX-License-Identifier: Apache-2.0
"""Whatever the schemas take is rendered to objects that an API server takes, or refused in words.

So is what they do not take, and what stands in the parts that they pass through.

K8S_CAPI_HELM_EXAMPLES says how many values are tried of each chart.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
import unittest

import hypothesis
from hypothesis import strategies as st

from magnum.tests.functional.k8s_capi_helm.charts import (
    addon_operator,
    any_values,
    rendering,
    validity,
)
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object, Values
from magnum.tests.functional.k8s_capi_helm.charts.test_nulls import over
from magnum.tests.functional.k8s_capi_helm.charts.test_refusals import REFUSED_BY
from magnum.tests.functional.k8s_capi_helm.charts.test_schema import schema_of

EXAMPLES = int(os.environ.get("K8S_CAPI_HELM_EXAMPLES", "100"))
IDENTITY = addon_operator.credential({"auth": {"auth_url": "https://example.org"}})


def objects(chart: Path, base: Values, changes: list[Values]) -> list[Object]:
    """What is rendered; nothing if the values are refused as they should be.

    :raises rendering.HelmRefused: they are refused in another way.
    """
    for change in changes:
        base = over(base, change)
    try:
        return rendering.render(chart, base)
    except rendering.HelmRefused as error:
        if REFUSED_BY.search(str(error)):
            return []
        raise


settings = hypothesis.settings(
    max_examples=EXAMPLES,
    derandomize="K8S_CAPI_HELM_EXAMPLES" not in os.environ,
    deadline=None,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)


def without_nulls(value: Any) -> Any:
    """An object as an API server validates it, which leaves out nulls of fields first.

    https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#defaulting-and-nullable
    """
    if isinstance(value, dict):
        return {key: without_nulls(one) for key, one in value.items() if one is not None}
    return [without_nulls(one) for one in value] if isinstance(value, list) else value


class AnyValuesTest(unittest.TestCase):
    maxDiff = None

    def holds(self, chart: Path, scenario: str) -> None:
        base = rendering.scenarios(chart)[scenario].values
        changes = st.lists(any_values.one_key(schema_of(chart)), min_size=1, max_size=3)

        rendered: list[bool] = []

        @settings
        @hypothesis.given(changes)
        def check(given: list[Values]) -> None:
            found = objects(chart, base, given)
            rendered.append(bool(found))
            said = {
                fault
                for one in found
                for fault in validity.faults(without_nulls(one))
                # Which release the management cluster has is the operator's to say.
                if " serves no " not in fault
                # More than two subnets need the OpenStack provider's 0.15.
                and "'primarySubnet' was unexpected" not in fault
            }
            self.assertEqual(set(), said, json.dumps(given))
            for addon in addon_operator.addons(found):
                name = addon_operator.component(addon)
                addon_operator.installed(found, name, identity=IDENTITY)

        check()
        # Otherwise all of this would hold for charts that refuse everything.
        self.assertGreater(sum(rendered), len(rendered) / 4)

    def test_a_cluster(self) -> None:
        self.holds(rendering.CLUSTER, "standard")

    def test_a_cluster_with_everything(self) -> None:
        self.holds(rendering.CLUSTER, "every-key")

    def test_addons(self) -> None:
        self.holds(rendering.ADDONS, "air-gapped")


class WrongShapeTest(unittest.TestCase):
    """Nobody is shown where a template stumbled."""

    def holds(self, chart: Path, scenario: str) -> None:
        base = rendering.scenarios(chart)[scenario].values
        places = st.sampled_from(list(any_values.places(base)))

        @settings
        @hypothesis.given(places, st.sampled_from(any_values.SHAPES))
        def check(place: any_values.Place, shape: Any) -> None:
            try:
                objects(chart, any_values.written(base, {place: shape}), [])
            except rendering.HelmRefused as error:
                # Helm's own word for values of a dependency that are no map, before any schema.
                self.assertEqual(("addons",), place)
                self.assertIn("type mismatch on addons", str(error))

        check()

    def test_a_cluster(self) -> None:
        self.holds(rendering.CLUSTER, "every-key")

    def test_a_cluster_with_its_own_machine_setup(self) -> None:
        self.holds(rendering.CLUSTER, "own-machine-setup")

    def test_addons(self) -> None:
        self.holds(rendering.ADDONS, "custom-addons")
