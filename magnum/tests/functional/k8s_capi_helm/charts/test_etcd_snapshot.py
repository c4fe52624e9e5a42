# SPDX-License-Identifier: Apache-2.0
"""The job that saves snapshots of etcd; ``clusterctl/test_etcd_snapshot`` runs its programs."""

from __future__ import annotations

import unittest

from magnum.tests.functional.k8s_capi_helm.charts import addon_operator, rendering
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object


def job(scenario: str) -> Object:
    """The CronJob of a scenario."""
    objects = rendering.scenarios(rendering.ADDONS)[scenario].objects
    (found,) = addon_operator.manifests(objects, "etcd-snapshot")
    return found


def pod(found: Object) -> Object:
    """The pod of a CronJob."""
    spec: Object = found["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    return spec


class EtcdSnapshotTest(unittest.TestCase):
    def test_nobody_has_it_who_did_not_ask(self) -> None:
        objects = rendering.scenarios(rendering.ADDONS)["shared-filesystems"].objects
        found = {addon_operator.component(one) for one in addon_operator.addons(objects)}
        self.assertIn("etcd-defrag", found)
        self.assertNotIn("etcd-snapshot", found)

    def test_one_step_follows_the_other(self) -> None:
        """Old snapshots are deleted last: only when a new one has arrived."""
        found = job("standalone")
        self.assertEqual("Forbid", found["spec"]["concurrencyPolicy"])
        steps = [*pod(found)["initContainers"], *pod(found)["containers"]]
        self.assertEqual(["save", "upload", "clean-up"], [one["name"] for one in steps])
        self.assertEqual(
            [["etcdctl", "snapshot", "save"], ["rclone", "copyto"], ["rclone", "delete"]],
            [step["command"][: 2 + (step["name"] == "save")] for step in steps],
        )
        self.assertEqual("Never", pod(found)["restartPolicy"])

    def test_each_cluster_has_a_directory_and_each_job_a_name(self) -> None:
        for scenario, directory in (
            ("standalone", "snapshots:snapshots/team-a/production/demo"),
            ("air-gapped", "snapshots:snapshots/demo"),
        ):
            found = pod(job(scenario))
            _, upload = found["initContainers"]
            (clean_up,) = found["containers"]
            with self.subTest(scenario=scenario):
                self.assertEqual(f"{directory}/$(JOB_NAME).db", upload["command"][-1])
                self.assertEqual(directory, clean_up["command"][-1])
        self.assertIn("--min-age=14d", clean_up["command"])
        self.assertIn("--min-age=30d", pod(job("standalone"))["containers"][0]["command"])

    def test_who_uploads_has_no_certificate_of_etcd(self) -> None:
        found = pod(job("standalone"))
        self.assertIs(False, found["automountServiceAccountToken"])
        mounts = {
            one["name"]: {mount["name"] for mount in one["volumeMounts"]}
            for one in (*found["initContainers"], *found["containers"])
        }
        self.assertEqual({"snapshot", "certificates"}, mounts["save"])
        self.assertEqual({"snapshot", "secret"}, mounts["upload"])
        self.assertEqual({"snapshot", "secret"}, mounts["clean-up"])

    def test_the_credential_is_named_and_nowhere_written(self) -> None:
        found = pod(job("standalone"))
        save, upload = found["initContainers"]
        reference = [{"secretRef": {"name": "etcd-snapshot"}}]
        self.assertNotIn("envFrom", save)
        for one in (upload, *found["containers"]):
            self.assertEqual(reference, one["envFrom"])
            self.assertEqual(["JOB_NAME"], [variable["name"] for variable in one["env"]])

    def test_the_job_of_somebody(self) -> None:
        found = job("standalone")["spec"]
        self.assertEqual(
            ("15 */6 * * *", 3600), (found["schedule"], found["startingDeadlineSeconds"])
        )
        inner = found["jobTemplate"]["spec"]
        self.assertEqual((600, 1), (inner["activeDeadlineSeconds"], inner["backoffLimit"]))
        spec = inner["template"]["spec"]
        self.assertEqual([{"operator": "Exists"}], spec["tolerations"])
        images = [one["image"] for one in (*spec["initContainers"], *spec["containers"])]
        rclone = "registry.example.org/rclone:1.75.1"
        self.assertEqual(["registry.example.org/etcd:3.6.6-0", rclone, rclone], images)
        for one in (*spec["initContainers"], *spec["containers"]):
            self.assertEqual("Always", one["imagePullPolicy"])
            self.assertEqual({"requests": {"cpu": "50m"}}, one["resources"])
            self.assertIs(True, one["securityContext"]["readOnlyRootFilesystem"])
