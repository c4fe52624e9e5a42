# SPDX-License-Identifier: Apache-2.0
"""A patch that is tried: what the object would be, and when the server is not asked."""

from __future__ import annotations

import unittest

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.desired import dry_run
from magnum.drivers.k8s_capi_helm.model import Json, names
from magnum.tests.unit.drivers.k8s_capi_helm import fakes


class TestPatchedObject(unittest.TestCase):
    def setUp(self) -> None:
        self.kube = fakes.FakeKube()
        self.lease = self.kube.put(
            names.LEASE,
            {"metadata": {"name": "one", "namespace": "n"}, "spec": {"a": 1, "b": {"c": 2}}},
        )
        self.kube.calls.clear()

    def patched(self, patch: Json) -> Json:
        found: Json = dry_run.patched_object(self.kube, self.lease, patch)["spec"]
        return found

    def refuse(self, text: str) -> None:
        """From now on the server refuses dry runs with these words."""

        def refuse(verb: str, kind: names.Kind, name: str) -> None:
            if verb == "dry patch":
                raise errors.ManagementRefused("The management cluster refused a request.", text)

        self.kube.before = refuse

    def test_it_is_what_the_server_says(self) -> None:
        self.assertEqual({"b": {"c": 3}}, self.patched({"spec": {"a": None, "b": {"c": 3}}}))
        self.assertEqual([("dry patch", "Lease", "n", "one")], self.kube.calls)
        self.assertEqual(self.lease, self.kube.get(names.LEASE, "n", "one"))

    def test_nobody_is_asked_where_nothing_changes(self) -> None:
        for patch in ({}, {"spec": {"a": 1}}, {"spec": {"d": None, "b": {}}}):
            self.assertEqual(self.lease["spec"], self.patched(patch))
        self.assertEqual([], self.kube.calls)

    def test_a_webhook_without_a_dry_run(self) -> None:
        self.refuse('HTTP 400: admission webhook "w" does not support dry run')
        self.assertEqual({"a": 2, "b": {"c": 2}}, self.patched({"spec": {"a": 2}}))

    def test_a_refusal_is_one(self) -> None:
        self.refuse("HTTP 422: spec.a: field is immutable")
        with self.assertRaises(errors.ManagementRefused):
            self.patched({"spec": {"a": 2}})
