# SPDX-License-Identifier: Apache-2.0
"""What a conductor and a helm may still do that were stopped while they held the lock, or lost it.

A conductor is a process of its own here, with the driver's lock and its Helm; the test is the next
one. What is shown is said in words in ``doc/source/contributor/lock.rst``.
"""

from __future__ import annotations

from collections.abc import Callable
import contextlib
import datetime
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.helm import recovery
from magnum.drivers.k8s_capi_helm.lease import ReleaseLeases
from magnum.drivers.k8s_capi_helm.model import Json, LiveRelease, names
from magnum.tests.functional.k8s_capi_helm import envtest
from magnum.tests.functional.k8s_capi_helm.envtest import gate, test_helm_recovery
from magnum.tests.functional.k8s_capi_helm.envtest.test_helm_client import HelmCase
from magnum.tests.functional.k8s_capi_helm.envtest.test_helm_recovery import WIDGET, widget
from magnum.tests.unit.drivers.k8s_capi_helm.suites import helm as suites_helm

#: Seconds of a lease.
DURATION = 10
#: Longest time for anything to happen.
LIMIT = 240.0
_DAY = 86400
CONDUCTOR = """
import datetime, json, pathlib, sys, time
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.chart_store import archive
from magnum.drivers.k8s_capi_helm.helm import HelmClient
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.lease import ReleaseLeases
from magnum.drivers.k8s_capi_helm.lease.holder import holder_identity
from magnum.drivers.k8s_capi_helm.model import clock
config, helm, chart, namespace, release, duration, values, ahead = sys.argv[1:]
ahead = int(ahead)
kube = KubeClient(config, breaker_failures=0)
operations = ReleaseLeases(
    kube,
    holder=holder_identity(),
    lease_duration=int(duration),
    clock=lambda: time.monotonic() + ahead,
    now=lambda: clock.utc_now() + datetime.timedelta(seconds=ahead),
)
client = HelmClient(kube, executable=helm, timeout=300)
try:
    with operations.acquire(namespace, release, wait=0) as hold:
        client.apply(
            namespace,
            release,
            archive.read_chart(pathlib.Path(chart)),
            json.loads(values),
            held_lock=hold,
        )
except errors.DriverError as error:
    print(type(error).__name__)
else:
    print("done")
"""
TRUTH = widget("truth")


class TestWindows(suites_helm.HelmSuite, HelmCase):
    """The first conductor is at "one", asks for "late" and is stopped; the next asks for TRUTH."""

    def setUp(self) -> None:
        super().setUp()
        test_helm_recovery.define_widgets(self.kube)
        self.chart = test_helm_recovery.write_widget_chart(self.directory / "widgets")
        self.namespace = self.make_namespace()
        self.gate = gate.Gate(envtest.kubeconfig())
        self.addCleanup(self.gate.close)
        self.operations = ReleaseLeases(self.kube, holder="two", lease_duration=DURATION)
        self.operations.open(self.namespace, suites_helm.RELEASE, cluster_uuid="u", project_id="p")
        self.helm.apply(self.namespace, suites_helm.RELEASE, self.chart, widget("one"))

    # The first conductor --------------------------------------------------------------------------
    def conductor(self, ahead: int = 0, **more: bool) -> subprocess.Popen[str]:
        """A conductor that brings the release to "late".

        :param ahead: seconds that the clocks of its host are ahead of ours.
        """
        values = str(widget("late", **more)).replace("'", '"').replace("True", "true")
        started = subprocess.Popen(
            [
                *(sys.executable, "-W", "ignore", "-c", CONDUCTOR),
                *(self.gate.kubeconfig(self.directory), envtest.helm(), self.chart.path),
                *(self.namespace, suites_helm.RELEASE, str(DURATION), values, str(ahead)),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert started.stdout is not None
        self.addCleanup(started.stdout.close)
        self.addCleanup(started.wait)
        self.addCleanup(started.kill)
        return started

    def stuck(self, method: str, path: str) -> tuple[subprocess.Popen[str], int]:
        """A conductor and its helm, both frozen, when helm is about to send such a request."""
        self.gate.hold(
            lambda one: one.agent.startswith("Helm/") and one.method == method and path in one.path
        )
        conductor = self.conductor()
        self.assertTrue(self.gate.waiting.wait(LIMIT), "helm does not get so far")
        [helm] = self.helms()
        self.freeze(conductor.pid, helm)
        return conductor, helm

    def hanging(self, ahead: int = 0) -> tuple[subprocess.Popen[str], int]:
        """A conductor whose helm is in the middle of its run, and does not come to its end."""
        conductor = self.conductor(ahead, hang=True)
        self.until(lambda: self.live().status == "pending-upgrade")
        [helm] = self.helms()
        return conductor, helm

    def freeze(self, *pids: int) -> None:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
            self.addCleanup(self.wake, pid)

    @staticmethod
    def wake(*pids: int) -> None:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def outcome(self, conductor: subprocess.Popen[str]) -> str:
        """What became of its work."""
        said, _ = conductor.communicate(timeout=LIMIT)
        return said.strip()

    def helms(self) -> list[int]:
        """Processes of helm that change this release."""
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                arguments = entry.read_bytes().split(b"\0")
                if self.namespace.encode() in arguments and b"upgrade" in arguments:
                    found.append(int(entry.parent.name))
        return found

    # The next conductor ---------------------------------------------------------------------------
    def take_over(self, meanwhile: Callable[[], None] = lambda: None) -> LiveRelease:
        """Wait for the lock, and bring the release to what is to be so."""
        with self.operations.acquire(self.namespace, suites_helm.RELEASE, wait=LIMIT) as hold:
            meanwhile()
            done = self.helm.apply(
                self.namespace, suites_helm.RELEASE, self.chart, TRUTH, held_lock=hold
            )
            self.assertFalse(hold.is_lost())
        return done

    def live(self) -> LiveRelease:
        found = self.helm.live(self.namespace, suites_helm.RELEASE)
        assert found is not None
        return found

    def object(self) -> Json:
        found = self.kube.get(WIDGET, self.namespace, suites_helm.RELEASE)
        assert found is not None
        return found

    def text(self) -> str:
        return str(self.object()["data"]["text"])

    def is_true(self) -> None:
        """Record and object are what the database says, and nobody has the lock."""
        live = self.live()
        self.assertEqual(("deployed", TRUTH, "truth"), (live.status, live.values, self.text()))
        self.assertEqual("", self.operations.read(self.namespace, suites_helm.RELEASE).holder)

    def until(self, happened: Callable[[], bool]) -> None:
        end = time.monotonic() + LIMIT
        while not happened():
            if time.monotonic() > end:
                self.fail("it did not happen in time")
            threading.Event().wait(0.05)

    # What is so -----------------------------------------------------------------------------------
    def test_a_killed_conductor(self) -> None:
        conductor, _ = self.hanging()
        before = self.object()["metadata"]["uid"]
        conductor.kill()
        self.until(lambda: not self.helms())
        done = self.take_over(lambda: self.assertEqual("pending-upgrade", self.live().status))
        self.assertEqual((3, before), (done.revision, self.object()["metadata"]["uid"]))
        self.is_true()

    def test_a_killed_conductor_of_this_host_is_followed_at_once(self) -> None:
        conductor, _ = self.hanging()
        conductor.kill()
        conductor.wait(LIMIT)
        # Without a wait, a lock that is held is refused.
        with self.operations.acquire(self.namespace, suites_helm.RELEASE, wait=0) as lock:
            done = self.helm.apply(
                self.namespace, suites_helm.RELEASE, self.chart, TRUTH, held_lock=lock
            )
        self.assertEqual(3, done.revision)
        self.is_true()

    def test_clocks_of_hosts_need_not_agree(self) -> None:
        for ahead in (-_DAY, _DAY):
            conductor, helm = self.hanging(ahead)
            holding = self.operations.acquire(
                self.namespace, suites_helm.RELEASE, wait=DURATION * 1.5
            )
            self.assertRaises(errors.Busy, holding.__enter__)
            lease = self.kube.get(names.LEASE, self.namespace, names.lease(suites_helm.RELEASE))
            told = datetime.datetime.fromisoformat(lease["spec"]["renewTime"])
            apart = (told - datetime.datetime.now(datetime.UTC)).total_seconds()
            self.assertTrue(abs(apart - ahead) < _DAY / 2, apart)
            self.assertEqual([helm], self.helms())
            conductor.kill()
            self.take_over()
            self.is_true()

    def test_a_frozen_conductor_kills_its_helm_as_soon_as_it_wakes_up(self) -> None:
        conductor, helm = self.hanging()
        self.freeze(conductor.pid)
        self.take_over()
        # Nobody but its conductor can end it; it does nothing but wait, and has its own timeout.
        self.assertEqual([helm], self.helms())
        self.wake(conductor.pid)
        self.assertEqual("HelmInterrupted", self.outcome(conductor))
        self.assertEqual([], self.helms())
        self.is_true()

    def test_who_cannot_renew_has_killed_helm_before_others_have_the_lock(self) -> None:
        for frozen in (False, True):
            conductor, helm = self.hanging()
            if frozen:
                self.freeze(helm)
            self.gate.refuse(lambda one: "/leases/" in one.path)
            self.take_over(lambda: self.assertEqual([], self.helms()))
            self.assertEqual("HelmInterrupted", self.outcome(conductor))
            self.gate.open()
            self.is_true()

    def test_a_helm_that_had_not_looked_yet_is_followed_by_another(self) -> None:
        conductor, helm = self.stuck("GET", "/secrets")
        self.take_over()
        self.gate.open()
        self.wake(helm)
        self.until(lambda: not self.helms())
        self.wake(conductor.pid)
        self.assertIn(self.outcome(conductor), ("Busy", "HelmInterrupted"))
        # It was a change like any other, and the next pass sees it.
        self.assertEqual(("deployed", "late"), (self.live().status, self.live().values["text"]))
        self.take_over()
        self.is_true()

    def test_a_helm_that_had_looked_finds_its_revision_taken(self) -> None:
        conductor, helm = self.stuck("POST", "/secrets")
        self.take_over()
        self.gate.open()
        self.wake(helm)
        self.until(lambda: not self.helms())
        self.is_true()
        self.wake(conductor.pid)
        self.assertIn(self.outcome(conductor), ("Busy", "HelmInterrupted"))
        self.is_true()

    def test_a_helm_that_was_writing_leaves_a_trace(self) -> None:
        conductor, helm = self.stuck("PATCH", "/widgetry/")
        self.take_over()
        self.is_true()
        self.gate.open()
        self.wake(helm)
        self.until(lambda: not self.helms())
        self.assertEqual("late", self.text())
        self.assertEqual((recovery.HALF_DONE, TRUTH), (self.live().status, self.live().values))
        self.wake(conductor.pid)
        self.assertIn(self.outcome(conductor), ("Busy", "HelmInterrupted"))
        self.take_over()
        self.is_true()

    def test_one_request_that_was_on_its_way_stays(self) -> None:
        """The window that nobody closes: the server carries out what comes that late."""
        conductor, _ = self.stuck("PATCH", "/widgetry/")
        self.take_over()
        self.wake(conductor.pid)
        self.assertEqual("HelmInterrupted", self.outcome(conductor))
        self.assertEqual([], self.helms())
        self.gate.open()
        self.assertTrue(self.gate.passed.wait(LIMIT))
        live = self.live()
        self.assertEqual(("deployed", TRUTH, "late"), (live.status, live.values, self.text()))
        # Until that field is changed.
        self.helm.apply(self.namespace, suites_helm.RELEASE, self.chart, widget("new"))
        self.assertEqual("new", self.text())
