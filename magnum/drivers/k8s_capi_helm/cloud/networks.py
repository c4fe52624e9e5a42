# SPDX-License-Identifier: Apache-2.0
"""Neutron's networks and subnets by name or id, one request for all; floating IPs by address."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from oslo_utils import uuidutils

from magnum.drivers.k8s_capi_helm.cloud import visibility
from magnum.drivers.k8s_capi_helm.cloud.services import Services, translate_errors
from magnum.drivers.k8s_capi_helm.model import FloatingIp, Network, Subnet


def networks(services: Services, wanted: Iterable[str], project_id: str) -> tuple[Network, ...]:
    """All networks that have one of these names or ids and that a project sees, whoever asks.

    :raises errors.CloudRefused: Neutron says no.
    :raises errors.CloudUnreachable: Neutron does not answer.
    """
    with translate_errors("Neutron", "networks"):
        listed = list(_named(services.neutron().networks, wanted))
        reached = visibility.reached_networks(
            services, {str(one.id): str(one.project_id or "") for one in listed}, project_id
        )
        return tuple(
            Network(
                id=str(one.id),
                name=str(one.name or ""),
                project_id=str(one.project_id or ""),
                external=bool(one.is_router_external),
                subnets=tuple(one.subnet_ids or ()),
            )
            for one in listed
            if str(one.id) in reached
        )


def subnets(services: Services, wanted: Iterable[str], project_id: str) -> tuple[Subnet, ...]:
    """All subnets that have one of these names or ids and that a project sees, whoever asks.

    :raises errors.CloudRefused: Neutron says no.
    :raises errors.CloudUnreachable: Neutron does not answer.
    """
    with translate_errors("Neutron", "subnets"):
        listed = list(_named(services.neutron().subnets, wanted))
        # A subnet is seen with its network.
        others = {str(one.network_id): "" for one in listed if one.project_id != project_id}
        reached = visibility.reached_networks(services, others, project_id)
        return tuple(
            Subnet(
                id=str(one.id),
                name=str(one.name or ""),
                network_id=str(one.network_id),
                project_id=str(one.project_id or ""),
            )
            for one in listed
            if one.project_id == project_id or str(one.network_id) in reached
        )


def floating_ips(services: Services, address: str) -> tuple[FloatingIp, ...]:
    """The floating IPs of this address that the person sees: one or none, mostly.

    :raises errors.CloudRefused: Neutron says no.
    :raises errors.CloudUnreachable: Neutron does not answer.
    """
    with translate_errors("Neutron", f"floating IP '{address}'"):
        return tuple(
            FloatingIp(
                address=str(one.floating_ip_address),
                project_id=str(one.project_id or ""),
                in_use=bool(one.port_id),
            )
            for one in services.neutron().ips(floating_ip_address=address)
        )


def _named(question: Callable[..., Iterable[Any]], wanted: Iterable[str]) -> Iterator[Any]:
    """Each once. Neutron takes several values of one filter as alternatives; a name may look like
    an id, so that these are asked for as both.
    """
    names, seen = sorted(set(wanted)), set[str]()
    ids = [one for one in names if uuidutils.is_uuid_like(one)]
    queries = [{"name": names}] if names else []
    for query in [{"id": ids}, *queries] if ids else queries:
        for one in question(**query):
            if str(one.id) not in seen:
                seen.add(str(one.id))
                yield one
