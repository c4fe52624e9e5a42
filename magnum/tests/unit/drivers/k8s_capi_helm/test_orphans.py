# SPDX-License-Identifier: Apache-2.0
"""While a machine is left, something on it could make load balancers again: they stay."""

from __future__ import annotations

import dataclasses
import types
from typing import Any

import testtools

from magnum.drivers.k8s_capi_helm.cloud.access.services import Services
from magnum.drivers.k8s_capi_helm.cloud.resources.orphans import Orphans
from magnum.drivers.k8s_capi_helm.model import secrets
from magnum.drivers.k8s_capi_helm.reconcile.deletion import orphans
from magnum.tests.unit.drivers.k8s_capi_helm import builders
from magnum.tests.unit.drivers.k8s_capi_helm.fakes import FakeOpenStack

OWNER = secrets.Owner(builders.RELEASE, builders.NAMESPACE, "p1", "u1", "c1")


class TestInTheWay(testtools.TestCase):
    def test_only_after_the_last_machine(self) -> None:
        openstack = FakeOpenStack("p1")
        openstack.leave("load_balancers", name=f"kube_service_{builders.RELEASE}_default_web")
        cloud: Any = types.SimpleNamespace(remains=Orphans(Services(openstack)))
        look = builders.observed()
        self.assertEqual("", orphans.delete_orphans(look, OWNER, lambda: cloud))
        self.assertEqual([], openstack.asked)
        last = dataclasses.replace(look, machines=())
        self.assertIn("load balancer kube_", orphans.delete_orphans(last, OWNER, lambda: cloud))
