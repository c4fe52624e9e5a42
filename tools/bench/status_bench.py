# SPDX-License-Identifier: Apache-2.0
"""Measure the cost of a health pass over a fleet, and of conductors that start: `make bench`.

Against a real kube-apiserver, whose audit log counts the requests; each with and without watching.
More requests for a cluster at rest than GOAL, in a pass that watches, are a failure.
"""

from __future__ import annotations

import argparse
import collections
from collections.abc import Iterator, Sequence
from concurrent import futures
import json
import math
from pathlib import Path
import subprocess
import sys
import tempfile

from tools.bench import fleet, pass_costs, pass_process
from tools.bench.fleet import Json, ManagementCluster

#: Clusters of a fleet at rest.
FLEETS = (1, 100, 1000)
STALENESS = 45.0
#: Conductors that start at once, and the seconds that their load is counted in.
CONDUCTORS, WINDOW = (1, 3), 5.0
#: Requests of a conductor that starts, besides lists and watches, at most.
START_GOAL = 100
#: Requests per cluster at rest and pass, at most; credentials are tried every 20 minutes.
GOAL = 0.2
_TIMEOUT = 1800.0


class Bench:
    """A management cluster with a fleet that grows, and conductors one after another."""

    def __init__(self, management: ManagementCluster, place: Path) -> None:
        self._management = management
        self._place = place
        self._clusters: list[Json] = []

    def conductor(self, what: str, clusters: list[Json], staleness: float, **more: object) -> Json:
        """What a conductor finds that does *what* in a process of its own."""
        with tempfile.TemporaryDirectory(dir=self._place) as place:
            task = {
                "what": what,
                "clusters": clusters,
                "staleness": staleness,
                "database": str(Path(place) / "magnum.sqlite"),
                "kubeconfig": str(self._management.kubeconfig),
                **more,
            }
            path = Path(place) / "task.json"
            path.write_text(json.dumps(task))
            pass_process.install(pass_costs.OWN, Path(place))
            command = [
                sys.executable,
                "-W",
                "ignore",
                "-m",
                "tools.bench.bench_conductor",
                str(path),
            ]
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=_TIMEOUT,
                env=pass_process.environment(Path(place)),
            )
        if done.returncode:
            raise RuntimeError(done.stderr[-3000:])
        found: Json = json.loads(done.stdout.splitlines()[-1])
        return found

    def passes(self, number: int, template: Json) -> float:
        """Print what a pass over a fleet at rest costs; requests per cluster when watching."""
        new = [fleet.copy(template, one) for one in range(len(self._clusters), number)]
        self._management.fill(new)
        self._clusters += [_rows(one) for one in new]
        per_cluster = 0.0
        for staleness in (0.0, STALENESS):
            found = self.conductor("passes", self._clusters, staleness)
            if found["healthy"] != number:
                raise RuntimeError(f"{found['healthy']} of {number} clusters are HEALTHY")
            asked = self._management.requests(found["since"], found["until"])
            watches = sum(asked.pop(name) for name in list(asked) if " watch " in f" {name}")
            per_cluster = sum(asked.values()) / number
            stores, seconds = found["memory"], found["until"] - found["since"]
            memory = f"  stores {stores:5.1f} MiB ({stores / number * 1024:4.0f} KiB each)"
            print(
                f"  {_named(staleness)} {number:5d} clusters {sum(asked.values()):6d} requests "
                f"({per_cluster:5.2f} each), {watches:3d} watches ended  CPU {found['cpu']:6.2f} s "
                f"({found['cpu'] / number * 1000:4.0f} ms each) in {seconds:5.1f} s  "
                f"{found['threads']:2d} threads{memory if staleness else ''}",
                flush=True,
            )
        return per_cluster

    def starts(self, conductors: int) -> float:
        """Print what conductors ask for that start at once; requests of each besides lists."""
        clusters = self._clusters
        with tempfile.TemporaryDirectory(dir=self._place) as ready:
            task = {"ready": ready, "conductors": conductors}
            with futures.ThreadPoolExecutor(conductors) as pool:
                begun = [
                    pool.submit(self.conductor, "start", clusters, STALENESS, **task)
                    for _ in range(conductors)
                ]
                found = [one.result() for one in begun]
        if any(one["healthy"] != len(clusters) for one in found):
            raise RuntimeError(f"{found}: {len(clusters)} clusters have to be HEALTHY")
        since, until = min(one["since"] for one in found), max(one["until"] for one in found)
        asked = self._management.requests(since, until)
        verbs = collections.Counter[str]()
        for name, number in asked.items():
            verbs[name.removeprefix(pass_costs.OF_PROCESS).split()[0]] += number
        lists, watches = verbs.pop("list", 0), verbs.pop("watch", 0)
        each = verbs.total() / conductors
        most = max(self._load(since, until))
        print(
            f"  {conductors} at once, {len(clusters)} clusters: {lists / conductors:.0f} lists, "
            f"{watches / conductors:.0f} watches ended and {each:.0f} other requests each, in "
            f"{until - since:.1f} s  at most {most:.0f} requests in {WINDOW:.0f} s  "
            f"CPU {sum(one['cpu'] for one in found) / conductors:.1f} s each",
            flush=True,
        )
        return each

    def _load(self, since: float, until: float) -> Iterator[int]:
        """Requests in each window of time."""
        for number in range(math.ceil((until - since) / WINDOW)):
            begin = since + number * WINDOW
            yield sum(self._management.requests(begin, begin + WINDOW).values())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.bench.status_bench", description=__doc__)
    parser.add_argument("--clusters", type=int, action="append", help="only so many")
    given = parser.parse_args(arguments)
    with fleet.management_cluster() as management, tempfile.TemporaryDirectory() as place:
        bench = Bench(management, Path(place))
        print("One health pass over a fleet at rest:")
        template = fleet.one_cluster(in_progress=False)
        found = [bench.passes(number, template) for number in given.clusters or FLEETS]
        print("The first health pass of conductors that start:")
        each = max(bench.starts(number) for number in CONDUCTORS)
    print(f"requests of a start besides lists: {each:.0f}    (goal: at most {START_GOAL})")
    print(f"requests per cluster at rest and pass: {found[-1]:.2f}    (goal: at most {GOAL:.2f})")
    return 0 if found[-1] <= GOAL and each <= START_GOAL else 1


def _named(staleness: float) -> str:
    return "watching        " if staleness else "without watching"


def _rows(cluster: Json) -> Json:
    """What of a cluster a conductor has to know."""
    wanted = {key: cluster[key] for key in ("template", "cluster", "groups")}
    return {**wanted, "release": {"namespace": cluster["release"]["namespace"]}}


if __name__ == "__main__":
    sys.exit(main())
