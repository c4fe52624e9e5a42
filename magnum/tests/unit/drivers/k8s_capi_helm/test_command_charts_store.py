# SPDX-License-Identifier: Apache-2.0
"""``charts fetch`` fills the store of a host, and ``charts prune`` deletes what nothing uses."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import shutil
from typing import Any
import uuid

import fixtures
import yaml

from magnum.drivers.k8s_capi_helm import chart_store
from magnum.drivers.k8s_capi_helm.lease import codec
from magnum.drivers.k8s_capi_helm.model import names, Operation, Verb
from magnum.drivers.k8s_capi_helm.reconcile.process.clients import BUNDLED
from magnum.tests.unit.drivers.k8s_capi_helm.command_case import (
    CommandCase,
    CRITICAL,
    OK,
    UNKNOWN,
    WARNING,
)
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import NAMESPACE, RELEASE


class ChartCase(CommandCase):
    """A conductor with a store of its own, and a directory with versions of a chart."""

    def setUp(self) -> None:
        super().setUp()
        self.source = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.store = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "charts"
        choice = chart_store.ChartChoice(allowed_sources=[f"{self.source} other"])
        charts = chart_store.ChartStore(
            bundled_charts=BUNDLED,
            directory=self.store,
            choice=choice,
            copies=chart_store.ChartConfigMaps(self.kube),
        )
        self.ports = dataclasses.replace(self.ports, charts=charts)

    def chart(self, version: str) -> None:
        """The chart ``other`` at the source, in this version now."""
        directory = self.source / "other"
        shutil.rmtree(directory, ignore_errors=True)
        (directory / "templates").mkdir(parents=True)
        metadata = {"apiVersion": "v2", "name": "other", "version": version}
        (directory / "Chart.yaml").write_text(yaml.safe_dump(metadata), encoding="utf-8")

    def store_other(self, version: str, hours: float = 48) -> pathlib.Path:
        """A chart that is in the store for so many hours."""
        self.chart(version)
        chart = self.ports.charts.for_new_cluster(None, name="other", repository=str(self.source))
        stored_at = self.wall_clock().timestamp() - hours * 3600
        os.utime(chart.path, (stored_at, stored_at))
        return pathlib.Path(chart.path)

    def offer(self, name: str, **texts: str) -> Any:
        """A public template of this driver with labels."""
        fields = {"driver": names.DRIVER, "public": True, "labels": texts}
        return self._template(uuid=str(uuid.uuid4()), name=name, **fields)

    def rows(self, *argv: str, status: int = OK) -> list[dict[str, Any]]:
        printed = self.command("charts", argv[0], "-f", "json", *argv[1:])
        self.assertEqual(status, printed.status, printed.out + printed.error)
        return printed.rows()


class TestFetch(ChartCase):
    def test_the_chart_of_new_clusters(self) -> None:
        [row] = self.rows("fetch")
        self.assertRegex(row["Chart"], r"^openstack-cluster \d")
        self.assertTrue(pathlib.Path(row["Path"]).is_relative_to(self.store), row)
        self.assertEqual([row], self.rows("fetch"))

    def test_one_by_name(self) -> None:
        self.chart("2.0.0")
        [row] = self.rows("fetch", "2.0.0", "--name", "other", "--repository", str(self.source))
        self.assertEqual(("other 2.0.0", ""), (row["Chart"], row["Finding"]))
        stored = self.ports.charts.inventory.list_charts()
        self.assertEqual([row["Digest"]], [one.chart.digest for one in stored])

    def test_those_of_templates(self) -> None:
        self.chart("2.0.0")
        other = {"capi_helm_chart_name": "other", "capi_helm_chart_repo": str(self.source)}
        self.offer("a", **other)
        self.offer("b", **other, capi_helm_chart_version="9.9.9")
        rows = self.rows("fetch", "--all-templates", status=CRITICAL)
        self.assertEqual(["other 2.0.0", ""], [row["Chart"] for row in rows])
        self.assertIn("not 9.9.9", rows[1]["Finding"])
        [row] = self.rows("fetch", "--template", "a")
        self.assertEqual("template a", row["For"])

    def test_that_of_a_cluster(self) -> None:
        self.made()
        shutil.rmtree(self.store)
        [row] = self.rows("fetch", "--cluster", "demo")
        record = self.ports.leases.read(NAMESPACE, RELEASE)
        assert record is not None
        self.assertEqual(record.chart_digest, row["Digest"])
        self.assertTrue(self.ports.charts.has_stored(record.chart_digest))
        self.assertEqual([row], self.rows("fetch", "--all-clusters"))

    def test_one_that_is_not_allowed(self) -> None:
        [row] = self.rows("fetch", "--name", "foreign", status=CRITICAL)
        self.assertIn("a chart that this cloud does not allow", row["Finding"])

    def test_a_store_that_cannot_be_written(self) -> None:
        self.store.parent.mkdir(exist_ok=True)
        self.store.write_text("a file is in the way")
        [row] = self.rows("fetch", status=WARNING)
        self.assertIn("so the chart is gone when the command ends", row["Finding"])

    def test_two_ways_at_once(self) -> None:
        printed = self.command("charts", "fetch", "1.0.0", "--all-templates")
        self.assertEqual(UNKNOWN, printed.status)
        self.assertIn("Choose charts in one way", printed.error)


class TestPrune(ChartCase):
    def test_what_nothing_uses(self) -> None:
        path = self.store_other("1.0.0")
        [row] = self.rows("prune", status=WARNING)
        self.assertEqual(("", "delete with --yes"), (row["Used by"], row["Action"]))
        self.assertTrue(path.is_dir())
        [row] = self.rows("prune", "--yes")
        self.assertEqual("deleted", row["Action"])
        self.assertFalse((self.store / "other").exists())
        self.assertEqual([], self.rows("prune", "--yes"))

    def kept_for(self, user: str) -> None:
        """The only chart of ``other`` stays, for one user."""
        self.ports.charts.for_new_cluster(None)
        rows = [row for row in self.rows("prune", "--yes") if row["Chart"].startswith("other")]
        self.assertEqual([(user, "keep")], [(row["Used by"], row["Action"]) for row in rows])

    def test_what_a_template_names(self) -> None:
        self.store_other("1.0.0")
        self.offer("a", capi_helm_chart_name="other", capi_helm_chart_repo=str(self.source))
        self.kept_for("template a")
        self.chart("1.1.0")
        [row] = [row for row in self.rows("prune", status=WARNING) if not row["Used by"]]
        self.assertEqual("other 1.0.0", row["Chart"])

    def test_what_is_new(self) -> None:
        self.store_other("1.0.0", hours=2)
        self.kept_for("stored within 24 hours")
        [row] = self.rows("prune", "--hours", "1", status=WARNING)[-1:]
        self.assertEqual("", row["Used by"])

    def test_what_a_pending_upgrade_leads_to(self) -> None:
        self.made()
        self.store_other("1.0.0")
        template = self.offer(
            "a", capi_helm_chart_name="other", capi_helm_chart_repo=str(self.source)
        )
        operation = Operation(
            id="1", verb=Verb.UPGRADE, started_at=self.wall_clock(), template=template.uuid
        )
        self.ports.leases.add(NAMESPACE, RELEASE, operation)
        # It is the upgrade that needs the chart, and no template of this driver.
        template.driver = "k8s_heat"
        template.save()
        self.kept_for("upgrade of cluster demo")

    def test_what_a_cluster_has(self) -> None:
        self.made()
        inventory = self.ports.charts.inventory.list_charts()
        for stored in inventory:
            os.utime(stored.chart.path, (0, 0))
        [row] = [row for row in self.rows("prune", "--yes") if "cluster demo" in row["Used by"]]
        self.assertEqual("keep", row["Action"])

    def test_a_cluster_without_a_lease(self) -> None:
        self.made()
        self.kube.remove(names.LEASE, NAMESPACE, names.lease(RELEASE))
        for stored in self.ports.charts.inventory.list_charts():
            os.utime(stored.chart.path, (0, 0))
        [row] = [row for row in self.rows("prune", "--yes") if "cluster demo" in row["Used by"]]
        self.assertEqual("keep", row["Action"])

    def test_nothing_is_deleted_where_it_cannot_be_found_out(self) -> None:
        path = self.store_other("1.0.0")
        self.kube.unreachable = True
        printed = self.command("charts", "prune", "--yes")
        self.assertEqual((UNKNOWN, ""), (printed.status, printed.out))
        self.assertTrue(path.is_dir())

    def test_nothing_is_deleted_beside_a_lease_that_cannot_be_read(self) -> None:
        self.made()
        path = self.store_other("1.0.0")
        broken = {codec.OPERATIONS: "{"}
        self.kube.patch(
            names.LEASE, NAMESPACE, names.lease(RELEASE), {"metadata": {"annotations": broken}}
        )
        printed = self.command("charts", "prune", "--yes")
        self.assertEqual((UNKNOWN, ""), (printed.status, printed.out))
        self.assertIn("cannot be read, so it is not known which chart it has", printed.error)
        self.assertTrue(path.is_dir())
