# SPDX-License-Identifier: Apache-2.0
"""Releases of addons: what is known of them after a restart, and what a repair leaves."""

from typing import Any
import unittest

from sandbox.addons import release
from sandbox.addons.release import Content, Release, Status

CONTENT = Content({"name": "ccm"}, {"a": 1})


class TestRelease(unittest.TestCase):
    def test_after_a_restart_the_status_of_the_addon_tells(self) -> None:
        for phase, revision, found in (
            (None, None, None),
            ("Pending", None, None),
            ("Failed", None, None),
            ("Failed", 2, Release(None, 2)),
            ("Deployed", 2, Release(None, 2)),
            ("Installing", None, Release(None, 1, Status.PENDING_INSTALL)),
            ("Installing", 3, Release(None, 1, Status.PENDING_INSTALL)),
            ("Upgrading", 3, Release(None, 4, Status.PENDING_UPGRADE)),
            ("Preparing", None, Release(None, 0, Status.UNINSTALLING)),
            ("Preparing", 3, Release(None, 5, Status.PENDING_ROLLBACK)),
            ("Uninstalling", 3, Release(None, 3, Status.UNINSTALLING)),
        ):
            with self.subTest(phase=phase, revision=revision):
                status: Any = {"phase": phase, "revision": revision}
                self.assertEqual(found, release.after_restart(status))

    def test_a_repair_removes_or_goes_back(self) -> None:
        for status in Status:
            with self.subTest(status):
                found = Release(CONTENT, 3, status)
                wanted = None if status in release.REMOVED else Release(CONTENT, 4)
                if found.is_interrupted:
                    self.assertEqual(wanted, found.repaired())
                else:
                    self.assertIn(status, (Status.DEPLOYED, Status.FAILED))

    def test_a_run_that_has_begun_counts(self) -> None:
        self.assertEqual(Release(None, 1, Status.PENDING_INSTALL), release.pending(None))
        self.assertEqual(
            Release(CONTENT, 4, Status.PENDING_UPGRADE), release.pending(Release(CONTENT, 3))
        )
