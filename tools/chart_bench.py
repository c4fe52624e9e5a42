# SPDX-License-Identifier: Apache-2.0
"""How long helm takes to render the everyday cluster: `make bench`.

With a checkout of the reference chart in $REFERENCE_CHART both render in turns, so that what else
the machine does hits both alike; more than GOAL of the reference's time is a failure. The time of
the processors is said beside it: other work of the machine moves that less.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
import os
from pathlib import Path
import resource
import statistics
import subprocess
import sys
import time

from magnum.tests.functional.k8s_capi_helm.charts import reference, rendering

RUNS = 20
SCENARIO = "standard"
#: Our part of the reference's time, at most.
GOAL = 0.7


@dataclass(frozen=True)
class Spent:
    """What ``helm template`` took.

    :ivar wall: seconds from its start to its end.
    :ivar cpu: seconds of processors, of itself and of the kernel for it.
    """

    wall: float
    cpu: float


def processors() -> float:
    """Seconds of processors that all children had until now."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def spent(chart: Path) -> Spent:
    """What one ``helm template`` takes."""
    command = [
        *(rendering.helm(), "template", "demo", str(chart)),
        f"--values={rendering.CLUSTER / 'ci' / f'{SCENARIO}-values.yaml'}",
    ]
    before = processors()
    begin = time.perf_counter()
    # No timeout: with one, Python looks for the end of a program in steps of up to 50 ms.
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return Spent(time.perf_counter() - begin, processors() - before)


def medians(charts: list[Path]) -> list[Spent]:
    """Medians of each chart, rendered in turns; the first turn fills caches and is left out."""
    turns = [[spent(chart) for chart in charts] for _ in range(RUNS + 1)][1:]
    return [
        Spent(
            statistics.median(one.wall for one in times),
            statistics.median(one.cpu for one in times),
        )
        for times in zip(*turns, strict=True)
    ]


def line(name: str, found: Spent) -> str:
    """A line of the report about a chart."""
    return f"{name:<16} {found.wall * 1000:6.0f} ms {found.cpu * 1000:6.0f} ms of processors"


def main() -> int:
    version = rendering.run("version", "--short").strip()
    print(f"helm template of ci/{SCENARIO}-values.yaml, median of {RUNS}, Helm {version}")
    with contextlib.ExitStack() as stack:
        charts = [rendering.CLUSTER]
        if os.environ.get(reference.VARIABLE):
            try:
                charts.append(stack.enter_context(reference.chart()))
            except reference.NotGiven as error:
                print(f"bench: {error}", file=sys.stderr)
                return 2
        ours, *others = medians(charts)
    print(line("this chart", ours))
    if not others:
        print(f"The reference chart is not given: name a checkout of it in {reference.VARIABLE}.")
        return 0
    (other,) = others
    ratio = ours.wall / other.wall
    print(line("reference chart", other))
    cpu = ours.cpu / other.cpu
    print(f"ratio            {ratio:6.2f}    {cpu:6.2f} of processors    (goal: at most {GOAL})")
    return 0 if ratio <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
