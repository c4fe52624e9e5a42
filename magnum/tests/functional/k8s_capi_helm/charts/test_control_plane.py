# SPDX-License-Identifier: Apache-2.0
"""What kubeadm is told about the control plane, and that nobody else is told."""

from __future__ import annotations

from pathlib import Path
import subprocess
import tempfile
import unittest

import yaml

from magnum.tests.functional.k8s_capi_helm.charts import rendering
from magnum.tests.functional.k8s_capi_helm.charts.control_plane import (
    api_server_flags,
    flags,
    kubeadm,
    OWN,
    rendered,
)

CORE_VERSIONS = ("v1beta1", "v1beta2")
PROGRAMS = ("apiServer", "controllerManager", "scheduler")


class FlagsTest(unittest.TestCase):
    def test_text_arrives_as_it_was_written(self) -> None:
        odd = ["0815", "yes", "a: b", "- c", "1e3", "#d", 'e"f', "müller", "{g}", "2026-11-21"]
        many = {f"flag-{place}": text for place, text in enumerate(odd)}
        more = {f"more-{place}": text for place, text in enumerate(odd)}
        for core in CORE_VERSIONS:
            change = {
                "apiVersions.core": core,
                "oidc": {
                    "issuerUrl": "https://id.example.org/a&b=<c>",
                    "clientId": "0815",
                    "usernameClaim": "yes",
                    "usernamePrefix": "a: b",
                    "groupsClaim": "1e3",
                    "groupsPrefix": 'e"f',
                },
                "apiServer.extraArgs": many,
                f"{OWN}.apiServer.extraArgs": [
                    {"name": name, "value": text} for name, text in more.items()
                ],
            }
            with self.subTest(core=core):
                self.assertEqual(
                    {
                        "v": "2",
                        "oidc-issuer-url": "https://id.example.org/a&b=<c>",
                        "oidc-client-id": "0815",
                        "oidc-username-claim": "yes",
                        "oidc-username-prefix": "a: b",
                        "oidc-groups-claim": "1e3",
                        "oidc-groups-prefix": 'e"f',
                        "oidc-signing-algs": "RS256",
                        **many,
                        **more,
                    },
                    api_server_flags(change),
                )

    def test_open_id_connect_has_the_defaults_of_the_contract(self) -> None:
        self.assertEqual({"v": "2"}, api_server_flags())
        given = api_server_flags({"oidc": {"issuerUrl": "https://a.example.org", "clientId": "b"}})
        self.assertEqual(
            {
                "v": "2",
                "oidc-issuer-url": "https://a.example.org",
                "oidc-client-id": "b",
                "oidc-username-claim": "sub",
                "oidc-username-prefix": "oidc:",
                "oidc-groups-claim": "groups",
                "oidc-groups-prefix": "oidc:",
                "oidc-signing-algs": "RS256",
            },
            given,
        )

    def test_what_is_empty_is_left_to_kubernetes(self) -> None:
        given = api_server_flags(
            {
                "apiServer.logLevel": None,
                "oidc": {
                    "issuerUrl": "https://a.example.org",
                    "clientId": "b",
                    "usernameClaim": "",
                    "usernamePrefix": "",
                    "groupsClaim": "",
                    "groupsPrefix": "",
                    "signingAlgs": "",
                },
            }
        )
        self.assertEqual({"oidc-issuer-url", "oidc-client-id"}, given.keys())

    def test_the_nearer_word_wins_and_null_takes_away(self) -> None:
        for core in CORE_VERSIONS:
            given = kubeadm(
                rendered(
                    {
                        "apiVersions.core": core,
                        "controllerManager.extraArgs": {"bind-address": "::", "node-cidr": "a"},
                        "scheduler.extraArgs": {"bind-address": "127.0.0.1"},
                        "etcd.extraArgs": {"election-timeout": "6000"},
                        OWN: {
                            "controllerManager": {"extraArgs": {"node-cidr": "b", "v": 1000000}},
                            "scheduler": {"extraArgs": {"bind-address": None}},
                            "etcd": {
                                "local": {
                                    "extraArgs": [
                                        {"name": "election-timeout", "value": "7000"},
                                    ]
                                }
                            },
                        },
                    }
                )
            )["clusterConfiguration"]
            with self.subTest(core=core):
                self.assertEqual(
                    {
                        "cloud-provider": "external",
                        "bind-address": "::",
                        "node-cidr": "b",
                        "v": "1000000",
                    },
                    flags(given["controllerManager"]),
                )
                self.assertNotIn("scheduler", given)
                etcd = flags(given["etcd"]["local"])
                self.assertEqual("7000", etcd["election-timeout"])
                self.assertEqual("500", etcd["heartbeat-interval"])

    def test_tls_is_that_of_every_program(self) -> None:
        suites = ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"]
        objects = rendered({"tls": {"minVersion": "VersionTLS12", "cipherSuites": suites}})
        wanted = {"tls-min-version": "VersionTLS12", "tls-cipher-suites": ",".join(suites)}
        spec = kubeadm(objects)
        worker = rendering.only(objects, "KubeadmConfigTemplate")["spec"]["template"]["spec"]
        for found in (
            *(spec["clusterConfiguration"][program] for program in PROGRAMS),
            spec["initConfiguration"]["nodeRegistration"],
            spec["joinConfiguration"]["nodeRegistration"],
            worker["joinConfiguration"]["nodeRegistration"],
        ):
            self.assertLessEqual(wanted.items(), flags(found).items())
        etcd = flags(spec["clusterConfiguration"]["etcd"]["local"])
        self.assertEqual("TLS1.2", etcd["tls-min-version"])
        self.assertEqual(",".join(suites), etcd["cipher-suites"])
        etcd = flags(
            kubeadm(rendered({"tls.minVersion": "VersionTLS13"}))["clusterConfiguration"]["etcd"][
                "local"
            ]
        )
        self.assertEqual("TLS1.3", etcd["tls-min-version"])


class ClusterConfigurationTest(unittest.TestCase):
    def test_lists_of_the_operator_come_after_the_charts(self) -> None:
        volume = {"name": "a", "hostPath": "/a", "mountPath": "/a"}
        other = {**volume, "name": "b", "mountPath": "/b"}
        variables = [{"name": name, "value": "a"} for name in ("HTTPS_PROXY", "NO_PROXY", "A")]
        given = kubeadm(
            rendered(
                {
                    "apiServer.certSANs": ["a.example.org", "b.example.org"],
                    "apiServer.extraVolumes": [volume],
                    "proxy": {"https": "http://proxy:3128", "noProxy": ["b"]},
                    f"{OWN}.apiServer": {
                        "certSANs": ["b.example.org", "c.example.org"],
                        "extraVolumes": [other],
                        "extraEnvs": variables,
                    },
                    f"{OWN}.certificatesDir": "/etc/kubernetes/pki",
                }
            )
        )["clusterConfiguration"]
        self.assertEqual(
            ["a.example.org", "b.example.org", "c.example.org"], given["apiServer"]["certSANs"]
        )
        self.assertEqual([volume, other], given["apiServer"]["extraVolumes"])
        self.assertEqual(variables, given["apiServer"]["extraEnvs"])
        self.assertEqual("/etc/kubernetes/pki", given["certificatesDir"])

    def test_etcd_of_elsewhere_stands_alone(self) -> None:
        external = {
            "endpoints": ["https://etcd.example.org:2379"],
            "caFile": "/a",
            "certFile": "/b",
            "keyFile": "/c",
        }
        given = kubeadm(rendered({f"{OWN}.etcd.external": external}))
        self.assertEqual({"external": external}, given["clusterConfiguration"]["etcd"])

    def test_images_keep_their_whole_names_below_a_prefix(self) -> None:
        for change, repository, dns in (
            ({}, None, None),
            (
                {"global.imageRegistryPrefix": "r.example.org:5000/m"},
                "r.example.org:5000/m/registry.k8s.io",
                {"imageRepository": "r.example.org:5000/m/registry.k8s.io/coredns"},
            ),
            (
                {"global.imageRegistryPrefix": "r.example.org", f"{OWN}.dns": {"imageTag": "v1"}},
                "r.example.org/registry.k8s.io",
                {"imageTag": "v1", "imageRepository": "r.example.org/registry.k8s.io/coredns"},
            ),
            (
                {"global.imageRegistryPrefix": "r.example.org", f"{OWN}.imageRepository": "o"},
                "o",
                None,
            ),
        ):
            with self.subTest(change=change):
                given = kubeadm(rendered(change))["clusterConfiguration"]
                self.assertEqual(repository, given.get("imageRepository"))
                self.assertEqual(dns, given.get("dns"))

    def test_how_long_certificates_live_is_said_where_it_is_known(self) -> None:
        for core, level, known in (
            ("v1beta2", "", True),
            ("v1beta2", "1.11", True),
            ("v1beta1", "", False),
            ("v1beta1", "1.13", True),
        ):
            change = {
                "apiVersions": {"core": core, "clusterApi": level},
                "controlPlane.certificateValidityDays": 90,
            }
            with self.subTest(core=core, level=level):
                given = kubeadm(rendered(change))["clusterConfiguration"]
                found = given.get("certificateValidityPeriodDays")
                self.assertEqual(90 if known else None, found)

    def test_kube_proxy_is_told_on_the_first_machine_unless_cilium_does_its_work(self) -> None:
        path = "/run/kubeadm/kube-proxy-configuration.yaml"
        spec = kubeadm(rendered({"controlPlane.kubeadmConfigSpec": {}}))
        (file,) = spec["files"]
        self.assertEqual(path, file["path"])
        self.assertEqual(
            {
                "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
                "kind": "KubeProxyConfiguration",
                "metricsBindAddress": "0.0.0.0:10249",
            },
            yaml.safe_load(file["content"]),
        )
        (command,) = spec["preKubeadmCommands"]
        for first in (True, False):
            with tempfile.TemporaryDirectory() as place:
                configuration = Path(place) / "kubeadm.yaml"
                (Path(place) / "kube-proxy-configuration.yaml").write_text(file["content"])
                if first:
                    configuration.write_text("kind: ClusterConfiguration\n")
                here = command.replace("/run/kubeadm", place)
                subprocess.run(["sh", "-ec", here], check=True)
                self.assertEqual(first, configuration.exists())
                if first:
                    found = rendering.documents(configuration.read_text())
                    kinds = [one["kind"] for one in found]
                    self.assertEqual(["ClusterConfiguration", "KubeProxyConfiguration"], kinds)
        nothing = {"controlPlane.kubeadmConfigSpec": {"kubeProxyConfiguration": None}}
        cilium = {"addons": {"enabled": True, "cni": {"type": "cilium"}}}
        for change in (nothing, cilium):
            values = rendering.scenarios(rendering.CLUSTER)["minimal"].values
            objects = rendering.render(rendering.CLUSTER, rendering.changed(values, change))
            self.assertNotIn("files", kubeadm(objects))
            self.assertNotIn("preKubeadmCommands", kubeadm(objects))
