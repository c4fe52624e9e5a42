# SPDX-License-Identifier: Apache-2.0
"""What pyproject.toml cannot say: a wheel holds the driver, an editable install the tests too."""

import setuptools
from setuptools.command.build_py import build_py


class BuildDriver(build_py):
    """Leaves the tests out of a wheel: without the checkout's data and sandbox they say nothing."""

    def finalize_options(self) -> None:
        super().finalize_options()
        if not self.editable_mode:
            self.packages = [p for p in self.packages or () if not p.startswith("magnum.tests.")]


setuptools.setup(cmdclass={"build_py": BuildDriver})
