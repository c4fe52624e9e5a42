# SPDX-License-Identifier: Apache-2.0
"""The Lease of a release on a real kube-apiserver."""

from __future__ import annotations

from typing import Any

import testtools

from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.tests.functional.k8s_capi_helm import envtest
from magnum.tests.unit.drivers.k8s_capi_helm.suites import lock, release_lease, rolling_upgrade


class TestRecord(release_lease.RecordTests, testtools.TestCase):
    """Nothing that was written is lost."""

    def setUp(self) -> None:
        super().setUp()
        self.kube = KubeClient(envtest.kubeconfig())


class TestLock(lock.LockTests, testtools.TestCase):
    """There is one holder."""

    def setUp(self) -> None:
        super().setUp()
        self.kube = KubeClient(envtest.kubeconfig())


class TestMoreKeys(rolling_upgrade.MoreKeysTests, testtools.TestCase):
    """Conductors of this version and of a newer one, by turns."""

    def management(self) -> Any:
        return KubeClient(envtest.kubeconfig())


class TestOtherFormat(rolling_upgrade.OtherFormatTests, testtools.TestCase):
    """The record of a newer version whose format this one cannot read."""

    def management(self) -> Any:
        return KubeClient(envtest.kubeconfig())
