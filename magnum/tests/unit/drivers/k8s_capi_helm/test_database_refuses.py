# SPDX-License-Identifier: Apache-2.0
"""The database refuses a write, at each write of each verb: nothing is lost, and it all ends.

First so often as a busy Galera does, which nobody may notice; then until the driver gives up, and
Magnum's periodic tasks have to go on from there. Only writes of the driver are refused: what
Magnum's conductor does not save of its own is its own affair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import os
import random
import sys
import types
from typing import Any

import fixtures
from oslo_db import exception as db_exception

from magnum.drivers.k8s_capi_helm import driver
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import saving
from magnum.tests.unit.drivers.k8s_capi_helm import conductor_crash, test_conductor_crashes

_GROUP = "extra"
_HOME = os.path.dirname(driver.__file__)
_WRITES = ("update_cluster", "update_nodegroup", "destroy_nodegroup")
#: How many writes of each verb, by lot, or "all" of them.
_RUNS = os.environ.get("K8S_CAPI_HELM_REFUSED_WRITES", "")
_SOME = "4"


class Case(test_conductor_crashes.Case):
    """A database that refuses writes of the driver."""

    def setUp(self) -> None:
        super().setUp()
        self.pauses: list[float] = []
        clock = types.SimpleNamespace(sleep=self.pauses.append)
        self.useFixture(fixtures.MonkeyPatch("oslo_db.api.time", clock))

    @contextlib.contextmanager
    def refusing(self, refuse: Callable[[], None]) -> Iterator[None]:
        """Call something before each write of the driver, which may raise."""

        def meanwhile(moment: str) -> None:
            if moment.removeprefix("before database.") in _WRITES and _is_the_drivers():
                refuse()

        self.camera.meanwhile = meanwhile
        try:
            yield
        finally:
            self.camera.meanwhile = None

    def status_task(self) -> None:
        """Magnum's loop ends with what is raised, and begins anew with the next round."""
        with contextlib.suppress(db_exception.DBError):
            super().status_task()

    @staticmethod
    def quietly(call: Any, *args: Any) -> None:
        """oslo.messaging logs what a conductor handler raises."""
        with contextlib.suppress(db_exception.DBError):
            test_conductor_crashes.Case.quietly(call, *args)

    def moment(self) -> conductor_crash.Photograph:
        return conductor_crash.Photograph("the beginning", self.minutes, self.develop())


class TestBusy(Case):
    """Each write is refused, some times in a row."""

    def refused(self, times: int, error: Exception) -> Callable[[], None]:
        left = [times]

        def refuse() -> None:
            if left[0]:
                left[0] -= 1
                raise error
            left[0] = times

        return refuse

    def test_a_whole_life_with_deadlocks(self) -> None:
        """As Galera says it of a write that another node was faster than."""
        with self.refusing(self.refused(3, db_exception.DBDeadlock())):
            self.life()
        self.assertGreater(len(self.pauses), 30)

    def test_a_whole_life_with_lost_connections(self) -> None:
        """As a server says it that restarts: "MySQL server has gone away"."""
        with self.refusing(self.refused(2, db_exception.DBConnectionError())):
            self.life()

    def life(self) -> None:
        self.settled()
        self.assertEqual("CREATE_COMPLETE", self.cluster().status)
        self.add_group(_GROUP, 2)
        self.go_on()
        self.resize(3)
        self.go_on()
        counts = [self.entry(one)["machineCount"] for one in ("default-worker", _GROUP)]
        self.assertEqual([3, 2], counts)
        self.drop_group(_GROUP)
        self.go_on()
        left = [one["name"] for one in self.live().values["nodeGroups"]]
        self.assertEqual(["default-worker"], left)
        self.is_as_the_database_says()
        self.delete()
        self.go_on()
        self.assertTrue(self.is_gone())

    def test_it_ends_and_says_what_the_database_said(self) -> None:
        self.settled()
        for error in (db_exception.DBDeadlock(), db_exception.DBConnectionError()):
            self.pauses.clear()
            with self.refusing(self.refused(1000, error)):
                self.assertRaises(type(error), saving.save, self.cluster(), status_reason="new")
            self.assertLess(sum(self.pauses), 10)

    def test_what_is_wrong_with_the_write_itself_is_not_tried_again(self) -> None:
        self.settled()
        with self.refusing(self.refused(1, db_exception.DBDataError())):
            row = self.cluster()
            self.assertRaises(db_exception.DBDataError, saving.save, row, status_reason="new")
        self.assertEqual([], self.pauses)


class TestRefused(Case):
    """One write is refused until the driver gives it up."""

    def survive_refusals(self, ask: Callable[[], Any], done: Callable[[], bool]) -> None:
        begin, writes = self.moment(), [0]

        def count() -> None:
            writes[0] += 1

        with self.refusing(count):
            ask()
            self.go_on()
        self.assertTrue(done(), "without any refusal")
        wrong, runs = [], self.chosen_writes(writes[0])
        for number in runs:
            self.restore(begin)
            with self.refusing(self.until_given_up(number)):
                ask()
                self.go_on()
            try:
                self.goes_on(False, done, begin)
            except AssertionError as error:
                wrong.append(f"write {number}: {error} {self.told()}")
        if _RUNS:
            sys.stdout.write(f"{self._testMethodName}: {len(runs)} of {writes[0]} writes refused\n")
        self.assertEqual([], wrong)

    def chosen_writes(self, writes: int) -> list[int]:
        lot = random.Random(self.id())  # noqa: S311 - no secret
        every = range(1, writes + 1)
        if _RUNS == "all":
            return list(every)
        return lot.sample(every, min(writes, int(_RUNS or _SOME)))

    @staticmethod
    def until_given_up(number: int) -> Callable[[], None]:
        seen, left = [0], [1 + saving.TRIES]

        def refuse() -> None:
            seen[0] += 1
            if seen[0] >= number and left[0]:
                left[0] -= 1
                raise db_exception.DBConnectionError()

        return refuse

    def test_create(self) -> None:
        """A create that could not be saved is CREATE_FAILED, and says what to do."""
        self.survive_refusals(self.create, lambda: self.cluster().status == "CREATE_COMPLETE")

    def test_resize(self) -> None:
        self.settled()
        self.survive_refusals(lambda: self.resize(3), lambda: self.entry()["machineCount"] == 3)

    def test_nodegroups(self) -> None:
        self.settled(groups=("other",))

        def ask() -> None:
            self.add_group(_GROUP, 2)
            self.drop_group("other")

        self.survive_refusals(
            ask, lambda: _GROUP in {one.name for one in self.cluster().nodegroups}
        )

    def test_upgrade(self) -> None:
        self.settled()

        def ask() -> None:
            with contextlib.suppress(db_exception.DBError):
                self.upgrade(self.next)

        self.survive_refusals(ask, lambda: self.cluster().cluster_template_id == self.next.uuid)

    def test_delete(self) -> None:
        self.settled()
        self.survive_refusals(self.delete, self.is_gone)


def _is_the_drivers() -> bool:
    """Whether the driver is among those that have called."""
    frame: Any = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename.startswith(_HOME + os.sep):
            return True
        frame = frame.f_back
    return False
