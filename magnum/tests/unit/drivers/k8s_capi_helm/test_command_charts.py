# SPDX-License-Identifier: Apache-2.0
"""``charts`` says which charts clusters have, and which of them have no copy."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any

import fixtures

from magnum.drivers.k8s_capi_helm import chart_store
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm.command_case import (
    CommandCase,
    OK,
    UNKNOWN,
    WARNING,
)
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import NAMESPACE, RELEASE


class TestCharts(CommandCase):
    def setUp(self) -> None:
        super().setUp()
        self.made()

    def rows(self, *argv: str, status: int = OK) -> list[dict[str, Any]]:
        printed = self.command("charts", "-f", "json", *argv)
        self.assertEqual(status, printed.status, printed.out + printed.error)
        return printed.rows()

    def record(self) -> Any:
        return self.ports.leases.read(NAMESPACE, RELEASE)

    def without_copies(self) -> None:
        """Somebody has deleted the copies in the namespaces."""
        for copy in self.kube.list(names.CONFIG_MAP, NAMESPACE, names.CHART_COPY_LABELS):
            self.kube.remove(names.CONFIG_MAP, NAMESPACE, copy["metadata"]["name"])

    def lose_store(self) -> None:
        """The directory of charts on this host is empty."""
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        store = chart_store.ChartStore(bundled_charts=directory, directory=directory / "charts")
        self.ports = dataclasses.replace(self.ports, charts=store)

    def test_a_chart_with_a_copy(self) -> None:
        digest = self.record().chart_digest
        [row] = self.rows("--long")
        self.assertEqual(digest, row["Digest"])
        self.assertRegex(row["Chart"], r"^openstack-cluster \d")
        self.assertEqual((1, 0, "yes", ""), tuple(row[key] for key in _COUNTS))
        [row] = self.rows()
        self.assertEqual(digest[:12], row["Digest"])

    def test_a_chart_that_only_this_host_has(self) -> None:
        self.without_copies()
        [row] = self.rows()
        self.assertEqual((1, 1, "yes", ""), tuple(row[key] for key in _COUNTS))

    def test_a_chart_that_only_its_source_has(self) -> None:
        self.without_copies()
        self.lose_store()
        [row] = self.rows(status=WARNING)
        self.assertEqual("no", row["Host"])
        self.assertIn("must stay at its source", row["Next"])
        self.assertIn("demo", row["Next"])

    def test_a_cluster_that_has_recorded_none(self) -> None:
        self.kube.remove(names.LEASE, NAMESPACE, names.lease(RELEASE))
        uuid = self.cluster().uuid
        self.ports.leases.open(NAMESPACE, RELEASE, cluster_uuid=uuid, project_id="p1")
        [row] = self.rows(status=WARNING)
        self.assertEqual(("unknown", ""), (row["Chart"], row["Digest"]))
        self.assertIn("A resize to the current size records the chart of: demo.", row["Next"])

    def test_clusters_that_are_gone_do_not_count(self) -> None:
        self.ports.leases.set_tombstone(NAMESPACE, RELEASE)
        self.assertEqual([], self.rows())

    def test_a_management_cluster_that_is_away(self) -> None:
        self.kube.unreachable = True
        printed = self.command("charts")
        self.assertEqual((UNKNOWN, ""), (printed.status, printed.out))


_COUNTS = ("Clusters", "Without copy", "Host", "Next")
