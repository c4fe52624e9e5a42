# SPDX-License-Identifier: Apache-2.0
"""What the addon provider installs into a cluster of the sandbox, and charts out of Go modules."""

from __future__ import annotations

import json
from pathlib import Path
import shutil
from typing import Any

import yaml

from magnum.tests.functional.k8s_capi_helm.charts import rendering
from magnum.tests.functional.k8s_capi_helm.cloud_programs.tenant_api import Object
from magnum.tests.functional.k8s_capi_helm.sandbox import setting
from magnum.tests.functional.k8s_capi_helm.sandbox.management import management
from sandbox.addons import rules, templates
from sandbox.addons.objects import Objects
from sandbox.management import kubeconfig
from sandbox.management.cloud_programs import CloudRelease
from sandbox.management.connection import Connection

_COMPONENT = "capi.stackhpc.com/component"
#: The chart of the cloud controller takes its labels from a library of another project, which its
#: module does not have: this one has the same template, with the labels that everything has.
_LIBRARY = """{{- define "common.labels.standard" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}
"""


class Addon:
    """One addon of a real cluster.

    :param namespace: of the cluster's project.
    :param release: name of the cluster.
    :param component: what the chart calls the addon.
    """

    def __init__(self, namespace: str, release: str, component: str) -> None:
        (self.found,) = (
            {**one, "kind": kind}
            for kind in ("HelmRelease", "Manifests")
            for one in management().objects(kind, namespace)
            if one["metadata"]["labels"][_COMPONENT] == component
            and one["spec"]["clusterName"] == release
        )

    @property
    def namespace(self) -> str:
        """Where it is installed."""
        return str(self.found["spec"]["targetNamespace"])

    def content(self) -> Any:
        """The values of a HelmRelease, or the objects of Manifests, from the cluster's objects."""
        seen = Objects(Connection(kubeconfig(setting.state()))).look(self.found)
        assert isinstance(seen, rules.Seen)
        return templates.render(self.found, seen.sources, seen.context())

    def chart_objects(self, release: CloudRelease, folder: str, place: Path) -> list[Object]:
        """What Helm makes of the addon's chart, which the module of its programs has.

        :param folder: of the chart in the module.
        :param place: an empty directory.
        :raises AssertionError: the module has another version of the chart than the addon.
        """
        chart = _copy(release.directory() / "charts" / folder, place / folder)
        here = yaml.safe_load((chart / "Chart.yaml").read_text())
        spec = self.found["spec"]
        wanted = (spec["chart"]["name"], spec["chart"]["version"])
        assert (here["name"], here["version"]) == wanted, (here, spec["chart"])
        name = str(spec["releaseName"])
        asked = ("template", name, chart, f"--namespace={self.namespace}", "--values=-")
        text = rendering.run(*asked, stdin=json.dumps(self.content()))
        return rendering.documents(text)


def _copy(source: Path, target: Path) -> Path:
    shutil.copytree(source, target, copy_function=shutil.copyfile)
    target.chmod(0o700)
    needed = yaml.safe_load((target / "Chart.yaml").read_text()).get("dependencies", [])
    for one in needed:
        library = target / "charts" / one["name"]
        (library / "templates").mkdir(parents=True)
        chart = {"apiVersion": "v2", "type": "library", **one}
        (library / "Chart.yaml").write_text(yaml.safe_dump(chart))
        (library / "templates" / "_labels.tpl").write_text(_LIBRARY)
    return target
