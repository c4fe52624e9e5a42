# SPDX-License-Identifier: Apache-2.0
"""Once Magnum has accepted the deletion of a nodegroup it goes, whatever is asked for meanwhile.

A request is carried out while every call through a port or to Magnum's database is counted; then
once more for each such call, and just before it another worker carries another request out. So all
the orders come about in which two workers can write, and with a third request inside of the second
one many of the orders of three. A run of the unit tests takes some of them, by lot but always the
same; ``K8S_CAPI_HELM_ORDERS`` says how many of each kind, or ``all``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import itertools
import os
import random
import sys
import time
from typing import Any

from magnum.common import exception
from magnum.conductor.handlers import cluster_conductor, nodegroup_conductor
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm import test_conductor_crashes
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import RELEASE

#: How many orders of each test, by lot, or "all" of them.
_RUNS = os.environ.get("K8S_CAPI_HELM_ORDERS", "")
#: One order to be looked into, as a failure names it.
_ONLY = os.environ.get("K8S_CAPI_HELM_ORDER", "")
_SOME = "6"
_GROUP = "extra"
_Call = Callable[[], Any]


class Case(test_conductor_crashes.Case):
    """A cluster that runs, and whether a deletion of its nodegroup was accepted."""

    def setUp(self) -> None:
        super().setUp()
        self.accepted = False
        self.settled()

    # Requests; those of others meanwhile may come too late ----------------------------------------
    def make(self) -> None:
        self.add_group(_GROUP, 2)

    def drop(self) -> None:
        with self.no_such_row():
            handler = nodegroup_conductor.Handler()
            handler.nodegroup_delete(self.context, self.cluster(), self.group(_GROUP))
            self.accepted = True

    def grow_to(self, count: int) -> None:
        with self.no_such_row():
            self.resize(count, _GROUP)

    def bound(self) -> None:
        with self.no_such_row():
            self.change_group(_GROUP, max_node_count=9)

    def read(self) -> _Call:
        """A resize whose row Magnum's API reads now, and that a conductor is given later."""
        cluster = self.cluster()
        try:
            row = self.group(_GROUP)
        except exception.NodeGroupNotFound:
            return lambda: None
        handler = cluster_conductor.Handler()
        return lambda: self.quietly(handler.cluster_resize, self.context, cluster, 3, None, row)

    @staticmethod
    @contextlib.contextmanager
    def no_such_row() -> Iterator[None]:
        with contextlib.suppress(exception.NodeGroupNotFound, errors.DriverError):
            yield

    def passes(self, number: int = 1) -> None:
        for _ in range(number):
            self.step()

    # Orders ---------------------------------------------------------------------------------------
    @contextlib.contextmanager
    def before(self, turn: int, call: _Call) -> Iterator[list[str]]:
        """Have another worker do that before so many calls; yields the moments, as they come."""
        moments: list[str] = []

        def meanwhile(moment: str) -> None:
            if moment.startswith("before "):
                moments.append(moment)
                if len(moments) == turn + 1:
                    with self.another_conductor():
                        call()

        earlier, self.camera.meanwhile = self.camera.meanwhile, meanwhile
        try:
            yield moments
        finally:
            self.camera.meanwhile = earlier

    @contextlib.contextmanager
    def another_conductor(self) -> Iterator[None]:
        """What is done now is done by another process, and nobody comes in between."""
        mine, earlier = (self.driver, self.ports), self.camera.meanwhile
        self.camera.meanwhile = None
        self.conductor()
        try:
            yield
        finally:
            self.driver, self.ports = mine
            self.camera.meanwhile = earlier

    def turns(self, call: _Call) -> int:
        """At how many moments others can come in between."""
        with self.before(-1, lambda: None) as moments:
            call()
        return len(moments)

    def orders(self, first: _Call, second: _Call, third: _Call | None = None) -> None:
        """The second request comes at each moment of the first one, the third inside of that."""
        self.minutes += 1
        with self.camera.running():
            pass
        start = self.camera.photographs[-1]
        length = self.turns(first)
        self.restore(start)
        found = [(one,) for one in range(length)]
        if third is not None:
            first()
            inner = self.turns(second) + 20
            self.restore(start)
            found = list(itertools.product(range(length), range(inner)))
        began, wrong = time.monotonic(), []
        chosen = list(self.chosen(found))
        for order in chosen:
            self.restore(start)
            self.accepted = False
            try:
                told = self.play(order, first, second, third)
            except Exception as error:
                wrong.append(f"{order} {type(error).__name__} {error} {self.told()}")
                if _ONLY:
                    raise
            else:
                wrong += [f"{order} {told}"] if told else []
        if _RUNS or _ONLY:
            sys.stdout.write(
                f"{self._testMethodName}: {len(found)} orders, {len(chosen)} played, "
                f"{len(wrong)} wrong, {time.monotonic() - began:.0f} s\n"
            )
        self.assertEqual([], wrong)

    def chosen(self, found: list[Any]) -> Iterator[Any]:
        if _ONLY:
            return (one for one in found if ".".join(map(str, one)) == _ONLY)
        lot = random.Random(self.id())  # noqa: S311 - no secret
        many = len(found) if _RUNS == "all" else int(_RUNS or _SOME)
        return iter(lot.sample(found, min(len(found), many)))

    def play(self, order: Any, first: _Call, second: _Call, third: _Call | None) -> str:
        def inside() -> None:
            if third is None:
                second()
                return
            with self.before(order[1], third):
                second()

        with self.before(order[0], inside) as moments:
            first()
        if _ONLY:
            sys.stdout.write(f"{moments[order[0]]}\n")
        there, runs = self.is_rendered(self.live().values), len(self.helm.runs)
        self.go_on(at_least=3)
        if not self.accepted:
            return ""
        for _, _, values in self.helm.runs[runs:]:
            if self.is_rendered(values) and not there:
                return f"it is rendered again: {moments[order[0]]}"
            there = self.is_rendered(values)
        kept = [row.name for row in self.cluster().nodegroups]
        if _GROUP in kept:
            return f"it stays: {moments[order[0]]} {self.group(_GROUP).status}"
        if names.server_group(RELEASE, _GROUP) in self.openstack.ids():
            return f"its server group stays: {moments[order[0]]}"
        self.is_as_the_database_says()
        assert self.cluster().status == "UPDATE_COMPLETE"
        return ""

    def is_rendered(self, values: Any) -> bool:
        return _GROUP in [one["name"] for one in values["nodeGroups"]]


class TestCreated(Case):
    """It is deleted while the request to create it is being carried out."""

    def test_deleted(self) -> None:
        self.orders(self.make, self.drop)

    def test_deleted_and_gone(self) -> None:
        def others() -> None:
            self.drop()
            self.passes(3)

        self.orders(self.make, others)

    def test_deleted_when_it_is_refused(self) -> None:
        self.openstack.quota = 2
        self.orders(self.make, self.drop)

    def test_deleted_and_resized(self) -> None:
        self.orders(self.make, self.drop, lambda: self.grow_to(3))

    def test_resized_and_deleted(self) -> None:
        self.orders(self.make, lambda: self.grow_to(3), self.drop)

    def test_deleted_and_resized_after_that(self) -> None:
        def others() -> None:
            late = self.read()
            self.drop()
            late()

        self.orders(self.make, others)

    def test_deleted_in_a_pass(self) -> None:
        self.orders(self.make, self.passes, self.drop)


class TestThere(Case):
    """It is there, and deleted while other requests are carried out."""

    def setUp(self) -> None:
        super().setUp()
        self.make()
        self.go_on()

    def test_while_it_is_resized(self) -> None:
        self.orders(lambda: self.grow_to(3), self.drop)

    def test_while_it_is_updated(self) -> None:
        self.orders(self.bound, self.drop)

    def test_and_resized(self) -> None:
        self.orders(self.drop, lambda: self.grow_to(3))

    def test_and_updated(self) -> None:
        self.orders(self.drop, self.bound)

    def test_resized_while_passes_see_it_go(self) -> None:
        self.drop()
        late = lambda: self.grow_to(3)  # noqa: E731
        self.accepted = True

        def see() -> None:
            self.accepted = True
            self.passes(4)

        self.orders(see, late)

    def test_in_a_pass(self) -> None:
        self.grow_to(3)
        self.orders(self.passes, self.drop, self.read())
