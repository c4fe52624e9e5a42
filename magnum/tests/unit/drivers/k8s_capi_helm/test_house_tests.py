# SPDX-License-Identifier: Apache-2.0
"""What the laws about tests allow and refuse."""

from __future__ import annotations

import importlib
import re

from magnum.tests.unit.db import base as db_base
from magnum.tests.unit.drivers.k8s_capi_helm.house import patches, testing
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one
from magnum.tests.unit.drivers.k8s_capi_helm.house.sources import LawCase, made_up, PACKAGE, TESTS

_IMPORTS = f"""
import importlib
import os
import unittest.mock
from unittest import mock

import fixtures

from keystoneauth1 import session
from {PACKAGE} import driver as magnum_driver
from {PACKAGE}.model import clock, names
from {PACKAGE}.kube_client import KubeClient
import {PACKAGE}.errors
"""


def targets(text: str) -> list[str]:
    """What the law says is replaced by a test with this text."""
    return [target for _, target in patches.patched(made_up(f"{_IMPORTS}\n{text}\n"))]


class TestPatches(LawCase):
    def test_what_is_refused(self) -> None:
        for text in (
            f'mock.patch("{PACKAGE}.model.names.release")',
            f'unittest.mock.patch("{PACKAGE}.model.names.release")',
            'fixtures.MonkeyPatch(f"{names.__name__}.release", len)',
            'fixtures.MockPatch(names.__name__ + ".release")',
            'where = f"{names.__name__}.release"\nfixtures.MonkeyPatch(where, len)',
            f'ROOT = "{PACKAGE}"\nmock.patch(f"{{ROOT}}.model.names.release")',
            'mock.patch.object(names, "release")',
            'mock.patch.object(magnum_driver.Driver, "create_cluster")',
            "mock.patch.multiple(names, release=len)",
            "mock.patch.dict(names.TABLE, {})",
            'fixtures.MockPatchObject(KubeClient, "get")',
            'with mock.patch.object(KubeClient, "get"): ...',
            'setattr(names, "release", len)',
            'delattr(KubeClient, "get")',
            "names.release = len",
            "clock.utc_now = len",
            "KubeClient.get = len",
            "names.TABLE['a'] = 1",
            "names.LIMIT += 1",
            "del names.release",
            f"{PACKAGE}.errors.REASON = 1",
            "place = names\nplace.release = len",
            "for place, name in ((os, 'a'), (names, 'b')):\n    mock.patch.object(place, name)",
            f'there = importlib.import_module("{PACKAGE}.model.names")\nthere.release = len',
        ):
            self.assertNotEqual([], targets(text), text)

    def test_what_is_known_only_when_it_runs(self) -> None:
        for text in (
            'fixtures.MonkeyPatch(f"{path(place)}.{name}", len)',
            "mock.patch(TABLE[0])",
            'mock.patch.object(self.driver, "ports")',
            "for place in PLACES:\n    mock.patch.object(place, 'x')",
            "for place in (session, self.x):\n    mock.patch.object(place, 'x')",
        ):
            self.assertEqual(["what is known only when it runs"], targets(text), text)

    def test_what_is_allowed(self) -> None:
        for text in (
            'fixtures.MonkeyPatch("keystoneauth1.session.time.sleep", len)',
            'place = "keystoneauth1.session.time"\nfixtures.MonkeyPatch(f"{place}.{name}", len)',
            'mock.patch.object(session, "Session")',
            "for place in (os, session.Session):\n    mock.patch.object(place, 'x')",
            'mock.patch.dict(os.environ, {"A": "b"})',
            'mock.patch.dict("os.environ", {"A": "b"})',
            'setattr(group, "node_count", 3)',
            "self.kube.before = len",
            "group.name, names_of = 1, 2",
            'kube.patch("Lease", {})',
            'self.patch(key, {"a": 1})',
        ):
            self.assertEqual([], targets(text), text)


class TestNothing(LawCase):
    """A test that asserts in loops only needs something to loop over."""

    def passes(self, body: str) -> bool:
        """Whether a test with this body may pass without any assertion."""
        lines = "\n".join(f"        {line}" for line in body.splitlines())
        text = f"TABLE = (1, 2)\nclass T:\n    def test_x(self):\n{lines}\n"
        return bool(list(testing.passes_on_nothing(made_up(text))))

    def test_what_may_be_empty(self) -> None:
        for body in (
            "for one in found():\n    self.assertTrue(one)",
            "for one in self.found:\n    self.assertTrue(one)",
            "for one in [x for x in TABLE if x > 2]:\n    self.assertTrue(one)",
            "found = work()\nfor one in found:\n    self.assertTrue(one)",
            "for one in TABLE:\n    for two in one.parts():\n        self.assertTrue(two)",
            "with self.subTest():\n    for one in sorted(found()):\n        self.assertTrue(one)",
            "for number in range(len(found)):\n    self.assertTrue(number)",
            "for one in ():\n    self.assertTrue(one)",
        ):
            self.assertTrue(self.passes(body), body)

    def test_what_is_sure(self) -> None:
        for body in (
            "for one in TABLE:\n    self.assertTrue(one)",
            "for one in enumerate(('a', 'b')):\n    self.assertTrue(one)",
            "for one in {'a': 1}.items():\n    self.assertTrue(one)",
            "for number in range(3):\n    self.assertTrue(number)",
            "for one in at_least_one(found()):\n    self.assertTrue(one)",
            "for one in found():\n    self.assertTrue(one)\nself.assertTrue(one)",
            "self.assertTrue(found())\nfor one in found():\n    self.assertTrue(one)",
            "both = [x + 1 for x in TABLE]\nfor one in both:\n    self.assertTrue(one)",
            "with self.assertRaises(ValueError):\n    work()",
        ):
            self.assertFalse(self.passes(body), body)

    def test_at_least_one(self) -> None:
        self.assertEqual([1, 2], at_least_one(iter((1, 2))))
        self.assertRaises(AssertionError, at_least_one, ())


class TestMariaDB(LawCase):
    """Whatever writes Magnum's records is tested on MariaDB, too, whatever its name is."""

    LIST = TESTS.parents[2] / "functional" / "k8s_capi_helm" / "mariadb" / "unit.txt"
    #: Left out, each for its reason.
    ELSEWHERE = {
        "test_hostile_tenant_costs": "counts steps of Python, which are SQLite's as well",
        "test_stored_state": "compares with a recording that was made on SQLite",
    }
    #: Leads a case of another module through its requests.
    LED = frozenset({"test_random_requests"})

    def test_all_of_them_are_listed(self) -> None:
        writing = set(self.LED)
        for path in at_least_one(sorted(TESTS.glob("test_*.py"))):
            module = importlib.import_module(f"{__package__}.{path.stem}")
            if any(
                isinstance(entry, type)
                and issubclass(entry, db_base.DbTestCase)
                and entry.__module__ == module.__name__
                for entry in vars(module).values()
            ):
                writing.add(path.stem)
        self.assertEqual(set(), set(self.ELSEWHERE) - writing)
        listed = re.findall(r"^\[\.\](\w+)\[\.\]$", self.LIST.read_text(), re.M)
        self.assertEqual(sorted(writing - set(self.ELSEWHERE)), listed)
