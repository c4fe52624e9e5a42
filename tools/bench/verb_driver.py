# SPDX-License-Identifier: Apache-2.0
"""This driver as the benchmark of a verb has it: with the unit tests' OpenStack, in memory.

Images, networks and server groups have ids that the charts take.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
from typing import Any
import uuid

import magnum.conf
from magnum.drivers.k8s_capi_helm import driver
from magnum.drivers.k8s_capi_helm.model import ApplicationCredential
from magnum.drivers.k8s_capi_helm.reconcile.process import clients

CONF = magnum.conf.CONF
_CASES: Any = importlib.import_module("magnum.tests.unit.drivers.k8s_capi_helm.driver_case")
_IMAGE = "2b8a4d0a-6d3c-4a7f-8d27-3f0f2f4a9b01"
_NETWORK = "9f1f4a0e-6d3c-4a7f-8d27-3f0f2f4a9b01"


class OpenStack(_CASES.fakes.FakeOpenStack):  # type: ignore[misc]
    """Its services."""

    def _create_server_group(self, **wanted: str) -> Any:
        made = super()._create_server_group(**wanted)
        made.id = str(uuid.uuid4())
        return made


class Cloud(_CASES.FakeCloud):  # type: ignore[misc]
    """That OpenStack, which accepts the credentials of all clusters of a fleet."""

    def __init__(self) -> None:
        super().__init__()
        self.images = {"ubuntu-kube": (_IMAGE, _CASES.builders.VERSION)}
        self.external = _NETWORK
        self.openstack = OpenStack()

    def accepts(self, credential: ApplicationCredential) -> bool:
        """Whether Keystone accepts a credential."""
        return True


@functools.cache
def of_process() -> clients.Clients:
    """The clients of this process; helm and the management cluster are real.

    To be called once before there are threads, of which each would make some.
    """
    return dataclasses.replace(clients.build(CONF), cloud=Cloud().seen_by)


class Driver(driver.Driver):
    """The driver, with such a cloud."""

    def __init__(self) -> None:
        super().__init__(lambda settings: of_process())
