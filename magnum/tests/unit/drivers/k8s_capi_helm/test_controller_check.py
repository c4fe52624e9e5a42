# SPDX-License-Identifier: Apache-2.0
"""How often the Leases of controllers are read, and what may not be read says nothing."""

from __future__ import annotations

import dataclasses
import datetime
import threading
import time

import fixtures
import testtools

from magnum.drivers.k8s_capi_helm import deadline, errors
from magnum.drivers.k8s_capi_helm.model import names, Observed, StaleController
from magnum.tests.unit.drivers.k8s_capi_helm import builders
from magnum.tests.unit.drivers.k8s_capi_helm.fakes import FakeKube
from magnum.tests.unit.drivers.k8s_capi_helm.suites import controller_check
from magnum.tests.unit.drivers.k8s_capi_helm.suites.controller_check import NOW, Timed


def later(seconds: float) -> datetime.datetime:
    return NOW + datetime.timedelta(seconds=seconds)


class TestControllers(controller_check.ControllersTests, testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.kube = self.owner = FakeKube()

    def test_all_clusters_of_a_pass_ask_once(self) -> None:
        controllers = self.controllers()
        self.renew(self.capi, NOW)
        self.kube.calls.clear()
        for _ in range(100):
            controllers.at(later(1), self.kube)
        self.assertEqual(2, len(self.kube.calls))
        controllers.at(later(22), self.kube)
        self.assertEqual(4, len(self.kube.calls))

    def test_nobody_is_asked_without_patience(self) -> None:
        controllers = Timed([self.capi], datetime.timedelta(0))
        self.renew(self.capi, later(-9999))
        self.kube.calls.clear()
        self.assertEqual((), controllers.at(NOW, self.kube))
        self.assertEqual([], self.kube.calls)

    def test_what_may_not_be_read_says_nothing_and_hides_nothing(self) -> None:
        controllers = self.controllers()
        self.renew(self.capi, later(-9999))
        self.renew(self.capo, later(-8888))
        capo = self.capo.partition("-system/")[0]

        def forbid(verb: str, kind: names.Kind, name: str) -> None:
            if name == "controller-leader-election-capi":
                raise errors.ManagementRefused("It is not allowed.", "HTTP 403")

        self.kube.before = forbid
        log = self.useFixture(fixtures.FakeLogger())
        for seconds, silent in ((0, []), (200, [capo])):
            found = controllers.at(later(seconds), self.kube)
            self.assertEqual(silent, [one.controller for one in found])
        self.assertEqual(1, log.output.count("HTTP 403"))

    def test_nobody_is_silent_because_nobody_could_look(self) -> None:
        controllers = self.controllers()
        self.renew(self.capi, NOW)
        controllers.at(NOW, self.kube)
        self.kube.unreachable = True
        for seconds in (60, 600, 6000):
            self.assertEqual((), controllers.at(later(seconds), self.kube))
        self.kube.unreachable = False
        self.renew(self.capi, later(6025))
        self.assertEqual((), controllers.at(later(6030), self.kube))

    def test_with_another_kubeconfig_nobody_is_missed_who_was_never_there(self) -> None:
        """On another management cluster the Leases may have other names."""
        controllers = self.controllers()
        self.renew(self.capi, NOW)
        controllers.at(NOW, self.kube)
        elsewhere = FakeKube()
        elsewhere.place = "there"
        for seconds in (60, 600, 6000):
            self.assertEqual((), controllers.at(later(seconds), elsewhere))

    def test_the_one_of_two_in_a_namespace_is_told_apart(self) -> None:
        both = ["one/capi", "one/capo", "two/capo"]
        controllers = Timed(both, controller_check.PATIENCE)
        for lease in both:
            self.renew(lease, later(-9999))
        controllers.at(NOW, self.kube)
        found = [one.controller for one in controllers.at(later(200), self.kube)]
        self.assertEqual(["one/capi", "one/capo", "two"], found)

    def test_a_clock_of_another_machine_has_no_part(self) -> None:
        """The controller's clock is an hour behind, or ahead, and it renews all the time."""
        for off in (-3600, 3600):
            controllers = self.controllers()
            self.renew(self.capi, later(off))
            controllers.at(NOW, self.kube)
            for seconds in (30, 300, 3000):
                self.renew(self.capi, later(off + seconds))
                self.assertEqual((), controllers.at(later(seconds), self.kube), off)
            last = later(off + 3000)
            found = controllers.at(later(3200), self.kube)
            self.assertEqual((self.of_capi(last),), found)

    def test_who_was_silent_before_this_process_began(self) -> None:
        """Its time is believed against that of another one, less what their clocks differ by."""
        for seconds, silent in ((479, False), (481, True)):
            self.renew(self.capi, later(-seconds))
            self.renew(self.capo, NOW)
            found = self.controllers().at(NOW, self.kube)
            self.assertEqual(silent, bool(found), seconds)

    def test_a_lease_that_is_renewed_seldom_is_given_its_own_time(self) -> None:
        controllers = self.controllers()
        self.renew(self.capi, NOW)
        slow = self.kube.get(names.LEASE, *self.capi.split("/"))
        slow["spec"]["leaseDurationSeconds"] = 137
        self.kube.put(names.LEASE, slow)
        for seconds, silent in ((0, False), (270, False), (300, True)):
            found = controllers.at(later(seconds), self.kube)
            self.assertEqual(silent, bool(found), seconds)

    def test_a_lease_without_a_time_says_nothing(self) -> None:
        namespace, _, name = self.capi.partition("/")
        self.kube.put(names.LEASE, {"metadata": {"name": name, "namespace": namespace}})
        controllers = self.controllers()
        for seconds in (0, 300, 600):
            self.assertEqual((), controllers.at(later(seconds), self.kube))

    def test_who_comes_while_another_one_asks_hears_the_answer(self) -> None:
        """Magnum polls all clusters at once, so the next chance is a minute away."""
        controllers = self.controllers()
        self.renew(self.capi, NOW)
        controllers.at(NOW, self.kube)
        found: list[tuple[StaleController, ...]] = []
        second = threading.Thread(
            target=lambda: found.append(controllers.at(later(200), self.kube))
        )

        def meet(verb: str, kind: names.Kind, name: str) -> None:
            self.kube.before = None
            second.start()
            second.join(0.3)

        self.kube.before = meet
        first = controllers.at(later(200), self.kube)
        second.join()
        self.assertEqual((self.of_capi(NOW),), first)
        self.assertEqual([first], found)

    def test_whoever_has_no_time_waits_for_nobody(self) -> None:
        controllers = self.controllers()
        self.renew(self.capi, NOW)
        controllers.at(NOW, self.kube)
        found: list[tuple[StaleController, ...]] = []

        def hurry() -> None:
            with deadline.end_at(time.monotonic()):
                found.append(controllers.at(later(200), self.kube))

        def meet(verb: str, kind: names.Kind, name: str) -> None:
            self.kube.before = None
            second = threading.Thread(target=hurry)
            second.start()
            second.join(10)

        self.kube.before = meet
        controllers.at(later(200), self.kube)
        self.assertEqual([()], found)

    def test_the_clock_of_the_conductor_has_no_part(self) -> None:
        """It knows nothing yet, and its clock is hours ahead or behind."""
        for hours in (-8, 8):
            controllers = self.controllers()
            self.renew(self.capi, later(hours * 3600))
            self.renew(self.capo, later(hours * 3600 + 2))
            self.assertEqual((), controllers.at(NOW, self.kube), hours)

    def test_who_was_silent_for_the_conductor_before_is_so_at_once(self) -> None:
        self.renew(self.capi, later(-400.5))
        self.renew(self.capo, later(-300))
        name = self.capi.partition("-system/")[0]
        for said in (
            f"management: controller {name} has not reported since 2026-11-22 11:53 UTC; waiting",
            f"controller {name} has not reported since 2026-11-22T11:53:19Z",
        ):
            found = self.controllers().at(NOW, self.kube, said)
            self.assertEqual((self.of_capi(later(-400.5)),), found)
        both = f"controllers {name}, {self.capo.partition('-system/')[0]} have"
        said = f"{both} not reported since 2026-11-22 11:53 UTC"
        self.assertEqual(2, len(self.controllers().at(NOW, self.kube, said)))

    def test_who_has_renewed_since_is_not(self) -> None:
        self.renew(self.capi, later(-60))
        name = self.capi.partition("-system/")[0]
        said = f"controller {name} has not reported since 2026-11-22 11:53 UTC"
        controllers = self.controllers()
        self.assertEqual((), controllers.at(NOW, self.kube, said))
        old = f"controller {name} has not reported since 2026-11-22 11:59 UTC"
        self.assertEqual(1, len(controllers.at(NOW, self.kube, old)))
        self.renew(self.capi, later(25))
        self.assertEqual((), controllers.at(later(26), self.kube, old))


class TestShown(testtools.TestCase):
    """What the clocks of the management cluster show."""

    def look(self, made: datetime.datetime | None) -> Observed:
        look = dataclasses.replace(builders.observed(), asof=None)
        for one in builders.objects(look):
            one["metadata"].pop("creationTimestamp", None)
            for said in one.get("status", {}).get("conditions", ()):
                said.pop("lastTransitionTime", None)
        if made is not None:
            look.cluster["metadata"]["creationTimestamp"] = f"{made:%Y-%m-%dT%H:%M:%SZ}"
        return look

    def test_it_goes_on_while_nobody_writes(self) -> None:
        controllers, kube = Timed(), FakeKube()
        for seconds in (0, 100, 3000, 90000):
            controllers.seconds = seconds
            found = controllers.observe_controllers(kube, self.look(NOW))
            self.assertLessEqual(later(min(seconds, 3600)), found.asof)
            self.assertGreaterEqual(later(seconds), found.asof)

    def test_a_time_that_was_wrong_is_forgotten(self) -> None:
        controllers, kube = Timed(), FakeKube()
        controllers.observe_controllers(kube, self.look(later(8 * 3600)))
        for seconds in (1, 3600, 7200, 7201):
            controllers.seconds = seconds
            found = controllers.observe_controllers(kube, self.look(later(seconds)))
        self.assertEqual(later(7201), found.asof)

    def test_leases_tell_it_at_once(self) -> None:
        controllers, kube = Timed(["a-system/b"]), FakeKube()
        spec = {"renewTime": f"{later(777):%Y-%m-%dT%H:%M:%S.%fZ}", "leaseDurationSeconds": 15}
        kube.put(names.LEASE, {"metadata": {"name": "b", "namespace": "a-system"}, "spec": spec})
        self.assertEqual(later(777), controllers.observe_controllers(kube, self.look(NOW)).asof)

    def test_nobody_knows_where_nothing_was_written(self) -> None:
        self.assertIsNone(Timed().observe_controllers(FakeKube(), self.look(None)).asof)
