# SPDX-License-Identifier: Apache-2.0
"""The options that the other tests compare with are those of the package."""

from __future__ import annotations

import json
from pathlib import Path
import subprocess
import unittest

from magnum.tests.functional.k8s_capi_helm.adoption.setting import HERE, predecessor, TIMEOUT

RECORD = Path(__file__).resolve().parents[3] / "unit/drivers/k8s_capi_helm/predecessor_options.json"


class OptionsTest(unittest.TestCase):
    def test_the_record_is_what_the_package_lists(self) -> None:
        listed = subprocess.run(
            [predecessor(), "-W", "ignore", str(HERE / "listing.py")],
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=True,
        ).stdout
        self.assertEqual(json.loads(RECORD.read_text()), json.loads(listed))
