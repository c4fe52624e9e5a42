# SPDX-License-Identifier: Apache-2.0
"""Files of the control plane's machines: policies, encryption of etcd, webhooks."""

from __future__ import annotations

from collections.abc import Mapping
import itertools
from pathlib import Path
import shutil
import subprocess
import tempfile
from typing import Any
import unittest

import yaml

from magnum.tests.functional.k8s_capi_helm.charts import rendering
from magnum.tests.functional.k8s_capi_helm.charts.control_plane import (
    bodies,
    flags,
    kubeadm,
    rendered,
)
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one


class FilesTest(unittest.TestCase):
    def test_what_the_api_server_reads_is_there_and_in_its_pod(self) -> None:
        for scenario in at_least_one(rendering.scenarios(rendering.CLUSTER).values()):
            spec = kubeadm(scenario.objects)
            server = spec["clusterConfiguration"]["apiServer"]
            written = {one["path"] for one in spec.get("files", [])}
            volumes = {one["mountPath"]: one for one in server.get("extraVolumes", [])}
            for flag, value in flags(server).items():
                if not value.startswith("/etc/kubernetes/"):
                    continue
                with self.subTest(scenario=scenario.name, flag=flag):
                    self.assertIn(value, written)
                    volume = volumes[str(Path(value).parent)]
                    self.assertEqual(volume["hostPath"], volume["mountPath"])
                    self.assertIs(True, volume["readOnly"])

    def test_files_of_the_chart_are_roots_alone(self) -> None:
        for scenario in ("oidc-and-audit", "encrypted-etcd", "barbican-key", "azimuth-webhook"):
            files = kubeadm(rendering.scenarios(rendering.CLUSTER)[scenario].objects)["files"]
            for file in at_least_one(
                one for one in files if one["path"].startswith("/etc/kubernetes/")
            ):
                with self.subTest(path=file["path"]):
                    self.assertEqual("root:root", file["owner"])
                    self.assertIn(file["permissions"], ("0600", "0700"))

    def test_admission_is_configured_only_if_somebody_does(self) -> None:
        names = {one["metadata"]["name"] for one in rendering.by_kind(rendered(), "Secret")}
        self.assertEqual(set(), names)
        plugin = {"apiVersion": "a/v1", "kind": "B", "namespaces": ["1e3", "{{ c }}"], "limit": 1e6}
        objects = rendered({"apiServer.admissionConfiguration": {"no": plugin, "Other": {}}})
        (path,) = (path for path in bodies(objects) if "/admission/" in path)
        self.assertEqual(
            {
                "apiVersion": "apiserver.config.k8s.io/v1",
                "kind": "AdmissionConfiguration",
                "plugins": [
                    {"name": "Other", "configuration": {}},
                    {"name": "no", "configuration": plugin},
                ],
            },
            yaml.safe_load(bodies(objects)[path]),
        )
        secret = rendering.only(objects, "Secret")
        self.assertEqual("demo-admission-configuration", secret["metadata"]["name"])

    def test_an_audit_policy_of_any_length_arrives(self) -> None:
        rules = [{"level": "Metadata", "users": [f"user-{number}"]} for number in range(2000)]
        objects = rendered({"apiServer.audit.policy": {"rules": rules}})
        (path,) = (path for path in bodies(objects) if "/audit/" in path)
        self.assertEqual(
            {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules},
            yaml.safe_load(bodies(objects)[path]),
        )
        for one in kubeadm(objects)["files"]:
            self.assertLessEqual(len(one.get("content", "")), 10240, one["path"])

    def test_an_audit_log_goes_to_a_directory_of_the_host_or_to_the_pods_log(self) -> None:
        policy = {"rules": [{"level": "None"}]}
        server = kubeadm(rendered({"apiServer.audit.policy": policy}))["clusterConfiguration"]
        (log,) = (
            one
            for one in server["apiServer"]["extraVolumes"]
            if one["mountPath"] == "/var/log/kubernetes/audit"
        )
        self.assertEqual("DirectoryOrCreate", log["pathType"])
        self.assertNotIn("readOnly", log)
        given = flags(server["apiServer"])
        self.assertEqual("/var/log/kubernetes/audit/audit.log", given["audit-log-path"])
        self.assertEqual("100", given["audit-log-maxsize"])
        server = kubeadm(
            rendered({"apiServer.audit.policy": policy, "apiServer.audit.log.path": "-"})
        )["clusterConfiguration"]["apiServer"]
        self.assertEqual("-", flags(server)["audit-log-path"])
        self.assertNotIn("audit-log-maxsize", flags(server))
        self.assertEqual(["audit-policy"], [one["name"] for one in server["extraVolumes"]])

    def test_another_policy_replaces_machines_and_another_order_of_its_keys_does_not(self) -> None:
        rule = {"level": "Metadata", "verbs": ["get"]}
        for key, one, turned, other in (
            (
                "apiServer.audit.policy",
                {"rules": [rule], "omitManagedFields": True},
                {"omitManagedFields": True, "rules": [dict(reversed(rule.items()))]},
                {"rules": [rule]},
            ),
            (
                "apiServer.admissionConfiguration",
                {"A": {"a": 1, "b": 2}, "B": {}},
                {"B": {}, "A": {"b": 2, "a": 1}},
                {"A": {"a": 1, "b": 3}, "B": {}},
            ),
        ):
            with self.subTest(key=key):
                spec = kubeadm(rendered({key: one}))
                self.assertEqual(spec, kubeadm(rendered({key: turned})))
                self.assertNotEqual(spec, kubeadm(rendered({key: other})))


class EncryptionTest(unittest.TestCase):
    DIRECTORY = "/etc/kubernetes/encryption"

    def configuration(self, change: Mapping[str, Any], keys: Mapping[str, str]) -> Any:
        """What the API server reads once a machine has put the keys in, twice for good measure."""
        objects = rendered({"etcd.encryption": {"enabled": True, **change}})
        spec = kubeadm(objects)
        (command,) = (one for one in spec["preKubeadmCommands"] if "encryption" in one)
        with tempfile.TemporaryDirectory() as place:
            for one in spec["files"]:
                path = Path(place) / one["path"].lstrip("/")
                path.parent.mkdir(parents=True, exist_ok=True)
                source = one.get("contentFrom", {}).get("secret")
                if source:
                    self.assertEqual("demo-etcd-key", source["name"])
                path.write_text(keys[source["key"]] if source else one["content"])
                path.chmod(int(one["permissions"], 8))
            for _ in range(2):
                here = command.replace(self.DIRECTORY, f"{place}{self.DIRECTORY}")
                subprocess.run(here.split(), check=True)
            found = Path(place) / self.DIRECTORY.lstrip("/") / "configuration.yaml"
            self.assertEqual(0o600, found.stat().st_mode & 0o777)
            return yaml.safe_load(found.read_text())

    def test_each_machine_fills_in_its_keys(self) -> None:
        keys = {"key2": "+/aBb==\n", "key1": "c2\nVjb25k  ", "old": "dGhpcmQ="}
        self.assertEqual(
            {
                "apiVersion": "apiserver.config.k8s.io/v1",
                "kind": "EncryptionConfiguration",
                "resources": [
                    {
                        "resources": ["secrets"],
                        "providers": [
                            {
                                "secretbox": {
                                    "keys": [
                                        {"name": "key2", "secret": "+/aBb=="},
                                        {"name": "key1", "secret": "c2Vjb25k"},
                                    ]
                                }
                            },
                            {"aescbc": {"keys": [{"name": "old", "secret": "dGhpcmQ="}]}},
                            {"identity": {}},
                        ],
                    }
                ],
            },
            self.configuration(
                {"keys": ["key2", "key1"], "otherProviders": {"aescbc": ["old"]}},
                keys,
            ),
        )

    def test_plain_text_is_written_first_or_read_last(self) -> None:
        for plain in (True, False):
            found = self.configuration({"writePlain": plain}, {"key1": "a2V5"})
            kinds = [next(iter(one)) for one in found["resources"][0]["providers"]]
            self.assertEqual(["identity", "secretbox"][:: 1 if plain else -1], kinds)

    def test_the_first_key_writes_whatever_their_names_are(self) -> None:
        found = self.configuration(
            {"keys": ["b", "a", "ab"]}, {"a": "QQ==", "b": "Qg==", "ab": "Qw"}
        )
        (keys,) = (
            one["secretbox"]["keys"]
            for one in found["resources"][0]["providers"]
            if "secretbox" in one
        )
        self.assertEqual(["Qg==", "QQ==", "Qw"], [one["secret"] for one in keys])

    def test_a_rotation_replaces_the_control_plane_each_step(self) -> None:
        steps = [["key1"], ["key1", "key2"], ["key2", "key1"], ["key2"]]
        specs = [
            kubeadm(rendered({"etcd.encryption": {"enabled": True, "keys": keys}}))
            for keys in steps
        ]
        for one, other in at_least_one(itertools.pairwise(specs)):
            self.assertNotEqual(one, other)

    def test_nothing_is_there_without_it(self) -> None:
        spec = kubeadm(rendered({"etcd.encryption.keys": ["another"]}))
        self.assertEqual(spec, kubeadm(rendered()))
        self.assertNotIn("encryption", yaml.safe_dump(spec))

    def test_no_template_asks_a_cluster(self) -> None:
        for path in at_least_one(rendering.template_files(rendering.CLUSTER)):
            self.assertNotRegex(path.read_text(), r"\blookup\b", path)

    def test_the_script_is_that_of_any_posix_shell(self) -> None:
        if shutil.which("dash") is None:
            self.skipTest("there is no dash here")
        script = rendering.CLUSTER / "files" / "etcd-encryption" / "fill-in-keys.sh"
        done = subprocess.run(["dash", "-n", script], capture_output=True, check=False, text=True)
        self.assertEqual((0, ""), (done.returncode, done.stderr))


class WebhookTest(unittest.TestCase):
    def files(self, change: Mapping[str, Any]) -> dict[str, str]:
        paths = {f"azimuthAuthorizationWebhook.{key}": value for key, value in change.items()}
        objects = rendered(paths, "azimuth-webhook")
        return {Path(path).name: text for path, text in bodies(objects).items()}

    def test_the_webhook_is_asked_first_about_what_it_guards(self) -> None:
        server = "https://a.example.org/b?c=1&d='e'"
        files = self.files({"server": server, "extraPreFilters": ["1 in {{'a': 1}: 2}", "x # y"]})
        first, *others = yaml.safe_load(files["authorization.yaml"])["authorizers"]
        self.assertEqual(
            [("Node", "node"), ("RBAC", "rbac"), ("AlwaysDeny", "alwaysdeny")],
            [(one["type"], one["name"]) for one in others],
        )
        webhook = first["webhook"]
        self.assertEqual("v1beta1", webhook["subjectAccessReviewVersion"])
        self.assertEqual("v1", webhook["matchConditionSubjectAccessReviewVersion"])
        self.assertEqual("5s", webhook["timeout"])
        self.assertEqual("NoOpinion", webhook["failurePolicy"])
        guarded, *more = (one["expression"] for one in webhook["matchConditions"])
        self.assertIn('in ["","kube-system","openstack-system","1e3"]', guarded)
        self.assertEqual(["1 in {{'a': 1}: 2}", "x # y"], more)
        kubeconfig = webhook["connectionInfo"]["kubeConfigFile"]
        self.assertEqual("/etc/kubernetes/webhooks/webhook.kubeconfig", kubeconfig)
        cluster = yaml.safe_load(files["webhook.kubeconfig"])["clusters"][0]["cluster"]
        self.assertEqual(
            {"server": server, "certificate-authority": "/etc/kubernetes/webhooks/ca.pem"}, cluster
        )
        self.assertTrue(files["ca.pem"].startswith("-----BEGIN CERTIFICATE-----\n"))

    def test_an_unchecked_certificate_is_said_so(self) -> None:
        files = self.files({"tls": {"enabled": False, "cert": None}})
        cluster = yaml.safe_load(files["webhook.kubeconfig"])["clusters"][0]["cluster"]
        self.assertIs(True, cluster["insecure-skip-tls-verify"])
        self.assertNotIn("certificate-authority", cluster)
        self.assertNotIn("ca.pem", files)
