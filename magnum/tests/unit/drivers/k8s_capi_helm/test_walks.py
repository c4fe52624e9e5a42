# SPDX-License-Identifier: Apache-2.0
"""The table of walks has every verb and every pass, and counts what they do."""

from __future__ import annotations

import functools
import importlib
import importlib.util
from typing import Any
import unittest

import testtools

from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one


@functools.cache
def found() -> list[Any]:
    """All walks of a cluster's life; it is led once for all tests here."""
    return list(tool().walks(lives=1))


def tool() -> Any:
    """The tool, which is in a checkout and in no wheel."""
    return importlib.import_module("tools.walks")


@unittest.skipUnless(importlib.util.find_spec("tools"), "needs a checkout")
class TestWalks(testtools.TestCase):
    def test_every_verb_and_every_kind_of_pass_is_there(self) -> None:
        verbs = ["create", "resize 1 -> 2", "nodegroup create", "nodegroup delete", "upgrade"]
        names = [one.name for one in found()]
        self.assertEqual([*verbs, "delete"], [one for one in names if "pass" not in one])
        for wanted in ("waits", "acts", "completes", "ends", "settled: health pass"):
            self.assertIn(wanted, " ".join(names))

    def test_each_counts_something(self) -> None:
        for one in at_least_one(found()):
            self.assertGreater(len(one.files), len(one.rooms), one.name)
            reads_nothing = one.name.endswith("waits") or one.name == "settled: health pass"
            # Where the Lease has not changed, the record is the one of the pass before.
            reads = one.requests["Lease", "GET"] + one.snapshots
            self.assertTrue(reads_nothing or reads, one.name)

    def test_what_each_has_to_do_is_counted(self) -> None:
        walks = {one.name: one for one in found()}
        for name in ("create", "resize 1 -> 2", "nodegroup create", "nodegroup delete", "upgrade"):
            self.assertGreater(walks[name].runs, 0, name)
        # The labels of a cluster are parsed once in a process; an upgrade brings new ones.
        self.assertGreater(walks["create"].parses, 0)
        self.assertGreater(walks["upgrade"].parses, 0)
        self.assertEqual(1, walks["create"].renders)
        for name, one in walks.items():
            has_none = name == "delete" or "waits" in name or name == "settled: health pass"
            self.assertTrue(has_none or one.snapshots, name)
            self.assertTrue("waits" not in name or one.runs == 0, name)
        self.assertEqual(0, walks["resize 1 -> 2"].renders)
        self.assertGreater(walks["delete: status pass that acts"].requests["Cluster", "DELETE"], 0)

    def test_rooms_are_top_level_entries(self) -> None:
        (first, *_) = found()
        there = {one.name.removesuffix(".py") for one in tool().PACKAGE.iterdir()}
        self.assertLessEqual(first.rooms, there)

    def test_a_row_for_each_walk(self) -> None:
        plain, listed = tool().text(found()).splitlines(), tool().rst(found()).splitlines()
        self.assertEqual(len(found()) + 2, len(plain))
        self.assertEqual(1, len({len(one) for one in plain[1:]}))
        self.assertEqual(len(found()) + 1, sum(one.startswith("   * - ") for one in listed))
        cells = sum(one.strip().startswith(("* -", "- ")) for one in listed)
        self.assertEqual((len(found()) + 1) * len(tool().TITLES), cells)

    def test_a_pass_that_finds_nothing_changed_reads_nothing(self) -> None:
        waiting = [
            walk
            for walk in found()
            if (walk.name.endswith("pass that waits") and not walk.name.startswith("delete"))
            or walk.name == "settled: health pass"
        ]
        self.assertGreaterEqual(len(waiting), 4)
        for walk in waiting:
            # Two of these are the context of its log lines.
            self.assertLessEqual(len(walk.files), 22, (walk.name, sorted(walk.files)))
            self.assertEqual(0, walk.requests.total(), walk.name)
            counts = (walk.reads, walk.snapshots, walk.parses, walk.renders, walk.runs)
            self.assertEqual((0, 0, 0, 0, 0), counts, walk.name)

    def test_the_end_of_an_operation_reads_what_shows_it_once(self) -> None:
        for walk in at_least_one(found()):
            if walk.name.endswith("pass that finds all in place"):
                self.assertLessEqual(walk.requests.total(), 4, walk.name)
            if walk.name.endswith("pass that completes"):
                self.assertLessEqual(walk.requests.total(), 11, walk.name)

    def test_what_verbs_and_deletions_take_does_not_grow(self) -> None:
        walks = {walk.name: walk for walk in found()}
        resize = walks["resize 1 -> 2"]
        for name in ("resize 1 -> 2", "nodegroup create", "nodegroup delete"):
            requests = walks[name].requests
            self.assertLessEqual(requests["Lease", "GET"], 4, name)
            self.assertLessEqual(requests["Lease", "PUT"], 5, name)
        self.assertLessEqual((resize.parses, resize.renders), (2, 1))
        self.assertEqual(1, walks["create"].renders)
        for name in ("resize 1 -> 2", "nodegroup create", "nodegroup delete", "upgrade"):
            self.assertEqual(1, walks[name].snapshots, name)
        self.assertEqual(1, walks["upgrade: first status pass"].snapshots)
        # One of the watches, one before Helm runs and one after it.
        self.assertEqual(3, walks["upgrade: status pass that acts"].snapshots)
        self.assertEqual(1, walks["delete: status pass that acts"].snapshots)
