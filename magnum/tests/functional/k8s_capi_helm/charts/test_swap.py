# SPDX-License-Identifier: Apache-2.0
"""A live cluster of the reference chart can be given this one: nothing vanishes, nothing doubles.

Machines are replaced, as templates have other names; all else keeps its name, its selector, and
what the OpenStack provider refuses to change, and every addon stays in its release.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
import unittest

from magnum.tests.functional.k8s_capi_helm.charts import reference, released, rendering
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Values
from magnum.tests.functional.k8s_capi_helm.charts.test_released import moved

#: A cluster as the driver asks for it, with every addon that both charts have.
VALUES: Values = {
    "cloudCredentialsSecretName": "demo-cloud-credentials",
    "kubernetesVersion": "1.34.4",
    "machineImageId": "2b8a4d0a-6d3c-4a7f-8d27-3f0f2f4a9b01",
    "controlPlane": {"machineFlavor": "m1.medium"},
    "nodeGroups": [
        {"name": "workers", "machineFlavor": "m1.small", "machineCount": 2},
        {
            "name": "burst",
            "machineFlavor": "m1.small",
            "autoscale": True,
            "machineCountMin": 1,
            "machineCountMax": 3,
        },
    ],
    "addons": {
        "certManager": {"enabled": True},
        "ingress": {"enabled": True},
        "mellanoxNetworkOperator": {"enabled": True},
        "monitoring": {"enabled": True},
        "nodeFeatureDiscovery": {"enabled": True},
        "nvidiaGPUOperator": {"enabled": True},
        "openstack": {
            "k8sKeystoneAuth": {
                "enabled": True,
                "values": {"openstackAuthUrl": "https://keystone.example.org", "projectId": "p"},
            }
        },
    },
}
#: The reference renders one version only; another one is another object to nobody.
VERSIONS = {"apiVersions": {"core": "v1beta1", "infrastructure": "v1beta1"}}

#: What becomes another, by object and path, and why that is meant. Both are patterns.
MEANT = {
    ("OpenStackMachineTemplate/*", ""): "a template is named by its content, and kept",
    ("KubeadmConfigTemplate/*", ""): "a template is named by its content, and kept",
    ("MachineDeployment/*", "*Ref.name"): "machines are replaced, once",
    ("KubeadmControlPlane/*", "*"): "machines are replaced, once",
    ("Secret/*-admission-configuration", ""): "only new machines read it, and they do not",
    ("Secret/*-etcd-defrag-config", ""): "the job is this chart's own",
    ("HelmRelease/*-etcd-defrag", ""): "the job is this chart's own, in another release",
    ("Manifests/*-dashboards", ""): "dashboards come with the rest of what monitoring sees",
    ("Manifests/*-alerts", ""): "alerts come with the rest of what monitoring sees",
}


def is_meant(found: str, path: str) -> bool:
    """Whether a change is one of MEANT."""
    return any(fnmatchcase(found, one) and fnmatchcase(path, other) for one, other in MEANT)


class SwapTest(unittest.TestCase):
    def test_only_what_is_meant_becomes_another(self) -> None:
        try:
            with reference.chart() as chart:
                before = released.lasting(rendering.render(chart, VALUES))
        except reference.NotGiven as error:
            self.skipTest(str(error))
        after = released.lasting(rendering.render(rendering.CLUSTER, {**VALUES, **VERSIONS}))
        left = {
            " ".join(key): what
            for key, what in sorted(moved(before, after).items())
            if not is_meant(*key)
        }
        self.assertEqual({}, left)
        self.assertGreater(len(before), 40)
