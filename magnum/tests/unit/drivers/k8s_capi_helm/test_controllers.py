# SPDX-License-Identifier: Apache-2.0
"""How often the Leases of controllers are read, and what may not be read says nothing."""

from __future__ import annotations

import datetime
import threading
import time

import fixtures
import testtools

from magnum.drivers.k8s_capi_helm import errors, names, patience
from magnum.drivers.k8s_capi_helm.controllers import Controllers
from magnum.drivers.k8s_capi_helm.model import Silence
from magnum.tests.unit.drivers.k8s_capi_helm.fakes import FakeKube
from magnum.tests.unit.drivers.k8s_capi_helm.suites import controllers as suite
from magnum.tests.unit.drivers.k8s_capi_helm.suites.controllers import NOW


def later(seconds: float) -> datetime.datetime:
    return NOW + datetime.timedelta(seconds=seconds)


class TestControllers(suite.ControllersTests, testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.kube = self.owner = FakeKube()

    def test_all_clusters_of_a_pass_ask_once(self) -> None:
        controllers = self.controllers()
        self.renew(self.capi, NOW)
        self.kube.calls.clear()
        for _ in range(100):
            controllers.silent(self.kube, later(1))
        self.assertEqual(2, len(self.kube.calls))
        controllers.silent(self.kube, later(22))
        self.assertEqual(4, len(self.kube.calls))

    def test_nobody_is_asked_without_patience(self) -> None:
        controllers = Controllers([self.capi], datetime.timedelta(0))
        self.renew(self.capi, later(-9999))
        self.kube.calls.clear()
        self.assertEqual((), controllers.silent(self.kube, NOW))
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
        for seconds in (0, 30):
            found = controllers.silent(self.kube, later(seconds))
            self.assertEqual([capo], [one.controller for one in found])
        self.assertEqual(1, log.output.count("HTTP 403"))

    def test_nobody_is_silent_because_nobody_could_look(self) -> None:
        controllers = self.controllers()
        self.renew(self.capi, NOW)
        controllers.silent(self.kube, NOW)
        self.kube.unreachable = True
        for seconds in (60, 600, 6000):
            self.assertEqual((), controllers.silent(self.kube, later(seconds)))
        self.kube.unreachable = False
        self.renew(self.capi, later(6025))
        self.assertEqual((), controllers.silent(self.kube, later(6030)))

    def test_with_another_kubeconfig_nobody_is_missed_who_was_never_there(self) -> None:
        """On another management cluster the Leases may have other names."""
        controllers = self.controllers()
        self.renew(self.capi, NOW)
        controllers.silent(self.kube, NOW)
        elsewhere = FakeKube()
        elsewhere.place = "there"
        for seconds in (60, 600, 6000):
            self.assertEqual((), controllers.silent(elsewhere, later(seconds)))

    def test_the_one_of_two_in_a_namespace_is_told_apart(self) -> None:
        both = ["one/capi", "one/capo", "two/capo"]
        controllers = Controllers(both, suite.PATIENCE)
        for lease in both:
            self.renew(lease, later(-9999))
        found = [one.controller for one in controllers.silent(self.kube, NOW)]
        self.assertEqual(["one/capi", "one/capo", "two"], found)

    def test_a_clock_of_another_machine_has_no_part(self) -> None:
        """The controller's clock is an hour behind, or ahead, and it renews all the time."""
        for off in (-3600, 3600):
            controllers = self.controllers()
            self.renew(self.capi, later(off))
            controllers.silent(self.kube, NOW)
            for seconds in (30, 300, 3000):
                self.renew(self.capi, later(off + seconds))
                self.assertEqual((), controllers.silent(self.kube, later(seconds)), off)
            last = later(off + 3000)
            found = controllers.silent(self.kube, later(3200))
            self.assertEqual((self.of_capi(last),), found)

    def test_who_was_silent_before_this_process_began(self) -> None:
        """Its time is believed, less what clocks may differ by."""
        for seconds, silent in ((479, False), (481, True)):
            self.renew(self.capi, later(-seconds))
            found = self.controllers().silent(self.kube, NOW)
            self.assertEqual(silent, bool(found), seconds)

    def test_a_lease_that_is_renewed_seldom_is_given_its_own_time(self) -> None:
        controllers = self.controllers()
        self.renew(self.capi, NOW)
        slow = self.kube.get(names.LEASE, *self.capi.split("/"))
        slow["spec"]["leaseDurationSeconds"] = 137
        self.kube.put(names.LEASE, slow)
        for seconds, silent in ((0, False), (270, False), (300, True)):
            found = controllers.silent(self.kube, later(seconds))
            self.assertEqual(silent, bool(found), seconds)

    def test_a_lease_without_a_time_says_nothing(self) -> None:
        namespace, _, name = self.capi.partition("/")
        self.kube.put(names.LEASE, {"metadata": {"name": name, "namespace": namespace}})
        controllers = self.controllers()
        for seconds in (0, 300, 600):
            self.assertEqual((), controllers.silent(self.kube, later(seconds)))

    def test_who_comes_while_another_one_asks_hears_the_answer(self) -> None:
        """Magnum polls all clusters at once, so the next chance is a minute away."""
        controllers = self.controllers()
        self.renew(self.capi, NOW)
        controllers.silent(self.kube, NOW)
        found: list[tuple[Silence, ...]] = []
        second = threading.Thread(
            target=lambda: found.append(controllers.silent(self.kube, later(200)))
        )

        def meet(verb: str, kind: names.Kind, name: str) -> None:
            self.kube.before = None
            second.start()
            second.join(0.3)

        self.kube.before = meet
        first = controllers.silent(self.kube, later(200))
        second.join()
        self.assertEqual((self.of_capi(NOW),), first)
        self.assertEqual([first], found)

    def test_whoever_has_no_time_waits_for_nobody(self) -> None:
        controllers = self.controllers()
        self.renew(self.capi, NOW)
        controllers.silent(self.kube, NOW)
        found: list[tuple[Silence, ...]] = []

        def hurry() -> None:
            with patience.until(time.monotonic()):
                found.append(controllers.silent(self.kube, later(200)))

        def meet(verb: str, kind: names.Kind, name: str) -> None:
            self.kube.before = None
            second = threading.Thread(target=hurry)
            second.start()
            second.join(10)

        self.kube.before = meet
        controllers.silent(self.kube, later(200))
        self.assertEqual([()], found)
