# SPDX-License-Identifier: Apache-2.0
"""promtool reads the rules, and each alert fires when it should and only then."""

from __future__ import annotations

from pathlib import Path
import subprocess
import sys
import unittest

import yaml

from magnum.drivers import k8s_capi_helm
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one
from sandbox.management import binaries, prometheus

RULES = Path(k8s_capi_helm.__file__).parent / "manifests" / "prometheus-rules.yaml"
TESTS = Path(__file__).with_name("alerts.yaml")


def alerts() -> list[str]:
    """The names of all alerts."""
    (group,) = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return [rule["alert"] for rule in group["rules"]]


class TestAlerts(unittest.TestCase):
    program: str

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.program = str(binaries.one(prometheus.PROMTOOL))

    def promtool(self, *argv: str) -> str:
        done = subprocess.run(
            [self.program, *argv], capture_output=True, text=True, timeout=300, check=False
        )
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        return done.stdout

    def test_the_rules_are_read_without_a_complaint(self) -> None:
        printed = self.promtool("check", "rules", "--lint=all", "--lint-fatal", str(RULES))
        self.assertIn(f"SUCCESS: {len(alerts())} rules found", printed)

    def test_each_alert_fires_at_its_condition_and_not_without(self) -> None:
        self.promtool("test", "rules", str(TESTS))
        sys.stderr.write(f"promtool: {len(alerts())} alerts fire, and are silent\n")

    def test_each_alert_has_both_tests(self) -> None:
        found = {case["name"]: case for case in yaml.safe_load(TESTS.read_text())["tests"]}
        wanted = [f"{name} {end}" for name in alerts() for end in ("fires", "is silent")]
        self.assertEqual(wanted, list(found))
        for name in at_least_one(alerts()):
            for ending, count in (("fires", 1), ("is silent", 0)):
                (rule,) = found[f"{name} {ending}"]["alert_rule_test"]
                self.assertEqual((name, count), (rule["alertname"], len(rule["exp_alerts"])))
