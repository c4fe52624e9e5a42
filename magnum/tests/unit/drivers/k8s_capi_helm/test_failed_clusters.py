# SPDX-License-Identifier: Apache-2.0
"""Failed clusters on releases of Magnum whose health poll leaves them out."""

from __future__ import annotations

import threading
from typing import Any

import fixtures
from oslo_db import exception as db_exception

import magnum.conf
from magnum.db.sqlalchemy import api as dbapi
from magnum.drivers.k8s_capi_helm.handlers.tasks import failed_clusters
from magnum.tests.unit.drivers.k8s_capi_helm import driver_case
from magnum.tests.unit.drivers.k8s_capi_helm.test_deadline_missed import LateCase

CONF = magnum.conf.CONF


class Rounds(threading.Event):
    """An event that is set after some rounds, and notes how long each has to wait."""

    def __init__(self, rounds: int) -> None:
        super().__init__()
        self.rounds = rounds
        self.waited: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waited.append(timeout)
        return len(self.waited) > self.rounds


class TestRelease(driver_case.DriverCase):
    def test_only_magnum_20_and_21_leave_failed_clusters_out(self) -> None:
        for release in ("20.0.2", "21.0.1", "21.1.0.dev12"):
            self.assertEqual([failed_clusters.serve], failed_clusters.polls(release))
        for release in ("22.0.0", "23.0.0", "24.0.0.0rc1"):
            self.assertEqual([], failed_clusters.polls(release))

    def test_the_poll_is_there_where_magnum_does_not_poll(self) -> None:
        """Magnum's own list says what it leaves out."""
        listed: list[list[str]] = []

        def note(owner: object, context: object, filters: dict[str, list[str]]) -> list[object]:
            listed.append(filters["status"])
            return []

        self.useFixture(fixtures.MonkeyPatch("magnum.objects.Cluster.list", classmethod(note)))
        tasks = driver_case.periodic.MagnumPeriodicTasks(CONF)
        tasks.sync_cluster_health_status(self.context)
        [statuses] = listed
        is_polled = "UPDATE_FAILED" in statuses
        found = failed_clusters.polls(failed_clusters.magnum_release())
        self.assertEqual(is_polled, not found)


class TestPoll(LateCase):
    def run_rounds(self, rounds: int = 1) -> list[float | None]:
        stop = Rounds(rounds)
        failed_clusters.serve(stop)
        return stop.waited

    def make_failed(self) -> None:
        """A change that has missed its deadline, and is complete afterwards."""
        self.resize(3)
        self.miss()
        self.helm.refusal = None
        for _ in range(2):
            self.run_rounds()
            self.capi_converges()

    def test_one_that_has_become_healthy_is_complete(self) -> None:
        self.make_failed()
        self.assertEqual("UPDATE_FAILED", self.cluster().status)
        self.run_rounds(3)
        cluster = self.cluster()
        self.assertEqual(("UPDATE_COMPLETE", None), (cluster.status, cluster.status_reason))
        self.assertEqual(3, self.replicas("default-worker"))

    def test_a_refused_request_is_not_the_last_one(self) -> None:
        self.helm.refusal = None
        self.resize(0, remove=["unknown"])
        for minutes, status in ((0, "UPDATE_FAILED"), (11, "UPDATE_COMPLETE")):
            self.after(minutes)
            self.run_rounds(2)
            self.assertEqual(status, self.cluster().status)

    def test_others_than_failed_ones_are_magnums(self) -> None:
        self.helm.refusal = None
        self.kube.calls.clear()
        self.run_rounds(2)
        self.assertEqual([], self.kube.calls)

    def test_another_drivers_cluster_is_not_touched(self) -> None:
        """Magnum 20 has the Heat driver, whose stack ids are UUIDs."""
        self.make_failed()
        cluster = self.cluster()
        cluster.stack_id = "3c1b2b8e-1f0f-4bd7-a1b1-0c5a3b6d5c11"
        cluster.save()
        before = cluster.health_status, cluster.health_status_reason
        self.run_rounds(3)
        cluster = self.cluster()
        self.assertEqual("UPDATE_FAILED", cluster.status)
        self.assertEqual(before, (cluster.health_status, cluster.health_status_reason))

    def test_the_interval_is_that_of_magnums_own_poll(self) -> None:
        name = "health_polling_interval"
        self.addCleanup(CONF.clear_override, name, group="kubernetes")
        for interval, expected in ((17, [17.0, 17.0]), (0, [60.0, 60.0]), (-1, [])):
            CONF.set_override(name, interval, group="kubernetes")
            self.assertEqual(expected, self.run_rounds())

    def test_a_database_that_is_away_does_not_end_the_poll(self) -> None:
        self.make_failed()
        list_clusters, failures = dbapi.Connection.get_cluster_list, [True]

        def fail_once(*args: Any, **kwargs: Any) -> Any:
            if failures:
                failures.pop()
                raise db_exception.DBConnectionError()
            return list_clusters(*args, **kwargs)

        self.useFixture(
            fixtures.MonkeyPatch("magnum.db.sqlalchemy.api.Connection.get_cluster_list", fail_once)
        )
        self.run_rounds(4)
        self.assertEqual([], failures)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
