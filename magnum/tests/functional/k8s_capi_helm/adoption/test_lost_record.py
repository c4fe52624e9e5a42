# SPDX-License-Identifier: Apache-2.0
"""A management cluster that was moved or restored without Helm's Secrets: nothing is made over."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from kubernetes import client, config, dynamic

from magnum.tests.functional.k8s_capi_helm.adoption import other_site
from magnum.tests.functional.k8s_capi_helm.adoption.objects import (
    Change,
    changes,
    Key,
    lasting,
    told,
)
from magnum.tests.functional.k8s_capi_helm.adoption.setting import (
    GROUP,
    HandoverCase,
    SUCCESSOR,
    TIMEOUT,
)
from magnum.tests.functional.k8s_capi_helm.charts import rendering
from magnum.tests.functional.k8s_capi_helm.envtest import kubeconfig

Found = dict[Key, list[Change]]
_RELEASE_NAME = "meta.helm.sh/release-name"
_MARKS = {
    "labels": {"app.kubernetes.io/managed-by": None},
    "annotations": {_RELEASE_NAME: None, "meta.helm.sh/release-namespace": None},
}


class LostRecordTest(HandoverCase):
    """A cluster of this driver that loses what says with which values it was made."""

    def setUp(self) -> None:
        super().setUp()
        self.configure(capi_helm={"helm_chart_name": ""})
        untyped: Any = config
        self.api = untyped.new_client_from_config(kubeconfig())
        self.addCleanup(self.api.close)

    def lose(self, *, lease: bool = True) -> None:
        """What a move leaves behind: Helm's Secrets, and the Lease, which is never moved."""
        core, space = client.CoreV1Api(self.api), self.store.namespace
        selector = f"owner=helm,name={self.release()}"
        core.delete_collection_namespaced_secret(
            space, label_selector=selector, _request_timeout=TIMEOUT
        )
        if lease:
            leases = client.CoordinationV1Api(self.api)
            leases.delete_namespaced_lease(
                f"{self.release()}-magnum", space, _request_timeout=TIMEOUT
            )

    def patch(self, key: Key, change: dict[str, Any]) -> None:
        """Change an object as somebody else does."""
        untyped: Any = dynamic
        kinds = untyped.DynamicClient(self.api)
        api_version = self.objects()[key]["apiVersion"]
        kind = kinds.resources.get(api_version=api_version, kind=key[0])
        kind.patch(
            name=key[1],
            namespace=self.store.namespace,
            body=change,
            content_type="application/merge-patch+json",
            _request_timeout=TIMEOUT,
        )

    def moved(self, what: str, before: Any) -> Found:
        """What has changed but for Helm's history and the Lease, printed."""
        found = changes(lasting(before), lasting(self.objects()))
        self.show(what, found)
        return {key: listed for key, listed in found.items() if key[0] != "Lease"}

    def revision(self) -> int:
        return self.store.revision(self.release())

    def test_its_objects_are_taken_over_as_they_are(self) -> None:
        self.found(SUCCESSOR, masters=3)
        before, values = self.objects(), self.store.values(self.release())
        self.lose()
        self.ask(SUCCESSOR, "resize", count=2)
        self.assertEqual({}, self.moved("taken over", before))
        self.assertEqual((1, values), (self.revision(), self.store.values(self.release())))
        self.ask(SUCCESSOR, "settle")

        group = ("MachineDeployment", f"{self.release()}-default-worker")
        self.ask(SUCCESSOR, "resize", count=5)
        self.assertEqual({group: [(".spec.replicas", 2, 5)]}, self.moved("resize", before))
        self.assertEqual(2, self.revision())
        self.ask(SUCCESSOR, "settle")
        before = self.objects()
        self.ask(SUCCESSOR, "add_group", name="more", node_count=1, **GROUP)
        found = self.moved("nodegroup create", before)
        self.assertEqual({"new"}, {listed[0][2] for listed in found.values()}, told(found))

    def test_what_is_asked_for_comes_after_it(self) -> None:
        """The first request after the loss: what it asks for is a revision of its own."""
        self.found(SUCCESSOR)
        before, group = self.objects(), ("MachineDeployment", f"{self.release()}-default-worker")
        self.lose()
        self.ask(SUCCESSOR, "resize", count=3)
        self.assertEqual({group: [(".spec.replicas", 2, 3)]}, self.moved("resize", before))
        self.assertEqual(2, self.revision())

    def test_a_nodegroup_that_is_to_go_goes(self) -> None:
        self.found(SUCCESSOR)
        self.ask(SUCCESSOR, "add_group", name="more", node_count=1, **GROUP)
        self.ask(SUCCESSOR, "settle")
        before = self.objects()
        self.lose()
        self.ask(SUCCESSOR, "drop_group", name="more")
        found = self.moved("nodegroup delete", before)
        self.assertEqual({None}, {listed[0][2] for listed in found.values()}, told(found))
        self.assertIn(("MachineDeployment", f"{self.release()}-more"), found)

    def test_objects_that_say_nothing_of_helm(self) -> None:
        """A backup that keeps no annotations: Helm would not take them by itself."""
        self.found(SUCCESSOR)
        before = self.objects()
        for key, one in lasting(before).items():
            if _RELEASE_NAME in (one["metadata"].get("annotations") or {}):
                self.patch(key, {"metadata": _MARKS})
        self.lose()
        self.ask(SUCCESSOR, "resize", count=2)
        self.assertEqual(1, self.revision())
        paths = {
            path for listed in self.moved("taken over", before).values() for path, *_ in listed
        }
        marks = {f".metadata.{field}.{key}" for field, keys in _MARKS.items() for key in keys}
        self.assertLessEqual(paths, marks)

    def test_another_site_is_refused(self) -> None:
        self.found(SUCCESSOR)
        before = self.objects()
        self.lose()
        other_site.cloud()
        self.ask(SUCCESSOR, "resize", count=3)
        self.refused(before, "its values do not follow from Magnum's data")
        self.assertIn(f"sh.helm.release.v1.{self.release()}", self.row()["status_reason"])

    def test_an_object_of_another_release_is_refused(self) -> None:
        self.found(SUCCESSOR)
        key = ("Cluster", self.release())
        self.patch(key, {"metadata": {"annotations": {_RELEASE_NAME: "theirs"}}})
        before = self.objects()
        self.lose()
        self.ask(SUCCESSOR, "resize", count=3)
        self.refused(before, f"belongs to another release, {self.store.namespace}/theirs")

    def test_a_paused_cluster_waits(self) -> None:
        self.found(SUCCESSOR)
        key = ("Cluster", self.release())
        self.patch(key, {"spec": {"paused": True}})
        before = self.objects()
        self.lose()
        self.ask(SUCCESSOR, "resize", count=3)
        # Magnum has overwritten the status after the driver.
        self.ask(SUCCESSOR, "look")
        self.assertEqual({}, self.moved("paused", before))
        self.assertEqual((0, "UPDATE_IN_PROGRESS"), (self.revision(), self.row()["status"]))
        self.assertIn("is paused", self.row()["status_reason"])

        self.patch(key, {"spec": {"paused": None}})
        self.ask(SUCCESSOR, "look")
        self.assertEqual(2, self.revision())
        self.patch(key, {"spec": {"paused": True}})
        self.ask(SUCCESSOR, "settle")
        self.ask(SUCCESSOR, "resize", count=4)
        self.assertTrue(self.objects()[key]["spec"]["paused"], "Helm has taken the pause back")

    def refused(self, before: Any, words: str) -> None:
        # Magnum has overwritten the status after the driver.
        self.ask(SUCCESSOR, "look")
        self.assertEqual({}, self.moved("refused", before))
        self.assertEqual((0, "UPDATE_FAILED"), (self.revision(), self.row()["status"]))
        self.assertIn(words, self.row()["status_reason"])


class LostRecordHelm4Test(LostRecordTest):
    """The same with the next generation of Helm, which lets the server apply."""

    def setUp(self) -> None:
        super().setUp()
        place = self.directory / "helm4"
        place.mkdir()
        (place / "helm").symlink_to(Path(rendering.helm4()))
        before = os.environ["PATH"]
        self.addCleanup(os.environ.update, PATH=before)
        os.environ["PATH"] = os.pathsep.join((str(place), before))
