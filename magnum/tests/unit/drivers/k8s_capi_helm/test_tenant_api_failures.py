# SPDX-License-Identifier: Apache-2.0
"""A tenant's API server in any mood costs no more than three times what a polite one costs."""

from __future__ import annotations

import threading
import time

from magnum.drivers.k8s_capi_helm.kube.tenant import tenant_budget, tenant_channel
from magnum.drivers.k8s_capi_helm.kube.tenant.tenant_api import TenantApi, TenantApiUnavailable
from magnum.drivers.k8s_capi_helm.kube.tenant.tenant_kubeconfig import TenantKubeconfig
from magnum.drivers.k8s_capi_helm.status.objects import workload_addons
from magnum.tests.unit.drivers.k8s_capi_helm import call_counts
from magnum.tests.unit.drivers.k8s_capi_helm.fakes.failing_tenant_api import MOODS, Moody
from magnum.tests.unit.drivers.k8s_capi_helm.suites import http_server
from magnum.tests.unit.drivers.k8s_capi_helm.test_kube_tls import write_identity

PATHS = [f"/api/v1/namespaces/a/configmaps/a{number}" for number in range(workload_addons.MOST)]


class TestMoods(http_server.WireCase):
    def setUp(self) -> None:
        super().setUp()
        self.identity = write_identity(self.directory / "tenants")
        self.found: list[bool] = []

    def look(self, mood: str, whole: float = 2.0) -> tuple[int, float, int, int]:
        """Steps, seconds of CPU, bytes and requests of a look at as many objects as can be."""
        server = Moody(mood, self.identity)
        self.addCleanup(server.close)
        key, _, certificate = self.identity.read_text().partition("-----BEGIN CERTIFICATE")
        certificate = f"-----BEGIN CERTIFICATE{certificate}"
        way = TenantKubeconfig("127.0.0.1", server.port, certificate, certificate, key)
        self.found = []

        def all_of_them() -> None:
            with TenantApi(way, whole=whole) as door:
                self.found += [door.has(path) for path in PATHS]

        def steps() -> None:
            if mood in ("polite", "hesitant"):
                all_of_them()
            else:
                self.assertRaises(TenantApiUnavailable, all_of_them)

        begun = time.thread_time()
        count = call_counts.calls(steps)
        used = time.thread_time() - begun
        server.close()
        return count, used, server.sent, server.requests

    def test_no_mood_costs_more_than_three_polite_servers(self) -> None:
        polite = self.look("polite", whole=60.0)
        self.assertEqual([True] * workload_addons.MOST, self.found)
        lines = [f"{'mood':28} {'steps':>8} {'CPU ms':>7} {'bytes':>9} {'asked':>5}"]
        costs = {"polite": polite, **{mood: self.look(mood) for mood in MOODS}}
        for mood, (steps, used, sent, asked) in costs.items():
            lines.append(f"{mood:28} {steps:8} {1000 * used:7.1f} {sent:9} {asked:5}")
        call_counts.show(lines)
        too_dear = {mood: cost[0] for mood, cost in costs.items() if cost[0] > 3 * polite[0]}
        self.assertEqual({}, too_dear, f"a polite one takes {polite[0]} steps")
        # What a server could send beyond that stands in buffers of the two ends of a connection.
        most = tenant_channel.BYTES + (8 << 20)
        self.assertEqual({}, {mood: cost[2] for mood, cost in costs.items() if cost[2] > most})
        self.assertEqual(
            {}, {mood: cost[3] for mood, cost in costs.items() if mood != "polite" and cost[3] > 1}
        )

    def test_a_server_may_say_to_go_on_some_times(self) -> None:
        self.look("hesitant", whole=60.0)
        self.assertEqual([True] * workload_addons.MOST, self.found)


class TestBudget(http_server.WireCase):
    """Whoever looks takes room, and nobody waits for it."""

    def test_one_tenant_leaves_room_for_others(self) -> None:
        looks = tenant_budget.TenantBudget()
        with (
            looks.attempt("a", failed_before=False) as first,
            looks.attempt("a", failed_before=False) as second,
        ):
            with (
                looks.attempt("a", failed_before=False) as third,
                looks.attempt("b", failed_before=False) as other,
            ):
                self.assertEqual((True, True, False, True), (first, second, third, other))
        with looks.attempt("a", failed_before=False) as again:
            self.assertTrue(again)

    def test_bad_moods_leave_half_of_the_room(self) -> None:
        looks, entered = tenant_budget.TenantBudget(), []

        def enter(number: int, *, vain: bool) -> None:
            one = looks.attempt(f"tenant-{number}", failed_before=vain)
            entered.append(one.__enter__())
            self.addCleanup(one.__exit__, None, None, None)

        for number in range(20):
            enter(number, vain=True)
        self.assertEqual(tenant_budget.VAIN, sum(entered))
        for number in range(20, 40):
            enter(number, vain=False)
        self.assertEqual(tenant_budget.ALL, sum(entered))

    def test_room_is_given_back_whatever_happens(self) -> None:
        looks = tenant_budget.TenantBudget()

        def fail() -> None:
            with looks.attempt("a", failed_before=True):
                raise TenantApiUnavailable("no")

        threads = [
            threading.Thread(target=self.assertRaises, args=(TenantApiUnavailable, fail))
            for _ in range(50)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with looks.attempt("a", failed_before=True) as free:
            self.assertTrue(free)
