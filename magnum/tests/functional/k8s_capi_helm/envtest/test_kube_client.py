# SPDX-License-Identifier: Apache-2.0
"""The client of the management cluster on a real kube-apiserver."""

from __future__ import annotations

import testtools

from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.tests.functional.k8s_capi_helm import envtest
from magnum.tests.unit.drivers.k8s_capi_helm.suites import kube_client as suite


class TestKubeClient(suite.KubeClientTests, testtools.TestCase):
    """The promises, kept by the real client."""

    def setUp(self) -> None:
        super().setUp()
        self.kube = KubeClient(envtest.kubeconfig())
