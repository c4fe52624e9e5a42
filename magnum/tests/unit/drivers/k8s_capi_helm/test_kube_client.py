# SPDX-License-Identifier: Apache-2.0
"""The client of the management cluster: its promises in memory, its bounds on a wire."""

from __future__ import annotations

import testtools

from magnum.tests.unit.drivers.k8s_capi_helm.fakes import FakeKube
from magnum.tests.unit.drivers.k8s_capi_helm.suites import kube_client as suite


class TestFakeKube(suite.KubeClientTests, testtools.TestCase):
    """The cluster in memory keeps the promises of the real client."""

    def setUp(self) -> None:
        super().setUp()
        self.kube = FakeKube()
        self.kube.unserved.add(suite.ABSENT)
