# SPDX-License-Identifier: Apache-2.0
"""Law: nothing that a tenant can name reaches what runs on the management cluster.

Here by the values, for every label and field alone; what the charts make of them is looked at in
the charts' tests.
"""

from __future__ import annotations

import functools
import itertools
import json
import types

import testtools

from magnum.drivers.k8s_capi_helm import labels
from magnum.drivers.k8s_capi_helm.magnum_objects.validation.fields import FieldOwner
from magnum.drivers.k8s_capi_helm.model import Chart, Json, names
from magnum.drivers.k8s_capi_helm.reconcile.release import autoscaler_deployment
from magnum.drivers.k8s_capi_helm.values.tree import reserved_keys
from magnum.tests.unit.drivers.k8s_capi_helm import tenant_inputs
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one

CONF = types.SimpleNamespace(
    capi_helm=types.SimpleNamespace(
        autoscaler_image="mirror.example.org/cluster-autoscaler",
        autoscaler_image_tags=["v1.35.1"],
    )
)
#: Of an operator who leaves it to the chart.
USUAL = types.SimpleNamespace(
    capi_helm=types.SimpleNamespace(autoscaler_image="", autoscaler_image_tags=[])
)
CHARTS = (
    Chart(names.CLUSTER_CHART, "1.3.0", "/nowhere", names.CHART_FAMILY),
    Chart(names.CLUSTER_CHART, "1.2.0", "/nowhere", names.CHART_FAMILY),
    Chart(names.CLUSTER_CHART, "0.27.0", "/nowhere"),
)
#: Keys that decide about workloads, accounts, roles and labels of objects that are no machines.
OPERATORS = ("autoscaler", "projectPrefix", "apiVersions", "clusterApi")
#: Honoured fields that no value tells of.
WITHOUT_VALUES = {
    (FieldOwner.TEMPLATE, "image_id"): "the question to Glance",
    (FieldOwner.TEMPLATE, "cluster_distro"): "compared with the image's",
    (FieldOwner.TEMPLATE, "labels"): "a cluster has a copy of them",
    (FieldOwner.CLUSTER, "create_timeout"): "a deadline of the driver's",
    (FieldOwner.NODE_GROUP, "image_id"): "the question to Glance",
}


@functools.cache
def words() -> tuple[tenant_inputs.Word, ...]:
    return (*tenant_inputs.of_labels(), *tenant_inputs.of_fields())


def scales(values: Json) -> bool:
    return any(one.get("autoscale") for one in values["nodeGroups"])


class TestValues(testtools.TestCase):
    def test_the_driver_sends_no_key_of_the_operators_for_anybody(self) -> None:
        for word in at_least_one(words()):
            self.assertEqual([], [key for key in OPERATORS if key in word.values], word.name)

    def test_the_autoscaler_is_the_same_whatever_is_written(self) -> None:
        moved = []
        for chart in CHARTS:
            for word in words():
                now = autoscaler_deployment.with_operators_settings(word.values, chart, CONF).get(
                    "autoscaler"
                )
                was = autoscaler_deployment.with_operators_settings(word.base, chart, CONF).get(
                    "autoscaler"
                )
                if now != was and scales(word.values) == scales(word.base):
                    moved.append((chart.version, word.name, word.text))
        self.assertEqual([], moved)

    def test_what_is_live_already_does_not_matter_either(self) -> None:
        """As a driver of before, or a chart's user, may have left it there."""
        evil = {"repository": "evil.example.org/x", "tag": "v6.6.6", "pullPolicy": "Always"}
        for chart, conf in itertools.product(CHARTS, (CONF, USUAL)):
            values = {**words()[0].base, "autoscaler": {"image": evil, "tolerations": [{}]}}
            found = autoscaler_deployment.with_operators_settings(values, chart, conf)
            for text in ("evil", "6.6.6"):
                self.assertNotIn(text, json.dumps(found["autoscaler"]))
            self.assertEqual([{}], found["autoscaler"]["tolerations"])
            self.assertEqual(
                found, autoscaler_deployment.with_operators_settings(found, chart, conf)
            )

    def test_a_good_share_is_accepted(self) -> None:
        """Or the law would hold because everything is refused."""
        taken = [word for word in words() if word.is_hostile]
        reached = {word.name for word in taken}
        some = {label.name for label in labels.REGISTRY} & reached
        self.assertGreater(len(some) / len(labels.REGISTRY), 0.8, sorted(reached))
        self.assertGreater(len(taken) / tenant_inputs.tried(), 0.15)
        self.assertIn("container_infra_prefix", reached)

    def test_every_label_and_field_is_among_them(self) -> None:
        known = {one.name for one in labels.REGISTRY}
        self.assertEqual(set(), known - {one.name for one in words()})
        self.assertEqual(set(WITHOUT_VALUES), tenant_inputs.fields_without_a_word())

    def test_no_overlay_key_of_the_image_can_be_named(self) -> None:
        """A label names an overlay, not what is in it; the image stands in magnum.conf."""
        for key in ("repository", "tag"):
            self.assertTrue(reserved_keys.is_owned(("autoscaler", "image", key)))
