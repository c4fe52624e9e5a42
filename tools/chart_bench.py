# SPDX-License-Identifier: Apache-2.0
"""How long helm takes to render the everyday cluster: `make bench`.

With a checkout of the reference chart in $REFERENCE_CHART both render in turns, so that what else
the machine does hits both alike; more than GOAL of the reference's time is a failure.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
import statistics
import subprocess
import sys
import time

from magnum.tests.functional.k8s_capi_helm.charts import reference, rendering

RUNS = 20
SCENARIO = "standard"
#: Our part of the reference's time, at most.
GOAL = 0.7


def seconds(chart: Path) -> float:
    """Time of one ``helm template``."""
    command = [
        *(rendering.helm(), "template", "demo", str(chart)),
        f"--values={rendering.CLUSTER / 'ci' / f'{SCENARIO}-values.yaml'}",
    ]
    begin = time.perf_counter()
    # No timeout: with one, Python looks for the end of a program in steps of up to 50 ms.
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - begin


def medians(charts: list[Path]) -> list[float]:
    """Median time of each chart, rendered in turns; the first turn fills caches and is left out."""
    turns = [[seconds(chart) for chart in charts] for _ in range(RUNS + 1)][1:]
    return [statistics.median(times) for times in zip(*turns, strict=True)]


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
    print(f"this chart       {ours * 1000:6.0f} ms")
    if not others:
        print(f"The reference chart is not given: name a checkout of it in {reference.VARIABLE}.")
        return 0
    ratio = ours / others[0]
    print(f"reference chart  {others[0] * 1000:6.0f} ms")
    print(f"ratio            {ratio:6.2f}    (goal: at most {GOAL})")
    return 0 if ratio <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
