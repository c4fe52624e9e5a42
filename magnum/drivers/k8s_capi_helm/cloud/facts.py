# SPDX-License-Identifier: Apache-2.0
"""The facts of one request: each thing that it names looked for once, as its project sees it.

What was resolved when somebody asked for it is taken as it was then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
import dataclasses
from typing import Any, TypeVar

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.cloud import capabilities, compute, images, networks
from magnum.drivers.k8s_capi_helm.cloud.preflight import capabilities as preflight_capabilities
from magnum.drivers.k8s_capi_helm.cloud.preflight import networks as preflight_networks
from magnum.drivers.k8s_capi_helm.cloud.services import Services
from magnum.drivers.k8s_capi_helm.model import (
    CloudCapability,
    CloudFacts,
    ClusterRequest,
    Flavor,
    NodeGroupRequest,
    Resolved,
)

LOG = logging.getLogger(__name__)
_Answer = TypeVar("_Answer")


def of_cluster(
    services: Services, request: ClusterRequest, known: Resolved, refused: list[str]
) -> CloudFacts:
    """What a whole cluster needs, but for Keystone's URL.

    :param refused: gets what a service says instead of an answer.
    :raises errors.DriverError: Glance or Nova says no, or a service does not answer.
    """
    groups = (request.control_plane, *request.node_groups)
    own = [group.image for group in groups if group.image]
    facts = _software(
        services, request, known, refused, own, preflight_capabilities.of_cluster(request)
    )
    facts = _places(services, request, known, refused, facts)
    return dataclasses.replace(
        facts, flavors=_flavors(services, request, known, [one.flavor for one in groups])
    )


def of_software(
    services: Services, request: ClusterRequest, known: Resolved, refused: list[str]
) -> CloudFacts:
    """What an upgrade needs; arguments as of :func:`of_cluster`."""
    groups = (request.control_plane, *request.node_groups)
    facts = _software(
        services, request, known, refused, [], preflight_capabilities.of_machines(request)
    )
    flavors = {one.flavor: Flavor("", one.flavor, 0, 0, 0) for one in groups}
    return dataclasses.replace(facts, flavors=flavors)


def of_group(
    services: Services,
    request: ClusterRequest,
    group: NodeGroupRequest,
    known: Resolved,
    refused: list[str],
) -> CloudFacts:
    """What a new nodegroup needs; arguments as of :func:`of_cluster`.

    :param known: further networks by the names that its cluster has for them.
    """
    project = request.project_id
    extras = (group.labels or request.labels).extra_network_names
    texts = {name: known.extra_networks.get(name, name) for name in extras}
    wanted = texts.values()
    seen = (
        answer_or_refusal(refused, networks.networks, services, wanted, project) if extras else None
    )
    return CloudFacts(
        image_id="",
        kubernetes_version="",
        os_distro="",
        auth_url="",
        flavors=compute.flavors(services, [group.flavor], project),
        images=images.images(services, [group.image] if group.image else [], project),
        networks=seen,
        extra_networks=preflight_networks.matches(texts, seen, project),
        offers=_offered(
            services, refused, preflight_capabilities.of_group(group, request), project
        ),
    )


def _software(
    services: Services,
    request: ClusterRequest,
    known: Resolved,
    refused: list[str],
    own_images: Iterable[str],
    named: Iterable[preflight_capabilities.Named],
) -> CloudFacts:
    """Images and what labels name; the rest is for others to fill in."""
    project, texts = request.project_id, {request.image, *own_images}
    missing = images.images(services, texts - known.images.keys(), project)
    found = {**{text: known.images[text] for text in texts & known.images.keys()}, **missing}
    image = found.get(request.image)
    types = answer_or_refusal(refused, capabilities.volume_types, services, project)
    others = [one for one in named if one[2] is not CloudCapability.VOLUME_TYPE]
    offered = _offered(services, refused, others, project)
    return CloudFacts(
        image_id=image.id if image else "",
        kubernetes_version=image.kubernetes_version if image else "",
        os_distro=image.os_distro if image else "",
        flavors={},
        auth_url="",
        volume_types=types or (),
        images=found,
        offers=offered if types is None else {**offered, CloudCapability.VOLUME_TYPE: types},
    )


def _flavors(
    services: Services, request: ClusterRequest, known: Resolved, wanted: Iterable[str]
) -> Mapping[str, Flavor]:
    texts = set(wanted)
    missing = texts - known.flavors.keys()
    found = compute.flavors(services, missing, request.project_id) if missing else {}
    return {**found, **{text: known.flavors[text] for text in texts & known.flavors.keys()}}


def _places(
    services: Services,
    request: ClusterRequest,
    known: Resolved,
    refused: list[str],
    facts: CloudFacts,
) -> CloudFacts:
    """*facts* with the networks, and the subnet that a cluster is on."""
    if known.external_network_id:
        return dataclasses.replace(
            facts,
            external_network_id=known.external_network_id,
            fixed_network_id=known.fixed_network_id or None,
            fixed_subnet_id=known.fixed_subnet_id or None,
            extra_networks={text: (one,) for text, one in known.extra_networks.items()},
        )
    project, fixed = request.project_id, request.fixed_network
    extras = {
        name: name
        for labels in (request.labels, *(one.labels for one in request.node_groups))
        for name in (labels.extra_network_names if labels else ())
    }
    wanted = sorted({name for name in (request.external_network, fixed, *extras) if name})
    seen = answer_or_refusal(refused, networks.networks, services, wanted, project)
    own = [request.fixed_subnet] if request.fixed_subnet else []
    subnets = answer_or_refusal(refused, networks.subnets, services, own, project) if own else None
    external = preflight_networks.external(request.external_network, seen, project)
    network = preflight_networks.references(fixed or "", seen, project)
    subnet = preflight_networks.references(request.fixed_subnet or "", subnets, project)
    return dataclasses.replace(
        facts,
        networks=seen,
        subnets=subnets,
        external_network_id=preflight_networks.single(external),
        fixed_network_id=preflight_networks.single(network),
        fixed_subnet_id=preflight_networks.single(subnet),
        extra_networks=preflight_networks.matches(extras, seen, project),
    )


def _offered(
    services: Services,
    refused: list[str],
    named: Iterable[preflight_capabilities.Named],
    project_id: str,
) -> dict[CloudCapability, tuple[str, ...]]:
    """What there is of everything that labels name, each kind asked for once."""
    found = {}
    for offer in sorted(preflight_capabilities.capability_kinds(named)):
        known = answer_or_refusal(refused, capabilities.available, services, offer, project_id)
        if known is not None:
            found[offer] = known
    return found


def answer_or_refusal(
    refused: list[str], question: Callable[..., _Answer], *args: Any
) -> _Answer | None:
    """The answer; None where the service says no, and then its sentence is kept."""
    try:
        return question(*args)
    except errors.CloudRefused as error:
        LOG.warning("Preflight: %s %s", error, error.detail)
        refused.append(str(error))
        return None
