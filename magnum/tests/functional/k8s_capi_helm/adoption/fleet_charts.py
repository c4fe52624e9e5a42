# SPDX-License-Identifier: Apache-2.0
"""A repository with the charts of a fleet, as they were when clusters were created, and later.

Whoever runs a repository may replace a chart without another version, or take it away. Then what
is rendered is not what the clusters have.
"""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import dataclasses
import functools
import http.server
from pathlib import Path
import shutil
import subprocess
import tempfile
import threading
from typing import Any

import yaml

from magnum.tests.functional.k8s_capi_helm.adoption.setting import CONTRACT
from magnum.tests.functional.k8s_capi_helm.charts import reference, rendering

NAME = "openstack-cluster"
#: Title of the releases of the reference chart.
REFERENCE = "reference"
#: Releases of the reference chart, where a checkout with its tags is given.
REFERENCE_VERSIONS = ("0.22.0", "0.27.0")
_TEAM = "    example.org/team: blue\n"
_LABEL = "    capi.stackhpc.com/cluster: {{ $name }}\n"
_VERSION = "      version: v{{ $.Values.kubernetesVersion }}\n"
_SETTINGS = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-settings
data:
  level: %(level)s
  %(key)s: "1"
---
apiVersion: v1
kind: Secret
metadata:
  name: {{ .Release.Name }}-token
stringData:
  token: %(level)s
---
apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name }}-agent
spec:
  selector: {app: agent}
  ports: %(ports)s
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}-agent
spec:
  replicas: 1
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      containers: %(containers)s
"""
_EXTRA = """\
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-%(name)s
  annotations: %(annotations)s
data: {}
"""


@dataclasses.dataclass(frozen=True)
class FleetChart:
    """A chart of the repository.

    :ivar title: in the names of its clusters.
    """

    title: str
    version: str


PLAIN = FleetChart("plain", "0.9.0")
LABEL = FleetChart("label", "0.9.1")
GONE = FleetChart("gone", "0.9.2")
CHANGED = FleetChart("changed", "0.9.3")
OWN = FleetChart("own", yaml.safe_load((rendering.CLUSTER / "Chart.yaml").read_text())["version"])


class FleetCharts:
    """The repository, served on loopback.

    :ivar charts: that it has at first.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.charts = [PLAIN, LABEL, GONE, CHANGED, OWN]
        directory.mkdir()
        for chart in self.charts:
            self._write(chart, is_later=False)
        for version, source in _reference_charts(directory.parent / "reference"):
            self._pack(source, version)
            self.charts.append(FleetChart(REFERENCE, version))
        self._index()

    @contextlib.contextmanager
    def served(self) -> Iterator[str]:
        """The URL, as long as it is served."""
        handler = functools.partial(_Handler, directory=str(self._directory))
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            try:
                yield f"http://127.0.0.1:{server.server_address[1]}"
            finally:
                server.shutdown()
                thread.join()

    def change(self) -> None:
        """Replace two charts under their versions, and take one away."""
        for chart in (LABEL, CHANGED):
            self._write(chart, is_later=True)
        (self._directory / f"{NAME}-{GONE.version}.tgz").unlink()
        self._index()

    def _write(self, chart: FleetChart, *, is_later: bool) -> None:
        with tempfile.TemporaryDirectory() as place:
            copy = Path(place, NAME)
            shutil.copytree(rendering.CLUSTER if chart == OWN else CONTRACT, copy)
            if chart == LABEL and not is_later:
                _insert_after(copy, _LABEL, _TEAM)
            if chart == CHANGED:
                (copy / "templates" / "settings.yaml").write_text(_settings(is_later=is_later))
                if is_later:
                    _insert_after(copy, _VERSION, "      failureDomain: az-2\n")
            self._pack(copy, chart.version)

    def _pack(self, chart: Path, version: str) -> None:
        rendering.run("package", chart, "--version", version, "--destination", self._directory)

    def _index(self) -> None:
        rendering.run("repo", "index", self._directory)


class _Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing of each request."""


def _insert_after(chart: Path, text: str, more: str) -> None:
    """Write another line after each line with this text."""
    for path in sorted((chart / "templates").iterdir()):
        path.write_text(path.read_text().replace(f"\n{text}", f"\n{text}{more}"))


def _settings(*, is_later: bool) -> str:
    """Objects of built-in kinds: fields that change, come and disappear, items of lists, too."""
    variables = [{"name": name, "value": "1"} for name in ("A" if is_later else "AB")]
    containers = [
        {"name": "agent", "image": f"agent:{1 + is_later}", "env": variables},
        {"name": "proxy", "image": "proxy:1"},
    ]
    ports = [{"name": name, "port": port} for name, port in (("http", 80), ("https", 443))]
    objects = _SETTINGS % {
        "level": "debug" if is_later else "info",
        "key": "after" if is_later else "before",
        "ports": ports[: 1 if is_later else 2],
        "containers": containers[: 1 if is_later else 2],
    }
    keep = {"helm.sh/resource-policy": "keep"}
    extra = [("new", {})] if is_later else [("old", {}), ("kept", keep)]
    more = (_EXTRA % {"name": name, "annotations": notes} for name, notes in extra)
    return objects + "".join(more)


def _reference_charts(directory: Path) -> Iterator[tuple[str, Path]]:
    """Releases of the reference chart with their versions, where a checkout is given."""
    try:
        place = reference.place()
    except reference.NotGiven:
        return
    top = _git(place, "rev-parse", "--show-toplevel").decode().strip()
    if not top:
        return
    for version in sorted(set(REFERENCE_VERSIONS) & set(_git(top, "tag").decode().split())):
        target = directory / version
        target.mkdir(parents=True)
        archive = _git(top, "archive", version, "charts")
        subprocess.run(["tar", "-x", "-C", target], input=archive, check=True, timeout=60)
        # The dependency lies beside it, so that nothing is downloaded.
        chart = target / "charts" / NAME
        rendering.run("dependency", "update", "--skip-refresh", chart)
        yield version, chart


def _git(place: Path | str, *arguments: str) -> bytes:
    """What git says of a checkout; nothing where it is none."""
    argv = ["git", "-C", str(place), *arguments]
    return subprocess.run(argv, capture_output=True, check=False, timeout=60).stdout
