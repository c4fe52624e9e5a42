# SPDX-License-Identifier: Apache-2.0
"""Volumes, shares and snapshots, and the job that keeps etcd small."""

from __future__ import annotations

import unittest

from magnum.tests.functional.k8s_capi_helm.charts import addon_operator, rendering
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object, Values

PASSWORD = addon_operator.credential(
    {
        "auth_type": "v3password",
        "region_name": "Größe",
        "verify": False,
        "auth": {
            "auth_url": "https://keystone.example.org:5000",
            "username": "0123",
            "password": "1e3",
            "project_id": "p",
            "user_domain_name": "Default",
            "project_domain_id": "default",
        },
    }
)


class ManilaTest(unittest.TestCase):
    """Shares, by CephFS and by NFS."""

    def setUp(self) -> None:
        super().setUp()
        scenario = rendering.scenarios(rendering.ADDONS)["shared-filesystems"]
        self.given: Values = scenario.values
        self.objects = scenario.objects

    def classes(self, objects: list[Object]) -> list[Object]:
        _, *classes = addon_operator.manifests(
            objects, "csi-manila-storageclass", identity=PASSWORD
        )
        return classes

    def test_the_drivers_that_are_on_mount_the_shares(self) -> None:
        for change, wanted in (
            ({}, ["CEPHFS", "NFS", "NFS"]),  # the last is the operator's own
            ({"csi.nfs.enabled": False}, ["CEPHFS", "NFS"]),
            (
                {
                    "csi.cephfs.enabled": False,
                    "openstack.csiManila.defaultStorageClass.parameters": {"type": "a"},
                    "openstack.csiManila.additionalStorageClasses": [],
                },
                ["NFS", "NFS"],
            ),
        ):
            objects = rendering.render(rendering.ADDONS, rendering.changed(self.given, change))
            values = addon_operator.values(objects, "csi-manila")
            found = [one["protocolSelector"] for one in values["shareProtocols"]]
            with self.subTest(change=change):
                self.assertEqual(wanted, found)
        self.assertEqual("demo", values["csimanila"]["clusterID"])

    def test_a_driver_from_elsewhere(self) -> None:
        own = {"name": "own", "provisioner": "nfs.manila.csi.openstack.org"}
        change = {
            "csi.cephfs.enabled": False,
            "csi.nfs.enabled": False,
            "openstack.csiManila": {
                "enabled": True,
                "defaultStorageClass": {"enabled": False},
                "additionalStorageClasses": [{**own, "parameters": {"type": "a"}}],
            },
        }
        objects = rendering.render(rendering.ADDONS, rendering.changed(self.given, change))
        self.assertNotIn("shareProtocols", addon_operator.values(objects, "csi-manila"))
        (only,) = self.classes(objects)
        self.assertEqual(own, {"name": "own", "provisioner": only["provisioner"]})

    def test_classes(self) -> None:
        shared, nfs, plain = self.classes(self.objects)
        self.assertEqual(
            ("cephfs.manila.csi.openstack.org", "cephfs", "kernel"),
            (
                shared["provisioner"],
                shared["parameters"]["type"],
                shared["parameters"]["cephfs-mounter"],
            ),
        )
        self.assertEqual(
            ("Retain", "Immediate", False),
            (
                shared["reclaimPolicy"],
                shared["volumeBindingMode"],
                shared["allowVolumeExpansion"],
            ),
        )
        terms = shared["allowedTopologies"][0]["matchLabelExpressions"][0]
        self.assertEqual(["1_000"], terms["values"])
        self.assertEqual(
            ("nfs.manila.csi.openstack.org", "1e3"),
            (nfs["provisioner"], nfs["parameters"]["type"]),
        )
        key = "storageclass.kubernetes.io/is-default-class"
        self.assertEqual(
            ["false", "true", "false"],
            [one["metadata"]["annotations"][key] for one in (shared, nfs, plain)],
        )
        self.assertEqual(
            ("cephfs.manila.csi.openstack.org", "Delete", "WaitForFirstConsumer", True),
            (
                plain["provisioner"],
                plain["reclaimPolicy"],
                plain["volumeBindingMode"],
                plain["allowVolumeExpansion"],
            ),
        )
        for step in ("provisioner", "controller-expand", "node-stage", "node-publish"):
            name = f"csi.storage.k8s.io/{step}-secret-"
            self.assertEqual(
                ("csi-manila-credentials", "openstack-system"),
                (plain["parameters"][f"{name}name"], plain["parameters"][f"{name}namespace"]),
            )

    def test_a_password_in_the_words_of_the_driver(self) -> None:
        secret, *_ = addon_operator.manifests(
            self.objects, "csi-manila-storageclass", identity=PASSWORD
        )
        self.assertEqual(
            {
                "os-authURL": "https://keystone.example.org:5000",
                "os-region": "Größe",
                "os-userName": "0123",
                "os-password": "1e3",
                "os-userDomainName": "Default",
                "os-projectID": "p",
                "os-projectDomainID": "default",
                "os-TLSInsecure": "true",
            },
            secret["stringData"],
        )


class ClassTest(unittest.TestCase):
    """Classes that change are made anew, because Kubernetes lets nobody change one."""

    def remade(self, addon: str, change: Values) -> list[str]:
        values = rendering.scenarios(rendering.ADDONS)["shared-filesystems"].values
        objects = rendering.render(rendering.ADDONS, rendering.changed(values, change))
        hooks = addon_operator.addon(objects, addon)["spec"].get("lifecycleHooks", {})
        for hook in hooks.get("preUpgrade", []):
            self.assertEqual(
                ("storage.k8s.io/v1", "StorageClass", "delete"),
                (hook["apiVersion"], hook["kind"], hook["action"]),
            )
        return [hook["name"] for hook in hooks.get("preUpgrade", [])]

    def test_classes_of_cinder(self) -> None:
        path = "openstack.csiCinder"
        more = {f"{path}.additionalStorageClasses": [{"name": "fast"}, {"name": "a.b"}]}
        off = {f"{path}.defaultStorageClass": {"enabled": False}}
        for change, wanted in (
            ({}, ["csi-cinder"]),
            (more, ["csi-cinder", "fast"]),
            ({**more, **off}, ["fast"]),
            (off, []),
        ):
            with self.subTest(change=change):
                self.assertEqual(wanted, self.remade("csi-cinder-storageclass", change))

    def test_classes_of_manila(self) -> None:
        self.assertEqual(
            ["shared", "shared-nfs", "shared-plain"], self.remade("csi-manila-storageclass", {})
        )


class SnapshotTest(unittest.TestCase):
    """Snapshots of volumes."""

    def setUp(self) -> None:
        super().setUp()
        self.scenario = rendering.scenarios(rendering.ADDONS)["shared-filesystems"]

    def test_classes(self) -> None:
        for name, wanted in (
            ("csi-cinder-snapshotclass", ("cinder", "cinder.csi.openstack.org", "Retain", "true")),
            (
                "csi-manila-snapshotclass",
                ("manila", "cephfs.manila.csi.openstack.org", "Delete", "false"),
            ),
        ):
            made = addon_operator.manifests(self.scenario.objects, name)
            metadata = made[0]["metadata"]
            key = "snapshot.storage.kubernetes.io/is-default-class"
            with self.subTest(addon=name):
                self.assertEqual(
                    wanted,
                    (
                        metadata["name"],
                        made[0]["driver"],
                        made[0]["deletionPolicy"],
                        metadata["annotations"][key],
                    ),
                )

    def test_the_class_of_manila_is_for_the_driver_of_the_first_storage_class(self) -> None:
        nfs, cephfs = (f"{protocol}.manila.csi.openstack.org" for protocol in ("nfs", "cephfs"))
        class_ = "openstack.csiManila.defaultStorageClass"
        more = {"openstack.csiManila.additionalStorageClasses": [{"name": "a", "provisioner": nfs}]}
        for change, driver in (
            ({f"{class_}.provisioner": nfs}, nfs),
            (more, cephfs),
            ({f"{class_}.enabled": False, **more}, nfs),
        ):
            values = rendering.changed(self.scenario.values, {"csi.nfs.enabled": True, **change})
            if f"{class_}.provisioner" in change or f"{class_}.enabled" in change:
                values = rendering.changed(values, {f"{class_}.parameters": {"type": "a"}})
            for one in values["openstack"]["csiManila"].get("additionalStorageClasses", ()):
                one["parameters"] = {"type": "a"}
            objects = rendering.render(rendering.ADDONS, values)
            (made,) = addon_operator.manifests(objects, "csi-manila-snapshotclass")
            with self.subTest(change=change):
                self.assertEqual(driver, made["driver"])

    def test_no_class_without_the_controller(self) -> None:
        change = {"csi.snapshotController.enabled": False}
        values = rendering.changed(self.scenario.values, change)
        objects = rendering.render(rendering.ADDONS, values)
        names = {addon_operator.component(one) for one in addon_operator.addons(objects)}
        self.assertEqual(set(), {name for name in names if "snapshot" in name})
        self.assertIn("csi-cinder", names)


class CredentialTest(unittest.TestCase):
    """Who reads cloud.conf at the start alone is started anew after it has changed."""

    def test_restarts_come_after_the_secret(self) -> None:
        objects = rendering.scenarios(rendering.CLUSTER)["minimal"].objects
        spec = addon_operator.addon(objects, "cloud-config", "Manifests")["spec"]
        self.assertEqual(["postUpgrade"], list(spec["lifecycleHooks"]))
        hooks = spec["lifecycleHooks"]["postUpgrade"]
        self.assertEqual(
            [
                ("DaemonSet", {"app.kubernetes.io/instance": "ccm-openstack"}),
                ("Deployment", {"release": "csi-cinder"}),
                ("DaemonSet", {"release": "csi-cinder"}),
            ],
            [(hook["kind"], hook["selector"]) for hook in hooks],
        )
        for hook in hooks:
            self.assertEqual(("apps/v1", "restart"), (hook["apiVersion"], hook["action"]))
            (release,) = hook["selector"].values()
            found = addon_operator.addon(objects, release, "HelmRelease")["spec"]
            self.assertEqual(release, found["releaseName"])
            self.assertEqual(spec["targetNamespace"], found["targetNamespace"])

    def test_the_secret_follows_the_credential(self) -> None:
        objects = rendering.scenarios(rendering.CLUSTER)["minimal"].objects
        first, second = (
            addon_operator.manifests(objects, "cloud-config", identity=identity)[0]["data"]
            for identity in (PASSWORD, addon_operator.credential({"auth": {}}))
        )
        self.assertNotEqual(first, second)


class EtcdTest(unittest.TestCase):
    """Defragmentation."""

    def job(self, scenario: str) -> Object:
        objects = rendering.scenarios(rendering.ADDONS)[scenario].objects
        (job,) = addon_operator.manifests(objects, "etcd-defrag")
        return job

    def test_the_job_of_everybody(self) -> None:
        job = self.job("shared-filesystems")["spec"]
        self.assertEqual(("0 0 * * *", "Forbid"), (job["schedule"], job["concurrencyPolicy"]))
        pod = job["jobTemplate"]["spec"]["template"]["spec"]
        self.assertEqual({"node-role.kubernetes.io/control-plane": ""}, pod["nodeSelector"])
        self.assertEqual("node-role.kubernetes.io/control-plane", pod["tolerations"][0]["key"])
        (container,) = pod["containers"]
        self.assertEqual("registry.k8s.io/etcd:3.6.8-0", container["image"])
        self.assertEqual(["etcdctl", "defrag", "--cluster"], container["command"][:3])

    def test_it_needs_no_shell_and_no_right(self) -> None:
        job = self.job("shared-filesystems")
        pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        self.assertIs(False, pod["automountServiceAccountToken"])
        directory = pod["volumes"][0]["hostPath"]["path"]
        paths = [word.partition("=/")[2] for word in pod["containers"][0]["command"]]
        certificates = [path for path in paths if path]
        self.assertEqual(3, len(certificates))
        for path in certificates:
            self.assertTrue(f"/{path}".startswith(f"{directory}/"), path)

    def test_the_job_of_somebody(self) -> None:
        job = self.job("standalone")["spec"]
        self.assertEqual(("30 2 * * 0", 3600), (job["schedule"], job["startingDeadlineSeconds"]))
        inner = job["jobTemplate"]["spec"]
        self.assertEqual((600, 1), (inner["activeDeadlineSeconds"], inner["backoffLimit"]))
        pod = inner["template"]["spec"]
        self.assertEqual([{"operator": "Exists"}], pod["tolerations"])
        self.assertEqual([{"name": "house"}], pod["imagePullSecrets"])
        self.assertEqual({"podAntiAffinity": {}}, pod["affinity"])
        self.assertEqual(
            ("registry.example.org/etcd:3.6.6-0", "Always", {"requests": {"cpu": "50m"}}),
            tuple(pod["containers"][0][key] for key in ("image", "imagePullPolicy", "resources")),
        )
