# SPDX-License-Identifier: Apache-2.0
"""Measure what a pass costs beside peer drivers and beside one that does nothing: `make bench`.

Conductors take turns on one real kube-apiserver, each a process of its own, over the same rows of
Magnum and the same objects (:mod:`tools.bench.peer_fleet`). The peer is magnum-capi-helm as PyPI
has it. Another one is magnum-cluster-api, which has the same clusters with objects of its own
(:mod:`tools.bench.topology_fleet`). A goal of :data:`tools.bench.pass_costs.GOALS` that is missed
by more than is known is a failure.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
import contextlib
import dataclasses
import math
from pathlib import Path
import random
import sys
import tempfile
import time

from magnum.drivers.k8s_capi_helm.model import names
from tools.bench import fleet, pass_costs, pass_process, pass_tables, peer_fleet, topology_fleet
from tools.bench.fleet import Json, ManagementCluster
from tools.bench.pass_costs import (
    AT_REST,
    COMPLETING,
    Cost,
    DRIVERS,
    NOTHING,
    OTHER_PEER,
    OWN,
    PENDING,
)

#: Clusters of a fleet, with rounds, and measured passes of each round.
FLEETS = {1: (5, 10), 20: (5, 5), 200: (3, 2)}
QUICK = {20: (3, 5)}
#: A pass over clusters at rest takes little time, and its goal is small: so many times as often.
_AT_REST_TIMES = 4
#: Fewer clusters take too little time for a verdict.
JUDGED = 20
#: Passes that fill caches and begin watches: until two in turn ask the same number of things.
_LEAST_WARM, _MOST_WARM, _WARM_PAUSE = 3, 8, 1.0
#: Seconds from a change to Magnum's next pass, and between those that follow.
_SETTLE, _PAUSE = 2.0, 1.0
_MOST_PASSES = 8


@dataclasses.dataclass(frozen=True, slots=True)
class Scene:
    """Clusters on the management cluster and in Magnum.

    :ivar clusters: rows and objects; where something changes, one of them is for warming up.
    :ivar change: objects by which all others become ready; empty for clusters at rest.
    :ivar database: with the rows.
    """

    clusters: Sequence[Json]
    change: Sequence[Json]
    database: Path

    @property
    def measured(self) -> int:
        """Number of clusters that count."""
        return len(self.clusters) - bool(self.change)

    def of(self, driver: str) -> Scene:
        """The scene with the objects that a driver understands."""
        if driver != OTHER_PEER:
            return self
        return dataclasses.replace(
            self,
            clusters=[topology_fleet.cluster(one) for one in self.clusters],
            change=list(topology_fleet.objects(self.change)),
        )


class Bench:
    """A management cluster, and what was measured with one size of the fleet.

    :ivar costs: by phase and driver, one for each round.
    :ivar memory: MiB settled and at most, by phase that a process ended with, and driver.
    :ivar profiles: of this driver, by phase.
    """

    def __init__(
        self, management: ManagementCluster, drivers: Sequence[str], passes: int, *, profiled: bool
    ) -> None:
        self._management = management
        self._drivers = drivers
        self._passes = passes
        self._profiled = profiled
        self.costs: dict[str, dict[str, list[Cost]]] = {}
        self.memory: dict[str, dict[str, list[Json]]] = {}
        self.profiles: dict[str, str] = {}

    def take_turns(self, scene: Scene, rounds: int) -> None:
        """Measure every driver as often as there are rounds, in random order within each."""
        scenes = {driver: scene.of(driver) for driver in self._drivers}
        for _ in range(rounds):
            for driver in random.sample(self._drivers, len(self._drivers)):
                self._management.clear()
                self._management.fill(scenes[driver].clusters)
                self._management.forget_requests()
                with process(self._management, driver, scene.database) as conductor:
                    phase = self._measure(conductor, driver, scenes[driver])
                    found = self.memory.setdefault(phase, {}).setdefault(driver, [])
                    found.append(conductor.ask("memory"))

    def _measure(self, conductor: pass_process.Process, driver: str, scene: Scene) -> str:
        """Measure one driver in all phases of a scene; returns the last one."""
        if not scene.change:
            self._passes_of(conductor, driver, AT_REST, scene)
            if driver != NOTHING:
                _check(conductor, "health_status", "HEALTHY", scene.measured)
            return AT_REST
        self._passes_of(conductor, driver, PENDING, scene)
        _check(conductor, "status", "CREATE_IN_PROGRESS", scene.measured)
        self._finish(conductor, driver, scene)
        if driver != NOTHING:
            _check(conductor, "status", "CREATE_COMPLETE", len(scene.clusters))
        return COMPLETING

    def _passes_of(
        self, conductor: pass_process.Process, driver: str, phase: str, scene: Scene
    ) -> None:
        job = "health" if phase == AT_REST else "status"
        self._warm(conductor, job)
        times = self._passes * (_AT_REST_TIMES if phase == AT_REST else 1)
        passes = conductor.ask("run", job=job, times=times)
        _require_success(conductor, sum(one["failed"] for one in passes))
        counts = [self._management.requests(one["since"], one["until"]) for one in passes]
        # The cluster for warming up is in no pass any more, but in those of who does nothing.
        clusters = len(scene.clusters) if driver == NOTHING else scene.measured
        seconds = pass_costs.spread([one["cpu"] for one in passes]).median
        cost = Cost(pass_costs.per_cluster(counts, clusters), seconds * 1000 / clusters)
        self.costs.setdefault(phase, {}).setdefault(driver, []).append(cost)
        if self._profiled and driver == OWN:
            self.profiles[phase] = conductor.ask("profile", job=job)

    def _warm(self, conductor: pass_process.Process, job: str) -> None:
        asked = list[float]()
        while len(asked) < _MOST_WARM and (len(asked) < _LEAST_WARM or asked[-1] != asked[-2]):
            if asked:
                time.sleep(_WARM_PAUSE)
            [one] = conductor.ask("run", job=job, times=1)
            counts = self._management.requests(one["since"], one["until"])
            # A kind that was never asked for is not served at once.
            asked.append(math.nan if one["failed"] else sum(counts.values()))

    def _finish(self, conductor: pass_process.Process, driver: str, scene: Scene) -> None:
        """From the change of the objects to the last row that says so."""
        before = conductor.ask("clock")
        self._management.put(scene.change)
        most = 2 if driver == NOTHING else _MOST_PASSES
        passes = conductor.ask(
            "finish",
            settle=_SETTLE,
            pause=_PAUSE,
            most=most,
            profiled=self._profiled and driver == OWN,
        )
        _require_success(conductor, passes["failed"])
        after = passes["end"]
        clusters = len(scene.clusters) if driver == NOTHING else scene.measured
        counts = self._management.requests(before["time"], after["time"])
        cost = Cost(
            pass_costs.per_cluster([counts], clusters),
            (after["cpu"] - before["cpu"]) * 1000 / clusters,
            passes["passes"],
        )
        self.costs.setdefault(COMPLETING, {}).setdefault(driver, []).append(cost)
        if passes["profile"]:
            self.profiles[COMPLETING] = passes["profile"]


@contextlib.contextmanager
def process(
    management: ManagementCluster, driver: str, database: Path | None
) -> Iterator[pass_process.Process]:
    """A conductor, and a directory for it."""
    with tempfile.TemporaryDirectory() as place:
        setting = pass_process.Setting(driver, Path(place), management.kubeconfig, database)
        with pass_process.Process(setting) as found:
            yield found


def scenes(management: ManagementCluster, number: int, place: Path) -> Iterator[Scene]:
    """Clusters at rest, then clusters that are being created."""
    at_rest, pending, ready = peer_fleet.at_rest(), peer_fleet.pending(), peer_fleet.ready()
    # Nobody has looked at it yet: who does has to find out that it is healthy.
    at_rest["cluster"].update(health_status=None, health_status_reason=None)
    yield _scene(management, [fleet.copy(at_rest, n) for n in range(number)], (), place)
    changed = [fleet.copy(ready, n) for n in range(number)]
    change = [one for cluster in changed for one in peer_fleet.written_by_controllers(cluster)]
    waiting = [fleet.copy(pending, n) for n in range(number)]
    yield _scene(management, [*waiting, fleet.copy(ready, number)], change, place)


def _scene(
    management: ManagementCluster, clusters: Sequence[Json], change: Sequence[Json], place: Path
) -> Scene:
    found = Scene(clusters, change, place / f"{len(clusters)}-{len(change)}.sqlite")
    rows = [peer_fleet.rows(one) for one in clusters]
    with process(management, NOTHING, None) as conductor:
        conductor.ask("insert", clusters=rows)
        pass_process.copy_database(conductor.database, found.database)
    return found


def _require_success(conductor: pass_process.Process, failed: int) -> None:
    """No job of a measured pass failed.

    :raises RuntimeError: the figures would mean nothing; the text ends with its log.
    """
    if failed:
        raise RuntimeError(f"{failed} jobs failed: {conductor.said()}")


def _check(conductor: pass_process.Process, field: str, expected: str, least: int) -> None:
    """Whoever does something has written what is true; *least* so many times.

    :raises RuntimeError: it has not; its figures would mean nothing.
    """
    rows = conductor.ask("rows")
    others = [row for row in rows if row[field] != expected]
    if len(rows) - len(others) < least:
        raise RuntimeError(f"not {expected}: {others[0]}: {conductor.said()}")


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.bench.pass_bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only 20 clusters, fewer rounds")
    parser.add_argument("--clusters", type=int, action="append", help="only so many")
    parser.add_argument("--rounds", type=int, help="instead of those of each size")
    parser.add_argument("--verbose", action="store_true", help="requests by verb and resource")
    parser.add_argument("--profile", action="store_true", help="this driver's functions, too")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 where a goal is failed."""
    given = _arguments(arguments)
    sizes = QUICK if given.quick else FLEETS
    if given.clusters:
        sizes = {number: FLEETS.get(number, FLEETS[JUDGED]) for number in given.clusters}
    failed = 0
    reasons = {driver: pass_process.unavailable(driver) for driver in DRIVERS}
    drivers = [driver for driver in DRIVERS if not reasons[driver]]
    for driver in (one for one in DRIVERS if reasons[one]):
        print(f"{driver}: not measured: {reasons[driver]}", flush=True)
    with fleet.management_cluster([*peer_fleet.kinds(), names.OPENSTACK_MACHINE]) as management:
        peer_fleet.let_peer_read(management.admin)
        for number, (rounds, passes) in sizes.items():
            bench = Bench(management, drivers, passes, profiled=given.profile)
            with tempfile.TemporaryDirectory() as place:
                for scene in scenes(management, number, Path(place)):
                    bench.take_turns(scene, given.rounds or rounds)
            print(pass_tables.costs(number, bench.costs, verbose=given.verbose))
            print(pass_tables.memory(bench.memory))
            for phase, text in bench.profiles.items():
                print(f"{phase}:\n{text}")
            if number >= JUDGED:
                text, count = pass_tables.phase_verdict(bench.costs)
                failed += count
                print(text, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
