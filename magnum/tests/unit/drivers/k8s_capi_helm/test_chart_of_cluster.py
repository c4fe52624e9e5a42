# SPDX-License-Identifier: Apache-2.0
"""The chart of a cluster through its life: whoever works on it, it is the same one."""

from __future__ import annotations

import dataclasses
import pathlib
import shutil
from typing import Any

import fixtures

from magnum.drivers.k8s_capi_helm import chart_store, errors
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import NAMESPACE, RELEASE
from magnum.tests.unit.drivers.k8s_capi_helm.suites.helm import write_chart
from magnum.tests.unit.drivers.k8s_capi_helm.test_upgrade_cluster import UpgradeCase

URL = "https://charts.example.org"


class ChartCase(UpgradeCase):
    """Charts in directories of the test, one small one bundled."""

    def setUp(self) -> None:
        super().setUp()
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.bundled = self.directory / "bundled"
        self.first = write_chart(self.bundled / names.CLUSTER_CHART, "1.1.0")
        write_chart(self.directory / "foreign" / "mine", "5.0.0", "mine")
        text = (self.directory / "foreign" / "mine" / "Chart.yaml").read_text()
        foreign = text.replace(names.CHART_FAMILY, "of-others")
        (self.directory / "foreign" / "mine" / "Chart.yaml").write_text(foreign)
        self.conductor("first")
        self.applied: list[str] = []
        apply = self.helm.apply

        def remembered(namespace: str, release: str, chart: Any, *more: Any, **others: Any) -> Any:
            self.applied.append(f"{chart.name} {chart.version} {chart.digest}")
            return apply(namespace, release, chart, *more, **others)

        self.helm.apply = remembered  # type: ignore[method-assign]

    def conductor(self, place: str, *allowed: str) -> None:
        """Another conductor takes over: its store is a directory of its own."""
        charts = chart_store.ChartStore(
            bundled_charts=self.bundled,
            directory=self.directory / place,
            choice=chart_store.ChartChoice(allowed_sources=allowed),
            copies=chart_store.ChartConfigMaps(self.kube),  # type: ignore[arg-type]
        )
        self.ports = dataclasses.replace(self.ports, charts=charts)

    def driver_is_upgraded(self) -> None:
        shutil.rmtree(self.bundled)
        write_chart(self.bundled / names.CLUSTER_CHART, "2.0.0")

    def chart(self) -> tuple[str, str]:
        live = self.helm.live(NAMESPACE, RELEASE)
        return live.chart_name, live.chart_version

    def foreign_template(self) -> Any:
        labels = {
            "capi_helm_chart_name": "mine",
            "capi_helm_chart_repo": str(self.directory / "foreign"),
        }
        return self.template_of("ubuntu-kube-1.35", 3, labels=labels)


class TestLife(ChartCase):
    def test_an_upgrade_that_is_interrupted_goes_on_with_its_own_chart(self) -> None:
        def die(live: Any) -> None:
            self.helm.midway = None
            raise errors.HelmInterrupted("helm was killed")

        self.made()
        self.driver_is_upgraded()
        self.conductor("second")
        self.helm.midway = die
        self.assertEqual("", self.upgrade(self.next))
        self.assertEqual("pending-upgrade", self.helm.live(NAMESPACE, RELEASE).status)
        for _ in range(3):
            self.status_task(2)
            self.capi_converges()
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.assertEqual(["1.1.0", "2.0.0"], sorted({one.split()[1] for one in self.applied}))
        self.assertEqual(1, sum(" 1.1.0 " in one for one in self.applied), self.applied)

    def test_a_newer_driver_on_a_conductor_with_an_empty_store(self) -> None:
        self.made()
        self.driver_is_upgraded()
        self.conductor("second")
        self.resize(2)
        self.add_group("more")
        self.assertEqual(1, len(set(self.applied)), self.applied)
        self.assertEqual(3, len(self.applied))
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    def test_labels_of_today_do_not_matter_to_a_resize(self) -> None:
        cluster = self.made()
        cluster.labels = {"capi_helm_chart_version": "2.0.0", "capi_helm_chart_name": "mine"}
        cluster.save()
        self.config(group="capi_helm", default_helm_chart_version="3.0.0")
        self.resize(2)
        self.assertEqual(("openstack-cluster", "1.1.0"), self.chart())
        self.assertEqual(1, len(set(self.applied)))

    def test_an_upgrade_takes_the_templates_chart(self) -> None:
        self.made()
        self.driver_is_upgraded()
        self.conductor("second")
        self.assertEqual("", self.upgrade(self.next))
        self.assertEqual(("openstack-cluster", "2.0.0"), self.chart())
        self.capi_converges()
        self.status_task(4)
        self.capi_converges()
        self.status_task(4)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.conductor("third")
        self.resize(2)
        self.assertEqual(("openstack-cluster", "2.0.0"), self.chart())

    def test_nothing_is_left_when_the_cluster_is_gone(self) -> None:
        self.made()
        self.assertIn(f"ConfigMap/{names.chart_copy(self.first.digest)}", self.left())
        self.delete()
        self.status_task()
        self.capi_deletes()
        self.status_task(2)
        self.assertEqual([], self.left())

    def test_a_copy_that_another_cluster_needs_stays(self) -> None:
        self.made()
        self.ports.leases.open(
            NAMESPACE, "other-abcdefghijkl", cluster_uuid="other", project_id="p1"
        )
        digest = self.first.digest
        self.ports.leases.remember(NAMESPACE, "other-abcdefghijkl", chart_digest=digest)
        self.delete()
        self.status_task()
        self.capi_deletes()
        self.status_task(2)
        self.assertIn(f"ConfigMap/{names.chart_copy(digest)}", self.left())


class TestFamilies(ChartCase):
    def test_an_upgrade_does_not_lead_to_another_family(self) -> None:
        self.made()
        self.conductor("first", f"{self.directory}/foreign mine")
        before = (self.rows(), self.values)
        refusal = self.upgrade(self.foreign_template())
        self.assertIn("another family", refusal)
        self.assertEqual(before, (self.rows(), self.values))
        self.assertEqual((), self.recorded())

    def test_unless_the_operator_lets_it(self) -> None:
        self.made()
        self.conductor("first", f"{self.directory}/foreign mine")
        self.config(group="capi_helm", allow_chart_family_change=True)
        self.assertEqual("", self.upgrade(self.foreign_template()))
        self.assertEqual(("mine", "5.0.0"), self.chart())

    def test_nor_to_a_chart_that_is_not_allowed(self) -> None:
        self.made()
        self.config(group="capi_helm", allow_chart_family_change=True)
        self.assertIn("does not allow", self.upgrade(self.foreign_template()))
        self.assertEqual(("openstack-cluster", "1.1.0"), self.chart())

    def test_a_new_cluster_by_a_named_chart(self) -> None:
        self.conductor("first", f"{self.directory}/foreign mine")
        self.template = self.foreign_template()
        self.made(labels=self.template.labels)
        self.assertEqual(("mine", "5.0.0"), self.chart())
        record = self.ports.leases.read(NAMESPACE, RELEASE)
        self.assertEqual(f"{self.directory}/foreign mine", record.chart_source)
        self.conductor("second")
        self.resize(2)
        self.assertEqual(("mine", "5.0.0"), self.chart())

    def test_one_that_is_not_allowed_leaves_nothing(self) -> None:
        self.template = self.foreign_template()
        cluster = self.create(labels=self.template.labels)
        self.assertEqual("CREATE_FAILED", cluster.status)
        self.assertIn("'mine'", cluster.status_reason)
        self.assertEqual([], self.left())

    def test_only_a_template_can_name_one(self) -> None:
        self.conductor("first", f"{self.directory}/foreign mine")
        labels = {
            "capi_helm_chart_name": "mine",
            "capi_helm_chart_repo": str(self.directory / "foreign"),
        }
        cluster = self.create(labels=labels)
        self.assertEqual("CREATE_FAILED", cluster.status)
        self.assertIn("cluster template's value", cluster.status_reason)
