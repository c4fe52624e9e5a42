# SPDX-License-Identifier: Apache-2.0
"""What a real helm has written that did not come to its end is gone after the next run.

Helm looks at custom resources only by what it has noted itself, so these are what is tested.
"""

from __future__ import annotations

import dataclasses
import pathlib
import threading
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.helm import HelmClient, recovery
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.model import Json, names
from magnum.tests.functional.k8s_capi_helm import envtest
from magnum.tests.functional.k8s_capi_helm.charts import rendering
from magnum.tests.functional.k8s_capi_helm.envtest.test_helm_client import HelmCase
from magnum.tests.unit.drivers.k8s_capi_helm.suites import helm

#: Its plural is one that nobody can guess.
WIDGET = names.Kind("example.org", "Widget", "widgetry", ("v1",))
DEFINITION = names.Kind(
    "apiextensions.k8s.io",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    ("v1",),
    namespaced=False,
)
#: A Widget and, by name, some more; ``late`` keeps helm from its end when all objects are written.
MORE = """\
{{- range .Values.more }}
---
apiVersion: example.org/v1
kind: Widget
metadata:
  name: {{ .name }}
  {{- with .keep }}
  annotations: {helm.sh/resource-policy: keep}
  {{- end }}
data: {text: {{ .text | default "" | quote }}}
{{- end }}
"""


def define_widgets(kube: KubeClient) -> None:
    """Let the API server have a custom resource that is no more than a text."""
    versions = [
        {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": {
                "openAPIV3Schema": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": True,
                }
            },
        }
    ]
    called = {"plural": WIDGET.plural, "singular": "widget", "kind": "Widget"}
    spec = {"group": "example.org", "scope": "Namespaced", "names": called, "versions": versions}
    kube.apply(DEFINITION, {"metadata": {"name": "widgetry.example.org"}, "spec": spec})
    for _ in range(200):
        try:
            kube.list(WIDGET, "default")
        except errors.DriverError:
            threading.Event().wait(0.05)
        else:
            return
    raise AssertionError("the API server does not serve the custom resource")


def write_widget_chart(directory: pathlib.Path) -> helm.Chart:
    """The chart of the suite, with what ``more`` and ``late`` ask for."""
    chart = helm.write_chart(directory)
    (directory / "templates" / "more.yaml").write_text(MORE)
    late = helm.HOOK.replace("hang", "late").replace("pre-", "post-")
    (directory / "templates" / "late.yaml").write_text(late)
    return dataclasses.replace(chart)


def widget(text: str, **more: Any) -> Json:
    """Values for a Widget with a text."""
    return {"apiVersion": "example.org/v1", "kind": "Widget", "text": text, **more}


class Lost:
    """A lock that is lost when something has happened."""

    def __init__(self, happened: Any) -> None:
        self.is_lost = happened


class TestHalfDone(helm.HelmSuite, HelmCase):
    """Helm 3, and Helm 4 below."""

    def setUp(self) -> None:
        super().setUp()
        define_widgets(self.kube)
        self.chart = write_widget_chart(self.directory / "widgets")
        self.namespace = self.make_namespace()

    def apply(self, values: Json, **more: Any) -> Any:
        return self.helm.apply(self.namespace, helm.RELEASE, self.chart, values, **more)

    def text(self, name: str = helm.RELEASE) -> str | None:
        found = self.kube.get(WIDGET, self.namespace, name)
        return found and found["data"].get("text")

    def kill_half_way(self, values: Json) -> None:
        """Kill helm when it has written its objects and has not noted that."""
        texts = {one["name"]: one.get("text", "") for one in values.get("more", [])}
        texts[helm.RELEASE] = values["text"]
        hold = Lost(lambda: texts == {name: self.text(name) for name in texts})
        self.assertRaises(
            errors.HelmInterrupted, self.apply, {**values, "late": True}, held_lock=hold
        )

    def fail_half_way(self, values: Json) -> None:
        """Let helm fail when it has written its objects."""
        hasty = HelmClient(self.kube, executable=self.helm._executable, timeout=1)
        self.assertRaises(
            errors.HelmInterrupted,
            hasty.apply,
            self.namespace,
            helm.RELEASE,
            self.chart,
            {**values, "late": True},
        )

    def status(self) -> str:
        return str(self.helm.live(self.namespace, helm.RELEASE).status)

    def test_what_was_before_comes_back(self) -> None:
        for status, interrupt in (
            ("pending-upgrade", self.kill_half_way),
            ("failed", self.fail_half_way),
        ):
            self.apply(widget("one"))
            interrupt(widget("two"))
            self.assertEqual((status, "two"), (self.status(), self.text()))
            done = self.apply(widget("one"))
            self.assertEqual(("deployed", "one"), (done.status, self.text()))
            self.assertEqual(done, self.helm.live(self.namespace, helm.RELEASE))

    def test_an_installation_that_is_taken_up_with_other_values(self) -> None:
        self.kill_half_way(widget("one"))
        before = self.kube.get(WIDGET, self.namespace, helm.RELEASE)["metadata"]["uid"]
        self.assertEqual("pending-install", self.status())
        self.kill_half_way(widget("three"))
        self.assertEqual("pending-install", self.status())
        self.apply(widget("two"))
        found = self.kube.get(WIDGET, self.namespace, helm.RELEASE)
        self.assertEqual((before, "two"), (found["metadata"]["uid"], found["data"]["text"]))

    def test_several_of_them(self) -> None:
        self.apply(widget("one", more=[{"name": "a", "text": "one"}]))
        self.kill_half_way(widget("two", more=[{"name": "a", "text": "two"}, {"name": "b"}]))
        self.kill_half_way(widget("three", more=[{"name": "a", "text": "one"}]))
        self.apply(widget("one", more=[{"name": "a", "text": "one"}]))
        self.assertEqual(
            ("one", "one", None, "deployed"),
            (self.text(), self.text("a"), self.text("b"), self.status()),
        )

    def test_what_only_it_has_made_goes_and_what_is_to_be_kept_stays(self) -> None:
        self.apply(widget("one"))
        self.kube.create(WIDGET, {"metadata": {"name": "other", "namespace": self.namespace}})
        more = [{"name": "gone"}, {"name": "kept", "keep": True}]
        self.kill_half_way(widget("two", more=more))
        self.assertEqual(("", ""), (self.text("gone"), self.text("kept")))
        self.apply(widget("one"))
        self.assertEqual((None, ""), (self.text("gone"), self.text("kept")))

    def test_an_object_of_somebody_else_is_not_taken_away(self) -> None:
        self.apply(widget("one"))
        self.kill_half_way(widget("two", more=[{"name": "theirs", "text": "x"}]))
        self.kube.delete(WIDGET, self.namespace, "theirs")
        theirs = {
            "metadata": {"name": "theirs", "namespace": self.namespace},
            "data": {"text": "t"},
        }
        self.kube.create(WIDGET, theirs)
        self.apply(widget("one"))
        self.assertEqual(("one", "t"), (self.text(), self.text("theirs")))

    def test_who_dies_before_all_is_put_right_leaves_that_to_the_next(self) -> None:
        self.apply(widget("one"))
        self.kill_half_way(widget("two", more=[{"name": "a"}]))

        def is_through() -> bool:
            found = self.kube.list(names.SECRET, self.namespace, {"version": "3"})
            return [one["metadata"]["labels"]["status"] for one in found] == ["deployed"]

        self.assertRaises(
            (errors.Busy, errors.HelmInterrupted),
            self.apply,
            widget("one"),
            held_lock=Lost(is_through),
        )
        self.assertEqual((recovery.HALF_DONE, ""), (self.status(), self.text("a")))
        self.apply(widget("one"))
        self.assertEqual(("deployed", "one", None), (self.status(), self.text(), self.text("a")))

    def test_nothing_is_gone_over_without_need(self) -> None:
        self.apply(widget("one"))
        self.kube.patch(WIDGET, self.namespace, helm.RELEASE, {"data": {"other": "theirs"}})
        self.apply(widget("two"))
        found = self.kube.get(WIDGET, self.namespace, helm.RELEASE)
        self.assertEqual({"text": "two", "other": "theirs"}, found["data"])


class TestHelm4(TestHalfDone):
    """The same with the server's own way of applying."""

    def setUp(self) -> None:
        super().setUp()
        self.helm = HelmClient(self.kube, executable=rendering.helm4(), timeout=60)

    def test_a_release_that_helm_3_has_made_goes_on_as_it_was(self) -> None:
        older = HelmClient(self.kube, executable=envtest.helm(), timeout=60)
        older.apply(self.namespace, helm.RELEASE, self.chart, widget("one"))
        self.kill_half_way(widget("two"))
        self.assertEqual("two", self.text())
        self.apply(widget("one"))
        self.assertEqual("one", self.text())
