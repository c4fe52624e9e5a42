# SPDX-License-Identifier: Apache-2.0
"""What a rendered object would change of the one that is there."""

from __future__ import annotations

import base64
from typing import Any
import unittest

from magnum.drivers.k8s_capi_helm.helm import manifest_diff


def thing(spec: Any, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec, **more}


def _ref(version: str) -> dict[str, Any]:
    return {"ref": {"apiVersion": version, "kind": "A", "name": "a"}}


class TestDifferences(unittest.TestCase):
    def differing(self, wanted: Any, have: Any) -> list[str]:
        return list(manifest_diff.differences(thing(wanted), thing(have)))

    def test_what_stays(self) -> None:
        for wanted, have in (
            ({"a": 1}, {"a": 1, "defaulted": True}),
            ({"a": [{"b": 1}]}, {"a": [{"b": 1, "defaulted": 2}]}),
            ({"a": {}, "b": [], "c": None, "d": False, "e": ""}, {}),
            ({"a": {"b": {"c": []}}}, {}),
            ({"a": "5m"}, {"a": "5m0s"}),
            ({"a": "1h30m"}, {"a": "90m"}),
            (_ref("c.x-k8s.io/v1beta1"), _ref("c.x-k8s.io/v1beta2")),
            (_ref("v1"), _ref("v2")),
        ):
            with self.subTest(wanted=wanted):
                self.assertEqual([], self.differing(wanted, have))

    def test_what_does_not(self) -> None:
        for wanted, have, path in (
            ({"a": 1}, {"a": 2}, "spec.a"),
            ({"a": 1}, {}, "spec.a"),
            ({"a": {"b": {"c": 1}}}, {"a": {"b": {"c": 2}}}, "spec.a.b.c"),
            ({"a": [1, 2]}, {"a": [1]}, "spec.a"),
            ({"a": [1, 2]}, {"a": [1, 3]}, "spec.a[1]"),
            ({"a": {}}, {"a": None, "b": 1}, None),
            ({"a": "5m"}, {"a": "5s"}, "spec.a"),
            ({"a": ""}, {"a": "0s"}, "spec.a"),
            ({"a": False}, {"a": True}, "spec.a"),
            ({"a": []}, {"a": [1]}, "spec.a"),
            (_ref("c.x-k8s.io/v1"), _ref("d.x-k8s.io/v1"), "spec.ref.apiVersion"),
            (_ref("c.x-k8s.io/v1"), {"ref": {"kind": "A", "name": "a"}}, "spec.ref.apiVersion"),
            ({"apiVersion": "a/v1"}, {"apiVersion": "a/v2"}, "spec.apiVersion"),
        ):
            with self.subTest(wanted=wanted, have=have):
                self.assertEqual([path] if path else [], self.differing(wanted, have))

    def test_whose_it_is_does_not_count_and_other_marks_do(self) -> None:
        rendered, there = thing({}), thing({})
        rendered["metadata"] = {
            "labels": {"app.kubernetes.io/managed-by": "Helm", "a": "1"},
            "annotations": {manifest_diff.RELEASE_NAME: "demo", "b": "2"},
        }
        self.assertEqual(
            ["labels.a", "annotations.b"], list(manifest_diff.differences(rendered, there))
        )

    def test_the_texts_of_a_secret(self) -> None:
        data = {"a": base64.b64encode(b"text").decode()}
        there = thing({}, data=data)
        self.assertEqual(
            [], list(manifest_diff.differences(thing({}, stringData={"a": "text"}), there))
        )
        other = thing({}, stringData={"a": "other"})
        self.assertEqual(["data.a"], list(manifest_diff.differences(other, there)))


class TestStates(unittest.TestCase):
    def test_every_difference_counts(self) -> None:
        for after, before, expected in (
            ({"a": 1}, {"a": 1}, []),
            ({"a": "5m"}, {"a": "5m0s"}, [("spec.a", "5m", "5m0s")]),
            ({}, {"a": {"b": 1}}, [("spec.a", None, {"b": 1})]),
            ({"a": {}}, {}, [("spec.a", {}, None)]),
            ({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, [("spec.a[0].b", 1, 2)]),
            ({"a": [1]}, {"a": [1, 2]}, [("spec.a", [1], [1, 2])]),
        ):
            found = manifest_diff.state_changes(thing(after), thing(before))
            with self.subTest(after=after):
                listed = [(one.path, one.desired_value, one.current_value) for one in found]
                self.assertEqual(expected, listed)

    def test_metadata_as_far_as_somebody_writes_it(self) -> None:
        before, after = thing({}, status={"a": 1}), thing({}, status={"a": 2})
        after["metadata"] |= {
            "resourceVersion": "2",
            "labels": {"app.kubernetes.io/managed-by": "Helm"},
            "annotations": {"cluster.x-k8s.io/conversion-data": "{}"},
            "finalizers": ["f"],
        }
        found = {one.path for one in manifest_diff.state_changes(after, before)}
        self.assertEqual({"labels.app.kubernetes.io/managed-by", "finalizers"}, found)


class TestMachines(unittest.TestCase):
    def test_fields_that_replace_machines(self) -> None:
        for kind, path, expected in (
            ("MachineDeployment", "spec.template.spec.version", True),
            ("MachineDeployment", "spec.template.spec.bootstrap.configRef.name", True),
            ("MachineDeployment", "spec.template.spec.infrastructureRef.name", True),
            ("MachineDeployment", "spec.template.spec.failureDomain", True),
            ("MachineDeployment", "spec.template.metadata.labels.a", False),
            ("MachineDeployment", "spec.replicas", False),
            ("KubeadmControlPlane", "spec.version", True),
            ("KubeadmControlPlane", "spec.kubeadmConfigSpec.files[0].content", True),
            ("KubeadmControlPlane", "spec.machineTemplate.infrastructureRef.name", True),
            ("KubeadmControlPlane", "spec.machineTemplate.spec.infrastructureRef.name", True),
            ("KubeadmControlPlane", "spec.replicas", False),
            ("Cluster", "spec.version", False),
        ):
            with self.subTest(kind=kind, path=path):
                self.assertEqual(expected, manifest_diff.replaces_machines(kind, path))
