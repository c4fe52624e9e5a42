# SPDX-License-Identifier: Apache-2.0
"""The command with two management clusters: each answer is about the right one, and says which."""

from __future__ import annotations

import dataclasses
import json
import os
from typing import Any

from magnum.drivers.k8s_capi_helm.commands.check import check
from magnum.drivers.k8s_capi_helm.commands.clusters.list_clusters import COLUMNS
from magnum.drivers.k8s_capi_helm.model import names
from magnum.drivers.k8s_capi_helm.model.management_cluster import release_of
from magnum.tests.unit.drivers.k8s_capi_helm.command_case import (
    CommandCase,
    CRITICAL,
    OK,
    UNKNOWN,
    WARNING,
)
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import NAMESPACE, RELEASE
from magnum.tests.unit.drivers.k8s_capi_helm.two_management_clusters import (
    GROUP,
    OTHER,
    TwoManagementClusters,
)


class TwoCase(TwoManagementClusters, CommandCase):
    """One cluster on each; that of the other management cluster is called ``there``."""

    def setUp(self) -> None:
        super().setUp()
        self.other_kube.kubeconfig_path = str(self.kubeconfig)

    def made_on_each(self) -> None:
        self.made_there()
        cluster = self.cluster()
        cluster.name = "there"
        cluster.save()
        self.made(uuid="99999999-8888-4777-8666-111111111111")
        for kube in (self.kube, self.other_kube):
            kube.calls.clear()

    def rows(self, *argv: str, status: int) -> list[dict[str, Any]]:
        printed = self.command(*argv, "-f", "json")
        self.assertEqual(status, printed.status, printed.error)
        return printed.rows()


class TestList(TwoCase):
    def test_each_row_says_which(self) -> None:
        self.made_on_each()
        rows = self.rows("list", status=OK)
        shown = {row["Name"]: row["Management cluster"] for row in rows}
        self.assertEqual({"demo": "default", "there": OTHER}, shown)
        self.assertTrue(all(row["Chart"] for row in rows))

    def test_without_the_option_there_is_no_column(self) -> None:
        self.made()
        self.config(group="capi_helm", management_clusters=[])
        [row] = self.rows("list", status=OK)
        self.assertEqual(list(COLUMNS), list(row))

    def test_one_is_away(self) -> None:
        """The clusters of the other one are complete, and as many requests are made for them."""
        self.made_on_each()
        self.rows("list", status=OK)
        calls = len(self.kube.calls)
        self.other_kube.unreachable = True
        rows = {row["Name"]: row for row in self.rows("list", status=UNKNOWN)}
        self.assertTrue(rows["demo"]["Chart"])
        self.assertEqual("", rows["there"]["Chart"])
        self.assertEqual(calls, len(self.kube.calls) - calls)


class TestCheck(TwoCase):
    def findings(self, *names_of_checks: str, status: int) -> list[str]:
        return [row["Finding"] for row in self.rows("check", *names_of_checks, status=status)]

    def test_each_has_its_results(self) -> None:
        self.made_on_each()
        found = self.findings("management-cluster", "permissions", "kubeconfig", status=OK)
        for name in ("default", OTHER):
            own = [text for text in found if text.startswith(f"Management cluster {name}: ")]
            self.assertGreater(len(own), 3)
            self.assertIn(f"Management cluster {name} has 1 clusters, takes new ones.", found)

    def test_one_is_away(self) -> None:
        self.made_on_each()
        self.other_kube.unreachable = True
        checks = ("management-cluster", "permissions", "cluster-api", "clocks")
        faults = [
            row
            for row in self.rows("check", *checks, status=CRITICAL)
            if row["Status"] == "CRITICAL"
        ]
        [fault] = [row["Finding"] for row in faults if OTHER in row["Finding"]]
        self.assertIn("does not answer", fault)
        self.assertIn("management-cluster", {row["Check"] for row in faults})

    def test_clusters_on_one_that_is_not_configured(self) -> None:
        self.made_on_each()
        self.config(group="capi_helm", management_clusters=[])
        del self.peers[OTHER]
        found = self.findings("management-cluster", status=CRITICAL)
        self.assertIn(f"1 clusters are on management cluster {OTHER}", found[0])

    def test_all_are_draining(self) -> None:
        self.config(group="capi_helm", management_clusters=[OTHER])
        self.config(group=GROUP, draining=True)
        found = self.findings("management-cluster", status=CRITICAL)
        self.assertIn("No cluster can be created", found[0])

    def test_every_check_runs_for_each(self) -> None:
        names_of_checks = {
            row["Check"]
            for row in self.rows("check", status=WARNING)
            if row["Finding"].startswith(f"Management cluster {OTHER}: ")
        }
        later = check.CHECKS[check.CHECKS.index("kubeconfig") :]
        self.assertEqual(set(later), names_of_checks)


class TestOneCluster(TwoCase):
    def test_only_its_own_management_cluster_is_asked(self) -> None:
        self.made_on_each()
        for argv in (
            ("why", "there"),
            ("explain", "there"),
            ("credentials", "there"),
            ("certificates", "there"),
            ("pause", "there"),
            ("resume", "there"),
            ("diff", "there"),
            ("reconcile", "there"),
        ):
            self.other_kube.calls.clear()
            printed = self.command(*argv, "-f", "json")
            self.assertNotEqual(UNKNOWN, printed.status, (argv, printed.error))
            self.assertTrue(self.other_kube.calls or self.other_helm.reads, argv)
            self.assertEqual([], self.kube.calls, argv)

    def test_one_that_is_away_hides_no_other(self) -> None:
        self.made_on_each()
        self.other_kube.unreachable = True
        for command in ("certificates", "credentials"):
            rows = {row["Cluster"] for row in self.rows(command, status=UNKNOWN)}
            self.assertEqual({"demo", "there"}, rows, command)

    def test_it_is_found_by_its_release(self) -> None:
        self.made_there()
        printed = self.command("why", RELEASE)
        self.assertEqual(OK, printed.status, printed.error)

    def test_a_pause_is_written_there(self) -> None:
        self.made_on_each()
        self.command("pause", "there")
        paused = [
            kube.get(names.CLUSTER, NAMESPACE, RELEASE)["spec"].get("paused", False)
            for kube in (self.kube, self.other_kube)
        ]
        self.assertEqual([False, True], paused)

    def test_charts_of_all(self) -> None:
        self.made_on_each()
        [row] = json.loads(self.command("charts", "-f", "json").out)
        self.assertEqual(2, row["Clusters"])


class TestOrphans(TwoCase):
    """A server is looked for on the management cluster of its own cluster."""

    def setUp(self) -> None:
        super().setUp()
        self.made_there()
        release = release_of(self.cluster().stack_id)
        server = self.cloud.openstack.leave("servers", name=f"{release}-worker-bcdfg-hjklm")
        labels = {names.LABEL_CLUSTER_NAME: release}
        metadata = {"name": server.name, "namespace": NAMESPACE, "labels": labels}
        obj = {"metadata": metadata, "status": {"instanceID": server.id}}
        self.other_kube.put(names.OPENSTACK_SERVER, obj)

    def test_a_server_with_a_machine_is_none(self) -> None:
        self.assertEqual([], self.rows("orphans", status=OK))

    def test_a_cluster_that_magnum_does_not_have(self) -> None:
        other = {"metadata": {"name": "other-abcdefghijkl", "namespace": NAMESPACE}}
        self.other_kube.put(names.CLUSTER, other)
        [row] = self.rows("orphans", status=WARNING)
        self.assertEqual(f"Cluster {NAMESPACE}/other-abcdefghijkl", row["Resource"])
        self.assertEqual(f"Magnum has no such cluster (management cluster {OTHER})", row["Finding"])

    def test_one_is_away(self) -> None:
        self.other_kube.unreachable = True
        printed = self.command("orphans")
        self.assertEqual((UNKNOWN, ""), (printed.status, printed.out))


class TestCharts(TwoCase):
    """A chart is used by the clusters of every management cluster."""

    def setUp(self) -> None:
        super().setUp()
        # One directory on one host.
        self.peers[OTHER] = dataclasses.replace(self.other, charts=self.ports.charts)
        self.other = self.peers[OTHER]
        self.made_there()
        for stored in self.ports.charts.inventory.list_charts():
            os.utime(stored.chart.path, (0, 0))

    def test_prune_keeps_it(self) -> None:
        rows = self.rows("charts", "prune", "--yes", status=OK)
        self.assertEqual(["keep"], [row["Action"] for row in rows])
        self.assertIn("cluster demo", rows[0]["Used by"])

    def test_prune_keeps_it_without_a_lease(self) -> None:
        release = release_of(self.cluster().stack_id)
        self.other_kube.remove(names.LEASE, NAMESPACE, names.lease(release))
        rows = self.rows("charts", "prune", "--yes", status=OK)
        self.assertIn("cluster demo", rows[0]["Used by"])

    def test_prune_deletes_nothing_while_one_is_away(self) -> None:
        self.other_kube.unreachable = True
        printed = self.command("charts", "prune", "--yes")
        self.assertEqual((UNKNOWN, ""), (printed.status, printed.out))

    def test_fetch_of_a_cluster(self) -> None:
        [row] = self.rows("charts", "fetch", "--cluster", "demo", status=OK)
        self.assertEqual("cluster demo", row["For"])
