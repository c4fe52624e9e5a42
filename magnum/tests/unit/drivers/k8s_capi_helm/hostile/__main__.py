# SPDX-License-Identifier: Apache-2.0
"""Try hostile inputs until there were as many as asked for, and print how many and the seed.

``K8S_CAPI_HELM_HOSTILE`` says how many (100000), ``K8S_CAPI_HELM_SEED`` which. A seed shows the
same inputs again as long as nobody changes the tests or hypothesis.
"""

from __future__ import annotations

import logging
import os
import pathlib
import random
import sys
import time
import unittest

WANTED = int(os.environ.get("K8S_CAPI_HELM_HOSTILE") or 100_000)
PLACE = pathlib.Path(__file__).parent


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    seed = int(os.environ.get("K8S_CAPI_HELM_SEED") or random.SystemRandom().randrange(1 << 32))
    begin, rounds = time.monotonic(), 0
    import hypothesis.core

    # What is refused is logged, a hundred thousand times.
    logging.disable(logging.CRITICAL)

    from magnum.tests.unit.drivers.k8s_capi_helm import hostile

    say(f"seed {seed}; K8S_CAPI_HELM_SEED={seed} tries the same again")
    while sum(hostile.tried.values()) < WANTED or not rounds:
        hypothesis.core.global_force_seed = seed + rounds
        rounds += 1
        for path in sorted(PLACE.glob("test_*.py")):
            found = unittest.defaultTestLoader.loadTestsFromName(f"{hostile.__name__}.{path.stem}")
            result = unittest.TextTestRunner(stream=sys.stdout, verbosity=0).run(found)
            number = sum(hostile.tried.values())
            if not result.wasSuccessful():
                say(f"seed {seed}, round {rounds}: {number} hostile inputs, and some got out")
                return 1
            say(f"round {rounds}, {path.stem}: {number} so far")
            if rounds > 1 and number >= WANTED:
                break
    for name, count in sorted(hostile.tried.items()):
        say(f"{count:8} {name}")
    seconds = time.monotonic() - begin
    say(f"{number} hostile inputs, 0 out of their field (seed {seed}, {seconds:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
