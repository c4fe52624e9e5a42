# SPDX-License-Identifier: Apache-2.0
"""Hosts whose clocks differ: the periodic tasks of one see what another one is about."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
import datetime
from typing import Any

from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase

#: A host whose clock shows the time of another zone.
_ZONE = 8 * 60


class TestClocks(DriverCase):
    def setUp(self) -> None:
        super().setUp()
        self.seen_elsewhere = self.seen()

    def at(self, minutes: float, call: Callable[[], Any]) -> None:
        """Do something on another host, whose clock is so much ahead."""
        now = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=minutes)
        here = self.ports
        self.ports = dataclasses.replace(here, first_seen=self.seen_elsewhere)
        self.fixed_time = now
        call()
        self.ports, self.fixed_time = here, None

    def create_beside(self, minutes: float) -> Any:
        """A create, in the middle of which the periodic tasks of another host run."""
        quotas = self.cloud.quotas

        def asked(*args: Any) -> Any:
            self.at(minutes, self.status_task)
            return quotas(*args)

        self.cloud.quotas = asked
        self.create()
        self.capi_converges()
        self.status_task(2)
        return self.cluster()

    def add_group_beside(self, minutes: float) -> Any:
        """A nodegroup that is asked for, the same way."""
        self.made()

        def before(what: str) -> None:
            if what.startswith("create server group"):
                self.cloud.openstack.before = None
                self.at(minutes, self.status_task)

        self.cloud.openstack.before = before
        self.add_group("extra")
        self.capi_converges()
        self.status_task(2)
        return self.group("extra")

    def test_a_cluster_that_is_being_created_beside_one_that_is_ahead(self) -> None:
        cluster = self.create_beside(_ZONE)
        self.assertEqual(("CREATE_COMPLETE", None), (cluster.status, cluster.status_reason))

    def test_a_nodegroup_that_is_being_created_beside_one_that_is_ahead(self) -> None:
        row = self.add_group_beside(_ZONE)
        self.assertEqual(("CREATE_COMPLETE", None), (row.status, row.status_reason))

    def test_a_count_that_is_being_checked_beside_one_that_is_ahead(self) -> None:
        self.made()
        group = self.group()
        group.node_count = 3
        group.save()
        self.at(_ZONE, self.health_task)
        self.assertEqual("CREATE_COMPLETE", self.cluster().status)

    def test_a_creation_that_died_ends_on_a_host_that_is_behind(self) -> None:
        cluster = self.create()
        cluster.stack_id = None
        cluster.save()
        self.at(-_ZONE, self.status_task)
        self.assertEqual("CREATE_IN_PROGRESS", self.cluster().status)
        self.at(11 - _ZONE, self.status_task)
        self.assertEqual("CREATE_FAILED", self.cluster().status)

    def test_a_nodegroup_that_died_ends_on_a_host_that_is_behind(self) -> None:
        self.made()
        self.new_group("extra", status="CREATE_IN_PROGRESS").create()
        self.resize(2)
        self.capi_converges()
        self.at(-_ZONE, self.status_task)
        self.assertEqual("CREATE_IN_PROGRESS", self.group("extra").status)
        self.at(6 - _ZONE, self.status_task)
        self.assertEqual("CREATE_FAILED", self.group("extra").status)
