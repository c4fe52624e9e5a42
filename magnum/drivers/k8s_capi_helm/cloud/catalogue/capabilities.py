# SPDX-License-Identifier: Apache-2.0
"""Capabilities of a cloud: zones, volume types, load balancer providers and flavors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.cloud.access.services import Services, translate_errors
from magnum.drivers.k8s_capi_helm.cloud.catalogue import visibility
from magnum.drivers.k8s_capi_helm.model import CloudCapability

_Answer = TypeVar("_Answer")


def volume_types(services: Services, project_id: str) -> tuple[str, ...]:
    """Names of Cinder's types that a project can use, in Cinder's order.

    :raises errors.CloudRefused: Cinder says no.
    :raises errors.CloudUnreachable: Cinder does not answer.
    """
    with translate_errors("Cinder", "volume types"):
        # Asked in any other way, Cinder shows an administrator the private types of his own.
        query = {"is_public": "None"} if services.is_admin else {}
        return tuple(
            kind.name
            for kind in services.cinder().types(**query)
            if visibility.allows_volume_type(services, kind, project_id)
        )


def available(services: Services, capability: CloudCapability, project_id: str) -> tuple[str, ...]:
    """Names of everything of one kind that a project can choose.

    An id will not do: Cluster API's OpenStack provider looks for names, and takes the default
    flavor of load balancers where none has the name.

    :raises errors.CloudRefused: the service says no.
    :raises errors.CloudUnreachable: it does not answer.
    """
    if capability is CloudCapability.VOLUME_TYPE:
        return volume_types(services, project_id)
    service, list_items = _QUESTIONS[capability]
    with translate_errors(service, f"each {capability}"):
        available_items = [
            item for item in list_items(services) if getattr(item, "is_enabled", True) is not False
        ]
        return tuple(str(item.name) for item in available_items)


#: Who is asked, and how.
_QUESTIONS: dict[CloudCapability, tuple[str, Callable[[Services], Iterable[Any]]]] = {
    CloudCapability.SERVER_ZONE: ("Nova", lambda it: it.nova().availability_zones()),
    CloudCapability.VOLUME_ZONE: ("Cinder", lambda it: it.cinder().availability_zones()),
    CloudCapability.BALANCER_PROVIDER: ("Octavia", lambda it: it.octavia().providers()),
    CloudCapability.BALANCER_FLAVOR: ("Octavia", lambda it: it.octavia().flavors()),
    CloudCapability.BALANCER_ZONE: ("Octavia", lambda it: it.octavia().availability_zones()),
}


def complete(
    kind: str, names: Iterable[str], answers: Mapping[str, _Answer]
) -> Mapping[str, _Answer]:
    """*answers*, in which everything that was *names* has to be.

    :param kind: as the command line of OpenStack calls it.
    """
    for name in names:
        if name not in answers:
            raise errors.CloudRefused(
                f"The {kind} does not exist or is not visible to this project. The {kind} is "
                f"'{name}': choose one that 'openstack {kind} list' shows."
            )
    return answers
