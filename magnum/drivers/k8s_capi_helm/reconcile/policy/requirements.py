# SPDX-License-Identifier: Apache-2.0
"""The operator's requirements for images and flavors."""

from __future__ import annotations

from collections.abc import Mapping

from magnum.drivers.k8s_capi_helm.cloud.preflight import machines, message
from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.model import (
    Flavor,
)
from magnum.drivers.k8s_capi_helm.model.cloud import DISTROS


def requirements(conf: Settings) -> machines.MachineRequirements:
    """What the operator and this version of the driver ask of images and flavors."""
    options = conf.capi_helm
    return machines.MachineRequirements(
        DISTROS, options.minimum_flavor_ram, options.minimum_flavor_vcpus
    )


def check_flavors(flavors: Mapping[str, Flavor], conf: Settings) -> None:
    """Refuse flavors that are too small for a node.

    :raises errors.InvalidRequest: one is below the operator's minimum.
    """
    message.refuse(list(machines.size_problems(flavors.values(), requirements(conf))))
