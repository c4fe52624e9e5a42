# SPDX-License-Identifier: Apache-2.0
"""A conductor without a helm that it can run: requests are refused before anything is touched."""

from __future__ import annotations

import dataclasses
import pathlib

import fixtures

from magnum.drivers.k8s_capi_helm.helm import HelmClient
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase

MISSING = (
    "Helm cannot be run on this Magnum conductor. Ask the operator to install Helm (3.17 or later, "
    "or 4.1.1 or later) where the conductor finds it."
)
UNSUPPORTED = (
    "Helm on this Magnum conductor has an unsupported version. It is {}: supported are 3.17 and "
    "later, and 4.1.1 and later. Ask the operator to install one."
)


class TestHelmMissing(DriverCase):
    def setUp(self) -> None:
        super().setUp()
        self.place = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.useFixture(fixtures.EnvironmentVariable("PATH", str(self.place)))
        self.ports = dataclasses.replace(self.ports, helm=HelmClient(self.kube, timeout=20.0))

    def helm_is(self, text: str, mode: int = 0o755) -> None:
        path = self.place / "helm"
        path.write_text(text)
        path.chmod(mode)

    def refused(self, words: str, detail: str) -> None:
        """What a tenant and the operator read of a create, which leaves nothing behind."""
        log = self.useFixture(fixtures.FakeLogger())
        cluster = self.create()
        self.assertEqual(("CREATE_FAILED", words), (cluster.status, cluster.status_reason))
        self.assertIn(detail, log.output)
        self.assertEqual(([], {}), (list(self.kube.everything()), self.cloud.credentials))
        self.delete()
        self.status_task()

    def test_there_is_none(self) -> None:
        self.refused(MISSING, f"'helm' is not an executable in PATH: {self.place}")

    def test_there_is_one_that_may_not_be_executed(self) -> None:
        self.helm_is("#!/bin/sh\necho v3.22.0\n", 0o644)
        self.refused(MISSING, f"'helm' is not an executable in PATH: {self.place}")

    def test_there_is_one_of_another_machine(self) -> None:
        self.helm_is("\x7fELF of another machine")
        self.refused(MISSING, f"{self.place}/helm: Exec format error")

    def test_there_is_one_of_another_version(self) -> None:
        for number, version in enumerate(("v3.16.4", "v4.1.0")):
            self.helm_is(f"#!/bin/sh\n{'#' * number}\necho {version}\n")
            self.refused(UNSUPPORTED.format(version), f"helm version prints '{version}'")
