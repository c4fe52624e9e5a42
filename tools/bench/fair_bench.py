# SPDX-License-Identifier: Apache-2.0
"""Measure how long a project waits for Helm beside another one with many clusters: `make bench`.

The queue of the driver is the real one, and its runs only sleep, so that nothing but the queue is
measured: on a real host runs share the processors as well.
"""

from __future__ import annotations

import random
import statistics
import sys
import threading
import time

from magnum.drivers.k8s_capi_helm.helm.fair_queue import FairQueue

#: Runs at once, as ``max_helm_runs`` has it; waiting runs of the other project; measured ones.
RUNS, OTHERS, MEASURED = 4, 120, 12
#: Seconds of a measured run; others take half of it to one and a half, so that they end one by one.
SECONDS = 1.0
#: Ratio at most: a project does not delay another one by more than a fifth.
GOAL = 1.2
_PATIENCE = 600.0


def latencies(others: int) -> list[float]:
    """Seconds from the request of a run to its end, beside so many runs of another project."""
    turns, over = FairQueue(RUNS), threading.Event()

    def run() -> None:
        with turns.acquire("many", wait=_PATIENCE, stop=lambda: False):
            over.wait(SECONDS * random.uniform(0.5, 1.5))  # noqa: S311

    threads = [threading.Thread(target=run, daemon=True) for _ in range(others)]
    for thread in threads:
        thread.start()
    # By then they no longer begin and end together.
    over.wait(2 * SECONDS)
    found = []
    for _ in range(MEASURED):
        begin = time.monotonic()
        with turns.acquire("one", wait=_PATIENCE, stop=lambda: False):
            time.sleep(SECONDS)
        found.append(time.monotonic() - begin)
        over.wait(random.uniform(0, SECONDS))  # noqa: S311
    over.set()
    for thread in threads:
        thread.join()
    return found


def main() -> int:
    """Print the ratio with and without the other project; 1 where the goal is missed."""
    alone, beside = statistics.median(latencies(0)), latencies(OTHERS)
    ratio = statistics.median(beside) / alone
    print(
        f"A run of Helm of a project, beside {OTHERS} of another one and alone: ratio "
        f"{ratio:.2f}, at most {max(beside) / alone:.2f}    (goal: {GOAL} in the median)"
    )
    return 0 if ratio <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
