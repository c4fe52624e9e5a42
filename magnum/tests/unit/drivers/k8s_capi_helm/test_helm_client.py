# SPDX-License-Identifier: Apache-2.0
"""Helm: the promises in memory, the words of its stderr, its Secrets, its process."""

from __future__ import annotations

import pathlib
import tempfile

import testtools

from magnum.tests.unit.drivers.k8s_capi_helm.fakes import FakeHelm, FakeKube
from magnum.tests.unit.drivers.k8s_capi_helm.suites import helm_client as suite


class TestFakeHelm(suite.HelmTests, testtools.TestCase):
    """Helm in memory keeps the promises of the real one."""

    def setUp(self) -> None:
        super().setUp()
        self.kube, self.helm = FakeKube(), FakeHelm()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.chart = suite.write_chart(pathlib.Path(directory.name) / "chart")
