# SPDX-License-Identifier: Apache-2.0
"""Lives of clusters: steps in order, several lives at once, each step a test.

A life is lived in a thread of its own, because a cluster spends its time waiting; but only so many
at once as the processors build clusters for in the time that Cluster API gives a machine, else the
machines are replaced that a test is waiting for. Lives of the modules ``test_core_*`` are lived
first, those of ``test_more_*`` when these have ended; a life that
stops the management cluster for everybody stands in ``test_outage``, or its controllers in
``test_silence``, one that starts a janitor for all clusters in ``test_janitor``, one that
configures Magnum otherwise in ``test_site_*``, the operator's in ``test_operator``, each
alone.
"""

from __future__ import annotations

from collections.abc import Callable
import functools
import os
import sys
import threading
import time
import traceback
from typing import Any, ClassVar
import unittest

from magnum.tests.functional.k8s_capi_helm.sandbox import operator_command, setting
from magnum.tests.functional.k8s_capi_helm.sandbox.cluster import Cluster
from magnum.tests.functional.k8s_capi_helm.sandbox.customer import Customer

Step = Callable[[Any], None]

#: When set, only the life of the test that runs is started: for work on a single one.
ALONE = "SANDBOX_TEST_ALONE"
_SITE = "test_site_"
#: Seconds after which nobody waits for a step any more.
_PATIENCE = 1200.0
#: Lives at once; those that wait begin in the order of the tests.
_places = threading.Semaphore(3 * (os.cpu_count() or 1))
_begin = time.monotonic()


def step(function: Step) -> Step:
    """A step of a life; steps are lived in the order in which they are written down."""
    function.is_step = True  # type: ignore[attr-defined]
    return function


def ending(function: Step) -> Step:
    """A step that is tried even if an earlier one failed, so that little is left behind."""
    function.is_ending = True  # type: ignore[attr-defined]
    return step(function)


class Life:
    """What one customer does with a cluster, step by step.

    :cvar name: of the life, and beginning of the customer's names in OpenStack.
    :cvar independent: no step builds on an earlier one, so each is tried.
    """

    name = "life"
    independent = False
    customer: Customer

    def __init__(self) -> None:
        self._ended: dict[str, threading.Event] = {name: threading.Event() for name in self.steps()}
        self._failures: dict[str, str] = {}
        self._thread = threading.Thread(target=self._live, name=self.name, daemon=True)
        self._started = False

    @classmethod
    def missing(cls) -> str:
        """What it needs and this run does not have, as the reason of a skip; "" with all of it."""
        return ""

    @classmethod
    def steps(cls) -> list[str]:
        """Names of the steps in their order."""
        return [name for name, value in vars(cls).items() if getattr(value, "is_step", False)]

    def start(self) -> None:
        """Begin, unless it has begun."""
        if not self._started:
            self._started = True
            self._thread.start()

    def end(self) -> None:
        """Wait until the last step has ended."""
        self._thread.join(_PATIENCE)

    def result(self, name: str) -> str | None:
        """Wait for a step; None if it went well, else what went wrong."""
        if not self._ended[name].wait(_PATIENCE):
            return f"{name} has not ended after {_PATIENCE:.0f} s"
        return self._failures.get(name)

    def new_customer(self) -> Customer:
        """Whose life it is."""
        return Customer.new(self.name)

    @property
    def cluster(self) -> Cluster:
        """The customer's cluster."""
        return self.customer.cluster

    def fault(self, name: str, on: bool, match: str | None = None) -> None:
        """Begin or end a fault of the sandbox."""
        self.say(setting.fault(name, on, match))

    def explained(self, fault: str, words: str, cluster: Cluster | None = None) -> None:
        """The first line of ``why`` has these words about what the fault does.

        :param cluster: the customer's without.
        """
        line = operator_command.cause((cluster or self.cluster).uuid, words)
        self.say(f"why, {fault}: {line}")

    def say(self, text: str) -> None:
        """One line for who watches the run."""
        sys.stderr.write(f"[{time.monotonic() - _begin:6.1f} s] {self.name}: {text}\n")
        sys.stderr.flush()

    def _live(self) -> None:
        with _places:
            self._live_steps()

    def _live_steps(self) -> None:
        unborn = self._try("customer", self._begin)
        broken = unborn
        for name in self.steps():
            function = getattr(type(self), name)
            tried = self.independent or getattr(function, "is_ending", False)
            if broken and (unborn or not tried):
                self._failures[name] = f"not reached: {broken} failed"
            elif self._try(name, functools.partial(function, self)):
                broken = broken or name
            self._ended[name].set()

    def _begin(self) -> None:
        self.customer = self.new_customer()

    def _try(self, name: str, act: Callable[[], Any]) -> str:
        """Do it and remember a failure under the name; returns the name if it failed, else ""."""
        begin = time.monotonic()
        try:
            act()
        except Exception as error:
            self._failures[name] = traceback.format_exc()
            self.say(f"{name} FAILED after {time.monotonic() - begin:.1f} s: {error}")
            return name
        self.say(f"{name} {time.monotonic() - begin:.1f} s")
        return ""


class LifeCase(unittest.TestCase):
    """A test for each step of a life: ``class TestEveryday(LifeCase, life=Everyday)``."""

    _life: ClassVar[Life | None] = None
    _by_stage: ClassVar[dict[str, list[type[LifeCase]]]] = {}
    _lives: ClassVar[dict[type[LifeCase], Life]] = {}

    def __init_subclass__(cls, life: type[Life], **more: Any) -> None:
        super().__init_subclass__(**more)
        cls._kind = life
        module = cls.__module__.rpartition(".")[2]
        # Each site is the only one: what it configures holds for all clusters.
        stage = module if module.startswith(_SITE) else "_".join(module.split("_")[:2])
        cls._by_stage.setdefault(stage, []).append(cls)
        cls._stage = stage
        for number, name in enumerate(life.steps(), 1):
            setattr(cls, f"test_{number:02}_{name}", _test_of(name))

    _kind: ClassVar[type[Life]]
    _stage: ClassVar[str]

    @classmethod
    def setUpClass(cls) -> None:
        """Start the lives of this stage, when those of the earlier ones have ended."""
        super().setUpClass()
        if why := cls._kind.missing():
            raise unittest.SkipTest(why)
        setting.state()
        for other, life in list(cls._lives.items()):
            if other._stage != cls._stage:
                life.end()
        for other in [cls] if os.environ.get(ALONE) else cls._by_stage[cls._stage]:
            if other._kind.missing():
                continue
            cls._lives.setdefault(other, other._kind()).start()

    @classmethod
    def tearDownClass(cls) -> None:
        cls._lives[cls].end()
        super().tearDownClass()


def _test_of(name: str) -> Callable[[LifeCase], None]:
    def test(self: LifeCase) -> None:
        wrong = self._lives[type(self)].result(name)
        if wrong:
            self.fail(wrong)

    return test
