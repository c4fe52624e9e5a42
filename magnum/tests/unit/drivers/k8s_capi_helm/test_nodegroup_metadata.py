# SPDX-License-Identifier: Apache-2.0
"""Labels, taints and bounds of nodegroups, when they are made and when they are changed."""

from __future__ import annotations

import dataclasses
from typing import Any

from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase, NAMESPACE, RELEASE

LABELS = {"example.org/disk": "fast", "team": ""}
TAINTS = [
    {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
    {"key": "x", "effect": "NoExecute"},
]


class TestDetails(DriverCase):
    def entry(self, name: str = "more") -> dict[str, Any]:
        """A nodegroup's entry in the live values."""
        groups = self.helm.live(NAMESPACE, RELEASE).values["nodeGroups"]
        return next((one for one in groups if one["name"] == name), {})

    def cluster_annotated(self, text: str = "a=b") -> None:
        """As magnum-capi-helm lets a cluster have a label that its chart does not follow."""
        cluster = self.cluster()
        cluster.labels = {"node_annotations": text} if text else {}
        cluster.save()

    def foreign(self) -> None:
        """The cluster was made with another family's chart."""
        live = self.helm.releases[NAMESPACE, RELEASE]
        self.helm.releases[NAMESPACE, RELEASE] = dataclasses.replace(live, chart_family="")

    def test_a_new_group(self) -> None:
        self.made()
        self.add_group("more", node_labels=LABELS, node_taints=TAINTS)
        entry = self.entry()
        self.assertEqual((LABELS, TAINTS), (entry["nodeLabels"], entry["nodeTaints"]))

    def test_an_empty_value_is_no_value(self) -> None:
        self.made()
        self.add_group("more", node_taints=[{"key": "x", "value": "", "effect": "NoExecute"}])
        self.assertEqual([{"key": "x", "effect": "NoExecute"}], self.entry()["nodeTaints"])

    def test_an_update_changes_this_group_alone(self) -> None:
        self.made()
        self.add_group("more")
        self.capi_converges()
        self.status_task(2)
        before = self.entry()
        self.change_group(node_labels=LABELS, node_taints=TAINTS)
        entry = self.entry("default-worker")
        self.assertEqual((LABELS, TAINTS), (entry["nodeLabels"], entry["nodeTaints"]))
        self.assertEqual(before, self.entry())
        self.assertEqual("UPDATE_IN_PROGRESS", self.cluster().status)
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.assertEqual(LABELS, self.group().node_labels)

    def test_what_is_taken_away_goes(self) -> None:
        self.made()
        before = self.entry("default-worker")
        self.change_group(node_labels=LABELS, node_taints=TAINTS)
        self.capi_converges()
        self.status_task(2)
        for labels, taints in (({}, []), (None, None)):
            self.change_group(node_labels=labels, node_taints=taints)
            self.assertEqual(before, self.entry("default-worker"))
            self.capi_converges()
            self.status_task(2)
            self.change_group(node_labels=LABELS, node_taints=TAINTS)
            self.capi_converges()
            self.status_task(2)

    def test_what_nobody_asked_magnum_for_stays(self) -> None:
        self.made()
        live = self.helm.releases[NAMESPACE, RELEASE]
        live.values["nodeGroups"][0]["nodeLabels"] = {"of": "the operator"}
        self.resize(2)
        self.assertEqual({"of": "the operator"}, self.entry("default-worker")["nodeLabels"])

    def test_an_update_in_an_outage_is_carried_out_later(self) -> None:
        self.made()
        self.kube.unreachable = True
        self.change_group(node_labels=LABELS)
        self.assertEqual(LABELS, self.group().node_labels)
        self.kube.unreachable = False
        self.status_task()
        self.assertEqual(LABELS, self.entry("default-worker")["nodeLabels"])

    def test_nothing_is_taken_away_in_an_outage(self) -> None:
        self.made()
        self.change_group(node_labels=LABELS)
        self.capi_converges()
        self.status_task(2)
        self.kube.unreachable = True
        self.change_group(node_labels={}, max_node_count=7)
        self.assertIn("management cluster", self.group().status_reason)
        self.assertEqual(LABELS, self.group().node_labels)
        self.kube.unreachable = False
        self.health_task()
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.assertEqual(LABELS, self.entry("default-worker")["nodeLabels"])

    def test_new_bounds_need_no_helm(self) -> None:
        self.made()
        runs = len(self.helm.runs)
        self.change_group(max_node_count=7)
        self.status_task(2)
        self.assertEqual((7, runs), (self.group().max_node_count, len(self.helm.runs)))
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    def test_bounds_of_an_autoscaled_group(self) -> None:
        labels = {"auto_scaling_enabled": "true", "max_node_count": "4"}
        self.made(labels=labels)
        self.change_group(min_node_count=2, max_node_count=9)
        entry = self.entry("default-worker")
        self.assertEqual((2, 9), (entry["machineCountMin"], entry["machineCountMax"]))

    def test_what_no_node_could_have_is_refused_and_dropped(self) -> None:
        self.made()
        for fields, words in (
            (
                {"node_labels": {"a b": "c"}},
                "node_labels of nodegroup 'default-worker' is invalid. The entry is 'a b=c'",
            ),
            ({"node_labels": {"a": "c" * 64}}, "node_labels"),
            ({"node_taints": [{"key": "A/b", "effect": "NoSchedule"}]}, "'A/b='"),
        ):
            self.change_group(**fields)
            group, cluster = self.group(), self.cluster()
            self.assertEqual("UPDATE_FAILED", group.status)
            self.assertIn(words, group.status_reason)
            self.assertFalse(group.node_labels or group.node_taints)
            self.status_task(2)
            self.assertTrue(cluster.status.startswith("UPDATE_"))
            self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    def test_a_foreign_chart_cannot_set_taints(self) -> None:
        self.made()
        self.foreign()
        self.add_group("more", node_taints=TAINTS)
        self.assertEqual("CREATE_FAILED", self.group("more").status)
        self.assertIn("The chart of this cluster", self.group("more").status_reason)
        self.assertEqual({}, self.entry())
        self.cluster_annotated()
        self.add_group("annotated", labels=None)
        self.assertEqual("CREATE_FAILED", self.group("annotated").status)
        self.assertIn("node_annotations", self.group("annotated").status_reason)
        self.assertNotIn("internal", self.group("annotated").status_reason)
        self.cluster_annotated("")
        self.add_group("labels", node_labels=LABELS)
        self.assertEqual(LABELS, self.entry("labels")["nodeLabels"])
