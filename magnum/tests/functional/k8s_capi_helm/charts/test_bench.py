# SPDX-License-Identifier: Apache-2.0
"""The benchmark times this chart alone or beside the reference, and judges the ratio."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path
import tempfile
import unittest
from unittest import mock

from magnum.tests.functional.k8s_capi_helm.charts import reference, rendering
from tools.bench import chart_bench


class BenchTest(unittest.TestCase):
    def bench(self, given: str | None, walls: list[float] | None = None) -> tuple[int, str]:
        """Exit status and output; the medians are real ones of a single run without walls."""
        said = io.StringIO()
        variables = {} if given is None else {reference.VARIABLE: given}
        with contextlib.ExitStack() as stack:
            stack.enter_context(mock.patch.dict(os.environ, variables))
            stack.enter_context(mock.patch.object(chart_bench, "RUNS", 1))
            stack.enter_context(contextlib.redirect_stdout(said))
            stack.enter_context(contextlib.redirect_stderr(said))
            if given is None:
                os.environ.pop(reference.VARIABLE, None)
            if walls:
                medians = [chart_bench.Spent(0.08, wall) for wall in walls]
                stack.enter_context(mock.patch.object(chart_bench, "medians", return_value=medians))
                stack.enter_context(mock.patch.object(reference, "chart", contextlib.nullcontext))
            return chart_bench.main(), said.getvalue()

    def test_alone_it_says_its_own_time_and_how_to_compare(self) -> None:
        status, said = self.bench(None)
        self.assertEqual(0, status)
        for row in ("this chart", "its values unchecked"):
            self.assertRegex(said, row + r" +[1-9]\d* ms +[1-9]\d* ms of processors\n")
        self.assertIn(f"name a checkout of it in {reference.VARIABLE}", said)

    def test_the_ratio_decides(self) -> None:
        for walls, status in (([0.089, 0.06, 0.1], 0), ([0.091, 0.06, 0.1], 1)):
            with self.subTest(walls=walls):
                found, said = self.bench("somewhere", walls)
                self.assertEqual(status, found)
                self.assertRegex(said, r"ratio +1\.00 +0\.[89]\d of processors ")
                self.assertRegex(said, r"unchecked +1\.00 +0\.60 of processors\n")

    def test_what_is_no_chart_is_not_compared_with(self) -> None:
        with tempfile.TemporaryDirectory() as empty:
            status, said = self.bench(empty)
        self.assertEqual(2, status)
        self.assertIn(f"{empty}, and no chart openstack-cluster is there", said)

    def test_a_checkout_its_charts_and_the_chart_itself_all_name_it(self) -> None:
        charts = rendering.CLUSTER.parent
        for given in (charts.parent, charts, rendering.CLUSTER):
            with mock.patch.dict(os.environ, {reference.VARIABLE: str(given)}):
                self.assertEqual(Path(rendering.CLUSTER).resolve(), reference.place())
