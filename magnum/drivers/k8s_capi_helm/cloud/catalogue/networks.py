# SPDX-License-Identifier: Apache-2.0
"""Find Neutron networks and subnets by name or id with one request; floating IPs by address."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
import contextlib
from typing import Any

import openstack.exceptions
from oslo_utils import uuidutils

from magnum.drivers.k8s_capi_helm.cloud.access.services import Services, translate_errors
from magnum.drivers.k8s_capi_helm.cloud.catalogue import visibility
from magnum.drivers.k8s_capi_helm.model import FloatingIp, Network, Subnet


def networks(services: Services, references: Iterable[str], project_id: str) -> tuple[Network, ...]:
    """All networks with one of these names or ids that a project sees, whatever the caller's role.

    :raises errors.CloudRefused: Neutron says no.
    :raises errors.CloudUnreachable: Neutron does not answer.
    """
    with translate_errors("Neutron", "networks"):
        network_objects = list(_named(services.neutron(), "network", references))
        reached = visibility.reached_networks(
            services,
            {str(network.id): str(network.project_id or "") for network in network_objects},
            project_id,
        )
        return tuple(
            Network(
                id=str(network.id),
                name=str(network.name or ""),
                project_id=str(network.project_id or ""),
                external=bool(network.is_router_external),
                subnets=tuple(network.subnet_ids or ()),
            )
            for network in network_objects
            if str(network.id) in reached
        )


def subnets(services: Services, references: Iterable[str], project_id: str) -> tuple[Subnet, ...]:
    """All subnets with one of these names or ids that a project sees, whatever the caller's role.

    :raises errors.CloudRefused: Neutron says no.
    :raises errors.CloudUnreachable: Neutron does not answer.
    """
    with translate_errors("Neutron", "subnets"):
        subnet_objects = list(_named(services.neutron(), "subnet", references))
        # A subnet is seen with its network.
        others = {
            str(subnet.network_id): ""
            for subnet in subnet_objects
            if subnet.project_id != project_id
        }
        reached = visibility.reached_networks(services, others, project_id)
        return tuple(
            Subnet(
                id=str(subnet.id),
                name=str(subnet.name or ""),
                network_id=str(subnet.network_id),
                project_id=str(subnet.project_id or ""),
            )
            for subnet in subnet_objects
            if subnet.project_id == project_id or str(subnet.network_id) in reached
        )


def floating_ips(services: Services, address: str) -> tuple[FloatingIp, ...]:
    """The floating IPs of this address that the person sees: one or none, mostly.

    :raises errors.CloudRefused: Neutron says no.
    :raises errors.CloudUnreachable: Neutron does not answer.
    """
    with translate_errors("Neutron", f"floating IP '{address}'"):
        return tuple(
            FloatingIp(
                address=str(floating_ip.floating_ip_address),
                project_id=str(floating_ip.project_id or ""),
                in_use=bool(floating_ip.port_id),
            )
            for floating_ip in services.neutron().ips(floating_ip_address=address)
        )


def _named(neutron: Any, resource: str, references: Iterable[str]) -> Iterator[Any]:
    """Each once. Neutron takes several names as alternatives; one may look like an id, so that it
    is asked for as both.

    Each id is a request, because openstacksdk 4.4 does not hand ids of networks on as a filter.

    :param resource: ``network`` or ``subnet``.
    """
    names = sorted(set(references))
    found = {}
    for reference in filter(uuidutils.is_uuid_like, names):
        with contextlib.suppress(openstack.exceptions.NotFoundException):
            obj = getattr(neutron, f"get_{resource}")(reference)
            found[str(obj.id)] = obj
    listed = getattr(neutron, f"{resource}s")(name=names) if names else ()
    found |= {str(obj.id): obj for obj in listed}
    yield from found.values()
