# SPDX-License-Identifier: Apache-2.0
"""Wrong values are refused by a sentence that names the key; each sentence of a chart is tested."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
import re
from typing import Any
import unittest

from magnum.tests.functional.k8s_capi_helm.charts import rendering

CLUSTER_RULES: list[tuple[str, dict[str, Any], str]] = [
    (
        "no credential",
        {"cloudCredentialsSecretName": None},
        "cloudCredentialsSecretName is not set",
    ),
    ("no version", {"kubernetesVersion": None}, "kubernetesVersion is not set"),
    ("no image", {"machineImageId": None}, "Neither machineImageId nor machineImage is set"),
    (
        "image as a template",
        {"machineImageId": None, "machineImage": "ubuntu-{{ .Values.kubernetesVersion }}"},
        "machineImage .* is taken as plain text",
    ),
    ("no flavor", {"controlPlane.machineFlavor": None}, "controlPlane.machineFlavor is not set"),
    ("flatcar", {"osDistro": "flatcar"}, 'osDistro "flatcar" is not supported'),
    (
        "infrastructure v1beta2",
        {"apiVersions.infrastructure": "v1beta2"},
        "apiVersions.infrastructure v1beta2 is not supported",
    ),
    (
        "two lists of allowed networks",
        {"apiServer.allowedCIDRs": ["10.0.0.0/8"], "apiServer.allowedCidrs": ["0.0.0.0/0"]},
        "apiServer.allowedCIDRs and apiServer.allowedCidrs .* differ",
    ),
    (
        "allowed networks that nobody keeps",
        {"apiServer.allowedCidrs": ["10.0.0.0/8"], "apiServer.enableLoadBalancer": False},
        "apiServer.allowedCIDRs is kept by the load balancer",
    ),
    (
        "an address that is not wanted",
        {"apiServer.floatingIP": "203.0.113.9", "apiServer.associateFloatingIP": False},
        "apiServer.floatingIP is 203.0.113.9, but apiServer.associateFloatingIP is false",
    ),
    (
        "floating IP without a network for it",
        {"clusterNetworking.disableExternalNetwork": True},
        "set apiServer.associateFloatingIP to false",
    ),
    ("even control plane", {"controlPlane.machineCount": 2}, "machineCount is 2.* odd"),
    (
        "a control plane that would lose its only machine",
        {
            "controlPlane.machineCount": 1,
            "controlPlane.rolloutStrategy": {"rollingUpdate": {"maxSurge": 0}},
        },
        "maxSurge 0 .* machineCount is 1: have at least three machines",
    ),
    (
        "Keystone tokens on an old Kubernetes",
        {"authWebhook": "k8s-keystone-auth", "kubernetesVersion": "1.31.9"},
        "authWebhook k8s-keystone-auth needs Kubernetes 1.32.* v1.31.9",
    ),
    (
        "endless drain",
        {"controlPlane.nodeDrainTimeout": "0s"},
        "controlPlane: nodeDrainTimeout is 0s, which would wait for ever",
    ),
    (
        "endless detach",
        {"nodeGroupDefaults.nodeVolumeDetachTimeout": "0m0s"},
        'Node group "md-0": nodeVolumeDetachTimeout is 0m0s',
    ),
    ("group without a flavor", {"nodeGroupDefaults.machineFlavor": None}, '"md-0" has no flavor'),
    (
        "group without an image",
        {"machineImageId": None, "controlPlane.machineImageId": "a"},
        '"md-0" has no image',
    ),
    (
        "group without a version",
        {"kubernetesVersion": None, "controlPlane.kubernetesVersion": "1.33.4"},
        '"md-0" has no Kubernetes version',
    ),
    (
        "group newer than the control plane",
        {"nodeGroupDefaults.kubernetesVersion": "1.34.0"},
        '"md-0" has Kubernetes v1.34.0, newer than the control plane.s v1.33.4',
    ),
    ("group without a count", {"nodeGroups": [{"name": "a"}]}, '"a" has no number of machines'),
    (
        "autoscaled group without bounds",
        {"nodeGroups": [{"name": "a", "autoscale": True, "machineCountMin": 1}]},
        '"a" has autoscale but no bounds',
    ),
    (
        "bounds the wrong way round",
        {
            "nodeGroups": [
                {"name": "a", "autoscale": True, "machineCountMin": 3, "machineCountMax": 1}
            ]
        },
        '"a" has machineCountMin 3 above machineCountMax 1',
    ),
    (
        "two groups of one name",
        {"nodeGroups": [{"name": "a", "machineCount": 1}, {"name": "a", "machineCount": 2}]},
        'nodeGroups "a" and "a" would get the same objects',
    ),
]
ADDON_RULES: list[tuple[str, dict[str, Any], str]] = [
    ("cluster name no label", {"clusterName": "a.b"}, 'The name "a.b" becomes a label'),
    ("ingress", {"ingress.enabled": True}, "ingress.enabled: .* no ingress controller"),
    (
        "own credential",
        {"openstack.cloudConfig": {"Global": {"cloud": "x"}}},
        "openstack.cloudConfig.Global is made from",
    ),
    (
        "two classes of one name",
        {"openstack.csiCinder.additionalStorageClasses": [{"name": "csi-cinder"}]},
        'two storage classes "csi-cinder"',
    ),
]
#: What the schema refuses; the text is the end of the path that helm names.
CLUSTER_SCHEMA: list[tuple[dict[str, Any], str]] = [
    ({"nonsense": 1}, "nonsense"),
    ({"registryMirrors": {}}, "registryMirrors"),
    ({"trustedCAs": {}}, "trustedCAs"),
    ({"clouds": {}}, "clouds"),
    ({"projectPrefix": "example.org"}, "projectPrefix"),
    ({"controlPlane.machineFlavour": "m1"}, "machineFlavour"),
    ({"controlPlane.kubeadmConfigSpec": {}}, "kubeadmConfigSpec"),
    ({"controlPlane.machineCount": "3"}, "controlPlane/machineCount"),
    ({"controlPlane.machineFlavor": 4}, "controlPlane/machineFlavor"),
    ({"controlPlane.certificatesExpiryDays": 3}, "controlPlane/certificatesExpiryDays"),
    ({"controlPlane.rolloutStrategy.rollingUpdate.maxSurge": 2}, "maxSurge"),
    ({"controlPlane.nodeDrainTimeout": "5 minutes"}, "controlPlane/nodeDrainTimeout"),
    ({"kubernetesVersion": "1.33"}, "kubernetesVersion"),
    ({"apiServer.port": 0}, "apiServer/port"),
    ({"apiServer.allowedCIDRs": ["10.0.0.1"]}, "apiServer/allowedCIDRs/0"),
    ({"etcd.blockDevice": {"type": "Volume"}}, "etcd/blockDevice"),
    ({"etcd.extraArgs.quota-backend-bytes": 1}, "etcd/extraArgs/quota-backend-bytes"),
    ({"authWebhook": "azimuth-authorization-webhook"}, "authWebhook"),
    ({"volumesPolicy": "maybe"}, "volumesPolicy"),
    ({"nodeGroups.0.name": "A"}, "nodeGroups/0/name"),
    ({"nodeGroups.0.name": "-a"}, "nodeGroups/0/name"),
    ({"nodeGroups.0.name": "a" * 64}, "nodeGroups/0/name"),
    ({"nodeGroups.0.machineCount": -1}, "nodeGroups/0/machineCount"),
    ({"nodeGroups.0.autoscale": "yes"}, "nodeGroups/0/autoscale"),
    ({"nodeGroups.0.nodeLabels": {"a": "b c"}}, "nodeGroups/0/nodeLabels/a"),
    ({"nodeGroups.0.machineMetadata": {"a": 1}}, "nodeGroups/0/machineMetadata/a"),
    ({"nodeGroupDefaults.healthCheck.spec.maxUnhealthy": "half"}, "healthCheck/spec/maxUnhealthy"),
]
ADDON_SCHEMA: list[tuple[dict[str, Any], str]] = [
    ({"nonsense": 1}, "nonsense"),
    ({"custom": {}}, "custom"),
    ({"cni.type": "flannel"}, "cni/type"),
    ({"cni.calico.chart.repo": "oci://example.org/x"}, "cni/calico/chart/repo"),
    ({"cni.calico.chart.version": "3.x"}, "cni/calico/chart/version"),
    ({"openstack.cloudConfig": {"Load Balancer": {}}}, "Load Balancer"),
    ({"openstack.cloudConfig": {"LoadBalancer": {"a": "x\ny"}}}, "cloudConfig/LoadBalancer/a"),
    (
        {"openstack.csiCinder.defaultStorageClass.name": "Fast SSD"},
        "defaultStorageClass/name",
    ),
]

_FAIL = re.compile(r'\bfail (?:\(printf )?"((?:[^"\\]|\\.)*)"')


class RefusalTest(unittest.TestCase):
    def refused(self, chart: Path, scenario: str, change: Mapping[str, Any]) -> str:
        values = rendering.scenarios(chart)[scenario].values
        if chart == rendering.CLUSTER:
            values = {**values, "nodeGroups": [{"name": "md-0", "machineCount": 3}]}
        values = rendering.changed(values, change)
        with self.assertRaises(rendering.HelmRefused) as caught:
            rendering.render(chart, values)
        return str(caught.exception)

    def all_rules(self) -> list[str]:
        said = []
        for chart, scenario, rules in (
            (rendering.CLUSTER, "minimal", CLUSTER_RULES),
            (rendering.ADDONS, "bare", ADDON_RULES),
        ):
            for title, change, sentence in rules:
                with self.subTest(chart=chart.name, rule=title):
                    said.append(self.refused(chart, scenario, change))
                    self.assertRegex(said[-1], sentence)
        return said

    def test_every_rule_has_its_sentence_and_every_sentence_its_test(self) -> None:
        said = [*self.all_rules(), self.release_name("a.b")]
        for chart in (rendering.CLUSTER, rendering.ADDONS):
            for path in (chart / "templates").rglob("*"):
                text = path.read_text() if path.is_file() else ""
                self.assertEqual(text.count("fail "), len(_FAIL.findall(text)), path)
                for sentence in _FAIL.findall(text):
                    with self.subTest(sentence=sentence):
                        self.assertTrue(any(re.search(pattern(sentence), one) for one in said))

    def release_name(self, name: str) -> str:
        values = rendering.scenarios(rendering.CLUSTER)["existing-network"].values
        with self.assertRaises(rendering.HelmRefused) as caught:
            rendering.render(rendering.CLUSTER, values, release=name)
        return str(caught.exception)

    def test_a_release_name_that_is_no_label(self) -> None:
        self.assertRegex(self.release_name("a.b"), 'The release name "a.b" becomes the name')

    def test_the_schema_names_the_key(self) -> None:
        for chart, scenario, wrong in (
            (rendering.CLUSTER, "minimal", CLUSTER_SCHEMA),
            (rendering.ADDONS, "bare", ADDON_SCHEMA),
        ):
            for change, key in wrong:
                with self.subTest(chart=chart.name, change=change):
                    said = self.refused(chart, scenario, change)
                    self.assertIn("values don't meet the specifications of the schema", said)
                    self.assertIn(key, said.replace(".", "/"))

    def test_addons_are_refused_through_the_cluster_chart_too(self) -> None:
        said = self.refused(rendering.CLUSTER, "minimal", {"addons.cni.type": "flannel"})
        self.assertIn("type", said)
        said = self.refused(rendering.CLUSTER, "minimal", {"addons.ingress.enabled": True})
        self.assertIn("no ingress controller", said)


def pattern(sentence: str) -> str:
    """A regular expression for the sentences that a template's format gives."""
    text = sentence.replace('\\"', '"')
    return ".+".join(map(re.escape, re.split(r"%[qds]", text)))
