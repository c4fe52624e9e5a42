# SPDX-License-Identifier: Apache-2.0
"""What the operator does to an addon, step by step, on objects in memory."""

import asyncio
from typing import Any
import unittest

import jinja2
import kopf

from sandbox.addons import rules, templates
from sandbox.addons.operator import configure, Operator, Options
from sandbox.addons.release import Content, Release, Status
from sandbox.management.connection import Refused, Unreachable
from sandbox.tests.addons.builders import addon, cluster, Document, secret, seen

QUICK = Options(install=0.0, retry=15.0)


class Shelf:
    """The management cluster as the operator sees it, and all that was written to it."""

    def __init__(self, **different: Any) -> None:
        self.different = different
        self.stuck_for = 0
        self.gone = False
        self.deleted = False
        self.statuses: list[Document] = []
        self.patches: list[Document] = []
        self.watched: list[str] = []
        self.checksums: list[tuple[str, str, str]] = []
        self.users: list[Document] = []
        self.installed: list[str] = []
        self.away = False

    def look(self, document: rules.Document) -> rules.Seen:
        return seen(dict(document), **self.different)

    def get(self, version: str, namespace: str, plural: str, name: str) -> Document | None:
        """The addon itself, or the ConfigMap with the faults; ``stuck`` ends after some looks."""
        if plural in rules.KINDS.values():
            deleted = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
            return {"metadata": deleted if self.deleted else {}}
        self.stuck_for -= 1
        return {"data": {"stuck": "."}} if self.stuck_for >= 0 else None

    def patch_addon(self, document: rules.Document, patch: Document, subresource: str = "") -> None:
        if self.gone:
            raise Refused("PATCH: 404 not found", 404)
        if subresource:
            self.statuses.append(patch["status"])
        else:
            self.patches.append(patch["metadata"])

    def watch_source(self, kind: str, source: Document) -> None:
        self.watched.append(f"{kind} {source['metadata']['name']}")

    def note_checksum(self, document: rules.Document, kind: str, name: str, value: str) -> None:
        self.checksums.append((document["metadata"]["name"], name, value))

    def addons_using(self, kind: str, namespace: str, name: str) -> list[Document]:
        return self.users

    def install(self, document: rules.Document, documents: list[Document]) -> None:
        if self.away:
            raise Unreachable("the cluster does not answer")
        self.installed += [f"{one['kind']} {one['metadata']['name']}" for one in documents]

    def uninstall(self, document: rules.Document) -> None:
        self.installed.clear()

    @property
    def phases(self) -> list[str]:
        return [str(status["phase"]) for status in self.statuses]


class OperatorCase(unittest.TestCase):
    def run_on(
        self, shelf: Shelf, document: Document | None = None, operator: Operator | None = None
    ) -> Operator:
        """Let the operator handle a new or changed addon."""
        operator = operator or self.operator(shelf)
        asyncio.run(operator.updated(body=document or addon()))  # type: ignore[arg-type]
        return operator

    def operator(self, shelf: Shelf) -> Operator:
        return Operator(shelf, QUICK)  # type: ignore[arg-type]


class TestInstall(OperatorCase):
    def test_a_new_addon_goes_through_all_phases_to_revision_1(self) -> None:
        shelf = Shelf()
        self.run_on(shelf)
        self.assertEqual(["Pending", "Installing", "Deployed"], shelf.phases)
        self.assertEqual(1, shelf.statuses[-1]["revision"])
        self.assertIsNone(shelf.statuses[-1]["failureMessage"])

    def test_a_deployed_addon_is_upgraded_to_the_next_revision(self) -> None:
        shelf, first = Shelf(), addon()
        operator = self.run_on(shelf, first)
        shelf.statuses.clear()
        changed = {**addon(valuesSources=[{"template": "a: 1"}])}
        changed["status"] = {"phase": "Deployed", "revision": 1}
        self.run_on(shelf, changed, operator)
        self.assertEqual(["Upgrading", "Deployed"], shelf.phases)
        self.assertEqual(2, shelf.statuses[-1]["revision"])

    def test_the_same_chart_and_values_are_not_installed_again(self) -> None:
        shelf = Shelf()
        operator = self.run_on(shelf)
        shelf.statuses.clear()
        same = {**addon(), "status": {"phase": "Deployed", "revision": 1}}
        self.run_on(shelf, same, operator)
        self.assertEqual([], shelf.statuses)

    def test_after_a_restart_a_deployed_addon_is_left_alone(self) -> None:
        shelf = Shelf()
        self.run_on(shelf, {**addon(), "status": {"phase": "Deployed", "revision": 1}})
        self.assertEqual([], shelf.statuses)

    def test_what_runs_of_a_core_addon_is_made_in_the_cluster_and_shown(self) -> None:
        shelf = Shelf()
        chart = {"name": "cilium", "version": "1", "repo": "https://charts.example.org"}
        self.run_on(shelf, addon(chart=chart))
        self.assertEqual(["DaemonSet cilium", "Deployment cilium-operator"], shelf.installed)
        shown = [(one["kind"], one["namespace"]) for one in shelf.statuses[-1]["resources"]]
        self.assertEqual([("DaemonSet", "kube-system"), ("Deployment", "kube-system")], shown)

    def test_a_cluster_that_does_not_answer_is_tried_again(self) -> None:
        shelf = Shelf()
        shelf.away = True
        with self.assertRaises(kopf.TemporaryError):
            self.run_on(shelf)
        self.assertNotIn("Deployed", shelf.phases)

    def test_resources_of_manifests_are_shown(self) -> None:
        shelf = Shelf()
        text = "apiVersion: v1\nkind: Namespace\nmetadata: {name: n}\n"
        self.run_on(shelf, addon("Manifests", manifestSources=[{"template": text}]))
        wanted = [{"apiVersion": "v1", "kind": "Namespace", "name": "n"}]
        self.assertEqual(wanted, shelf.statuses[-1]["resources"])

    def test_a_stuck_run_goes_on_when_the_fault_is_over(self) -> None:
        shelf = Shelf()
        shelf.stuck_for = 1
        self.run_on(shelf)
        self.assertEqual("Deployed", shelf.phases[-1])

    def test_a_stuck_run_is_broken_off_when_the_addon_is_deleted(self) -> None:
        shelf = Shelf()
        shelf.stuck_for, shelf.deleted = 1000, True
        self.run_on(shelf)
        self.assertEqual(["Pending", "Installing"], shelf.phases)
        self.assertEqual([], shelf.installed)

    def test_an_addon_deleted_meanwhile_is_no_error(self) -> None:
        shelf = Shelf()
        shelf.gone = True
        document = addon()
        document["metadata"]["labels"] = rules.labels(seen(document))
        document["metadata"]["ownerReferences"] = [rules.owner(cluster())]
        self.run_on(shelf, document)
        self.assertEqual([], shelf.statuses)


class TestWaitingAndRefusing(OperatorCase):
    def test_a_closed_gate_is_asked_again_after_the_retry_delay(self) -> None:
        shelf = Shelf(cluster=cluster())
        with self.assertRaises(kopf.TemporaryError) as caught:
            self.run_on(shelf)
        self.assertEqual(
            (15.0, "cluster 'rel' is not ready"), (caught.exception.delay, str(caught.exception))
        )
        self.assertEqual(["Pending"], shelf.phases)

    def test_label_and_owner_are_set_before_the_gate(self) -> None:
        shelf = Shelf(cluster=cluster())
        with self.assertRaises(kopf.TemporaryError):
            self.run_on(shelf)
        (patch,) = shelf.patches
        self.assertEqual("rel", patch["labels"]["addons.stackhpc.com/cluster"])
        self.assertEqual("uid-of-cluster", patch["ownerReferences"][0]["uid"])

    def test_label_and_owner_are_late(self) -> None:
        shelf = Shelf(identity=None)
        with self.assertRaises(kopf.TemporaryError):
            self.run_on(shelf)
        self.assertEqual([], shelf.patches)

    def test_without_identity_it_crashes_and_stays_pending(self) -> None:
        shelf = Shelf(infra_cluster={"spec": {}})
        with self.assertRaisesRegex(RuntimeError, "identityRef"):
            self.run_on(shelf)
        self.assertEqual(["Pending"], shelf.phases)

    def test_a_failure_is_permanent_and_says_why(self) -> None:
        shelf = Shelf(faults={"fail": "."})
        with self.assertRaises(kopf.PermanentError):
            self.run_on(shelf)
        self.assertEqual("Failed", shelf.phases[-1])
        self.assertIn("asked for", shelf.statuses[-1]["failureMessage"])

    def test_a_broken_template_is_no_failure_but_an_error_that_nobody_handles(self) -> None:
        shelf = Shelf()
        with self.assertRaisesRegex(jinja2.UndefinedError, "'b' is undefined"):
            self.run_on(shelf, addon(valuesSources=[{"template": "a: {{ b.c }}"}]))
        self.assertEqual(["Pending"], shelf.phases)

    def test_values_that_helm_does_not_take_are_such_an_error_too(self) -> None:
        for text, error in (("- a", RuntimeError), ("a: 2026-01-01", TypeError)):
            with self.subTest(text):
                shelf = Shelf()
                with self.assertRaises(error):
                    self.run_on(shelf, addon(valuesSources=[{"template": text}]))
                self.assertEqual(["Pending", "Installing"], shelf.phases)

    def test_a_paused_addon_is_labelled_but_not_installed(self) -> None:
        shelf = Shelf()
        self.run_on(shelf, addon(paused=True))
        self.assertEqual((["Pending"], 1), (shelf.phases, len(shelf.patches)))


class TestSources(OperatorCase):
    def test_sources_and_identity_are_watched(self) -> None:
        values = secret("rel-values", **{"values.yaml": "a: 1"})
        shelf = Shelf(sources={("Secret", "rel-values"): values})
        self.run_on(shelf, addon(valuesSources=[{"secret": {"name": "rel-values"}}]))
        self.assertEqual(["Secret rel-values", "Secret rel-cloud-credentials"], shelf.watched)

    def test_a_changed_source_is_told_to_every_addon_that_uses_it(self) -> None:
        shelf = Shelf()
        shelf.users = [addon(name="one"), addon(name="two")]
        body: Any = secret("rel-values", a="1")
        asyncio.run(self.operator(shelf).source_changed(body=body, type="MODIFIED"))
        value = templates.checksum(body)
        self.assertEqual(
            [("one", "rel-values", value), ("two", "rel-values", value)], shelf.checksums
        )

    def test_so_is_a_deleted_one(self) -> None:
        shelf = Shelf()
        shelf.users = [addon(name="one")]
        body: Any = secret("rel-values", a="1")
        asyncio.run(self.operator(shelf).source_changed(body=body, type="DELETED"))
        self.assertEqual([("one", "rel-values", "deleted")], shelf.checksums)


class TestDelete(OperatorCase):
    def deleted(self, shelf: Shelf, document: Document | None = None) -> None:
        body: Any = document or addon()
        asyncio.run(self.operator(shelf).deleted(body=body))

    def test_an_addon_of_a_living_cluster_is_uninstalled(self) -> None:
        shelf = Shelf()
        self.deleted(shelf)
        self.assertEqual(["Uninstalling"], shelf.phases)

    def test_a_stuck_removal_is_not_broken_off(self) -> None:
        shelf, document = Shelf(), addon()
        document["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        shelf.stuck_for, shelf.deleted = 1, True
        self.deleted(shelf, document)
        self.assertEqual(-1, shelf.stuck_for)

    def test_an_addon_of_a_cluster_without_a_phase_is_an_error(self) -> None:
        shelf = Shelf(cluster={**cluster(), "status": {}})
        with self.assertRaises(RuntimeError):
            self.deleted(shelf)

    def test_an_addon_of_a_dying_cluster_goes_at_once(self) -> None:
        shelf = Shelf(cluster=cluster(phase="Deleting"))
        self.deleted(shelf)
        self.assertEqual([], shelf.phases)


class TestPhases(OperatorCase):
    def test_every_phase_but_that_of_an_unseen_addon_is_reached(self) -> None:
        shelf = Shelf()
        self.run_on(shelf)
        self.run_on(shelf, {**addon(bootstrap=True), "status": {"phase": "Failed", "revision": 1}})
        self.run_on(shelf, {**addon(), "status": {"phase": "Installing"}})
        shelf.different["faults"] = {"fail": "."}
        with self.assertRaises(kopf.PermanentError):
            self.run_on(shelf)
        body: Any = addon()
        asyncio.run(self.operator(shelf).deleted(body=body))
        reached = {rules.Phase(phase) for phase in shelf.phases}
        self.assertEqual(set(rules.Phase) - {rules.Phase.UNKNOWN}, reached)

    def test_a_release_that_helm_left_half_removed_is_removed_and_installed_again(self) -> None:
        shelf = Shelf()
        shelf.installed = ["DaemonSet old"]
        operator, document = self.operator(shelf), addon()
        document["status"] = {"phase": "Deployed", "revision": 3}
        half = Release(Content({}, {}), 3, Status.UNINSTALLING)
        operator.releases[document["metadata"]["uid"]] = half
        self.run_on(shelf, document, operator)
        self.assertEqual(["Preparing", "Installing", "Deployed"], shelf.phases)
        self.assertEqual((1, []), (shelf.statuses[-1]["revision"], shelf.installed))

    def test_a_run_of_helm_that_was_interrupted_is_mended_first(self) -> None:
        for phase, revision in (("Installing", 0), ("Upgrading", 1)):
            with self.subTest(phase):
                shelf = Shelf()
                self.run_on(shelf, {**addon(), "status": {"phase": phase, "revision": revision}})
                self.assertEqual(["Preparing", phase, "Deployed"], shelf.phases)


class TestSettings(unittest.TestCase):
    def test_finalizer_and_annotations_are_those_of_the_addon_provider(self) -> None:
        settings = kopf.OperatorSettings()
        configure(settings=settings)
        self.assertEqual("addons.stackhpc.com/finalizer", settings.persistence.finalizer)
        body: Any = kopf.Body({"metadata": {"name": "x"}, "spec": {"a": 1}})
        patch = kopf.Patch()
        store = settings.persistence.diffbase_storage
        store.store(body=body, patch=patch, essence=store.build(body=body))
        self.assertIn(
            "addons.stackhpc.com/last-handled-configuration", patch["metadata"]["annotations"]
        )
        record: Any = {"retries": 1, "message": "cluster 'rel' is not ready"}
        patch = kopf.Patch()
        settings.persistence.progress_storage.store(
            key=kopf.HandlerId("handle_addon_updated/spec"), record=record, body=body, patch=patch
        )
        self.assertIn(
            "addons.stackhpc.com/handle_addon_updated.spec", patch["metadata"]["annotations"]
        )
