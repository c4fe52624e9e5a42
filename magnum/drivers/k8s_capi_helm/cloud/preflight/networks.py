# SPDX-License-Identifier: Apache-2.0
"""Check networks, subnets and floating IP: resolve each, and whether it is usable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from magnum.drivers.k8s_capi_helm.cloud.preflight.message import in_quotes, joined_names
from magnum.drivers.k8s_capi_helm.model import CloudFacts, ClusterRequest, Network, Subnet

_Either = TypeVar("_Either", Network, Subnet)
#: One IPv4 and one IPv6 subnet are what the OpenStack provider takes of a network.
_MOST_SUBNETS = 2


def references(
    name: str | None, objects: Iterable[_Either] | None, project_id: str
) -> list[_Either]:
    """Those of that id, else of that name; the project's own before others that it sees."""
    candidates = list(objects or ())
    matches = [obj for obj in candidates if obj.id == name] or [
        obj for obj in candidates if obj.name == name
    ]
    return [obj for obj in matches if obj.project_id == project_id] or matches


def external(name: str, networks: Iterable[Network] | None, project_id: str) -> list[Network]:
    """The same among external networks only."""
    return references(name, [network for network in networks or () if network.external], project_id)


def single(objects: list[_Either]) -> str | None:
    """Its id if there is exactly one."""
    return objects[0].id if len(objects) == 1 else None


def matches(
    texts: Mapping[str, str], networks: Iterable[Network] | None, project_id: str
) -> dict[str, tuple[str, ...]] | None:
    """Ids of all matches for each name in a label; None if they are not known.

    :param texts: what to look for, a name or an id, by the label's name.
    """
    if networks is None:
        return None
    candidates = list(networks)
    return {
        name: tuple(network.id for network in references(text, candidates, project_id))
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
            f"is {in_quotes(name)}: choose one that 'openstack network list --external' shows."
        )
    elif name:
        yield from _one("external network", name, external(name, facts.networks, project))
    if request.fixed_network:
        fixed = references(request.fixed_network, facts.networks, project)
        yield from _one("network", request.fixed_network, fixed)
        if len(fixed) == 1:
            yield from _subnets_of(fixed[0], request)
    yield from _subnet_problems(request, facts)
    extras = [
        request.labels,
        *(nodegroup.labels for nodegroup in request.node_groups if nodegroup.labels),
    ]
    names = dict.fromkeys(name for labels in extras for name in labels.extra_network_names)
    yield from extra_network_problems(names, facts.extra_networks)


def extra_network_problems(
    names: Iterable[str], ids_by_name: Mapping[str, tuple[str, ...]] | None
) -> Iterator[str]:
    """Further networks of workers that are not there, or not unique.

    :param ids_by_name: ids of all that a name stands for; None: not asked.
    """
    of_label = " of label 'extra_network_names'"
    for name in names if ids_by_name is not None else ():
        yield from _unique("network", name, (ids_by_name or {}).get(name, ()), of_label)


def address_problems(request: ClusterRequest, facts: CloudFacts) -> Iterator[str]:
    """A floating IP for the Kubernetes API that is not there, not the project's, or taken."""
    address = request.labels.api_server_floating_ip
    if not address or facts.floating_ips is None:
        return
    subject = "Label 'api_server_floating_ip' names"
    own_addresses = [
        floating_ip
        for floating_ip in facts.floating_ips
        if floating_ip.project_id == request.project_id
    ]
    if not own_addresses:
        yield (
            f"{subject} no floating IP of this project. The value is {in_quotes(address)}: give "
            "one that 'openstack floating ip list' shows, or leave the label out to get a new one."
        )
    elif any(floating_ip.in_use for floating_ip in own_addresses):
        yield (
            f"{subject} a floating IP that is in use. The value is {in_quotes(address)}: free it "
            f"with 'openstack floating ip unset --port {address}', or give another one."
        )


def _subnets_of(network: Network, request: ClusterRequest) -> Iterator[str]:
    name = in_quotes(request.fixed_network or "")
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
    matching_subnets = references(request.fixed_subnet, facts.subnets, request.project_id)
    yield from _one("subnet", request.fixed_subnet, matching_subnets)
    if len(matching_subnets) == 1 and facts.fixed_network_id not in (
        None,
        matching_subnets[0].network_id,
    ):
        yield (
            "The subnet does not belong to the network. The subnet is "
            f"{in_quotes(request.fixed_subnet)}, and the network "
            f"{in_quotes(request.fixed_network or '')}. Choose a subnet of this network, or name "
            "the subnet only."
        )


def _one(kind: str, name: str, matching: list[_Either]) -> Iterator[str]:
    yield from _unique(kind, name, tuple(obj.id for obj in matching))


def _unique(kind: str, name: str, ids: tuple[str, ...], of_label: str = "") -> Iterator[str]:
    """
    :param of_label: the label that has the name; "" for a field of its own.
    """
    if not ids:
        yield (
            f"The {kind}{of_label} does not exist. It is named {in_quotes(name)}: give the name or "
            "id of an existing one."
        )
    elif len(ids) > 1:
        yield (
            f"The name of the {kind}{of_label} is not unique. {len(ids)} are named "
            f"{in_quotes(name)} ({joined_names(ids)}): give the id."
        )
