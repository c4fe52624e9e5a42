# SPDX-License-Identifier: Apache-2.0
"""The patch that Helm sends: of custom resources, of built-in kinds, and after interrupted runs."""

from __future__ import annotations

from typing import Any
import unittest

from magnum.drivers.k8s_capi_helm.helm import recovery, release_secret, upgrade_patch
from magnum.drivers.k8s_capi_helm.helm.deployed_objects import DeployedObjects
from magnum.drivers.k8s_capi_helm.model import Json
from magnum.drivers.k8s_capi_helm.values.tree import merge
from magnum.tests.unit.drivers.k8s_capi_helm.rendered_case import OWNERSHIP
from magnum.tests.unit.drivers.k8s_capi_helm.test_helm_recovery import group, revision

RELEASE = OWNERSHIP["annotations"]["meta.helm.sh/release-name"]
NAMESPACE = OWNERSHIP["annotations"]["meta.helm.sh/release-namespace"]


def config_map(name: str, **data: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def existing(manifest: Json, **annotations: str) -> Json:
    """The object of a manifest, as Helm has made it."""
    there: Json = merge.merge(manifest, {"metadata": OWNERSHIP})
    return dict(merge.merge(there, {"metadata": {"annotations": annotations}}))


def deployed(*secrets: Json, helm: str = "3.21.4") -> DeployedObjects:
    return DeployedObjects.of_release(NAMESPACE, RELEASE, secrets, helm)


class TestThreeWay(unittest.TestCase):
    def merged(self, last: Any, new: Any, have: Any, kind: str = "Deployment") -> Any:
        last, new, have = ({"kind": kind, "spec": spec} for spec in (last, new, have))
        return merge.merge_patched(have, upgrade_patch.three_way_patch(last, new, have))["spec"]

    def test_fields(self) -> None:
        for last, new, have, expected in (
            ({"a": 1}, {"a": 1}, {"a": 2, "b": 3}, {"a": 1, "b": 3}),
            ({"a": 1, "b": 1}, {"a": 1}, {"a": 1, "b": 3, "c": 4}, {"a": 1, "c": 4}),
            ({"a": {"b": 1}}, {"a": {}}, {"a": {"b": 1, "c": 2}}, {"a": {"c": 2}}),
            ({"a": {"b": 1}}, {}, {"a": {"b": 1, "c": 2}}, {}),
            ({}, {"a": None}, {"a": 1, "b": 1}, {"b": 1}),
            ({"a": [1, 2]}, {"a": [1]}, {"a": [1, 2, 3]}, {"a": [1]}),
        ):
            with self.subTest(last=last, new=new):
                self.assertEqual(expected, self.merged(last, new, have))

    def test_items_with_names(self) -> None:
        def env(*names: str, **texts: str) -> Json:
            return {"env": [{"name": name, "value": texts.get(name, "1")} for name in names]}

        for last, new, have, expected in (
            (env("a", "b"), env("a", "b", b="2"), env("a", "x", "b"), env("a", "x", "b", b="2")),
            (env("a", "b"), env("a"), env("a", "x", "b"), env("a", "x")),
            (env("a"), env("b", "a"), env("a", "x"), env("a", "x", "b")),
            (env("a", "b"), env("b", "a"), env("a", "x", "b"), env("b", "a", "x")),
            ({}, env("a"), {}, env("a")),
        ):
            with self.subTest(last=last, new=new):
                self.assertEqual(expected, self.merged(last, new, have))

    def test_ports_have_another_key_in_a_service(self) -> None:
        for kind, key in (("Service", "port"), ("Deployment", "containerPort")):
            new, have = {"ports": [{key: 1}]}, {"ports": [{key: 1, "protocol": "TCP"}]}
            self.assertEqual(have, self.merged(new, new, have, kind))
        atomic = {"ports": [{"port": 1}]}
        self.assertEqual(
            atomic, self.merged(atomic, atomic, {"ports": [{"port": 1, "protocol": "TCP"}]})
        )


class TestDeployedObjects(unittest.TestCase):
    def changed(self, objects: DeployedObjects, manifest: Json, have: Json) -> Any:
        """What an object is after the upgrade."""
        merged = merge.merge_patched(have, objects.patch(manifest, have))
        return merged.get("spec", merged.get("data"))

    def test_a_custom_resource_keeps_what_others_have_written(self) -> None:
        objects, have = deployed(revision(1, "deployed", group("a", 1))), existing(group("a", 7))
        self.assertEqual({"replicas": 7}, self.changed(objects, group("a", 1), have))
        self.assertEqual({"replicas": 2}, self.changed(objects, group("a", 2), have))

    def test_an_object_of_a_built_in_kind_becomes_what_is_rendered(self) -> None:
        objects = deployed(revision(1, "deployed", config_map("c", a="1", b="1")))
        have = existing(config_map("c", a="2", b="2", x="2"))
        self.assertEqual({"a": "1", "x": "2"}, self.changed(objects, config_map("c", a="1"), have))

    def test_where_the_server_applies_every_object_does(self) -> None:
        applied, have = (
            revision(1, "deployed", group("a", 1), method="ssa"),
            existing(group("a", 7)),
        )
        for helm, expected in (("4.1.1", 1), ("3.21.4", 7)):
            objects = deployed(applied, helm=helm)
            found = self.changed(objects, group("a", 1), have)
            self.assertEqual({"replicas": expected}, found, helm)

    def test_one_that_helm_does_not_know_yet(self) -> None:
        objects = deployed(revision(1, "deployed"))
        self.assertEqual(
            {"replicas": 7}, self.changed(objects, group("a", 1), existing(group("a", 7)))
        )
        found = self.changed(objects, config_map("c", a="1"), existing(config_map("c", b="2")))
        self.assertEqual({"a": "1", "b": "2"}, found)

    def test_whose_it_is_comes_back(self) -> None:
        objects = deployed(revision(1, "deployed", group("a", 1)))
        self.assertEqual({"metadata": OWNERSHIP}, objects.patch(group("a", 1), group("a", 1)))

    def test_what_an_interrupted_run_has_left(self) -> None:
        old, new = group("a", 1), group("a", 1)
        secrets = revision(1, "deployed", old), revision(2, "failed", group("a", 5))
        self.assertEqual(
            {"replicas": 1}, self.changed(deployed(*secrets), new, existing(group("a", 5)))
        )
        secrets = revision(1, "superseded", group("a", 5)), revision(2, "deployed", old)
        self.assertEqual(
            {"replicas": 5}, self.changed(deployed(*secrets), new, existing(group("a", 5)))
        )

    def test_objects_that_are_deleted(self) -> None:
        keep = {"helm.sh/resource-policy": "keep"}
        kept = group("kept", 1, annotations=keep)
        objects = deployed(
            revision(1, "deployed", group("a", 1), group("b", 1), group("mine", 1)),
            revision(2, "failed", group("half", 1), kept),
        )
        stay = {one["metadata"]["name"] for one in objects.not_rendered([group("a", 1)])}
        self.assertEqual({"b", "mine", "half", "kept"}, stay)
        for obj, expected in (
            (existing(group("b", 1)), True),
            (group("b", 1), True),
            (existing(group("mine", 1), **keep), False),
            (existing(group("half", 1)), True),
            (group("half", 1), False),
            (existing(kept), False),
        ):
            with self.subTest(obj=obj):
                self.assertEqual(expected, objects.is_deleted(obj, obj))


class TestComparedRevisions(unittest.TestCase):
    def test_helms_own_is_first(self) -> None:
        for statuses, expected in (
            ((), []),
            (("deployed",), [1]),
            (("superseded", "deployed"), [2]),
            (("superseded", "failed", "deployed"), [3]),
            (("superseded", "deployed", "failed"), [2, 3]),
            (("failed",), [1]),
            (("deployed", "failed", "deployed"), [3, 1]),
        ):
            secrets = [revision(number, text) for number, text in enumerate(statuses, 1)]
            compared = recovery.compared_revisions(secrets)
            with self.subTest(statuses=statuses):
                self.assertEqual(expected, [release_secret.revision(one) for one in compared])

    def test_marked_ones_are_compared_too(self) -> None:
        marked = recovery.with_mark(revision(1, "pending-upgrade"))
        newest = revision(2, "deployed")
        self.assertEqual([newest, marked], recovery.compared_revisions([marked, newest]))
