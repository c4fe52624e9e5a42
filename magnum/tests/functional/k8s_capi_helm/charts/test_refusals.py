# SPDX-License-Identifier: Apache-2.0
"""Wrong values are refused by a sentence that names the key; each sentence of a chart is tested.

The wrong values are rows of charts/*/tests/refused/*.yaml (see :mod:`refusals`).
"""

from __future__ import annotations

import re
from typing import Any
import unittest

from magnum.tests.functional.k8s_capi_helm.charts import refusals, rendering

#: So many wrong values are on record at the least.
AT_LEAST = 60
#: Who may refuse: the schema, or the one template with rules. Anything else is an accident.
REFUSED_BY = re.compile(
    r"values don't meet the specifications of the schema"
    r"|execution error at \(\S+/templates/validate\.yaml:"
)
_FAIL = re.compile(r'\bfail (?:\(printf )?"((?:[^"\\]|\\.)*)"')
_ID = rendering.openstack_id(1)
_RULES = "clusterNetworking.allNodesSecurityGroupRules"
_PORTS = "controlPlane.machineNetworking"
_OWN = "controlPlane.kubeadmConfigSpec"
_GOOD_SUITE = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
_OTHER_SUITE = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
_TLS13 = {"tls-min-version": "VersionTLS13"}
_PROXY = {"name": "HTTPS_PROXY", "value": "http://proxy:3128"}
_DATA = {"device": "/dev/vdb", "filesystem": "ext4", "label": "data"}
#: Changes of the smallest scenario that a rule must let through.
WORKS: tuple[dict[str, Any], ...] = (
    {
        "kubeNetwork.pods.cidrBlocks": ["10.0.0.0/26"],
        f"{_OWN}.clusterConfiguration.controllerManager.extraArgs": {"allocate-node-cidrs": False},
    },
    {
        "kubeNetwork.pods.cidrBlocks": ["10.0.0.0/16"],
        f"{_OWN}.clusterConfiguration.controllerManager.extraArgs": [
            {"name": "node-cidr-mask-size-ipv4", "value": None}
        ],
    },
    {
        "apiServer.loadBalancerNetworkFilter": {"name": "lb"},
        "apiServer.loadBalancerSubnetFilters": [{"id": _ID, "name": "lb-v4"}],
    },
    {_RULES: [{"name": "a", "direction": "ingress", "remoteGroupID": ""}]},
    {
        _RULES: [
            {
                "name": "a",
                "direction": "ingress",
                "protocol": "1",
                "portRangeMin": 11,
                "portRangeMax": 1,
            }
        ]
    },
    {
        "apiVersions.core": "v1beta2",
        f"{_OWN}.initConfiguration.timeouts": {"controlPlaneComponentHealthCheckSeconds": None},
    },
    # The provider leaves zeros out, which is any type and code.
    {_RULES: [{"name": "a", "direction": "ingress", "protocol": "icmp", "portRangeMin": 0}]},
    {_RULES: [{"name": "a", "direction": "ingress", "protocol": "tcp", "portRangeMin": 0}]},
    {
        "clusterNetworking.internalNetwork.subnetFilters": [
            {"name": "a", "ipVersion": 4},
            {"name": "b", "ipVersion": 4},
        ]
    },
    {_PORTS: {"ports": [{"network": {"name": "a"}, "nameSuffix": "x"}, {"nameSuffix": "x"}]}},
    {_PORTS: {"ports": [{"network": {"name": "k8s-clusterapi-cluster-default-demo"}}]}},
    {_PORTS: {"ports": [{"network": {"tags": ["theirs"]}}]}},
    {
        "clusterNetworking.disablePortSecurity": True,
        "clusterNetworking.manageSecurityGroups": False,
        _PORTS: {
            "ports": [
                {"disablePortSecurity": False, "securityGroups": [{"id": _ID}]},
                {"network": {"id": _ID}, "allowedAddressPairs": [{"ipAddress": "10.1.0.0/16"}]},
            ]
        },
    },
    {"controlPlane.nodeLabels": {"node-role.kubernetes.io/control-plane": ""}},
    {
        "controlPlane.kubernetesVersion": "1.36.0",
        "nodeGroups": [{"name": "lags", "machineCount": 1, "kubernetesVersion": "1.33.4"}],
    },
    {"apiVersions.core": "v1beta1", "controlPlane.nodeDrainTimeout": "876000h"},
    {"apiVersions.core": "v1beta2", "controlPlane.nodeDrainTimeout": "596523h14m7s"},
    {"controlPlane.certificatesExpiryDays": 364},
    {
        "apiVersions.core": "v1beta2",
        "controlPlane.certificatesExpiryDays": 400,
        "controlPlane.certificateValidityDays": 1000,
    },
    {
        "tls.cipherSuites": [
            "TLS_AES_128_GCM_SHA256",
            "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
            "TLS_RSA_WITH_AES_128_CBC_SHA256",
            "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        ]
    },
    {
        "tls.cipherSuites": [_OTHER_SUITE],
        "apiServer.extraArgs": _TLS13,
        "controllerManager.extraArgs": _TLS13,
        "scheduler.extraArgs": _TLS13,
        f"{_OWN}.clusterConfiguration.etcd.local.extraArgs": {"cipher-suites": None},
        "kubelet.extraArgs": _TLS13,
    },
    {
        "apiServer.extraArgs": {
            "tls-cipher-suites": _OTHER_SUITE,
            "disable-http2-serving": "true",
        },
        "kubelet.extraArgs": {"tls-cipher-suites": f"{_OTHER_SUITE},{_GOOD_SUITE}"},
    },
    {
        "etcd.extraArgs": {
            "cipher-suites": _OTHER_SUITE,
            "listen-client-http-urls": "http://127.0.0.1:2382",
        }
    },
    {
        "nodeGroups": [
            {
                "name": "none",
                "machineCount": 0,
                "kubeletExtraArgs": {"tls-cipher-suites": _OTHER_SUITE},
            }
        ]
    },
    {"apiServer.extraArgs": {"authentication-config": "/a", "api-audiences": "oidc-users"}},
    {
        "oidc.issuerUrl": "https://idp.example.org",
        "oidc.clientId": "kubernetes",
        f"{_OWN}.clusterConfiguration.apiServer.extraArgs": {"authentication-config": ""},
    },
    {
        f"{_OWN}.clusterConfiguration.apiServer.extraArgs": {
            "authorization-config": "",
            "authorization-mode": "Node,RBAC",
            "tls-cipher-suites": "",
        }
    },
    {
        f"{_OWN}.clusterConfiguration.etcd.external": {"endpoints": ["https://192.0.2.1:2379"]},
        "etcd.extraArgs": {"cipher-suites": _OTHER_SUITE},
    },
    {
        "etcd.encryption": {
            "enabled": True,
            "resources": ["secrets", "events", "*.apps", "widgets.example.org"],
            "keys": ["key1"],
        }
    },
    {f"{_OWN}.clusterConfiguration.apiServer.extraEnvs": [_PROXY, {**_PROXY, "name": "no_proxy"}]},
    {"apiServer.extraVolumes": [{"name": "ca-certs", "hostPath": "/c", "mountPath": "/c"}]},
    {"scheduler.extraVolumes": [{"name": "c", "hostPath": "/c", "mountPath": "/etc/ssl/certs"}]},
    {"etcd.extraArgs": {"data-dir": "/var/lib/etcd/data"}},
    {"apiServer.port": 8443, "apiServer.extraArgs": {"secure-port": "8443"}},
    {"controlPlane.serverGroupId": _ID, "controlPlane.schedulerHints": {"group": _ID}},
    {
        "osDistro": "flatcar",
        _OWN: {"diskSetup": {"filesystems": [_DATA]}, "mounts": [["data", "/data"]]},
    },
)
#: Changes that only new clusters are told of.
LIVED_WITH: tuple[dict[str, Any], ...] = (
    {f"{_OWN}.clusterConfiguration.apiServer.extraEnvs": [_PROXY]},
    {f"{_OWN}.clusterConfiguration.scheduler.extraEnvs": [{"name": "A"}, {"name": "A"}]},
    {f"{_OWN}.clusterConfiguration.etcd.local.extraArgs": {"data-dir": "/data"}},
    {
        "apiServer.enableLoadBalancer": False,
        "apiServer.associateFloatingIP": False,
        "apiServer.fixedIP": "192.168.3.7",
        f"{_OWN}.joinConfiguration.controlPlane.localAPIEndpoint.bindPort": 8443,
        f"{_OWN}.clusterConfiguration.apiServer.extraArgs": {"secure-port": "8443"},
    },
    {
        f"{_OWN}.initConfiguration.nodeRegistration.kubeletExtraArgs": {
            "tls-cipher-suites": _OTHER_SUITE
        }
    },
    {"kubeNetwork.pods.cidrBlocks": ["10.0.0.0/25"]},
    {"kubeNetwork.services.cidrBlocks": ["10.0.0.0/29"]},
    {"clusterNetworking.dnsNameservers": ["dns.example.org"]},
    {"clusterNetworking.internalNetwork.allocationPools": [{"start": "1.1.1.2", "end": "1.1.1.1"}]},
    {
        "apiServer.enableLoadBalancer": False,
        "apiServer.floatingIP": "203.0.113.7",
        "apiServer.fixedIP": "192.168.3.7",
    },
    {
        "clusterNetworking.disableExternalNetwork": True,
        "clusterNetworking.routerFilter": {"name": "office"},
        "apiServer.associateFloatingIP": False,
    },
    {
        "controlPlane.kubernetesVersion": "1.34.1",
        "nodeGroups": [{"name": "lags", "machineCount": 0, "kubernetesVersion": "1.30.2"}],
    },
    {_PORTS: {"ports": [{"fixedIPs": [{"ipAddress": "10.0.0.9"}]}]}},
    {_PORTS: {"ports": [{"network": {"id": _ID}}]}},
    {"controlPlane.serverGroupId": _ID, "controlPlane.schedulerHints": {"group": "other"}},
    {f"{_OWN}.clusterConfiguration.etcd": {"local": {"imageTag": "1"}, "external": {"a": "b"}}},
    {"osDistro": "flatcar", _OWN: {"mounts": [["LABEL=data", "/data"]]}},
)


class RefusalTest(unittest.TestCase):
    maxDiff = None

    def test_every_wrong_value_is_refused_and_every_sentence_has_its_row(self) -> None:
        rows = refusals.rows()
        self.assertGreaterEqual(len(rows), AT_LEAST)
        answers = refusals.answers(rows)
        for row, said in zip(rows, answers, strict=True):
            with self.subTest(row.title):
                self.assertTrue(said, "helm takes these values")
                self.assertRegex(said, REFUSED_BY)
                for word in row.words:
                    # The schema's faults write a path with slashes.
                    self.assertTrue(word in said or word in said.replace("/", "."), (word, said))
        for sentence in self.sentences():
            with self.subTest(sentence=sentence):
                pattern = re.compile(expression(sentence))
                self.assertTrue(any(map(pattern.search, answers)), "no row makes helm say it")

    def test_what_stands_close_to_a_rule_and_works_is_taken(self) -> None:
        base = rendering.scenarios(rendering.CLUSTER)["minimal"].values
        for change in WORKS:
            with self.subTest(change=change):
                self.assertTrue(
                    rendering.render(rendering.CLUSTER, rendering.changed(base, change))
                )

    def test_a_cluster_that_lives_with_it_is_not_kept_from_upgrades(self) -> None:
        base = rendering.scenarios(rendering.CLUSTER)["minimal"].values
        for change in LIVED_WITH:
            with self.subTest(change=change):
                values = rendering.changed(base, change)
                rendering.render(rendering.CLUSTER, values, upgrade=True)
                with self.assertRaises(rendering.HelmRefused):
                    rendering.render(rendering.CLUSTER, values)

    def sentences(self) -> set[str]:
        """Formats of all sentences with which the charts refuse."""
        found: set[str] = set()
        for chart in (rendering.CLUSTER, rendering.ADDONS):
            for path in rendering.template_files(chart):
                text = path.read_text()
                self.assertEqual(text.count("fail "), len(_FAIL.findall(text)), path)
                found.update(_FAIL.findall(text))
        return found

    def test_no_two_rows_are_alike(self) -> None:
        seen = [
            (row.file.parents[2], repr(row.change), row.release, row.served, row.scenario)
            for row in refusals.rows()
        ]
        self.assertEqual([], [one for one in seen if seen.count(one) > 1])


def expression(sentence: str) -> str:
    """A regular expression for the sentences that a template's format gives."""
    text = sentence.replace('\\"', '"')
    return ".+".join(map(re.escape, re.split(r"%[a-z]", text)))
