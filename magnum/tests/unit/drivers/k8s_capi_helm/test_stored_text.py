# SPDX-License-Identifier: Apache-2.0
"""Any text becomes one that a TEXT in utf8mb3 takes, and one that it takes stays as it is."""

from __future__ import annotations

import json
import unittest

from hypothesis import given
from hypothesis import strategies as st

from magnum.drivers.k8s_capi_helm import errors, stored_text

ANY = st.text(st.characters(codec=None))


class TestText(unittest.TestCase):
    CASES = (
        ("Größe 界 fits", 100, "Größe 界 fits"),
        ("a \U0001f600 b", 100, "a \ufffd b"),
        ("half \ud83d", 100, "half \ufffd"),
        ("nul \x00", 100, "nul \ufffd"),
        ("one two three", 12, "one two ..."),
        ("one two three", 13, "one two three"),
        ("onetwothree", 10, "onetwo ..."),
        ("界界界界", 11, "界界 ..."),
    )

    def test_what_becomes_of_each(self) -> None:
        for text, limit, wanted in self.CASES:
            with self.subTest(text=text, limit=limit):
                self.assertEqual(wanted, stored_text.storable(text, limit))

    @given(ANY, st.integers(10, 50))
    def test_it_always_fits(self, text: str, limit: int) -> None:
        found = stored_text.storable(text, limit)
        self.assertLessEqual(len(found.encode()), limit)
        self.assertFalse([one for one in found if one > "\uffff" or one == "\x00"])
        self.assertEqual(found, stored_text.storable(found, limit))

    def test_a_whole_text_is_the_default(self) -> None:
        self.assertEqual(65_535, len(stored_text.storable("x" * 70_000)))

    @given(ANY)
    def test_what_is_raised_can_be_saved(self, text: str) -> None:
        """Magnum's conductor writes ``str(error)`` into the cluster's record."""
        for error in (errors.DriverError(text), errors.InvalidLabel("a", text, "b")):
            self.assertEqual(stored_text.storable(str(error)), str(error))


class TestList(unittest.TestCase):
    @given(st.lists(ANY), st.integers(2, 60))
    def test_the_first_ones_that_fit(self, items: list[str], limit: int) -> None:
        found = stored_text.storable_list(items, limit)
        self.assertEqual(items[: len(found)], found)
        self.assertLessEqual(len(json.dumps(found)), limit)
        more = items[: len(found) + 1]
        self.assertTrue(found == items or len(json.dumps(more)) > limit - len(", "))
