# SPDX-License-Identifier: Apache-2.0
"""Print how many bytes a revision of a cluster's release takes in its Secret, and of what.

A revision is what Helm 3 and 4 write (https://helm.sh/docs/topics/advanced/#storage-backends):
JSON, gzip, base64, and base64 again for the Secret. Manifests are those of the golden files; the
chart is read as Helm reads it, once as it is in the checkout and once as packages and the wheel
have it. Helm's own gzip, and the comments that it adds to manifests, take some percent more.
"""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
import shutil
import sys
import tempfile
from typing import Any

import yaml

from tools import compact_chart

CHART = Path(__file__).resolve().parent.parent / "charts" / "openstack-cluster"
#: Not part of what is installed: .helmignore.
_IGNORED = ("ci", "tests")
#: Helm's own files of a chart.
_METADATA, _VALUES, _SCHEMA = "Chart.yaml", "values.yaml", "values.schema.json"

Json = dict[str, Any]


def secret_bytes(revision: Json) -> int:
    """Length of the text in the Secret of a revision."""
    packed = gzip.compress(json.dumps(revision, separators=(",", ":")).encode(), 9)
    return len(base64.b64encode(base64.b64encode(packed)))


def revision(chart: Json, values: Json, manifest: str) -> Json:
    """A revision as Helm writes it down."""
    time = "2026-01-02T03:04:05.123456789Z"
    return {
        "name": "demo",
        "info": {
            "first_deployed": time,
            "last_deployed": time,
            "deleted": "",
            "description": "Upgrade complete",
            "status": "deployed",
        },
        "chart": chart,
        "config": values,
        "manifest": manifest,
        "version": 2,
        "namespace": "magnum-0123456789abcdef0123456789abcdef",
    }


def kept(chart: Path) -> Json:
    """What Helm keeps of a chart: each file in base64, and only values of the charts inside."""
    files: dict[str, bytes] = {
        path.relative_to(chart).as_posix(): path.read_bytes()
        for path in sorted(chart.rglob("*"))
        if path.is_file() and path.relative_to(chart).parts[0] not in (*_IGNORED, "charts")
    }
    metadata, values, schema = (files.pop(name) for name in (_METADATA, _VALUES, _SCHEMA))
    about, defaults = yaml.safe_load(metadata), yaml.safe_load(values)
    for inside in about.get("dependencies", ()):
        path, key = chart / "charts" / inside["name"] / _VALUES, inside.get("alias", inside["name"])
        below = yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else {}
        defaults[key] = _with_defaults(defaults.get(key, {}), below)
    entries = [{"name": name, "data": _text(content)} for name, content in files.items()]
    return {
        "metadata": about,
        "lock": None,
        "templates": [one for one in entries if one["name"].startswith("templates/")],
        "values": defaults,
        "schema": _text(schema),
        "files": [one for one in entries if not one["name"].startswith("templates/")],
    }


def packed() -> Json:
    """What Helm keeps of the chart that packages and the driver's wheel have."""
    with tempfile.TemporaryDirectory() as place:
        copy = Path(shutil.copytree(CHART, Path(place) / CHART.name))
        compact_chart.compact(copy)
        return kept(copy)


def scenarios() -> dict[str, tuple[Json, str]]:
    """Values and manifest of each scenario of the chart."""
    found = {}
    for path in sorted((CHART / "ci").glob("*-values.yaml")):
        name = path.name.removesuffix("-values.yaml")
        golden = sorted((CHART / "tests" / "golden" / name).glob("*.yaml"))
        manifest = "".join(f"---\n{one.read_text(encoding='utf-8')}" for one in golden)
        found[name] = yaml.safe_load(path.read_text(encoding="utf-8")), manifest
    return found


def main() -> int:
    checkout, package = kept(CHART), packed()
    print("Bytes of the chart in a revision's Secret, without each part:")
    for chart, title in ((checkout, "checkout"), (package, "package")):
        whole = secret_bytes(chart)
        parts = (f"{part} {whole - secret_bytes({**chart, part: None})}" for part in chart)
        print(f"  {title:9} {whole:7}  less {', '.join(parts)}")
    print(f"Bytes of a revision's Secret:{'checkout':>22} {'package':>9}")
    for name, (values, manifest) in scenarios().items():
        sizes = (secret_bytes(revision(one, values, manifest)) for one in (checkout, package))
        print(f"  {name:38}", *(f"{size:9}" for size in sizes), flush=True)
    return 0


def _with_defaults(values: Json, defaults: Json) -> Json:
    """Values of a chart inside another one, as Helm lays them over the chart's own."""
    found = {**defaults, **values}
    for key, default in defaults.items():
        if isinstance(default, dict) and isinstance(found[key], dict):
            found[key] = _with_defaults(found[key], default)
    return found


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()


if __name__ == "__main__":
    sys.exit(main())
