# SPDX-License-Identifier: Apache-2.0
"""Every key does something, and whose machines another value replaces is on record.

UPDATE_GOLDEN=1 writes the record anew; read its difference before you commit it: what rolls more
than before rolls the machines of every cluster.
"""

from __future__ import annotations

import os
import unittest

import yaml

from magnum.tests.functional.k8s_capi_helm.charts import other_values, rolls


class RollTest(unittest.TestCase):
    maxDiff = None

    def test_every_key_does_something_and_rolls_what_is_on_record(self) -> None:
        found = rolls.look_at_all()
        idle = {
            name: one.refusals
            for name, one in found.items()
            if not one.changed
            and name not in other_values.IDLE
            # What each of these does is for the tests of their own chart.
            and not name.startswith(f"{rolls.ADDONS}.")
        }
        words = {name: one.word for name, one in found.items() if one.changed}
        rows = rolls.rows(words)
        if os.environ.get("UPDATE_GOLDEN"):
            text = yaml.safe_dump(rows, sort_keys=False, width=100)
            rolls.RECORD.write_text(f"{rolls.HEAD}{text}")
        with self.subTest("record"):
            self.assertEqual(rolls.record(), rows)
        self.assertEqual({}, idle, "another value of these keys does nothing, or is refused")
