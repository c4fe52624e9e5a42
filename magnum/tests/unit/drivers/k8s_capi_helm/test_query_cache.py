# SPDX-License-Identifier: Apache-2.0
"""Magnum's queries are compiled once."""

from __future__ import annotations

from typing import Any

import fixtures
import testtools

from magnum.db.sqlalchemy import models
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import query_cache
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase

TYPES = (models.JSONEncodedDict, models.JSONEncodedList)


class DeclarationTest(testtools.TestCase):
    def declared(self, value: bool | None) -> list[Any]:
        types = "magnum.db.sqlalchemy.models"
        self.useFixture(fixtures.MonkeyPatch(f"{types}.JSONEncodedDict.cache_ok", value))
        self.useFixture(fixtures.MonkeyPatch(f"{types}.JSONEncodedList.cache_ok", value))
        query_cache.enable_query_cache()
        return [column_type.cache_ok for column_type in TYPES]

    def test_what_magnum_does_not_declare_is_declared(self) -> None:
        self.assertEqual([True, True], self.declared(None))

    def test_what_magnum_declares_counts(self) -> None:
        self.assertEqual([False, False], self.declared(False))


class CompiledTest(DriverCase):
    def test_a_driver_declares_it(self) -> None:
        self.useFixture(
            fixtures.MonkeyPatch("magnum.db.sqlalchemy.models.JSONEncodedDict.cache_ok", None)
        )
        self.new_driver()
        self.assertTrue(models.JSONEncodedDict.cache_ok)

    def test_a_compiled_query_is_that_of_any_value(self) -> None:
        self.create()
        for labels in ({"a": "b"}, {"c": "d"}, {}):
            self.assertEqual(labels, self.saved_labels(labels))

    def saved_labels(self, labels: dict[str, str]) -> Any:
        """Labels of the cluster as they are read after they were saved."""
        cluster = self.cluster()
        cluster.labels = labels
        cluster.save()
        return self.cluster().labels
