# SPDX-License-Identifier: Apache-2.0
"""Images are found wherever rendered objects, and the addon provider's templates, have them."""

from __future__ import annotations

import base64
from typing import Any
import unittest

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.charts.addon_values import addon_objects, addon_values
from magnum.drivers.k8s_capi_helm.commands.charts.bundle_contents import (
    BundleContents,
    KUBEADM_IMAGES,
    kubeadm_images,
)
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one


class TestImages(unittest.TestCase):
    def found(self, *objects: dict[str, Any]) -> set[str]:
        contents = BundleContents("1.35.4")
        contents.add_images(objects, "addon x")
        self.assertEqual([], contents.notes)
        return set(map(str, contents.images))

    def test_of_containers(self) -> None:
        spec = {
            "initContainers": [{"image": "quay.io/a/init:1"}],
            "containers": [
                {
                    "image": "quay.io/a/b:1",
                    "args": ["--reloader=quay.io/a/reloader:v2", "--level=3", "x.y/z"],
                    "env": [{"name": "RELATED", "value": "ghcr.io/a/related:3"}, {"name": "A"}],
                }
            ],
        }
        obj = {"kind": "DaemonSet", "spec": {"template": {"spec": spec}}}
        expected = ("init:1", "b:1", "reloader:v2")
        self.assertEqual(
            {*(f"quay.io/a/{name}" for name in expected), "ghcr.io/a/related:3"}, self.found(obj)
        )

    def test_of_custom_resources(self) -> None:
        driver = {"repository": "nvcr.io/nvidia", "image": "driver", "version": "570.1"}
        digest = {**driver, "version": f"sha256:{'0' * 64}"}
        obj = {"kind": "ClusterPolicy", "spec": {"driver": driver, "toolkit": digest}}
        self.assertEqual(
            {"nvcr.io/nvidia/driver:570.1", f"nvcr.io/nvidia/driver@sha256:{'0' * 64}"},
            self.found(obj, {"kind": "Prometheus", "spec": {"image": ""}}),
        )

    def test_schemas_have_none(self) -> None:
        schema = {"openAPIV3Schema": {"properties": {"image": {"type": "string"}}}}
        self.assertEqual(set(), self.found({"kind": "CustomResourceDefinition", "spec": schema}))

    def test_what_is_no_image_is_told(self) -> None:
        contents = BundleContents("1.35.4")
        contents.add_images([{"kind": "Deployment", "spec": {"image": "{{ x }}"}}], "addon x")
        self.assertEqual({}, contents.images)
        self.assertIn("addon x: This is not the name of an image", contents.notes[0])

    def test_who_needs_them(self) -> None:
        contents = BundleContents("1.35.4")
        for user in ("a", "b", "a"):
            contents.add_image("quay.io/a/b:1", user)
        self.assertEqual([["a", "b"]], list(contents.images.values()))


class TestKubeadm(unittest.TestCase):
    def test_of_each_minor_version(self) -> None:
        for minor in at_least_one(KUBEADM_IMAGES):
            found = kubeadm_images(f"v{minor}.0")
            self.assertEqual(7, len(found))
            self.assertEqual(f"registry.k8s.io/kube-apiserver:v{minor}.0", found[0])

    def test_an_unknown_one(self) -> None:
        with self.assertRaises(errors.InvalidRequest) as caught:
            kubeadm_images("1.20.1")
        self.assertIn("--kubeadm-images", str(caught.exception))


class TestAddons(unittest.TestCase):
    SECRET = {
        "kind": "Secret",
        "metadata": {"name": "config"},
        "stringData": {"defaults": "{a: {b: 1}, list: [1]}", "overrides": "{a: {c: 2}, list: [2]}"},
        "data": {"encoded": base64.b64encode(b"d: {{ cluster.metadata.name }}").decode()},
    }
    CLUSTER = {"kind": "Cluster", "metadata": {"name": "demo"}, "spec": {}}

    def addon(self, kind: str, **spec: Any) -> dict[str, Any]:
        return {"kind": kind, "metadata": {"name": "x"}, "spec": spec}

    def test_values_are_merged(self) -> None:
        keys = ("defaults", "overrides", "encoded")
        sources = [{"secret": {"name": "config", "key": key}} for key in keys]
        values = addon_values(
            self.addon("HelmRelease", valuesSources=sources), [self.SECRET, self.CLUSTER]
        )
        self.assertEqual({"a": {"b": 1, "c": 2}, "list": [1, 2], "d": "demo"}, values)

    def test_objects_of_a_template(self) -> None:
        template = (
            "a: {{ cluster.spec.controlPlaneEndpoint.port }}\n---\n"
            "b: {{ (cloud_identity.data['clouds.yaml'] | b64decode | fromyaml).clouds | length }}\n"
            "---\n"
        )
        addon = self.addon("Manifests", manifestSources=[{"template": template}])
        self.assertEqual([{"a": 6443}, {"b": 1}], addon_objects(addon, [self.CLUSTER]))

    def test_templates_have_the_addon_as_the_provider_gives_it(self) -> None:
        """By attributes in Python's spelling, which its ``toyaml`` writes in that of the API."""
        template = "{a: {{ addon.spec.release_name }}, b: {{ addon.metadata.name }}}"
        addon = self.addon(
            "HelmRelease", releaseName="loki", valuesSources=[{"template": template}]
        )
        self.assertEqual({"a": "loki", "b": "x"}, addon_values(addon, []))
        for broken in ("{{ addon.spec.releaseName.x }}", "{{ addon.spec.chart_name.x }}"):
            addon["spec"]["valuesSources"] = [{"template": broken}]
            with self.subTest(broken), self.assertRaises(errors.InvalidRequest):
                addon_values(addon, [])

    def test_what_yaml_has_and_json_has_not(self) -> None:
        """Dates, sets and bytes are written as the provider writes them, and pairs are appended."""
        for text, expected in (
            ("{{ ('a: 2026-01-02' | fromyaml) | toyaml }}", {"a": "2026-01-02"}),
            ("{{ ('a: !!set {x}' | fromyaml) | toyaml }}", {"a": ["x"]}),
            ("{{ {'a': 'x'.encode()} | toyaml }}", {"a": "x"}),
            ("{{ {'a': [1]} | mergeconcat({'a': (2, 3)}) | toyaml }}", {"a": [1, 2, 3]}),
        ):
            addon = self.addon("HelmRelease", valuesSources=[{"template": text}])
            with self.subTest(text):
                self.assertEqual(expected, addon_values(addon, []))

    def test_a_source_without_a_key(self) -> None:
        config = {**self.SECRET, "data": {}, "stringData": {"values.yaml": "a: 1", "b": "b: 2"}}
        values = self.addon("HelmRelease", valuesSources=[{"secret": {"name": "config"}}])
        self.assertEqual({"a": 1}, addon_values(values, [config]))
        source = {"secret": {"name": "config", "excludeKeys": ["b"]}}
        manifests = self.addon("Manifests", manifestSources=[source])
        self.assertEqual([{"a": 1}], addon_objects(manifests, [config]))

    def test_a_broken_template(self) -> None:
        for text in ("{{", "{{ nothing.more }}", "a: [", "{{ ''.__class__.mro() }}"):
            with self.subTest(text), self.assertRaises(errors.InvalidRequest):
                addon = self.addon("Manifests", manifestSources=[{"template": text}])
                addon_objects(addon, [])
