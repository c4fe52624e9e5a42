# SPDX-License-Identifier: Apache-2.0
"""What a client of the management cluster promises to the rest of the driver."""

from __future__ import annotations

import base64
import functools
from typing import Any
import uuid

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import Json, names

#: A kind that nobody serves.
ABSENT = names.Kind("absent.example.org", "Absent", "absents", ("v1",))


class KubeClientSuite:
    """Mixed into a TestCase whose ``setUp`` sets ``kube`` to a client that may do anything."""

    kube: Any

    def make_namespace(self) -> str:
        """A namespace of this test alone."""
        name = f"suite-{uuid.uuid4().hex[:12]}"
        self.kube.apply(names.NAMESPACE, {"metadata": {"name": name}})
        self.addCleanup(self.kube.delete, names.NAMESPACE, None, name)  # type: ignore[attr-defined]
        return name

    def make_lease(self, namespace: str, name: str = "one", **metadata: Any) -> Json:
        """A Lease, as the plainest object that there is."""
        made: Json = self.kube.create(
            names.LEASE,
            {"metadata": {"name": name, "namespace": namespace, **metadata}, "spec": {}},
        )
        return made


class KubeClientTests(KubeClientSuite):
    """The promises."""

    assertEqual: Any
    assertIn: Any
    assertIsNone: Any
    assertNotIn: Any
    assertRaises: Any
    assertTrue: Any
    assertFalse: Any
    assertNotEqual: Any

    def test_what_is_made_can_be_read(self) -> None:
        namespace = self.make_namespace()
        made = self.make_lease(namespace)
        found = self.kube.get(names.LEASE, namespace, "one")
        self.assertEqual(made, found)
        self.assertEqual("coordination.k8s.io/v1", found["apiVersion"])
        self.assertEqual("Lease", found["kind"])

    def test_what_is_not_there_is_none(self) -> None:
        namespace = self.make_namespace()
        self.assertIsNone(self.kube.get(names.LEASE, namespace, "one"))
        self.assertIsNone(self.kube.get(names.SECRET, "no-such-namespace", "one"))

    def test_metadata_is_read_without_the_rest(self) -> None:
        namespace = self.make_namespace()
        self.assertEqual([], self.kube.list(names.SECRET, namespace, metadata_only=True))
        for name, label in (("one", "a"), ("two", "a"), ("three", "b")):
            metadata = {"name": name, "namespace": namespace, "labels": {"x": label}}
            self.kube.create(names.SECRET, {"metadata": metadata, "stringData": {"a": "b"}})
        for selector, count in ((None, 3), ({"x": "a"}, 2), ({"x": "c"}, 0)):
            listed = self.kube.list(names.SECRET, namespace, selector)
            found = self.kube.list(names.SECRET, namespace, selector, metadata_only=True)
            self.assertEqual(count, len(found))
            self.assertEqual([{"metadata": one["metadata"]} for one in listed], found)
        self.assertEqual([], self.kube.list(names.SECRET, "no-such-namespace", metadata_only=True))

    def test_a_second_one_of_the_name_is_a_conflict(self) -> None:
        namespace = self.make_namespace()
        self.make_lease(namespace)
        self.assertRaises(errors.Conflict, self.make_lease, namespace)

    def test_nothing_is_made_in_a_namespace_that_is_not_there(self) -> None:
        manifest = {"metadata": {"name": "one", "namespace": "no-such-namespace"}}
        for verb in (self.kube.create, self.kube.apply):
            error = self.assertRaises(errors.Conflict, verb, names.LEASE, manifest)
            self.assertIn("no-such-namespace", str(error))

    def test_a_label_holds_63_characters(self) -> None:
        namespace = self.make_namespace()
        self.make_lease(namespace, "a", labels={"x": "1" * 63})
        refused = {"x": "1" * 64}, {"x": "a b"}, {"x": "-a"}
        for labels in refused:
            self.assertRaises(
                errors.ManagementRefused, self.make_lease, namespace, "b", labels=labels
            )
        self.assertIsNone(self.kube.get(names.LEASE, namespace, "b"))

    def test_list_selects_by_all_labels(self) -> None:
        namespace, other = self.make_namespace(), self.make_namespace()
        self.make_lease(namespace, "a", labels={"x": "1", "y": "1"})
        self.make_lease(namespace, "b", labels={"x": "1", "y": "2"})
        self.make_lease(other, "c", labels={"x": "1", "y": "1"})

        def found(**labels: str) -> list[str]:
            return [
                f"{item['kind']}/{item['metadata']['name']}"
                for item in self.kube.list(names.LEASE, namespace, labels)
            ]

        self.assertEqual(["Lease/a", "Lease/b"], found())
        self.assertEqual(["Lease/a", "Lease/b"], found(x="1"))
        self.assertEqual(["Lease/b"], found(x="1", y="2"))
        self.assertEqual([], found(x="2"))
        self.assertEqual([], self.kube.list(names.LEASE, "no-such-namespace"))

    def test_replace_compares(self) -> None:
        namespace = self.make_namespace()
        stale = self.make_lease(namespace)
        fresh = self.kube.replace(names.LEASE, {**stale, "spec": {"holderIdentity": "first"}})
        self.assertNotEqual(
            stale["metadata"]["resourceVersion"], fresh["metadata"]["resourceVersion"]
        )
        self.assertRaises(
            errors.Conflict,
            self.kube.replace,
            names.LEASE,
            {**stale, "spec": {"holderIdentity": "second"}},
        )
        found = self.kube.get(names.LEASE, namespace, "one")
        self.assertEqual("first", found["spec"]["holderIdentity"])

    def test_replace_needs_something_to_compare(self) -> None:
        namespace = self.make_namespace()
        made = self.make_lease(namespace)
        del made["metadata"]["resourceVersion"]
        self.assertRaises(ValueError, self.kube.replace, names.LEASE, made)

    def test_replace_of_what_is_gone_is_a_conflict(self) -> None:
        namespace = self.make_namespace()
        made = self.make_lease(namespace)
        self.kube.delete(names.LEASE, namespace, "one")
        self.assertRaises(errors.Conflict, self.kube.replace, names.LEASE, made)

    def test_apply_sets_its_own_fields_and_leaves_those_of_others(self) -> None:
        namespace = self.make_namespace()
        metadata = {"name": "one", "namespace": namespace}
        self.kube.apply(
            names.LEASE, {"metadata": {**metadata, "labels": {"mine": "1", "too": "1"}}}
        )
        self.kube.patch(
            kind=names.LEASE,
            namespace=namespace,
            name="one",
            merge={"metadata": {"labels": {"theirs": "1"}}},
        )
        self.kube.apply(names.LEASE, {"metadata": {**metadata, "labels": {"mine": "2"}}})
        found = self.kube.get(names.LEASE, namespace, "one")
        self.assertEqual({"mine": "2", "theirs": "1"}, found["metadata"]["labels"])

    def test_apply_of_the_same_changes_nothing(self) -> None:
        namespace = self.make_namespace()
        manifest = {
            "metadata": {"name": "one", "namespace": namespace, "labels": {"a": "b"}},
            "stringData": {"key": "value"},
        }
        first = self.kube.apply(names.SECRET, manifest)
        second = self.kube.apply(names.SECRET, manifest)
        self.assertEqual(
            first["metadata"]["resourceVersion"], second["metadata"]["resourceVersion"]
        )
        self.assertEqual({"key": base64.b64encode(b"value").decode()}, second["data"])

    def test_patch_merges_and_takes_away(self) -> None:
        namespace = self.make_namespace()
        made = self.make_lease(namespace, labels={"a": "1", "b": "1"})
        patched = self.kube.patch(
            kind=names.LEASE,
            namespace=namespace,
            name="one",
            merge={"metadata": {"labels": {"a": None, "c": "1"}}},
        )
        self.assertEqual({"b": "1", "c": "1"}, patched["metadata"]["labels"])
        stale = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}}
        for name, merge in (("one", {**stale, "spec": {"holderIdentity": "x"}}), ("two", {})):
            self.assertRaises(
                errors.Conflict,
                self.kube.patch,
                kind=names.LEASE,
                namespace=namespace,
                name=name,
                merge=merge,
            )

    def test_a_dry_patch_says_what_it_would_make_and_stores_nothing(self) -> None:
        namespace = self.make_namespace()
        made = self.make_lease(namespace, labels={"a": "1"})
        merge = {"metadata": {"labels": {"a": None, "c": "1"}}}
        patched = self.kube.patch(names.LEASE, namespace, "one", merge, dry=True)
        self.assertEqual({"c": "1"}, patched["metadata"]["labels"])
        self.assertEqual(made, self.kube.get(names.LEASE, namespace, "one"))
        patch = functools.partial(self.kube.patch, names.LEASE, namespace, "two", {}, dry=True)
        self.assertRaises(errors.Conflict, patch)

    def test_delete_says_whether_there_was_one(self) -> None:
        namespace = self.make_namespace()
        self.make_lease(namespace)
        self.assertTrue(self.kube.delete(names.LEASE, namespace, "one"))
        self.assertIsNone(self.kube.get(names.LEASE, namespace, "one"))
        self.assertFalse(self.kube.delete(names.LEASE, namespace, "one"))

    def test_delete_spares_another_object_of_the_name(self) -> None:
        namespace = self.make_namespace()
        old = self.make_lease(namespace)["metadata"]["uid"]
        self.kube.delete(names.LEASE, namespace, "one", uid=old)
        new = self.make_lease(namespace)["metadata"]["uid"]
        self.assertRaises(errors.Conflict, self.kube.delete, names.LEASE, namespace, "one", uid=old)
        self.assertTrue(self.kube.delete(names.LEASE, namespace, "one", uid=new))

    def test_delete_compares_the_version(self) -> None:
        namespace = self.make_namespace()
        read = self.make_lease(namespace)["metadata"]["resourceVersion"]
        merge = {"metadata": {"annotations": {"changed": "yes"}}}
        new = self.kube.patch(names.LEASE, namespace, "one", merge)["metadata"]["resourceVersion"]
        delete = functools.partial(self.kube.delete, names.LEASE, namespace, "one")
        self.assertRaises(errors.Conflict, delete, version=read)
        self.assertTrue(delete(version=new))

    def test_what_has_a_finalizer_stays_until_that_is_gone(self) -> None:
        namespace = self.make_namespace()
        self.make_lease(namespace, finalizers=["example.org/keep"])
        self.assertTrue(self.kube.delete(names.LEASE, namespace, "one"))
        found = self.kube.get(names.LEASE, namespace, "one")
        self.assertTrue(found["metadata"]["deletionTimestamp"])
        self.kube.patch(
            kind=names.LEASE,
            namespace=namespace,
            name="one",
            merge={"metadata": {"finalizers": None}},
        )
        self.assertIsNone(self.kube.get(names.LEASE, namespace, "one"))

    def test_a_kind_that_is_not_installed_is_said(self) -> None:
        namespace = self.make_namespace()
        manifest = {"metadata": {"name": "one", "namespace": namespace}}
        for call in (
            lambda: self.kube.served_version(ABSENT),
            lambda: self.kube.get(ABSENT, namespace, "one"),
            lambda: self.kube.list(ABSENT, namespace),
            lambda: self.kube.apply(ABSENT, manifest),
            lambda: self.kube.delete(ABSENT, namespace, "one"),
        ):
            error = self.assertRaises(errors.ManagementRefused, call)
            self.assertIn("Absent", str(error))
            self.assertIn("Ask the operator", str(error))
            self.assertFalse(error.retryable)

    def test_what_a_manifest_is_about_is_found(self) -> None:
        namespace, other = self.make_namespace(), self.make_namespace()
        made = self.make_lease(namespace)
        about = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
        self.assertEqual(made, self.kube.find({**about, "metadata": {"name": "one"}}, namespace))
        placed = {**about, "metadata": {"name": "one", "namespace": namespace}}
        self.assertEqual(made, self.kube.find(placed, other))
        self.assertIsNone(self.kube.find({**about, "metadata": {"name": "one"}}, other))
        self.assertIsNone(self.kube.find({**about, "metadata": {"name": "two"}}, namespace))

    def test_a_namespaced_object_needs_a_namespace(self) -> None:
        self.assertRaises(ValueError, self.kube.apply, names.LEASE, {"metadata": {"name": "one"}})

    def test_who_am_i(self) -> None:
        review = self.kube.create(names.SELF_REVIEW, {"metadata": {}})
        self.assertTrue(review["status"]["userInfo"]["username"])

    def test_answers_are_ones_own(self) -> None:
        namespace = self.make_namespace()
        self.make_lease(namespace, labels={"a": "1"})
        found = self.kube.get(names.LEASE, namespace, "one")
        found["metadata"]["labels"]["a"] = "2"
        [listed] = self.kube.list(names.LEASE, namespace)
        self.assertEqual({"a": "1"}, listed["metadata"]["labels"])
        self.assertEqual("v1", self.kube.served_version(names.LEASE))
