# SPDX-License-Identifier: Apache-2.0
"""Wrong values are refused by a sentence that names the key; each sentence of a chart is tested.

The wrong values are rows of charts/*/tests/refused/*.yaml (see :mod:`refusals`).
"""

from __future__ import annotations

from pathlib import Path
import re
import unittest

from magnum.tests.functional.k8s_capi_helm.charts import refusals, rendering

#: So many wrong values are on record at the least.
AT_LEAST = 60
#: Who may refuse: the schema, or the one template with rules. Anything else is an accident.
REFUSED_BY = re.compile(
    r"values don't meet the specifications of the schema"
    r"|execution error at \(\S+/templates/validate\.yaml:"
)
_FAIL = re.compile(r'\bfail (?:\(printf )?"((?:[^"\\]|\\.)*)"')


class RefusalTest(unittest.TestCase):
    maxDiff = None

    def test_every_wrong_value_is_refused_and_every_sentence_has_its_row(self) -> None:
        rows = refusals.rows()
        self.assertGreaterEqual(len(rows), AT_LEAST)
        answers = refusals.answers(rows)
        for row, said in zip(rows, answers, strict=True):
            with self.subTest(row.title):
                self.assertTrue(said, "helm takes these values")
                self.assertRegex(said, REFUSED_BY)
                for word in row.words:
                    # The schema's faults write a path with slashes.
                    self.assertTrue(word in said or word in said.replace("/", "."), (word, said))
        for sentence in self.sentences():
            with self.subTest(sentence=sentence):
                pattern = re.compile(expression(sentence))
                self.assertTrue(any(map(pattern.search, answers)), "no row makes helm say it")

    def sentences(self) -> set[str]:
        """Formats of all sentences with which the charts refuse."""
        found: set[str] = set()
        for chart in (rendering.CLUSTER, rendering.ADDONS):
            for path in filter(Path.is_file, (chart / "templates").rglob("*")):
                text = path.read_text()
                self.assertEqual(text.count("fail "), len(_FAIL.findall(text)), path)
                found.update(_FAIL.findall(text))
        return found

    def test_no_two_rows_are_alike(self) -> None:
        seen = [
            (row.file.parents[2], repr(row.change), row.release, row.served, row.scenario)
            for row in refusals.rows()
        ]
        self.assertEqual([], [one for one in seen if seen.count(one) > 1])


def expression(sentence: str) -> str:
    """A regular expression for the sentences that a template's format gives."""
    text = sentence.replace('\\"', '"')
    return ".+".join(map(re.escape, re.split(r"%[a-z]", text)))
