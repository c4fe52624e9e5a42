# SPDX-License-Identifier: Apache-2.0
"""What Helm promises to the rest of the driver, and a chart small enough to see through."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import json
import pathlib
import time
from typing import Any

from magnum.drivers.k8s_capi_helm.chart_store import archive
from magnum.drivers.k8s_capi_helm.model import Chart, Json, names
from magnum.drivers.k8s_capi_helm.model.names import CHART_FAMILY, CHART_FAMILY_ANNOTATION, Kind
from magnum.tests.unit.drivers.k8s_capi_helm.suites.kube_client import KubeClientSuite

RELEASE = "demo-abcdefghijkl"
NAMESPACE = "magnum-p"
CONFIG_MAP = Kind("", "ConfigMap", "configmaps", ("v1",))
CHART_YAML = f"""\
apiVersion: v2
name: openstack-cluster
version: 1.0.0
annotations:
  {CHART_FAMILY_ANNOTATION}: {CHART_FAMILY}
"""
#: Renders what ``text`` says; ``fail`` refuses, ``kind`` makes an object of another kind.
TEMPLATE = """\
{{- with .Values.fail }}{{ fail . }}{{ end }}
apiVersion: {{ .Values.apiVersion | default "v1" }}
kind: {{ .Values.kind | default "ConfigMap" }}
metadata:
  name: {{ .Release.Name }}
data:
  text: {{ .Values.text | quote }}
"""
#: With ``hang``, helm waits in the middle of its run: nobody ever runs this Job.
HOOK = """\
{{- if .Values.hang }}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}
  annotations:
    helm.sh/hook: pre-install,pre-upgrade
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: none, image: none}]
{{- end }}
"""
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}


def write_chart(directory: pathlib.Path, version: str = "1.0.0", name: str = "") -> Chart:
    """A chart with one ConfigMap in a directory, which is made."""
    (directory / "templates").mkdir(parents=True)
    text = CHART_YAML.replace("1.0.0", version)
    if name:
        text = text.replace("openstack-cluster", name)
    (directory / "Chart.yaml").write_text(text)
    (directory / "values.yaml").write_text("")
    (directory / "values.schema.json").write_text(json.dumps(SCHEMA))
    (directory / "templates" / "config.yaml").write_text(TEMPLATE)
    (directory / "templates" / "hook.yaml").write_text(HOOK)
    return archive.read_chart(directory)


def secret(
    revision: int,
    status: str,
    values: Json | None,
    *,
    annotations: Json | None = None,
    pack: Any = gzip.compress,
    method: str | None = None,
    templates: Json | None = None,
    version: str = "1.0.0",
    release_name: str = RELEASE,
) -> Json:
    """The Secret of a revision, as Helm writes it.

    :param templates: of the chart, texts by name.
    """
    if annotations is None:
        annotations = {CHART_FAMILY_ANNOTATION: CHART_FAMILY}
    release = {
        "name": release_name,
        "namespace": NAMESPACE,
        "version": revision,
        "info": {"status": status},
        "config": values,
        "chart": {
            "metadata": {
                "name": "openstack-cluster",
                "version": version,
                "annotations": annotations,
            },
            "templates": [
                {"name": name, "data": base64.b64encode(text.encode()).decode()}
                for name, text in (templates or {}).items()
            ],
        },
    }
    if method is not None:
        release["apply_method"] = method
    packed = base64.b64encode(pack(json.dumps(release).encode()))
    return {
        "type": "helm.sh/release.v1",
        "metadata": {
            "name": f"sh.helm.release.v1.{release_name}.v{revision}",
            "namespace": NAMESPACE,
            "labels": {
                "owner": "helm",
                "name": release_name,
                "status": status,
                "version": str(revision),
            },
        },
        "data": {"release": base64.b64encode(packed).decode()},
    }


class HelmSuite(KubeClientSuite):
    """Mixed into a TestCase whose ``setUp`` sets ``kube``, ``helm`` and ``chart``."""

    helm: Any
    chart: Chart


class HelmTests(HelmSuite):
    """The promises."""

    assertEqual: Any
    assertIsNone: Any
    assertTrue: Any

    def test_no_release_is_none(self) -> None:
        self.assertIsNone(self.helm.live(self.make_namespace(), RELEASE))
        self.assertIsNone(self.helm.live("no-such-namespace", RELEASE))

    def test_the_first_apply_installs(self) -> None:
        namespace = self.make_namespace()
        done = self.helm.apply(namespace, RELEASE, self.chart, {"text": "a"})
        self.assertEqual(
            (RELEASE, namespace, 1, "deployed"),
            (done.name, done.namespace, done.revision, done.status),
        )
        self.assertEqual(
            (self.chart.name, self.chart.version, self.chart.family),
            (done.chart_name, done.chart_version, done.chart_family),
        )
        self.assertEqual({"text": "a"}, done.values)
        self.assertEqual(done, self.helm.live(namespace, RELEASE))

    def test_each_revision_says_when_helm_began_with_it(self) -> None:
        namespace, times = self.make_namespace(), [time.time()]
        for text in "ab":
            live = self.helm.apply(namespace, RELEASE, self.chart, {"text": text})
            times += [live.deployed_at, time.time()]
        self.assertEqual(sorted(times), times)

    def test_the_next_apply_upgrades_to_these_values_alone(self) -> None:
        namespace = self.make_namespace()
        self.helm.apply(namespace, RELEASE, self.chart, {"text": "a", "more": [1, None, {"x": 1}]})
        chart = dataclasses.replace(self.chart)
        done = self.helm.apply(namespace, RELEASE, chart, {"text": "b"})
        self.assertEqual((2, {"text": "b"}), (done.revision, done.values))
        self.assertEqual(done, self.helm.live(namespace, RELEASE))

    def test_the_newest_of_many_revisions_is_live(self) -> None:
        namespace = self.make_namespace()
        for number in range(11):
            self.helm.apply(namespace, RELEASE, self.chart, {"text": str(number)})
        live = self.helm.live(namespace, RELEASE)
        self.assertEqual((11, {"text": "10"}), (live.revision, live.values))

    def test_what_is_left_when_the_newest_is_lost_says_so(self) -> None:
        namespace = self.make_namespace()
        for text in "ab":
            self.helm.apply(namespace, RELEASE, self.chart, {"text": text})
        self.assertEqual(2, self.helm.live(namespace, RELEASE).whole)
        self.lose(namespace, 2)
        live = self.helm.live(namespace, RELEASE)
        self.assertEqual((1, "superseded", 1), (live.revision, live.status, live.whole))

    def lose(self, namespace: str, revision: int) -> None:
        """Somebody deletes the Secret of a revision."""
        name = f"sh.helm.release.v1.{RELEASE}.v{revision}"
        self.kube.delete(names.SECRET, namespace, name)

    def test_uninstall_takes_it_away_and_may_be_repeated(self) -> None:
        namespace = self.make_namespace()
        self.helm.apply(namespace, RELEASE, self.chart, {"text": "a"})
        self.helm.uninstall(namespace, RELEASE)
        self.assertIsNone(self.helm.live(namespace, RELEASE))
        self.helm.uninstall(namespace, RELEASE)
        done = self.helm.apply(namespace, RELEASE, self.chart, {"text": "b"})
        self.assertEqual(1, done.revision)

    def test_releases_do_not_see_each_other(self) -> None:
        one, two = self.make_namespace(), self.make_namespace()
        self.helm.apply(one, RELEASE, self.chart, {"text": "a"})
        self.helm.apply(one, f"{RELEASE}x", self.chart, {"text": "b"})
        self.helm.apply(two, RELEASE, self.chart, {"text": "c"})
        self.helm.uninstall(one, f"{RELEASE}x")
        self.assertEqual({"text": "a"}, self.helm.live(one, RELEASE).values)
        self.assertEqual({"text": "c"}, self.helm.live(two, RELEASE).values)

    def test_what_is_there_is_taken_over(self) -> None:
        namespace = self.make_namespace()
        place = {"name": RELEASE, "namespace": namespace}
        self.kube.create(CONFIG_MAP, {"metadata": place, "data": {"text": "a"}})
        self.helm.preview(namespace, RELEASE, self.chart, {"text": "a"}, adopt=True)
        self.assertIsNone(self.helm.live(namespace, RELEASE))
        done = self.helm.apply(namespace, RELEASE, self.chart, {"text": "a"}, adopt=True)
        self.assertEqual((1, "deployed"), (done.revision, done.status))
        found = self.kube.get(CONFIG_MAP, namespace, RELEASE)
        self.assertEqual({"text": "a"}, found["data"])

    def test_its_version_is_a_plain_one(self) -> None:
        self.assertEqual(3, len([int(part) for part in self.helm.version().split(".")]))
