# SPDX-License-Identifier: Apache-2.0
"""What is swept goes by its labels, and what comes after it under the same name stays."""

from __future__ import annotations

import logging

import fixtures
import testtools

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm import fakes

SPACE = "magnum-project"
OURS = {"ours": "1"}


class TestSweep(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.kube = fakes.FakeKube()
        self.kube.apply(names.NAMESPACE, {"metadata": {"name": SPACE}})
        for name in ("a", "b", "c"):
            self.make(name)
        self.make("of-others", {"ours": "2"})

    def make(self, name: str, labels: dict[str, str] = OURS) -> None:
        metadata = {"name": name, "namespace": SPACE, "labels": labels}
        self.kube.apply(names.LEASE, {"metadata": metadata})

    def left(self) -> list[str]:
        return sorted(one["metadata"]["name"] for one in self.kube.list(names.LEASE, SPACE))

    def test_what_has_the_labels_goes_and_what_is_named_stays(self) -> None:
        log = self.useFixture(fixtures.FakeLogger(level=logging.WARNING))
        self.kube.delete_collection(
            names.LEASE, SPACE, OURS, keep={"b", "d"}, level=logging.WARNING
        )
        self.assertEqual(["b", "of-others"], self.left())
        said = [f"Lease {name} in {SPACE} is deleted" for name in "ac"]
        self.assertEqual(said, sorted(log.output.splitlines()))
        self.kube.delete_collection(names.LEASE, SPACE, OURS)
        self.assertEqual(["of-others"], self.left())

    def test_what_was_made_anew_meanwhile_stays(self) -> None:
        def remake(verb: str, kind: names.Kind, name: str) -> None:
            if verb == "delete" and name == "b":
                self.kube.before = None
                self.kube.delete(names.LEASE, SPACE, "b")
                self.make("b")

        self.kube.before = remake
        self.assertRaises(errors.Conflict, self.kube.delete_collection, names.LEASE, SPACE, OURS)
        self.assertIn("b", self.left())
