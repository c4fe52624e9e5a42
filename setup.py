# SPDX-License-Identifier: Apache-2.0
"""What pyproject.toml cannot say: a wheel holds the driver, an editable install the tests too."""

from pathlib import Path
import sys

import setuptools
from setuptools.command.build_py import build_py

# A build has no directory of the checkout on its path.
sys.path.insert(0, str(Path(__file__).resolve().parent))
from tools import compact_chart

CHARTS = "magnum/drivers/k8s_capi_helm/charts"


class BuildDriver(build_py):
    """Leaves the tests out of a wheel: without the checkout's data and sandbox they say nothing.

    Its charts have the same bytes as the charts' packages.
    """

    def finalize_options(self) -> None:
        super().finalize_options()
        if not self.editable_mode:
            self.packages = [p for p in self.packages or () if not p.startswith("magnum.tests.")]

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            compact_chart.compact(Path(self.build_lib) / CHARTS)


setuptools.setup(cmdclass={"build_py": BuildDriver})
