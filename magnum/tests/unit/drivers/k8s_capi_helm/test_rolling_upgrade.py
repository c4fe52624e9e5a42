# SPDX-License-Identifier: Apache-2.0
"""Conductors of two versions on one Lease: during an upgrade, and back to the older version."""

from __future__ import annotations

from typing import Any

import testtools

from magnum.tests.unit.drivers.k8s_capi_helm import next_version
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase, NAMESPACE
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import RELEASE as DEMO
from magnum.tests.unit.drivers.k8s_capi_helm.fakes import FakeKube
from magnum.tests.unit.drivers.k8s_capi_helm.suites import rolling_upgrade
from magnum.tests.unit.drivers.k8s_capi_helm.suites.release_lease import RELEASE


class TestMoreKeys(rolling_upgrade.MoreKeysTests, testtools.TestCase):
    """A newer version with more keys, and this one, by turns."""

    def management(self) -> Any:
        return FakeKube()


class TestOtherFormat(rolling_upgrade.OtherFormatTests, testtools.TestCase):
    """A newer version whose format this one cannot read."""

    def management(self) -> Any:
        return FakeKube()


class TestDriver(DriverCase):
    """What the driver of the older version does about a cluster that a newer one has recorded."""

    def setUp(self) -> None:
        super().setUp()
        self.made()
        newer = next_version.load("other_format").lease.ReleaseLeases(
            self.kube, holder="newer", lease_duration=60
        )
        newer.remember(NAMESPACE, DEMO, chart_source="elsewhere")
        self.sentence = rolling_upgrade.REFUSAL.replace(RELEASE, DEMO)

    def world(self) -> Any:
        """All that is on the management cluster and in Helm."""
        return sorted(map(str, self.kube.everything())), str(self.helm.releases), self.helm.runs

    def test_requests_and_tasks_change_nothing_and_say_why(self) -> None:
        before = self.world()
        self.cloud.images["newer"] = ("image-2", "1.35.1")
        template = self._template(uuid="2" * 8 + "-2222-4333-8444-555555555555", image_id="newer")
        self.assertIn(self.sentence, self.upgrade(template))
        self.resize(3)
        self.assertIn(self.sentence, str(self.cluster().status_reason))
        self.add_group("more")
        self.assertEqual("CREATE_FAILED", self.group("more").status)
        self.assertIn(self.sentence, self.group("more").status_reason)
        self.status_task(2)
        self.health_task()
        self.assertEqual("HEALTHY", self.cluster().health_status)
        self.delete()
        self.status_task(2)
        self.assertEqual(self.sentence, self.cluster().status_reason)
        self.assertEqual(before, self.world())
