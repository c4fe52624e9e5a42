# SPDX-License-Identifier: Apache-2.0
"""Helm 3 and Helm 4 make the same objects of every scenario, and neither has anything to say."""

from __future__ import annotations

from concurrent import futures
import os
import re
import unittest

from magnum.tests.functional.k8s_capi_helm.charts import rendering
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Scenario
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one


class HelmTest(unittest.TestCase):
    maxDiff = None

    def setUp(self) -> None:
        super().setUp()
        self.scenarios = list(rendering.every_scenario())

    def test_the_two_are_of_different_generations(self) -> None:
        versions = {
            int(re.findall(r"v(\d+)\.", rendering.run("version", "--short", program=program))[0])
            for program in (rendering.helm(), rendering.helm4())
        }
        self.assertEqual({3, 4}, versions)

    def test_both_make_the_same_objects(self) -> None:
        wanted = [(scenario.chart, scenario.values) for scenario in self.scenarios]
        newer = rendering.texts(wanted, program=rendering.helm4())
        for scenario, text in at_least_one(zip(self.scenarios, newer, strict=True)):
            with self.subTest(chart=scenario.chart.name, scenario=scenario.name):
                # Helm 4 orders documents another way, and neither order means anything.
                self.assertEqual(
                    sorted(scenario.objects, key=rendering.identity),
                    sorted(rendering.documents(text.result()), key=rendering.identity),
                )

    def test_lint_has_nothing_to_say(self) -> None:
        wanted = [
            (scenario, program)
            for scenario in self.scenarios
            for program in (rendering.helm(), rendering.helm4())
        ]
        with futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            answers = [pool.submit(linted, scenario, program) for scenario, program in wanted]
        for (scenario, program), answer in at_least_one(zip(wanted, answers, strict=True)):
            with self.subTest(chart=scenario.chart.name, scenario=scenario.name, helm=program):
                self.assertIn("1 chart(s) linted, 0 chart(s) failed", answer.result())
                self.assertNotRegex(answer.result(), r"\[(WARNING|ERROR)\]")

    def test_lint_takes_the_charts_as_they_come(self) -> None:
        """It skips what is refused for want of values, and meets every template without them."""
        for chart in (rendering.CLUSTER, rendering.ADDONS):
            for program in (rendering.helm(), rendering.helm4()):
                with self.subTest(chart=chart.name, helm=program):
                    said = rendering.run("lint", "--strict", chart, program=program)
                    self.assertIn("1 chart(s) linted, 0 chart(s) failed", said)


def linted(scenario: Scenario, program: str) -> str:
    """What a helm says of a chart with a scenario's values."""
    values = scenario.chart / "ci" / f"{scenario.name}-values.yaml"
    return rendering.run("lint", "--strict", scenario.chart, f"--values={values}", program=program)
