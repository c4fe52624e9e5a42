# SPDX-License-Identifier: Apache-2.0
"""This driver as a benchmark's conductor has it: with an OpenStack that knows of no fault."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import magnum.conf
from magnum.drivers.k8s_capi_helm import driver
from magnum.drivers.k8s_capi_helm.model import ApplicationCredential
from magnum.drivers.k8s_capi_helm.reconcile.process import clients

CONF = magnum.conf.CONF


class Cloud:
    """What passes over clusters without a fault ask OpenStack; it costs nothing."""

    def accepts(self, credential: ApplicationCredential) -> bool:
        """Whether Keystone accepts a credential."""
        return True

    def is_balancer_failed(self, name: str, project_id: str) -> bool:
        """Asked about a load balancer that is awaited for long, as on a slow host."""
        return False


@functools.cache
def of_process() -> clients.Clients:
    """The clients of this process; to be called once before there are threads."""
    cloud: Any = Cloud()
    return dataclasses.replace(clients.build(CONF), cloud=lambda context: cloud)


class Driver(driver.Driver):
    """The driver, with such a cloud."""

    def __init__(self) -> None:
        super().__init__(lambda settings: of_process())
