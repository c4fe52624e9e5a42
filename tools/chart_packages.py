# SPDX-License-Identifier: Apache-2.0
"""Make the charts' own packages: chart_packages DIRECTORY.

The charts have versions of their own and are released without the driver. Each package is what
``helm package`` makes of a chart in ``charts/``; its version is that of its Chart.yaml.
"""

from __future__ import annotations

from pathlib import Path
import subprocess
import sys

from sandbox.management import binaries

CHARTS = Path(__file__).resolve().parent.parent / "charts"
TIMEOUT = 120.0


def package(helm: Path, chart: Path, target: Path) -> str:
    """Pack one chart; what Helm says of the package.

    :raises subprocess.CalledProcessError: Helm refuses the chart.
    """
    done = subprocess.run(
        [helm, "package", "--destination", target, chart],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=TIMEOUT,
    )
    return done.stdout.strip().splitlines()[-1]


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: chart_packages DIRECTORY", file=sys.stderr)
        return 2
    target = Path(arguments[0])
    target.mkdir(parents=True, exist_ok=True)
    helm = binaries.build() / "helm"
    try:
        for chart in sorted(path.parent for path in CHARTS.glob("*/Chart.yaml")):
            print(package(helm, chart, target), flush=True)
    except subprocess.CalledProcessError as error:
        print(f"Helm does not pack {error.cmd[-1]}: see above.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
