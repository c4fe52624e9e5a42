# SPDX-License-Identifier: Apache-2.0
"""Measure how soon Magnum's rows follow their objects, beside Magnum's status task.

The objects are changed, and the rows looked at, from another process than the conductor's.
"""

from __future__ import annotations

import argparse
import collections
from collections.abc import Sequence
import contextlib
import dataclasses
import math
import os
from pathlib import Path
import random
import statistics
import sys
import tempfile
import time

from tools.bench import bench_database, fleet, pass_process
from tools.bench.bench_database import Databases, Reasons
from tools.bench.busy_fleet import BusyFleet
from tools.bench.fleet import ManagementCluster
from tools.bench.verb_conductor import PERIOD

#: Clusters in progress, and changes that are measured. Each change is of another cluster if there
#: are as many.
FLEETS = ((1, 30), (500, 100))
#: Seconds from one change to the next on average. Those of one cluster are at least APART from each
#: other: what follows a pass sooner than three seconds waits on purpose.
INTERVAL, APART = 1.0, 4.0
#: Seconds from a change to its row, at most: in the median, and of 95 %.
MEDIAN_GOAL, LATE_GOAL = 1.0, 2.0
#: First passes of each cluster, and seconds for a row to follow, at most.
_FIRST, _PATIENCE = 3, 60.0
_LOOKS = 0.02


@dataclasses.dataclass(frozen=True, slots=True)
class Followed:
    """How soon rows have followed.

    :ivar seconds: of each change, the shortest first.
    :ivar processor: seconds of the conductor for each second that passed.
    :ivar rounds: seconds from the begin of the status task to the end of its last pass, by round.
    """

    seconds: list[float]
    processor: float
    rounds: list[float]

    @property
    def median(self) -> float:
        """Half of the rows have followed by then."""
        return statistics.median(self.seconds)

    @property
    def late(self) -> float:
        """95 % of the rows have followed by then."""
        return self.seconds[math.ceil(len(self.seconds) * 0.95) - 1]

    @property
    def is_goal_met(self) -> bool:
        """Whether rows follow as soon as they have to."""
        return self.median < MEDIAN_GOAL and self.late < LATE_GOAL


def schedule(clusters: int, changes: int) -> list[tuple[float, int]]:
    """After how many seconds which cluster is changed: random ones, at random moments."""
    lots = [random.uniform(0, INTERVAL) for _ in range(changes)]  # noqa: S311
    if clusters < changes:
        turns = range(changes)
        return [(turn * (APART + INTERVAL) + lots[turn], turn % clusters) for turn in turns]
    chosen = random.sample(range(clusters), changes)
    return sorted((lot * changes, one) for lot, one in zip(lots, chosen, strict=True))


def follow(busy: BusyFleet, reasons: Reasons, waiting: list[tuple[float, int]]) -> list[float]:
    """Make changes; seconds from each to the reason in Magnum's row, the shortest first.

    A row that does not follow while there is patience counts as one that did so then.
    """
    begin, found = time.monotonic(), list[float]()
    marks, changes = dict[str, tuple[str, float]](), collections.deque(waiting)
    while changes or marks:
        now = time.monotonic()
        while changes and now - begin >= changes[0][0]:
            release = busy.releases[changes[0][1]]
            if release in marks:
                break
            _, index = changes.popleft()
            marks[release] = f"mark {len(changes)} ", time.monotonic()
            busy.change(index, marks[release][0])
        for release, reason in reasons.of(list(marks)).items():
            mark, since = marks[release]
            if mark in reason or now - since > _PATIENCE:
                found.append(time.monotonic() - since)
                del marks[release]
        time.sleep(_LOOKS)
    return sorted(found)


def warm_up(conductor: pass_process.Process) -> None:
    """Let Magnum's status task begin, after passes that read and judge everything.

    Those are made one after another: hundreds of them at once are the start of a conductor.
    """
    conductor.ask("run", job="status", times=_FIRST)
    conductor.ask("begin")
    time.sleep(2 * PERIOD)


def measure(
    management: ManagementCluster,
    databases: Databases,
    clusters: int,
    changes: int,
    *,
    is_profiled: bool = False,
) -> Followed:
    """How soon the rows of a fleet follow.

    :param is_profiled: whether it is printed what the threads of the conductor do.
    """
    busy, url = BusyFleet(management, clusters, f"follow{clusters}"), databases.new()
    with tempfile.TemporaryDirectory() as place:
        setting = pass_process.Setting(
            pass_process.OWN_WITH_CLOUD,
            Path(place),
            management.kubeconfig,
            url=url,
            module="tools.bench.verb_conductor",
        )
        with (
            pass_process.Process(setting) as conductor,
            contextlib.closing(Reasons(url)) as reasons,
        ):
            conductor.ask("insert", clusters=busy.rows)
            warm_up(conductor)
            if is_profiled:
                conductor.ask("watch_threads")
            before, known = conductor.ask("clock"), len(conductor.ask("rounds"))
            seconds = follow(busy, reasons, schedule(clusters, changes))
            after, rounds = conductor.ask("clock"), conductor.ask("rounds")
            if is_profiled:
                print(conductor.ask("threads"))
            if seconds[-1] > _PATIENCE:
                print(conductor.said(), file=sys.stderr)
    management.clear()
    processor = (after["cpu"] - before["cpu"]) / (after["time"] - before["time"])
    return Followed(seconds, processor, rounds[known:-1])


def show(clusters: int, found: Followed) -> None:
    """Print what was measured, and what of the goal is met."""
    print(
        f"  {clusters:4d} in progress  median {found.median:5.2f} s  p95 {found.late:5.2f} s  "
        f"at most {found.seconds[-1]:5.2f} s ({len(found.seconds)} changes)  CPU "
        f"{found.processor:4.2f} of a core  a round of {PERIOD:.0f} s takes "
        f"{statistics.median(found.rounds or [math.inf]):4.1f} s  (goal: {MEDIAN_GOAL:.0f} s and "
        f"{LATE_GOAL:.0f} s, {'met' if found.is_goal_met else 'MISSED'})  load "
        f"{os.getloadavg()[1]:.0f}",
        flush=True,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; 1 where the goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.follow_bench", description=__doc__)
    parser.add_argument("--clusters", type=int, action="append", help="only so many")
    parser.add_argument("--profile", action="store_true", help="print what all threads do")
    given = parser.parse_args(arguments)
    met = True
    with (
        tempfile.TemporaryDirectory() as place,
        fleet.management_cluster() as management,
        bench_database.databases(Path(place)) as databases,
    ):
        print(f"From an object's change to Magnum's row, on {databases.kind}:", flush=True)
        for clusters, changes in FLEETS:
            if not given.clusters or clusters in given.clusters:
                found = measure(
                    management,
                    databases,
                    clusters,
                    changes,
                    is_profiled=given.profile,
                )
                show(clusters, found)
                met &= found.is_goal_met
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
