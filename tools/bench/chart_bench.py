# SPDX-License-Identifier: Apache-2.0
"""Measure how long Helm takes to render the default cluster: `make bench`.

With a checkout of the reference chart in $REFERENCE_CHART both render in turns of random order, so
that what else the machine does hits both alike. The reference has no schema, so what this chart
takes without the check of its values is said as well; and the time of the processors, which other
work of the machine moves less. With the check, more than GOAL of the reference's is a failure.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
import os
from pathlib import Path
import random
import resource
import statistics
import subprocess
import sys
import time

from magnum.tests.functional.k8s_capi_helm.charts import reference, rendering

RUNS = 20
SCENARIO = "standard"
#: Our part of the reference's time of the processors, at most.
GOAL = 0.9
UNCHECKED = "--skip-schema-validation"


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


def spent(chart: Path, *flags: str) -> Spent:
    """What one ``helm template`` takes."""
    command = [
        *(rendering.helm(), "template", "demo", str(chart)),
        f"--values={rendering.CLUSTER / 'ci' / f'{SCENARIO}-values.yaml'}",
        *flags,
    ]
    before = processors()
    begin = time.perf_counter()
    # No timeout: with one, Python looks for the end of a program in steps of up to 50 ms.
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return Spent(time.perf_counter() - begin, processors() - before)


def _turn(cases: list[tuple[Path, tuple[str, ...]]]) -> list[Spent]:
    """One of each, in random order: what comes after a long one is not always the same."""
    order = random.sample(range(len(cases)), len(cases))
    found = {number: spent(cases[number][0], *cases[number][1]) for number in order}
    return [found[number] for number in range(len(cases))]


def medians(cases: list[tuple[Path, tuple[str, ...]]]) -> list[Spent]:
    """Medians of each chart with its flags, in turns; the first fills caches and is left out."""
    turns = [_turn(cases) for _ in range(RUNS + 1)][1:]
    return [
        Spent(
            statistics.median(one.wall for one in times),
            statistics.median(one.cpu for one in times),
        )
        for times in zip(*turns, strict=True)
    ]


def line(name: str, found: Spent) -> str:
    """A line of the report about a chart."""
    return f"{name:<26} {found.wall * 1000:6.0f} ms {found.cpu * 1000:6.0f} ms of processors"


def ratio(name: str, ours: Spent, other: Spent) -> str:
    """A line of the report about two charts."""
    wall, cpu = ours.wall / other.wall, ours.cpu / other.cpu
    return f"{name:<26} {wall:6.2f}    {cpu:6.2f} of processors"


def main() -> int:
    version = rendering.run("version", "--short").strip()
    print(f"helm template of ci/{SCENARIO}-values.yaml, median of {RUNS}, Helm {version}")
    with contextlib.ExitStack() as stack:
        cases: list[tuple[Path, tuple[str, ...]]] = [
            (rendering.CLUSTER, ()),
            (rendering.CLUSTER, (UNCHECKED,)),
        ]
        if os.environ.get(reference.VARIABLE):
            try:
                cases.append((stack.enter_context(reference.chart()), ()))
            except reference.NotGiven as error:
                print(f"bench: {error}", file=sys.stderr)
                return 2
        ours, unchecked, *others = medians(cases)
    print(line("this chart", ours))
    print(line("its values unchecked", unchecked))
    if not others:
        print(f"The reference chart is not given: name a checkout of it in {reference.VARIABLE}.")
        return 0
    (other,) = others
    print(line("reference chart", other))
    found = ours.cpu / other.cpu
    print(f"{ratio('ratio', ours, other)}    (goal: at most {GOAL})")
    print(ratio("ratio, values unchecked", unchecked, other))
    return 0 if found <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
