# SPDX-License-Identifier: Apache-2.0
"""What the Leases of controllers tell, on a management cluster in memory and on a real one."""

from __future__ import annotations

import datetime
import functools
from typing import Any
import uuid

from magnum.drivers.k8s_capi_helm.model import Json, names, StaleController
from magnum.drivers.k8s_capi_helm.reconcile.process.controller_check import ControllerCheck

NOW = datetime.datetime(2026, 11, 22, 12, 0, tzinfo=datetime.timezone.utc)
PATIENCE = datetime.timedelta(minutes=3)


class Timed(ControllerCheck):
    """Controllers as they are asked at times that a test gives."""

    def __init__(self, *args: Any) -> None:
        self.seconds = 0.0
        super().__init__(*args, clock=lambda: self.seconds)

    def at(self, now: datetime.datetime, kube: Any, said: str = "") -> tuple[StaleController, ...]:
        """Who is silent then."""
        self.seconds = (now - NOW).total_seconds()
        return self.stale_controllers(kube, said)


class ControllersTests:
    """Mixed into a TestCase; ``kube`` is the driver's identity, ``owner`` one that may write."""

    kube: Any
    owner: Any
    assertEqual: Any

    @functools.cached_property
    def capi(self) -> str:
        """A Lease in a namespace of this test alone."""
        return f"capi-{uuid.uuid4().hex[:12]}-system/controller-leader-election-capi"

    @functools.cached_property
    def capo(self) -> str:
        """Another one."""
        return f"capo-{uuid.uuid4().hex[:12]}-system/controller-leader-election-capo"

    def of_capi(self, since: datetime.datetime) -> StaleController:
        """The silence of the first one's controller."""
        return StaleController(self.capi.partition("-system/")[0], since)

    def controllers(self) -> Timed:
        return Timed([self.capi, self.capo], PATIENCE)

    def renew(self, lease: str, at: datetime.datetime) -> None:
        """As client-go writes it."""
        namespace, _, name = lease.partition("/")
        self.owner.apply(names.NAMESPACE, {"metadata": {"name": namespace}})
        spec: Json = {
            "holderIdentity": "pod_1",
            "leaseDurationSeconds": 15,
            "renewTime": f"{at:%Y-%m-%dT%H:%M:%S.%fZ}",
        }
        manifest = {"metadata": {"name": name, "namespace": namespace}, "spec": spec}
        self.owner.apply(names.LEASE, manifest)

    def take_away(self, lease: str) -> None:
        namespace, _, name = lease.partition("/")
        self.owner.delete(names.LEASE, namespace, name)

    def test_who_renews_lives(self) -> None:
        controllers = self.controllers()
        for minutes in range(0, 10, 2):
            now = NOW + datetime.timedelta(minutes=minutes)
            self.renew(self.capi, now)
            self.assertEqual((), controllers.at(now, self.kube))

    def test_who_does_not_is_silent_until_it_does(self) -> None:
        controllers = self.controllers()
        renewed = NOW - datetime.timedelta(seconds=2, microseconds=7)
        self.renew(self.capi, renewed)
        for seconds in (0, 60, 179):
            now = NOW + datetime.timedelta(seconds=seconds)
            self.renew(self.capo, now)
            self.assertEqual((), controllers.at(now, self.kube), seconds)
        now = NOW + datetime.timedelta(seconds=200)
        self.renew(self.capo, now)
        self.assertEqual((self.of_capi(renewed),), controllers.at(now, self.kube))
        now += datetime.timedelta(seconds=20)
        self.renew(self.capi, now)
        self.assertEqual((), controllers.at(now, self.kube))

    def test_a_lease_that_is_not_there_says_nothing(self) -> None:
        controllers = self.controllers()
        for minutes in (0, 5, 10):
            now = NOW + datetime.timedelta(minutes=minutes)
            self.assertEqual((), controllers.at(now, self.kube))

    def test_one_that_was_there_went_with_its_controller(self) -> None:
        controllers = self.controllers()
        self.renew(self.capi, NOW)
        controllers.at(NOW, self.kube)
        self.take_away(self.capi)
        found: tuple[StaleController, ...] = ()
        for minutes in range(1, 5):
            now = NOW + datetime.timedelta(minutes=minutes)
            found = controllers.at(now, self.kube)
        self.assertEqual((self.of_capi(NOW),), found)
