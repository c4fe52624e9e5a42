# SPDX-License-Identifier: Apache-2.0
"""What ``adopt --dry-run --all`` says of a fleet is what adoption then does, object by object."""

from __future__ import annotations

from typing import Any

from magnum.tests.functional.k8s_capi_helm.adoption.fleet import (
    FleetCase,
    FleetCluster,
    is_kept_beside,
)
from magnum.tests.functional.k8s_capi_helm.adoption.fleet_charts import (
    CHANGED,
    GONE,
    LABEL,
    REFERENCE,
)
from magnum.tests.functional.k8s_capi_helm.adoption.objects import changes, versions
from magnum.tests.functional.k8s_capi_helm.adoption.setting import PREDECESSOR, SUCCESSOR

_GROUP = "-default-worker"
_OWNERSHIP = {
    "labels": {"app.kubernetes.io/managed-by": None},
    "annotations": {"meta.helm.sh/release-name": None},
}


class FleetTest(FleetCase):
    def test_the_prediction_is_what_happens(self) -> None:
        self.stop(PREDECESSOR)
        self.charts.change()
        self.disturb()
        before = self.objects()
        alone = self.predicted()
        self.check_states(alone)
        self.ask(SUCCESSOR, "write_count", count=3)
        rows = self.predicted()
        self.assertEqual(versions(before), versions(self.objects()), "something was written")

        for cluster in self.clusters:
            self.ask(SUCCESSOR, "resize", count=3, uuid=cluster.uuid)
        after = self.objects()
        self.show("adoption", changes(before, after))
        found = self.changed(before, after)
        expected: dict[Any, set[str]] = {}
        for cluster in self.clusters:
            predicted = self.predicted_changes(cluster, rows[cluster.uuid])
            self.check_request(cluster, alone[cluster.uuid], predicted)
            expected |= predicted
        self.maxDiff = None
        self.assertEqual(expected, found)
        # What is the same has not even been written again.
        same = {
            key for key in (before.keys() & after.keys()) - found.keys() if not is_kept_beside(key)
        }
        first, second = ({key: versions(one)[key] for key in same} for one in (before, after))
        self.assertEqual(first, second)
        self.check_adopted()

    def check_states(self, rows: dict[str, dict[str, Any]]) -> None:
        """Before anything is asked for: what each chart, and each disturbance, comes to."""
        for cluster in self.clusters:
            row = rows[cluster.uuid]
            state = "unchanged"
            if cluster.chart == GONE:
                state = "refused"
            elif cluster.chart in (LABEL, CHANGED) or cluster.project == "p4":
                state = "changes"
            elif cluster.chart.title == REFERENCE:
                # The autoscaler gets the settings of this driver's operator.
                state = "changes"
                self.assertEqual(
                    {("Deployment", f"{cluster.project}/{cluster.release}-autoscaler")},
                    set(self.predicted_changes(cluster, row)),
                )
            self.assertEqual(state, row["State"], row)
            says_notice = "heapster_enabled" in row["Notices"]
            expected = cluster.project == "p1" and state != "refused"
            self.assertEqual(expected, says_notice, row)
        row = rows[self.of(CHANGED, "p1").uuid]
        self.assertIn("failureDomain (replaces machines)", row["Changes"])
        self.assertIn("is created", row["Changes"])
        self.assertIn("is deleted", row["Changes"])

    def check_request(
        self, cluster: FleetCluster, alone: dict[str, Any], predicted: dict[Any, set[str]]
    ) -> None:
        """A request adds the number of machines, unless the object has it already."""
        expected = self.predicted_changes(cluster, alone)
        if cluster.chart != GONE and cluster.project != "p3":
            key = "MachineDeployment", f"{cluster.project}/{cluster.release}{_GROUP}"
            expected.setdefault(key, set()).add(".spec.replicas")
        self.assertEqual(expected, predicted, cluster)

    def check_adopted(self) -> None:
        rows = self.predicted()
        states = {one.chart.title: set[str]() for one in self.clusters}
        for cluster in self.clusters:
            states[cluster.chart.title].add(rows[cluster.uuid]["State"])
        others = {title: found for title, found in states.items() if title != GONE.title}
        self.assertEqual([{"adopted"}] * len(others), list(others.values()), states)
        # Magnum has overwritten the status after the driver.
        self.ask(SUCCESSOR, "look")
        reasons = {row["uuid"]: row["status_reason"] or "" for row in self.rows()}
        for cluster in self.clusters:
            is_refused = "is not available any more" in reasons[cluster.uuid]
            self.assertEqual(cluster.chart == GONE, is_refused, reasons[cluster.uuid])

    def disturb(self) -> None:
        """Change objects as users, controllers and accidents do, in each project otherwise."""
        for chart in self.charts.charts:
            second, third, fourth = (self.of(chart, project) for project in ("p2", "p3", "p4"))
            # Helm leaves both; the number is what is asked for later.
            self.patch(second, "KubeadmControlPlane", "-control-plane", {"spec": {"replicas": 3}})
            self.patch(second, "MachineDeployment", _GROUP, {"spec": {"replicas": 5}})
            self.patch(third, "MachineDeployment", _GROUP, {"spec": {"replicas": 3}})
            # It comes back.
            self.patch(fourth, "MachineDeployment", _GROUP, {"metadata": _OWNERSHIP})
        labels = {"metadata": {"labels": {"example.org/team": None}}}
        self.patch(self.of(LABEL, "p3"), "Cluster", "", labels)
        self.disturb_settings()

    def disturb_settings(self) -> None:
        """The same for objects of built-in kinds, where Helm looks at what is there."""
        second, third, fourth = (self.of(CHANGED, project) for project in ("p2", "p3", "p4"))
        self.patch(second, "ConfigMap", "-settings", {"data": {"level": "warn", "more": "1"}})
        variable = {"name": "agent", "env": [{"name": "X", "value": "1"}]}
        spec = {"replicas": 4, "template": {"spec": {"containers": [variable]}}}
        self.patch(second, "Deployment", "-agent", {"spec": spec})
        domain = {"spec": {"template": {"spec": {"failureDomain": "az-2"}}}}
        self.patch(third, "MachineDeployment", _GROUP, domain)
        self.patch(third, "ConfigMap", "-settings", {"data": {"level": "debug", "before": None}})
        for ending in ("-settings", "-old"):
            self.patch(fourth, "ConfigMap", ending, None)
