# SPDX-License-Identifier: Apache-2.0
"""Networks, subnets and a floating IP: which one is meant, and whether it can be used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from magnum.drivers.k8s_capi_helm.cloud.preflight.message import listed, quoted
from magnum.drivers.k8s_capi_helm.model import CloudFacts, ClusterRequest, Network, Subnet

_Either = TypeVar("_Either", Network, Subnet)
#: One IPv4 and one IPv6 subnet are what the OpenStack provider takes of a network.
_MOST_SUBNETS = 2


def references(name: str | None, found: Iterable[_Either] | None, project_id: str) -> list[_Either]:
    """Those of that id, else of that name; the project's own before others that it sees."""
    known = list(found or ())
    meant = [one for one in known if one.id == name] or [one for one in known if one.name == name]
    return [one for one in meant if one.project_id == project_id] or meant


def external(name: str, found: Iterable[Network] | None, project_id: str) -> list[Network]:
    """The same among external networks only."""
    return references(name, [one for one in found or () if one.external], project_id)


def single(meant: list[_Either]) -> str | None:
    """Its id if there is exactly one."""
    return meant[0].id if len(meant) == 1 else None


def matches(
    texts: Mapping[str, str], found: Iterable[Network] | None, project_id: str
) -> dict[str, tuple[str, ...]] | None:
    """Ids of all that each name of a label stands for; None where nobody was told.

    :param texts: what to look for, a name or an id, by the label's name.
    """
    if found is None:
        return None
    known = list(found)
    return {
        name: tuple(one.id for one in references(text, known, project_id))
        for name, text in texts.items()
    }


def network_problems(request: ClusterRequest, facts: CloudFacts) -> Iterator[str]:
    """Networks and subnets that are not there, not unique, or not what they have to be."""
    if facts.networks is None:
        return
    project, name = request.project_id, request.external_network
    if (
        name
        and not external(name, facts.networks, project)
        and references(name, facts.networks, "")
    ):
        yield (
            "The external network of the cluster template is not an external network. The network "
            f"is {quoted(name)}: choose one that 'openstack network list --external' shows."
        )
    elif name:
        yield from _one("external network", name, external(name, facts.networks, project))
    if request.fixed_network:
        fixed = references(request.fixed_network, facts.networks, project)
        yield from _one("network", request.fixed_network, fixed)
        if len(fixed) == 1:
            yield from _subnets_of(fixed[0], request)
    yield from _subnet_problems(request, facts)
    extras = [request.labels, *(one.labels for one in request.node_groups if one.labels)]
    names = dict.fromkeys(name for labels in extras for name in labels.extra_network_names)
    yield from extra_network_problems(names, facts.extra_networks)


def extra_network_problems(
    names: Iterable[str], found: Mapping[str, tuple[str, ...]] | None
) -> Iterator[str]:
    """Further networks of workers that are not there, or not unique.

    :param found: ids of all that a name stands for; None: not asked.
    """
    where = " of label 'extra_network_names'"
    for name in names if found is not None else ():
        yield from _unique("network", name, (found or {}).get(name, ()), where)


def address_problems(request: ClusterRequest, facts: CloudFacts) -> Iterator[str]:
    """A floating IP for the Kubernetes API that is not there, not the project's, or taken."""
    address = request.labels.api_server_floating_ip
    if not address or facts.floating_ips is None:
        return
    start = "Label 'api_server_floating_ip' names"
    mine = [one for one in facts.floating_ips if one.project_id == request.project_id]
    if not mine:
        yield (
            f"{start} no floating IP of this project. The value is {quoted(address)}: give one "
            "that 'openstack floating ip list' shows, or leave the label out to get a new one."
        )
    elif any(one.in_use for one in mine):
        yield (
            f"{start} a floating IP that is in use. The value is {quoted(address)}: free it with "
            f"'openstack floating ip unset --port {address}', or give another one."
        )


def _subnets_of(network: Network, request: ClusterRequest) -> Iterator[str]:
    name = quoted(request.fixed_network or "")
    if not network.subnets:
        yield f"The network has no subnet, so nodes get no address. Create one in network {name}."
    elif len(network.subnets) > _MOST_SUBNETS and not request.fixed_subnet:
        yield (
            f"The network has {len(network.subnets)} subnets, and none is chosen. Name the one for "
            f"the nodes of network {name} with --fixed-subnet."
        )


def _subnet_problems(request: ClusterRequest, facts: CloudFacts) -> Iterator[str]:
    if not request.fixed_subnet or facts.subnets is None:
        return
    meant = references(request.fixed_subnet, facts.subnets, request.project_id)
    yield from _one("subnet", request.fixed_subnet, meant)
    if len(meant) == 1 and facts.fixed_network_id not in (None, meant[0].network_id):
        yield (
            "The subnet does not belong to the network. The subnet is "
            f"{quoted(request.fixed_subnet)}, and the network {quoted(request.fixed_network or '')}"
            ". Choose a subnet of this network, or name the subnet only."
        )


def _one(kind: str, name: str, meant: list[_Either]) -> Iterator[str]:
    yield from _unique(kind, name, tuple(one.id for one in meant))


def _unique(kind: str, name: str, ids: tuple[str, ...], where: str = "") -> Iterator[str]:
    """
    :param where: the label that has the name; "" for a field of its own.
    """
    if not ids:
        yield (
            f"The {kind}{where} does not exist. It is named {quoted(name)}: give the name or id of "
            "an existing one."
        )
    elif len(ids) > 1:
        yield (
            f"The name of the {kind}{where} is not unique. {len(ids)} are named {quoted(name)} "
            f"({listed(ids)}): give the id."
        )
