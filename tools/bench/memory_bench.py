# SPDX-License-Identifier: Apache-2.0
"""Measure the memory that a fleet takes in a conductor: `make bench`.

Clusters of three nodegroups and nine machines at rest, on a real kube-apiserver, whose objects have
``managedFields`` as large as those of real controllers. A conductor with the whole fleet is
compared with one that has a single cluster, and both with a driver that does nothing: so what is
counted is neither the driver's modules nor Magnum's rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
import dataclasses
from pathlib import Path
import sys
import tempfile
from typing import Any

from tools.bench import fleet, pass_bench, pass_process
from tools.bench.fleet import Json, ManagementCluster
from tools.bench.pass_costs import NOTHING, OWN

CLUSTERS = 1000
#: MiB of 1,000 clusters at most, and how many times what stays while the lists are read.
GOAL, PEAK_GOAL = 60.0, 2.0
#: Names in ``managedFields`` of an object, 5 KB of JSON: as a Machine with six field managers has.
_FIELDS = 250
_GROUPS = {"second": 2, "third": 2}
#: Health passes: the first one finds the verdicts, the others keep them.
_PASSES = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Memory:
    """MiB of a process.

    :ivar settled: after the passes.
    :ivar peak: at most until then.
    """

    settled: float
    peak: float


def cluster_at_rest() -> Json:
    """One cluster of three nodegroups and nine machines."""

    def live(case: Any) -> None:
        case.made(masters=3, workers=2)
        for name, count in _GROUPS.items():
            case.add_group(name, count)
        case.capi_converges()
        case.status_task(3)
        case.health_task()

    found = fleet.played(live)
    if found["cluster"]["health_status"] != "HEALTHY":
        raise RuntimeError(f"not at rest: {found['cluster']}")
    fields: Json = {f"f:field-{number:04d}": {} for number in range(_FIELDS)}
    manager = {"manager": "manager", "operation": "Update", "fieldsV1": {"f:status": fields}}
    for thing in found["things"]:
        thing["metadata"]["managedFields"] = [manager]
    return found


def measured(management: ManagementCluster, number: int, place: Path) -> dict[str, Memory]:
    """Memory of both drivers' processes with so many clusters."""
    template = cluster_at_rest()
    clusters = [fleet.copy(template, one) for one in range(number)]
    management.clear()
    management.fill(clusters)
    database = place / f"{number}.sqlite"
    rows = [{key: one[key] for key in ("template", "cluster", "groups")} for one in clusters]
    with pass_bench.process(management, NOTHING, None) as conductor:
        conductor.ask("insert", clusters=rows)
        pass_process.copy_database(conductor.database, database)
    del template, clusters, rows
    found = {}
    for driver in (NOTHING, OWN):
        with pass_bench.process(management, driver, database) as conductor:
            passes = conductor.ask("run", job="health", times=_PASSES)
            if any(one["failed"] for one in passes):
                raise RuntimeError(f"jobs failed: {conductor.said()}")
            found[driver] = Memory(**conductor.ask("memory"))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 where a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.memory_bench", description=__doc__)
    parser.add_argument("--clusters", type=int, default=CLUSTERS)
    number = parser.parse_args(arguments).clusters
    with (
        fleet.management_cluster() as management,
        tempfile.TemporaryDirectory() as place,
    ):
        one = measured(management, 1, Path(place))
        all_of_them = measured(management, number, Path(place))
    rows = all_of_them[NOTHING].settled - one[NOTHING].settled
    stays = all_of_them[OWN].settled - one[OWN].settled - rows
    peak = all_of_them[OWN].peak - one[OWN].settled - rows
    per_thousand = stays / number * 1000
    print(
        f"memory of {number} clusters of three nodegroups: {stays:.1f} MiB stay, "
        f"{peak:.1f} at most; modules {one[OWN].settled - one[NOTHING].settled:.1f}, "
        f"Magnum's rows {rows:.1f}"
    )
    print(f"goal  MiB of 1,000 clusters: {per_thousand:.1f} <= {GOAL}")
    print(f"goal  peak, parts of what stays: {peak / stays:.2f} <= {PEAK_GOAL}")
    return 0 if per_thousand <= GOAL and peak <= PEAK_GOAL * stays else 1


if __name__ == "__main__":
    sys.exit(main())
