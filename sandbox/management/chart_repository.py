# SPDX-License-Identifier: Apache-2.0
"""A Helm repository on loopback, for sandboxes whose addon provider is the real one.

The charts of addons are on repositories that a sandbox does not reach. In their place stand small
ones with the same names and versions: each has the workloads of its addon under the names that
the real chart gives them, the CRDs that our manifests need, and a Secret with the values that it
was given. :func:`overlay` are the values of the cluster chart with which all addons come from here.
"""

import json
from pathlib import Path
import shutil
import subprocess
import sys
import textwrap
from typing import Any

import yaml

from sandbox import processes
from sandbox.addons import tenant_install
from sandbox.management import binaries
from sandbox.state import SandboxError, State

NAME = "chart-repository"
VALUES = Path(__file__).parents[2] / "charts" / "cluster-addons" / "values.yaml"
PACKAGE_TIMEOUT = 120.0
#: By chart: group, version, kind and plural of what our manifests have of its addon.
CRDS = {
    "tigera-operator": (
        ("projectcalico.org", "v3", "GlobalNetworkPolicy", "globalnetworkpolicies"),
    ),
    "snapshot-controller": (
        ("snapshot.storage.k8s.io", "v1", "VolumeSnapshotClass", "volumesnapshotclasses"),
    ),
}
_GIVEN_VALUES = """\
apiVersion: v1
kind: Secret
metadata:
  name: {{ .Release.Name }}-given-values
stringData:
  values.yaml: |
    {{- toYaml .Values | nindent 4 }}
"""

Chart = dict[str, str]


def start(state: State, place: Path) -> None:
    """Make the charts and serve them, unless they are served.

    :param place: directory of the programs of the management cluster.
    :raises SandboxError: helm refuses a chart, or the port does not answer.
    """
    folder = state.path("management", "charts")
    if not folder.exists():
        write(folder, binaries.require(place, "helm"))
    argv = [sys.executable, "-m", "http.server", "--bind=127.0.0.1", f"--directory={folder}"]
    processes.start(state, NAME, [*argv, str(state.port(NAME))])


def url(state: State) -> str:
    """Where it is."""
    return f"http://127.0.0.1:{state.port(NAME)}"


def overlay(state: State) -> dict[str, Any]:
    """Values of the cluster chart with which addons come from here."""
    return {"addons": _repositories(_values(), url(state))}


def charts() -> list[Chart]:
    """Name, version and repository of the chart of each addon."""
    return sorted(_charts(_values()), key=lambda chart: chart["name"])


def _values() -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load(VALUES.read_text())
    return values


def _is_chart(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(value.get(key), str) for key in ("repo", "name", "version")
    )


def _charts(values: dict[str, Any]) -> list[Chart]:
    found = []
    for value in values.values():
        if _is_chart(value):
            found.append({key: value[key] for key in ("repo", "name", "version")})
        elif isinstance(value, dict):
            found += _charts(value)
    return found


def _repositories(values: dict[str, Any], there: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in values.items():
        if _is_chart(value):
            found[key] = {"repo": there}
        elif isinstance(value, dict) and (inner := _repositories(value, there)):
            found[key] = inner
    return found


def write(folder: Path, helm: str) -> None:
    """Pack all charts, with their index, into a directory that appears when it is complete.

    :param helm: path of the program.
    :raises SandboxError: helm refuses one.
    """
    draft = folder.with_name(".charts.draft")
    shutil.rmtree(draft, ignore_errors=True)
    sources = [_write_chart(draft / "source", chart) for chart in charts()]
    packed = draft / "packed"
    packed.mkdir()
    _run([helm, "package", *map(str, sources), "--destination", str(packed)])
    _run([helm, "repo", "index", str(packed)])
    packed.rename(folder)
    shutil.rmtree(draft)


def _write_chart(parent: Path, chart: Chart) -> Path:
    folder = parent / f"{chart['name']}-{chart['version']}"
    for part in ("templates", "crds"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    about = {"apiVersion": "v2", "name": chart["name"], "version": chart["version"]}
    (folder / "Chart.yaml").write_text(yaml.safe_dump(about))
    (folder / "templates" / "given-values.yaml").write_text(_GIVEN_VALUES)
    addon = {"kind": "HelmRelease", "spec": {"chart": chart, "targetNamespace": ""}}
    for number, one in enumerate(tenant_install.documents(addon, None)):
        one["metadata"].pop("namespace")
        path = folder / "templates" / f"workload-{number}.yaml"
        path.write_text(yaml.safe_dump(one))
    for group, version, kind, plural in CRDS.get(chart["name"], ()):
        path = folder / "crds" / f"{plural}.yaml"
        path.write_text(json.dumps(_crd(group, version, kind, plural)))
    return folder


def _crd(group: str, version: str, kind: str, plural: str) -> dict[str, Any]:
    """A CRD of objects in no namespace that takes everything."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {"name": version, "served": True, "storage": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [{**served, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def _run(command: list[str]) -> None:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=PACKAGE_TIMEOUT
    )
    if done.returncode:
        said = textwrap.shorten(done.stderr, 1000)
        raise SandboxError(f"`{' '.join(command[:3])}` failed: {said}")
