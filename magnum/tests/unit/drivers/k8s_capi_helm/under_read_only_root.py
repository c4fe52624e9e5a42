# SPDX-License-Identifier: Apache-2.0
"""A process that can write no file, as in a container with a read-only root.

``python under_read_only_root.py PLACE`` makes all mounts of its own mount namespace read-only, uses
the driver, and prints what happened as JSON. PLACE has a kubeconfig, charts and a helm.
"""

from __future__ import annotations

import json
import logging
import os
import pathlib
import subprocess
import sys
import tempfile

from magnum.drivers.k8s_capi_helm import chart_store, errors, helm, model
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient

#: Not what the kernel shows of itself.
_KERNEL = ("/proc", "/sys", "/dev")


def make_read_only() -> None:
    """Nothing can be written from now on, but for a directory that $TMPDIR names.

    :raises subprocess.CalledProcessError: this is not allowed here.
    """
    subprocess.run(["mount", "--make-rprivate", "/"], check=True, timeout=30)
    for line in pathlib.Path("/proc/self/mounts").read_text().splitlines():
        path = line.split()[1]
        if not path.startswith(_KERNEL):
            subprocess.run(["mount", "-o", "remount,bind,ro", path], check=True, timeout=30)
    if temporary := os.environ.get("TMPDIR"):
        subprocess.run(["mount", "-t", "tmpfs", "none", temporary], check=True, timeout=30)


def main(place: pathlib.Path) -> dict[str, object]:
    """What came of using the driver, and what the operator reads."""
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    kube = KubeClient(str(place / "kubeconfig"), connect_timeout=20, read_timeout=20)
    runner = helm.HelmClient(kube, executable=str(place / "helm"), timeout=60)
    found: dict[str, object] = {"lines": lines}

    def store(**choice: str) -> chart_store.ChartStore:
        return chart_store.ChartStore(
            bundled_charts=place / "charts",
            directory=place / "cache",
            helm=runner,
            choice=chart_store.ChartChoice(**choice),
        )

    found["lease"] = kube.get(model.names.LEASE, "n", "one")
    found["helm"] = runner.version()
    found["bundled"] = store().for_new_cluster(None).path
    try:
        store(repository="https://charts.example.org", name="c").for_new_cluster("1.0.0")
    except errors.DriverError as error:
        found["other"] = [str(error), error.detail]
    try:
        os.close(tempfile.mkstemp()[0])
    except OSError as error:
        found["temporary"] = str(error)
    return found


if __name__ == "__main__":
    try:
        make_read_only()
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"mounts cannot be made read-only here: {error}")
    sys.stdout.write(json.dumps(main(pathlib.Path(sys.argv[1]))))
