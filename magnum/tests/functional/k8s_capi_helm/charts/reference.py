# SPDX-License-Identifier: Apache-2.0
"""The reference chart, where somebody has a checkout of it: named by $REFERENCE_CHART.

https://github.com/azimuth-cloud/capi-helm-charts, whose values this project's charts take. Nothing
of it is part of this project, and nothing here needs it: who compares says so when it is not given.
"""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import os
from pathlib import Path
import shutil
import tempfile

from magnum.tests.functional.k8s_capi_helm.charts import rendering

VARIABLE = "REFERENCE_CHART"
NAME = "openstack-cluster"


class NotGiven(Exception):
    """There is no reference chart; the text says how to give one."""


def place() -> Path:
    """Directory of the reference's openstack-cluster.

    :raises NotGiven: the variable is not set, or names no such chart.
    """
    given = os.environ.get(VARIABLE)
    if not given:
        raise NotGiven(f"there is nothing to compare with: name a checkout in {VARIABLE}")
    for path in (Path(given), Path(given) / NAME, Path(given) / "charts" / NAME):
        if path.name == NAME and (path / "Chart.yaml").exists():
            return path.resolve()
    raise NotGiven(f"{VARIABLE} is {given}, and no chart {NAME} is there")


@contextlib.contextmanager
def chart() -> Iterator[Path]:
    """A copy of the reference's openstack-cluster that helm can render: with its dependency.

    :raises NotGiven: as of :func:`place`.
    :raises rendering.HelmRefused: its dependency cannot be packed.
    """
    source = place()
    with tempfile.TemporaryDirectory() as directory:
        charts = Path(directory, "charts")
        shutil.copytree(source.parent, charts, ignore=shutil.ignore_patterns(".git", "*.tgz"))
        # The dependency lies beside it, so that nothing is downloaded.
        rendering.run("dependency", "update", "--skip-refresh", charts / NAME)
        yield charts / NAME
