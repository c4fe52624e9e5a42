# SPDX-License-Identifier: Apache-2.0
"""A conductor that is restarted in the middle of a story: it ends as it would have, a limit later.

What a process has seen itself (since when a request is carried on by nobody, whose credential is
dead, what is missing inside) is gone with it. A story is a list of steps with time in between; a
restart comes before each step in turn, and once more before every one of them. Then as much time as
the longest limit passes, and the rows say what they say without any restart.
"""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
import itertools
from typing import Any

from magnum.drivers.k8s_capi_helm import lease
from magnum.drivers.k8s_capi_helm.lease import holder
from magnum.drivers.k8s_capi_helm.model import names
from magnum.drivers.k8s_capi_helm.reconcile.process.addon_check import AddonCheck
from magnum.drivers.k8s_capi_helm.reconcile.process.caches import FinishedOnce
from magnum.drivers.k8s_capi_helm.reconcile.process.controller_check import ControllerCheck
from magnum.drivers.k8s_capi_helm.reconcile.process.credential_check import CredentialCheck
from magnum.drivers.k8s_capi_helm.reconcile.process.evaluation_cache import EvaluationCache
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase, NAMESPACE, RELEASE

#: Minutes: no limit on what a process has to see itself is longer.
LONGEST = 31
_DAY = 24 * 60


class Restarts(DriverCase):
    def setUp(self) -> None:
        super().setUp()
        self.minutes = 0.0
        self.health: list[str] = []

    def restart(self) -> None:
        """A new process: it has the database and the management cluster, and remembers nothing."""
        self.ports = dataclasses.replace(
            self.ports,
            leases=lease.ReleaseLeases(self.kube, holder="next", lease_duration=60),
            credential_check=CredentialCheck(),
            addon_check=AddonCheck(),
            controller_check=ControllerCheck(),
            evaluations=EvaluationCache(),
            finished_deletions=FinishedOnce(),
            first_seen=self.seen(),
        )

    def wait(self, minutes: float) -> None:
        self.minutes += minutes
        self.after(self.minutes)

    def go_on(self, times: int = 1, minutes: float = 1) -> None:
        """Magnum's periodic tasks, again and again."""
        for _ in range(times):
            self.wait(minutes)
            self.status_task()
            self.health_task()
            self.health.append(self.cluster().health_status or "")

    def play(self, steps: list[Callable[[], Any]], restarts: set[int]) -> list[str]:
        """Play a story, and return what the rows say in the end."""
        for number, step in enumerate(steps):
            if number in restarts:
                self.restart()
            step()
        self.go_on(2, LONGEST)
        if self.helm.live(NAMESPACE, RELEASE) is not None:
            self.capi_converges()
        self.go_on(3)
        cluster = self.cluster()
        rows = (cluster, *sorted(cluster.nodegroups, key=lambda row: row.name))
        return [f"{row.name} {row.status} {row.node_count}" for row in rows]

    # Stories --------------------------------------------------------------------------------------
    def story_created(self) -> list[Callable[[], Any]]:
        return [self.create, self.go_on, self.capi_converges, self.go_on, self.go_on]

    def story_resized(self) -> list[Callable[[], Any]]:
        return [
            self.made,
            self.go_on,
            lambda: self.resize(3),
            self.go_on,
            self.capi_converges,
            self.go_on,
        ]

    def story_lost_count(self) -> list[Callable[[], Any]]:
        """Magnum has saved a count, and the conductor that was asked is dead."""

        def saved() -> None:
            group = self.group()
            group.node_count = 3
            group.save()

        def taken_up() -> None:
            self.go_on(2, 6)
            self.capi_converges()

        return [self.made, self.health_task, saved, self.go_on, self.go_on, taken_up, self.go_on]

    def story_lost_group(self) -> list[Callable[[], Any]]:
        """The row of a nodegroup is there, and nobody makes it."""

        def saved() -> None:
            self.new_group("extra", status="CREATE_IN_PROGRESS").create()
            self.resize(2)
            self.capi_converges()

        return [self.made, saved, self.go_on, self.go_on, lambda: self.go_on(2, 6)]

    def story_died(self) -> list[Callable[[], Any]]:
        """A create whose conductor died before anything was made."""

        def lost() -> None:
            cluster = self.create()
            cluster.stack_id = None
            cluster.save()

        return [lost, self.go_on, self.go_on, lambda: self.go_on(2, 11)]

    def story_refused(self) -> list[Callable[[], Any]]:
        def refused() -> None:
            self.resize(0, remove=["nobody"])

        return [
            self.made,
            refused,
            self.health_task,
            self.go_on,
            self.go_on,
            lambda: self.go_on(2, 11),
        ]

    def story_dead_credential(self) -> list[Callable[[], Any]]:
        def dead() -> None:
            self.cloud.dead = set(self.cloud.credentials)

        return [self.made, dead, lambda: self.go_on(25), self.go_on, self.go_on]

    def check(self, name: str, before: int) -> None:
        """Compare with what the story ends with when nobody restarts anything.

        :param before: which step the restart comes; below 0 for all of them.
        """
        steps = getattr(self, f"story_{name}")()
        found = self.play(steps, set(range(len(steps))) if before < 0 else {before})
        end, changes = ENDS[name]
        self.assertEqual(end, found)
        passed = [one for one in self.health if one]
        turns = sum(one != other for one, other in itertools.pairwise(passed))
        self.assertLessEqual(turns, changes, self.health)


class TestForEver(Restarts):
    """No process lives as long as it takes to see that something was lost."""

    def test_a_lost_count_is_carried_out_after_all(self) -> None:
        self.made()
        group = self.group()
        group.node_count = 3
        group.save()
        for minutes in (0, 4, _DAY, 4):
            self.wait(minutes)
            self.restart()
            self.health_task()
        self.assertEqual("UPDATE_IN_PROGRESS", self.cluster().status)

    def test_a_creation_that_died_ends_after_all(self) -> None:
        cluster = self.create()
        cluster.stack_id = None
        cluster.save()
        for minutes in (0, 4, 4):
            self.wait(minutes)
            self.restart()
            self.status_task()
            self.assertEqual("CREATE_IN_PROGRESS", self.cluster().status)
        self.wait(_DAY + 11)
        self.restart()
        self.status_task()
        self.assertEqual("CREATE_FAILED", self.cluster().status)

    def test_a_refused_request_is_released_after_all(self) -> None:
        self.made()
        self.resize(0, remove=["nobody"])
        for minutes in (0, 4, _DAY, 11):
            self.assertEqual("UPDATE_FAILED", self.cluster().status)
            self.wait(minutes)
            self.restart()
            self.health_task()
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)


_MADE = ["demo CREATE_COMPLETE 1", "default-master CREATE_COMPLETE 1"]
_THREE = ["demo UPDATE_COMPLETE 3", "default-master CREATE_COMPLETE 1"]
#: Rows in the end, and how often the health changes on the way.
ENDS = {
    "created": ([*_MADE, "default-worker CREATE_COMPLETE 1"], 1),
    "resized": ([*_THREE, "default-worker UPDATE_COMPLETE 3"], 0),
    "lost_count": ([*_THREE, "default-worker CREATE_COMPLETE 3"], 0),
    "lost_group": ([*_THREE, "default-worker UPDATE_COMPLETE 2", "extra CREATE_FAILED 1"], 1),
    "died": (
        [
            "demo CREATE_FAILED 1",
            "default-master CREATE_FAILED 1",
            "default-worker CREATE_FAILED 1",
        ],
        0,
    ),
    "refused": (
        [
            "demo UPDATE_COMPLETE 1",
            "default-master CREATE_COMPLETE 1",
            "default-worker UPDATE_COMPLETE 1",
        ],
        0,
    ),
    "dead_credential": ([*_MADE, "default-worker CREATE_COMPLETE 1"], 1),
}
#: How many steps a story has after the one that begins it.
STEPS = {"created": 0, "resized": 0, "lost_count": 6, "lost_group": 4, "died": 3, "refused": 5}


class TestRestarts(Restarts):
    """Each story with a restart before each of its steps, and with one before all of them."""


def _case(name: str, before: int) -> Callable[[TestRestarts], None]:
    def test(self: TestRestarts) -> None:
        self.check(name, before)

    return test


for _name in ENDS:
    for _before in (-1, *range(1, 1 + STEPS.get(_name, 4))):
        _title = f"test_{_name}_{_before if _before > 0 else 'always'}"
        setattr(TestRestarts, _title, _case(_name, _before))


class TestLock(Restarts):
    """A conductor was killed while it held the lock, before it applied what is on record."""

    def lock(self, process: str) -> None:
        spec = {"holderIdentity": f"{process}/1a2b3c4d", "leaseDurationSeconds": 60}
        self.kube.patch(names.LEASE, NAMESPACE, names.lease(RELEASE), {"spec": spec})

    def resize_and_restart(self, killed: str) -> None:
        self.made()
        self.lock("another/1/5e6f7a8b")
        self.resize(3)
        self.assertEqual(1, self.workers())
        self.lock(killed)
        self.restart()
        self.status_task()

    def workers(self) -> int:
        [entry] = self.helm.live(NAMESPACE, RELEASE).values["nodeGroups"]
        return int(entry["machineCount"])

    def test_the_first_status_task_takes_over_from_a_process_of_its_host(self) -> None:
        host, process, random = holder.holder_identity().split("/")
        number, _, place = process.split("-", 2)
        # This very number, of a process that has started before.
        self.resize_and_restart(f"{host}/{number}-1-{place}/{random}")
        record = self.ports.leases.read(NAMESPACE, RELEASE)
        self.assertEqual((3, ""), (self.workers(), record.holder))

    def test_it_does_not_from_one_of_another_host(self) -> None:
        self.resize_and_restart("another/1/9a8b7c6d")
        self.assertEqual(1, self.workers())
        self.assertIn("The change is being applied", self.cluster().status_reason)
