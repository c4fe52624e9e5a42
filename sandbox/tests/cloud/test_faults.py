# SPDX-License-Identifier: Apache-2.0
"""Faults that what is played in the cloud looks up by name."""

import os
from unittest import mock

from sandbox.cloud import faults
from sandbox.processes import OWNER_VARIABLE
from sandbox.state import SandboxError
from sandbox.tests.test_state import StateCase


class TestWritten(StateCase):
    def test_hits_what_matches_while_it_is_on(self) -> None:
        box, fault = self.sandbox(), faults.FAULTS[faults.SERVER_FAILS]
        with mock.patch.dict(os.environ, {OWNER_VARIABLE: str(box.root)}):
            self.assertFalse(faults.hits(fault.name, "c-late-1"))
            self.assertIn("'^c-late-'", fault.on(box, "^c-late-"))
            self.assertTrue(faults.hits(fault.name, "c-late-1"))
            self.assertFalse(faults.hits(fault.name, "c-early-1"))
            self.assertFalse(faults.hits(faults.LOAD_BALANCER_FAILS, "c-late-1"))
            fault.on(box, None)
            self.assertTrue(faults.hits(fault.name, "c-early-1"))
            fault.off(box)
            self.assertFalse(faults.hits(fault.name, "c-late-1"))
            fault.off(box)

    def test_what_is_no_expression_is_refused(self) -> None:
        fault = faults.FAULTS[faults.LOAD_BALANCER_FAILS]
        with self.assertRaisesRegex(SandboxError, "'a\\(' is not a regular expression"):
            fault.on(self.sandbox(), "a(")
