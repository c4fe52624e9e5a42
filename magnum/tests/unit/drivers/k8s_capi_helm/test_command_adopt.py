# SPDX-License-Identifier: Apache-2.0
"""``adopt --dry-run`` predicts what the first operation changes; ``--confirm`` is a proof by hand.

Whether the prediction equals what the real Helm does is asked by a functional test.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from magnum import objects
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.helm import manifest_diff
from magnum.drivers.k8s_capi_helm.model import Json, names
from magnum.tests.unit.drivers.k8s_capi_helm.command_case import (
    CRITICAL,
    OK,
    UNKNOWN,
    WARNING,
)
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import NAMESPACE, RELEASE
from magnum.tests.unit.drivers.k8s_capi_helm.rendered_case import DEPLOYMENT, RenderedCase


class AdoptCase(RenderedCase):
    def setUp(self) -> None:
        super().setUp()
        self.kube.remove(names.LEASE, NAMESPACE, names.lease(RELEASE))

    def row(self, *argv: str, status: int = OK) -> dict[str, Any]:
        [row] = self.rows(*argv, status=status)
        return row

    def rows(self, *argv: str, status: int = OK) -> list[dict[str, Any]]:
        printed = self.command("adopt", "-f", "json", *(argv or ("--dry-run", "demo")))
        self.assertEqual(status, printed.status, printed.out + printed.error)
        return printed.rows()


class TestDryRun(AdoptCase):
    def test_nothing_changes_and_nothing_is_written(self) -> None:
        before = self.world()
        row = self.row()
        self.assertEqual(("unchanged", ""), (row["State"], row["Changes"]))
        self.assertTrue(row["Chart"].startswith("openstack-cluster "), row)
        self.assertEqual(before, self.world())

    def test_one_that_is_adopted(self) -> None:
        self.resize(1)
        self.assertEqual("adopted", self.row()["State"])

    def test_fields_that_change(self) -> None:
        def change(objects: list[Json]) -> None:
            for obj in objects:
                if obj["metadata"]["name"] == DEPLOYMENT:
                    obj["spec"]["template"]["spec"]["version"] = "v1.99.0"
                if obj["kind"] == "Cluster":
                    obj["metadata"]["labels"]["more"] = "text"

        self.renders(change)
        row = self.row(status=WARNING)
        self.assertEqual("changes", row["State"])
        self.assertEqual(
            [
                f"Cluster {RELEASE}: labels.more",
                f"MachineDeployment {DEPLOYMENT}: spec.template.spec.version (replaces machines)",
            ],
            row["Changes"].split("; "),
        )
        self.assertIn("1 of them replace machines", row["Result"])

    def test_objects_that_come_and_disappear(self) -> None:
        kept = {"helm.sh/resource-policy": "keep"}
        old, stays = self.config_map("old"), self.config_map("stays", **kept)
        new = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}}
        gone = {**new, "metadata": {"name": "gone"}}
        self.deployed([*self.existing(), old, stays, gone])
        self.renders(lambda objects: objects.append(new))
        self.assertEqual(
            ["ConfigMap new is created", "ConfigMap old is deleted"],
            self.row(status=WARNING)["Changes"].split("; "),
        )

    def test_a_field_that_helm_does_not_write_any_more(self) -> None:
        rendered, before = self.existing(), self.existing()
        before[0]["spec"]["more"] = "text"
        self.deployed(before)
        self.renders(lambda objects: objects.__setitem__(slice(None), rendered))
        self.assertEqual("", self.row()["Changes"])
        self.kube.put(names.CLUSTER, before[0])
        self.assertEqual(f"Cluster {RELEASE}: spec.more", self.row(status=WARNING)["Changes"])

    def test_what_somebody_else_has_changed(self) -> None:
        """Helm compares a custom resource with its last manifest only, a ConfigMap with both."""
        rendered = [*self.existing(), self.config_map("ours", "one")]
        self.deployed(rendered)
        self.renders(lambda objects: objects.__setitem__(slice(None), rendered))
        self.scale("default-worker", 7)
        self.assertEqual("unchanged", self.row()["State"])
        self.config_map("ours", "two")
        self.assertEqual("ConfigMap ours: data.text", self.row(status=WARNING)["Changes"])

    def test_what_the_server_makes_of_it(self) -> None:
        """A patch that says what is there already changes nothing; one may be refused."""

        def change(objects: list[Json]) -> None:
            objects[0]["metadata"]["labels"]["more"] = "text"

        self.renders(change)
        self.assertEqual(f"Cluster {RELEASE}: labels.more", self.row(status=WARNING)["Changes"])
        patch = {"metadata": {"labels": {"more": "text"}}}
        self.kube.patch(names.CLUSTER, NAMESPACE, RELEASE, patch)
        self.assertEqual("unchanged", self.row()["State"])
        self.kube.patch(names.CLUSTER, NAMESPACE, RELEASE, {"metadata": {"labels": {"more": "a"}}})

        def refuse(verb: str, kind: names.Kind, name: str) -> None:
            if verb == "dry patch":
                raise errors.ManagementRefused("The patch is refused.", "labels: immutable")

        self.kube.before = refuse
        row = self.row(status=CRITICAL)
        self.assertEqual("refused", row["State"])
        self.assertIn("labels: immutable", row["Result"])

    def test_what_the_records_ask_for_is_among_it(self) -> None:
        nodegroup = self.group("default-worker")
        nodegroup.node_count = 3
        nodegroup.save()
        row = self.row(status=WARNING)
        self.assertEqual("Magnum's records ask for: resize default-worker", row["Changes"])
        self.assertIn("no machine is replaced", row["Result"])

    def test_the_prediction_is_what_the_first_operation_gives_to_helm(self) -> None:
        nodegroup = self.group("default-worker")
        nodegroup.node_count = 3
        nodegroup.save()
        self.rows(status=WARNING)
        self.helm.runs.clear()
        self.resize(3)
        self.assertEqual([self.rendered_values[0]], [values for _, _, values in self.helm.runs])

    def test_labels_get_their_notices(self) -> None:
        cluster = self.cluster()
        cluster.labels = {"heapster_enabled": "true", "boot_volume_size": "much"}
        cluster.save()
        row = self.row()
        self.assertIn("heapster_enabled", row["Notices"])
        self.assertIn("'boot_volume_size' has the value 'much'", row["Notices"])

    def test_one_in_progress_waits(self) -> None:
        cluster = self.cluster()
        cluster.status = "UPDATE_IN_PROGRESS"
        cluster.save()
        self.assertEqual("waits", self.row(status=WARNING)["State"])

    def test_all_of_them(self) -> None:
        [row] = self.rows("--dry-run", "--all")
        self.assertEqual(self.cluster().uuid, row["UUID"])


class TestRequests(AdoptCase):
    def setUp(self) -> None:
        super().setUp()
        # What is rendered is of one release only.
        self.deployed([])
        self.helm.renders = lambda values: []

    def copy(self, number: int) -> None:
        """Another cluster like the first one, with its nodegroups, its Secret and its release."""
        first, copy = self.cluster(), self.copy_row(number)
        for row in first.nodegroups:
            fields = {
                field: row[field]
                for field in row.fields
                if field not in ("id", "uuid", "created_at", "updated_at")
            }
            fields |= {"cluster_id": copy.uuid, "project_id": copy.project_id}
            objects.NodeGroup(self.context, **fields).create()
        namespace = f"magnum-{copy.project_id}"
        live = self.helm.releases[NAMESPACE, RELEASE]
        self.helm.releases[namespace, copy.stack_id] = dataclasses.replace(
            live, name=copy.stack_id, namespace=namespace
        )
        secret = self.kube.get(names.SECRET, NAMESPACE, f"{RELEASE}-cloud-credentials")
        labels = {names.LABEL_UUID: copy.uuid, names.LABEL_CLUSTER_NAME: copy.stack_id}
        place = {"namespace": namespace, "name": f"{copy.stack_id}-cloud-credentials"}
        self.kube.put(names.SECRET, {**secret, "metadata": {**place, "labels": labels}})

    def requests(self, count: int) -> int:
        """The requests for so many clusters, nothing of which changes."""
        self.kube.calls.clear()
        self.helm.reads = self.helm.lists = 0
        rows = self.rows("--dry-run", "--all")
        self.assertEqual(["unchanged"] * count, [row["State"] for row in rows])
        self.assertEqual(0, self.helm.reads)
        return len(self.kube.calls) + 2 * self.helm.lists

    def test_they_grow_with_the_projects_and_not_with_their_clusters(self) -> None:
        one = self.requests(1)
        for number in (7, 13, 19):
            self.copy(number)
        self.assertEqual(one, self.requests(4))
        self.copy(8)
        self.assertEqual(2 * one, self.requests(5))

    def test_one_that_is_not_deployed_is_read_by_itself(self) -> None:
        live = self.helm.releases[NAMESPACE, RELEASE]
        self.helm.releases[NAMESPACE, RELEASE] = dataclasses.replace(live, status="failed")
        self.helm.reads = 0
        self.rows("--dry-run", "--all")
        self.assertEqual(1, self.helm.reads)


class TestRefused(AdoptCase):
    def refused(self, text: str, state: str = "refused", status: int = CRITICAL) -> None:
        before = self.world()
        row = self.row(status=status)
        self.assertEqual(state, row["State"])
        self.assertIn(text, row["Result"])
        self.assertEqual(before, self.world())

    def unlabel(self) -> None:
        """The Secret of the credential has lost its labels."""
        for secret in self.kube.list(names.SECRET, NAMESPACE):
            secret["metadata"]["labels"] = {}
            self.kube.put(names.SECRET, secret)

    def test_no_secret_proves_it(self) -> None:
        self.unlabel()
        self.refused("use --confirm")

    def test_the_lease_of_another_cluster(self) -> None:
        self.ports.leases.open(NAMESPACE, RELEASE, cluster_uuid="another", project_id="p1")
        self.refused("is that of cluster 'another'")

    def test_a_release_that_is_gone(self) -> None:
        self.helm.releases.clear()
        self.refused("Restore its Secrets")

    def test_a_chart_that_cannot_be_fetched(self) -> None:
        live = self.helm.releases[NAMESPACE, RELEASE]
        self.helm.releases[NAMESPACE, RELEASE] = dataclasses.replace(live, chart_version="0.1.0")
        self.refused("is not available any more")

    def test_an_object_of_another_release(self) -> None:
        cluster = self.kube.list(names.CLUSTER, NAMESPACE)[0]
        cluster["metadata"]["annotations"] = {
            manifest_diff.RELEASE_NAME: "other",
            manifest_diff.RELEASE_NAMESPACE: NAMESPACE,
        }
        self.kube.put(names.CLUSTER, cluster)
        self.refused("belongs to another release, magnum-p1/other")

    def test_an_object_of_another_cluster_of_magnum(self) -> None:
        cluster = self.kube.list(names.CLUSTER, NAMESPACE)[0]
        cluster["metadata"]["labels"][names.LABEL_UUID] = "another"
        self.kube.put(names.CLUSTER, cluster)
        self.refused("of the Magnum cluster 'another'")

    def test_another_driver(self) -> None:
        cluster = self.cluster()
        cluster.stack_id = "kube-abcde"
        cluster.save()
        self.refused("was not created by this driver")
        self.assertEqual([], self.rows("--dry-run", "--all"))

    def test_a_management_cluster_that_is_away(self) -> None:
        self.kube.unreachable = True
        self.refused("", "unknown", UNKNOWN)

    def test_wrong_calls(self) -> None:
        for argv in (
            ("--dry-run",),
            ("--dry-run", "--all", "demo"),
            ("demo",),
            ("--confirm", "--all"),
            ("--confirm", "demo", "demo"),
            ("--confirm", "--dry-run", "demo"),
        ):
            printed = self.command("adopt", *argv)
            self.assertEqual((UNKNOWN, ""), (printed.status, printed.out), argv)

    def test_a_proof_by_hand(self) -> None:
        self.unlabel()
        self.assertEqual("adopted", self.row("--confirm", "demo")["State"])
        record = self.ports.leases.read(NAMESPACE, RELEASE)
        assert record is not None
        self.assertEqual(self.cluster().uuid, record.cluster_uuid)
        secret = self.kube.get(names.SECRET, NAMESPACE, f"{RELEASE}-cloud-credentials")
        self.assertEqual(self.cluster().uuid, secret["metadata"]["labels"][names.LABEL_UUID])
        self.resize(3)
        self.assertEqual("UPDATE_IN_PROGRESS", self.cluster().status)

    def test_no_proof_by_hand_against_another_word(self) -> None:
        self.unlabel()
        cluster = self.kube.list(names.CLUSTER, NAMESPACE)[0]
        cluster["metadata"]["labels"] = {names.LABEL_UUID: "another"}
        self.kube.put(names.CLUSTER, cluster)
        self.unproved("is labelled as that of cluster 'another'")

    def test_no_proof_by_hand_of_what_is_not_there(self) -> None:
        self.kube.remove(names.CLUSTER, NAMESPACE, RELEASE)
        self.unproved("Check the kubeconfig")

    def unproved(self, text: str) -> None:
        before = self.world()
        printed = self.command("adopt", "--confirm", "demo")
        self.assertEqual((UNKNOWN, ""), (printed.status, printed.out))
        self.assertIn(text, printed.error)
        self.assertEqual(before, self.world())
