# SPDX-License-Identifier: Apache-2.0
"""How often tenants' clusters are looked into, and that an answer is never made up."""

from __future__ import annotations

import dataclasses
import datetime
import json
import threading
from typing import Any

import fixtures
import testtools

from magnum.drivers.k8s_capi_helm import model
from magnum.drivers.k8s_capi_helm.kube.tenant import tenant_budget
from magnum.drivers.k8s_capi_helm.model import AddonInventory, Missing, names
from magnum.drivers.k8s_capi_helm.reconcile.process.addon_check import AddonCheck
from magnum.tests.unit.drivers.k8s_capi_helm import builders
from magnum.tests.unit.drivers.k8s_capi_helm.fakes import FakeKube, FakeWorkload
from magnum.tests.unit.drivers.k8s_capi_helm.test_tenant_kubeconfig import kubeconfig_secret

OCCM = "/apis/apps/v1/namespaces/openstack-system/daemonsets/occm"
EVERY = datetime.timedelta(minutes=5)


class InspectionsCase(testtools.TestCase):
    chance = 1.0

    def setUp(self) -> None:
        super().setUp()
        self.kube, self.workload, self.now = FakeKube(), FakeWorkload(full=True), builders.NOW
        self.kube.put(names.SECRET, kubeconfig_secret())
        self.inspections = AddonCheck(
            EVERY, lambda: self.chance, enter=self.workload, clock=lambda: self.now.timestamp()
        )
        self.made = [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "occm"}]

    def observed(self) -> model.Observed:
        look = dataclasses.replace(builders.observed(), at=self.now)
        addon = next(
            one for one in look.addons if one["metadata"]["name"].endswith("ccm-openstack")
        )
        addon["spec"]["targetNamespace"] = "openstack-system"
        handled = f"{names.ADDONS_GROUP}/last-handled-configuration"
        addon["metadata"]["annotations"][handled] = _handled(addon["spec"])
        addon["status"]["resources"] = self.made
        return look

    def look(self, after: float = 0, said: str = "", **changes: Any) -> AddonInventory | None:
        self.now += datetime.timedelta(minutes=after)
        look = dataclasses.replace(self.observed(), **changes)
        return self.inspections.inside(self.kube, builders.NAMESPACE, builders.RELEASE, look, said)


def _handled(spec: dict[str, Any]) -> str:
    return json.dumps({"spec": spec})


class TestInspections(InspectionsCase):
    def test_what_is_there_is_looked_for_now_and_then(self) -> None:
        for after, looks in ((0, 1), (1, 1), (3.9, 1), (0.2, 2), (4.9, 2), (0.2, 3)):
            self.assertEqual(AddonInventory(), self.look(after))
            self.assertEqual(looks, len(self.workload.asked), after)
        self.assertEqual([OCCM], self.workload.asked[-1])

    def test_what_is_missing_is_looked_for_soon(self) -> None:
        self.workload.gone = {OCCM}
        found = self.look()
        self.assertEqual(["occm"], [one.name for one in found.missing])
        self.assertEqual(found, self.look(0.5))
        self.workload.gone = set()
        self.assertEqual(AddonInventory(), self.look(0.6))

    def test_what_nobody_mends_is_looked_for_as_often_as_what_is_there(self) -> None:
        self.workload.gone = {OCCM}
        for after, looks in (
            (0, 1),
            (1.1, 2),
            (1.1, 2),
            (1, 3),
            (3.8, 3),
            (0.4, 4),
            (4.8, 4),
            (5, 5),
        ):
            self.look(after)
            self.assertEqual(looks, len(self.workload.asked), after)
        self.workload.gone = set()
        self.assertEqual(AddonInventory(), self.look(5.1))
        self.workload.gone = {OCCM}
        self.look(5.1)
        self.look(1.1)
        self.assertEqual(8, len(self.workload.asked))

    def put_secret(self, namespace: str, release: str) -> None:
        secret = kubeconfig_secret()
        secret["metadata"] |= {"namespace": namespace, "name": names.kubeconfig_secret(release)}
        self.kube.put(names.SECRET, secret)

    def test_a_tenant_whose_servers_keep_looks_waiting_delays_nobody(self) -> None:
        self.workload.held = held = threading.Event()
        self.addCleanup(held.set)
        look, threads = self.observed(), []
        for number in range(20):
            self.put_secret(builders.NAMESPACE, f"one-{number}")
            place = (self.kube, builders.NAMESPACE, f"one-{number}", look)
            if number < tenant_budget.TENANT:
                threads.append(threading.Thread(target=self.inspections.inside, args=place))
                threads[-1].start()
                self.assertTrue(self.workload.entered.acquire(timeout=20))
            else:
                self.assertIsNone(self.inspections.inside(*place))
        self.assertEqual(tenant_budget.TENANT, len(self.workload.asked))
        self.workload.held = None
        self.put_secret("magnum-other", "other")
        found = self.inspections.inside(self.kube, "magnum-other", "other", look)
        self.assertEqual(AddonInventory(), found)
        held.set()
        for thread in threads:
            thread.join(20)
        found = self.inspections.inside(self.kube, builders.NAMESPACE, "one-19", look)
        self.assertEqual(AddonInventory(), found)

    def test_a_process_that_has_not_looked_goes_by_the_row(self) -> None:
        """Else health would be better, and worse again, because a conductor was restarted."""
        self.chance = 0
        self.assertEqual(AddonInventory(), self.look(said="Ready"))
        self.inspections = AddonCheck(EVERY, jitter=lambda: 0, enter=self.workload)
        away = "not checked: Magnum cannot reach the cluster's API"
        self.assertEqual(away, self.look(said=away).unknown)
        self.assertEqual([], self.workload.asked)
        self.inspections = AddonCheck(EVERY, jitter=lambda: 0, enter=self.workload)
        self.workload.gone = {OCCM}
        found = self.look(
            said="ccm-openstack: DaemonSet openstack-system/occm not found in the cluster"
        )
        self.assertEqual(["occm"], [one.name for one in found.missing])

    def test_a_cluster_out_of_reach_is_left_alone_longer_and_longer(self) -> None:
        self.workload.away = True
        for after, looks in ((0, 1), (5, 1), (5.1, 2), (15, 2), (5.1, 3), (60.1, 4), (60.1, 5)):
            self.assertIn("Magnum cannot reach", self.look(after).unknown)
            self.assertEqual(looks, len(self.workload.asked), after)
        self.workload.away = False
        self.assertEqual(AddonInventory(), self.look(61))
        self.look(5.1)
        self.assertEqual(7, len(self.workload.asked))

    def test_who_is_not_let_in_knows_nothing(self) -> None:
        self.workload.gone, self.workload.refusing = {OCCM}, True
        found = self.look()
        self.assertEqual((), found.missing)
        self.assertIn("Magnum cannot reach", found.unknown)

    def test_clusters_that_have_gone_are_forgotten(self) -> None:
        for number in range(20):
            self.kube.put(names.SECRET, kubeconfig_secret())
            self.inspections.inside(
                self.kube, builders.NAMESPACE, f"gone-{number}", self.observed()
            )
        self.look(25 * 60)
        self.assertEqual(1, len(self.inspections._known))

    def test_no_more_is_kept_than_is_looked_for(self) -> None:
        self.made = [{**self.made[0], "name": f"x{number}"} for number in range(5000)]
        self.look()
        known = self.inspections._known.get(f"{builders.NAMESPACE}/{builders.RELEASE}")
        assert known is not None
        self.assertEqual(len(known.wanted), len(self.workload.asked[-1]))
        self.assertLess(len(known.wanted), 100)

    def test_a_new_version_of_an_addon_is_looked_for_at_once(self) -> None:
        self.look()
        self.made = [{**self.made[0], "name": "other"}]
        self.look(0.1)
        self.assertIn("/other", self.workload.asked[-1][0])

    def test_who_has_no_way_in(self) -> None:
        for secret in (None, kubeconfig_secret("{"), kubeconfig_secret("a: s3cret")):
            self.kube.remove(names.SECRET, builders.NAMESPACE, f"{builders.RELEASE}-kubeconfig")
            if secret:
                self.kube.put(names.SECRET, secret)
            log = self.useFixture(fixtures.FakeLogger())
            self.assertTrue(self.look(61).unknown)
            self.assertNotIn("s3cret", log.output)
        self.assertEqual([], self.workload.asked)

    def test_a_management_cluster_that_is_away_is_not_the_tenants_fault(self) -> None:
        self.kube.unreachable = True
        self.assertTrue(self.look().unknown)

    def test_nobody_looks_where_there_is_nothing_to_be_found(self) -> None:
        down = self.observed()
        builders.say(down.cluster, "RemoteConnectionProbe", "False", "no answer")
        for changes in (
            {"cluster": down.cluster},
            {"cluster": Missing.UNREADABLE},
            {"addons": Missing.UNREADABLE},
            {"addons": ()},
        ):
            self.assertIsNone(self.look(6, **changes))
        self.assertEqual([], self.workload.asked)

    def test_an_operator_can_switch_it_off(self) -> None:
        self.inspections = AddonCheck(datetime.timedelta(0), enter=self.workload)
        self.kube.calls.clear()
        self.assertIsNone(self.look())
        self.assertEqual(([], []), (self.workload.asked, self.kube.calls))

    def test_a_list_without_end_is_looked_at_in_part(self) -> None:
        self.made = [{**self.made[0], "name": f"n{number}"} for number in range(10000)]
        self.look()
        self.assertEqual(50, len(self.workload.asked[0]))


class TestSpread(InspectionsCase):
    chance = 0.5

    def test_a_fleet_is_not_looked_at_all_at_once(self) -> None:
        self.assertIsNone(self.look())
        self.assertIsNone(self.look(2.4))
        self.assertEqual(AddonInventory(), self.look(0.2))
