# SPDX-License-Identifier: Apache-2.0
"""However often conductors are killed, in the end everything is as the database says.

Lives of clusters are drawn by lot: what is asked for next, when in the middle of it the conductor
is killed, and whether the next one is killed as well. With two versions of the driver each of them
goes on where the other one was killed, as in an upgrade of one host after the other. Several
Magnums live beside each other, each with a database and a project of its own, because most of a
life is waiting. The lots are those of the seed that is printed; moments are those of the machine.
"""

from __future__ import annotations

from concurrent import futures
import os
from pathlib import Path
import sys
import tempfile
import time
import unittest
import uuid

from magnum.tests.functional.k8s_capi_helm.kills.site import Site
from magnum.tests.functional.k8s_capi_helm.kills.tally import KILLS, Tally

SEED = os.environ.get("K8S_CAPI_HELM_SEED") or uuid.uuid4().hex[:8]
#: Versions of the driver that a Magnum's conductors have by turns, "" for this one.
VERSIONS = tuple(os.environ.get("K8S_CAPI_HELM_VERSIONS", "").split(","))
#: Magnums beside each other; helm's runs want a processor of their own.
SITES = 3


class TestKills(unittest.TestCase):
    """All sites at once."""

    def test_kills_at_random_moments(self) -> None:
        sys.stdout.write(f"{KILLS} kills, K8S_CAPI_HELM_SEED={SEED}\n")
        sys.stdout.flush()
        tally, began = Tally(), time.monotonic()
        with tempfile.TemporaryDirectory(prefix="kills-") as directory:
            places = [Path(directory) / str(number) for number in range(SITES)]
            with futures.ThreadPoolExecutor(SITES) as threads:
                lives = [
                    threads.submit(_lives, number, place, tally)
                    for number, place in enumerate(places)
                ]
            wrong = [str(one.exception()) for one in lives if one.exception()]
        seconds = time.monotonic() - began
        sys.stdout.write(f"{tally}; {len(wrong)} failed, {seconds:.0f} s\n")
        self.assertEqual([], wrong, "\n".join(wrong))
        self.assertGreaterEqual(tally.kills.total(), KILLS)


def _lives(number: int, place: Path, tally: Tally) -> None:
    place.mkdir()
    site = Site(number, place, tally, SEED, VERSIONS)
    try:
        site.live()
    finally:
        site.close()
