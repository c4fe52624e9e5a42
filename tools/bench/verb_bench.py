# SPDX-License-Identifier: Apache-2.0
"""Measure how much one project with many clusters in progress delays another one's verb.

The verb is a resize of a nodegroup by Magnum's own handler, with the real helm and this project's
chart, from the call until the MachineDeployment on a real kube-apiserver has the new number. Beside
it Magnum's status task runs over all clusters of the other project, and their objects change.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from concurrent import futures
import contextlib
import dataclasses
import itertools
import os
from pathlib import Path
import random
import statistics
import sys
import tempfile
import time
from typing import Any

from magnum.drivers.k8s_capi_helm.kube.watch.informers import KINDS
from magnum.drivers.k8s_capi_helm.model import names
from sandbox.management import binaries
from tools.bench import bench_database, fleet, follow_bench, pass_costs, pass_process
from tools.bench.bench_database import Databases
from tools.bench.busy_fleet import BusyFleet, Changes
from tools.bench.fleet import ManagementCluster
from tools.bench.verb_conductor import PERIOD

#: Clusters in progress of the other project, and changes of their objects in a second.
OTHERS, RATE = 500, 5.0
#: Rounds, and verbs alone and beside in each.
ROUNDS, VERBS = 2, 5
#: Ratio of the medians, at most.
GOAL = 1.2
_PATIENCE = 120.0
_LOOKS = 0.02
#: What the chart renders besides what is watched.
_RENDERED = (names.MACHINE_HEALTH_CHECK, names.MACHINE_TEMPLATE, names.BOOTSTRAP_TEMPLATE)
#: Who has the status task: the process that carries out the verb, or Magnum's parent process; or a
#: parent whose driver does nothing, which is Magnum's own part.
TOGETHER, APART, IDLE = "one process", "parent and worker", "parent with an idle driver"
#: A project each time: nothing is left of an earlier one.
_projects = itertools.count(1)


@dataclasses.dataclass(frozen=True, slots=True)
class Verb:
    """What one verb took, in seconds.

    :ivar seconds: until the object had the new number.
    :ivar answered: until Magnum's handler was through.
    :ivar helm: Helm's part of that.
    """

    seconds: float
    answered: float
    helm: float


class Tenant:
    """One cluster of a project of its own, at a conductor."""

    def __init__(self, management: ManagementCluster, conductor: pass_process.Process) -> None:
        project = f"one{next(_projects)}"
        self._admin = management.admin
        self._conductor = conductor
        conductor.ask("create", project=project)
        self._namespace = f"{pass_costs.CLUSTERS}{project}"
        self._counts = itertools.cycle((2, 3))

    def resize(self) -> Verb:
        """Give the workers of the cluster another number."""
        count = next(self._counts)
        with futures.ThreadPoolExecutor(1) as pool:
            begin = time.monotonic()
            asked = pool.submit(self._conductor.ask, "resize", count=count)
            while self._replicas() != count:
                if time.monotonic() - begin > _PATIENCE:
                    raise TimeoutError(f"{self._replicas()} replicas instead of {count}")
                time.sleep(_LOOKS)
            seconds = time.monotonic() - begin
            answer = asked.result()
        self._conductor.ask("settle")
        return Verb(seconds, answer["seconds"], answer["helm"])

    def _replicas(self) -> int | None:
        [found] = self._admin.list(names.MACHINE_DEPLOYMENT, self._namespace)
        return found["spec"].get("replicas")  # type: ignore[no-any-return]


class Bench:
    """A management cluster with the clusters of a project, and a database for each measurement."""

    def __init__(self, management: ManagementCluster, databases: Databases) -> None:
        self._management = management
        self._databases = databases
        self._busy = BusyFleet(management, OTHERS, "many")

    def measure(self, layout: str) -> tuple[list[Verb], list[Verb]]:
        """Verbs alone and beside the other project."""
        alone, beside = list[Verb](), list[Verb]()
        with contextlib.ExitStack() as stack:
            url = self._databases.new()
            worker = stack.enter_context(self._conductor(pass_process.OWN_WITH_CLOUD, url))
            parent = worker
            if layout != TOGETHER:
                driver = pass_costs.NOTHING if layout == IDLE else pass_process.OWN_WITH_CLOUD
                parent = stack.enter_context(self._conductor(driver, url))
            tenant = Tenant(self._management, worker)
            parent.ask("insert", clusters=self._busy.rows)
            tenant.resize()
            for _ in range(ROUNDS):
                alone += [_after_a_while(tenant) for _ in range(VERBS)]
                with self._load(parent, layout):
                    beside += [_after_a_while(tenant) for _ in range(VERBS)]
        return alone, beside

    @contextlib.contextmanager
    def _conductor(self, driver: str, url: str) -> Iterator[pass_process.Process]:
        with tempfile.TemporaryDirectory() as place:
            setting = pass_process.Setting(
                driver,
                Path(place),
                self._management.kubeconfig,
                url=url,
                module="tools.bench.verb_conductor",
                programs=binaries.build(),
            )
            with pass_process.Process(setting) as process:
                yield process

    @contextlib.contextmanager
    def _load(self, parent: pass_process.Process, layout: str) -> Iterator[None]:
        """The status task over the other project's clusters, whose objects change."""
        follow_bench.warm_up(parent)
        changes, before = Changes(self._busy, RATE), parent.ask("clock")
        try:
            yield
        finally:
            changes.end()
        after = parent.ask("clock")
        parent.ask("pause")
        lasted = after["time"] - before["time"]
        print(
            f"    {layout}: {changes.made / lasted:3.1f} changes a second, CPU of the status "
            f"task's process {(after['cpu'] - before['cpu']) / lasted:4.2f} of a core, a round of "
            f"{PERIOD:.0f} s takes {statistics.median(parent.ask('rounds')[:-1]):4.1f} s",
            flush=True,
        )


def _after_a_while(tenant: Tenant) -> Verb:
    """A verb at any moment of the status task's period."""
    time.sleep(random.uniform(0, PERIOD))  # noqa: S311
    return tenant.resize()


def show(layout: str, alone: list[Verb], beside: list[Verb]) -> float:
    """Print what was measured; returns the ratio."""
    ratio = _median(beside, "seconds") / _median(alone, "seconds")
    for what, found in (("alone", alone), ("beside", beside)):
        print(
            f"    {what:6s}  median {_median(found, 'seconds'):5.2f} s  at most "
            f"{max(one.seconds for one in found):5.2f} s ({len(found)} verbs)  helm "
            f"{_median(found, 'helm'):5.2f} s  answered after {_median(found, 'answered'):5.2f} s"
        )
    judged = "" if layout == IDLE else f"  (goal: {GOAL}, {'met' if ratio <= GOAL else 'MISSED'})"
    print(f"  {layout}: ratio {ratio:.2f}{judged}  load {os.getloadavg()[1]:.0f}", flush=True)
    return ratio


def _median(verbs: list[Verb], field: str) -> float:
    return float(statistics.median(getattr(one, field) for one in verbs))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; 1 where the goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.verb_bench", description=__doc__)
    layouts: Any = (TOGETHER, APART, IDLE)
    parser.add_argument("--layout", choices=layouts, action="append", help="only this")
    given = parser.parse_args(arguments)
    kinds = (*(kind for kind in KINDS if kind.group), *_RENDERED)
    met = True
    with (
        tempfile.TemporaryDirectory() as place,
        fleet.management_cluster(kinds) as management,
        bench_database.databases(Path(place)) as databases,
    ):
        bench = Bench(management, databases)
        print(
            f"A resize of one project's cluster beside {OTHERS} clusters in progress of another "
            f"project, on {databases.kind}:",
            flush=True,
        )
        for layout in given.layout or layouts:
            ratio = show(layout, *bench.measure(layout))
            met &= layout == IDLE or ratio <= GOAL
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
