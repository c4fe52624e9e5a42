# SPDX-License-Identifier: Apache-2.0
"""Whatever is said of a cluster fits Magnum's columns in MySQL, and ends with a whole word."""

from __future__ import annotations

import json
import types

import hypothesis
from hypothesis import strategies as st
from oslo_serialization import jsonutils
import sqlalchemy
import testtools

from magnum.db.sqlalchemy import models
from magnum.drivers.k8s_capi_helm import errors, model
from magnum.drivers.k8s_capi_helm.errors import column_limits
from magnum.drivers.k8s_capi_helm.handlers.tasks.monitor import Monitor
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import saving
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one

#: Halves of characters, characters of four bytes, quotation marks, blanks and the null among them.
_ANY = st.text(
    st.characters(exclude_categories=()) | st.sampled_from('\x00"\\ \n\ud800\udfffé高😀\u2028a')
)
texts = st.builds(lambda text, times: text * times, _ANY, st.sampled_from((1, 5, 3000, 70_000)))
texts = texts.filter(lambda text: len(text) < 1 << 20)
LONG = "word " * 20_000


class Row:
    """A cluster or nodegroup that counts how often it is saved."""

    def __init__(self) -> None:
        self.uuid = "u1"
        self.status_reason = self.api_address = self.coe_version = self.node_addresses = None
        self.saved = 0

    def obj_what_changed(self) -> set[str]:
        return {"status_reason"}

    def save(self) -> None:
        self.saved += 1


def put(field: str, value: object) -> object:
    row = Row()
    saving.save(row, **{field: value})
    return getattr(row, field)


class TestColumns(testtools.TestCase):
    """The one function that decides, through the one that saves."""

    @hypothesis.given(texts)
    @hypothesis.settings(deadline=None)
    def test_any_reason_fits(self, text: str) -> None:
        found = put("status_reason", text)
        self.assertLessEqual(len(found.encode("utf-8")), 65535)
        self.assertLessEqual(max((len(one.encode()) for one in found), default=0), 3)
        self.assertNotIn("\x00", found)

    @hypothesis.given(st.dictionaries(st.sampled_from("abcdefgh"), texts))
    @hypothesis.settings(deadline=None)
    def test_any_reasons_of_health_fit(self, said: dict[str, str]) -> None:
        found = self.polled(said)
        self.assertLessEqual(len(jsonutils.dumps(found).encode()), 65535)
        self.assertEqual(said.keys(), found.keys())
        json.dumps(found, ensure_ascii=False).encode()

    @hypothesis.given(st.lists(texts))
    @hypothesis.settings(deadline=None)
    def test_any_addresses_fit(self, listed: list[str]) -> None:
        found = put("node_addresses", listed * 20)
        self.assertLessEqual(len(jsonutils.dumps(found).encode()), 65535)

    @hypothesis.given(texts)
    def test_any_address_and_version_fit(self, text: str) -> None:
        for field in ("api_address", "coe_version"):
            self.assertLessEqual(len(put(field, text)), 255)

    @hypothesis.given(texts)
    def test_any_sentence_that_is_raised_fits(self, text: str) -> None:
        error = errors.InvalidLabel("some", text, text)
        for said in (str(error), error.sentence, error.args[0]):
            self.assertLessEqual(len(said.encode()), column_limits.SENTENCE)

    @staticmethod
    def polled(said: dict[str, str]) -> dict[str, str]:
        verdict = model.Verdict("CREATE_COMPLETE", None, (), "HEALTHY", said)
        cluster = types.SimpleNamespace(
            uuid="u-1", name="demo", health_status=None, health_status_reason=None
        )
        monitor = Monitor(None, cluster, lambda: verdict)
        monitor.poll_health_status()
        return monitor.data["health_status_reason"]

    def test_what_fits_stays_as_it_is(self) -> None:
        for text in ("", "a", "x" * 65535, "é" * 32767, "高" * 21845, " a \n b "):
            self.assertEqual(text, put("status_reason", text))
        said = {"cluster": "Ready", "notice": "é" * 10_000}
        self.assertEqual(said, self.polled(said))
        listed = [f"10.0.{number // 250}.{number % 250}" for number in range(3000)]
        self.assertEqual(listed, put("node_addresses", listed))
        self.assertIsNone(put("status_reason", None))

    def test_what_does_not_ends_with_a_whole_word(self) -> None:
        for text, word in (
            (LONG, "word"),
            ("größer 高速 " * 9000, "größer 高速"),
            ("a\tb " * 20_000, "b"),
        ):
            found = put("status_reason", text)
            self.assertTrue(text.startswith(found.removesuffix("...")))
            self.assertIn(found.removesuffix("...").split(" ")[-1], (*word.split(), f"a\t{word}"))
            self.assertGreater(len(found.encode()), 65535 - 20)

    def test_a_word_that_is_too_long_itself_is_cut(self) -> None:
        self.assertEqual(65532 * "x" + "...", put("status_reason", "x" * 70_000))

    def test_short_reasons_stay_whole_beside_a_long_one(self) -> None:
        found = self.polled({"notice": LONG, "cluster": "Ready", "nodegroup": "é " * 30_000})
        self.assertEqual("Ready", found["cluster"])
        self.assertTrue(found["notice"].endswith("word..."))
        self.assertGreater(len(json.dumps(found)), 65535 - 100)

    def test_of_too_many_addresses_the_first_are_kept_and_all_are_whole(self) -> None:
        listed = [f"2001:db8::{number:x}" for number in range(10_000)]
        found = put("node_addresses", [*listed[:5], "x" * 300, *listed[5:]])
        self.assertEqual(listed[: len(found)], found)
        self.assertGreater(len(found), 3000)


class TestModels(testtools.TestCase):
    """Magnum's own definitions: what is cut here is what is short there."""

    def test_every_text_that_a_verdict_writes_is_known(self) -> None:
        for table, fields in (
            (
                models.Cluster,
                ("status_reason", "health_status_reason", "api_address", "coe_version"),
            ),
            (models.NodeGroup, ("status_reason", "node_addresses")),
        ):
            for field in at_least_one(fields):
                kind = table.__table__.columns[field].type
                if isinstance(kind, sqlalchemy.String) and kind.length:
                    self.assertEqual(column_limits.STRING, kind.length)
                else:
                    impl = getattr(kind, "impl", kind)
                    self.assertIsInstance(impl, sqlalchemy.Text)
                    self.assertIsNone(impl.length)

    def test_json_is_measured_as_magnum_writes_it(self) -> None:
        said = {"a": 'é高😀"\\\n'}
        written = models.JSONEncodedDict().process_bind_param(said, None)
        self.assertEqual(len(written), column_limits.encoded_size(said))
