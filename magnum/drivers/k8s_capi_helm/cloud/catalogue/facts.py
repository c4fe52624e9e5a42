# SPDX-License-Identifier: Apache-2.0
"""Cloud facts of one request: each name is resolved once, as its project sees it.

What was resolved when somebody asked for it is taken as it was then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
import dataclasses
from typing import Any, TypeVar

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.cloud.access.services import Services
from magnum.drivers.k8s_capi_helm.cloud.catalogue import capabilities, compute, images, networks
from magnum.drivers.k8s_capi_helm.cloud.preflight import capabilities as preflight_capabilities
from magnum.drivers.k8s_capi_helm.cloud.preflight import networks as preflight_networks
from magnum.drivers.k8s_capi_helm.model import (
    CloudCapability,
    CloudFacts,
    ClusterRequest,
    Flavor,
    NodeGroupRequest,
    ResolvedNames,
)

LOG = logging.getLogger(__name__)
_Answer = TypeVar("_Answer")


def of_cluster(
    services: Services, request: ClusterRequest, lookup: ResolvedNames, refusals: list[str]
) -> CloudFacts:
    """What a whole cluster needs, but for Keystone's URL.

    :param refusals: gets what a service says instead of an answer.
    :raises errors.DriverError: Glance or Nova says no, or a service does not answer.
    """
    nodegroups = (request.control_plane, *request.node_groups)
    own_images = [nodegroup.image for nodegroup in nodegroups if nodegroup.image]
    facts = _software(
        services, request, lookup, refusals, own_images, preflight_capabilities.of_cluster(request)
    )
    facts = _with_networks(services, request, lookup, refusals, facts)
    return dataclasses.replace(
        facts,
        flavors=_flavors(services, request, lookup, [nodegroup.flavor for nodegroup in nodegroups]),
    )


def of_software(
    services: Services, request: ClusterRequest, lookup: ResolvedNames, refusals: list[str]
) -> CloudFacts:
    """What an upgrade needs; arguments as of :func:`of_cluster`."""
    nodegroups = (request.control_plane, *request.node_groups)
    facts = _software(
        services, request, lookup, refusals, [], preflight_capabilities.of_machines(request)
    )
    flavors = {nodegroup.flavor: Flavor("", nodegroup.flavor, 0, 0, 0) for nodegroup in nodegroups}
    return dataclasses.replace(facts, flavors=flavors)


def of_new_nodegroup(
    services: Services,
    request: ClusterRequest,
    nodegroup: NodeGroupRequest,
    lookup: ResolvedNames,
    refusals: list[str],
) -> CloudFacts:
    """What a new nodegroup needs; arguments as of :func:`of_cluster`.

    :param lookup: further networks by the names that its cluster has for them.
    """
    project = request.project_id
    names = (nodegroup.labels or request.labels).extra_network_names
    texts = {name: lookup.extra_networks.get(name, name) for name in names}
    references = texts.values()
    visible = (
        answer_or_refusal(refusals, networks.networks, services, references, project)
        if names
        else None
    )
    return CloudFacts(
        image_id="",
        kubernetes_version="",
        os_distro="",
        auth_url="",
        flavors=compute.flavors(services, [nodegroup.flavor], project),
        images=images.images(services, [nodegroup.image] if nodegroup.image else [], project),
        networks=visible,
        extra_networks=preflight_networks.matches(texts, visible, project),
        capabilities=_available(
            services,
            refusals,
            preflight_capabilities.of_nodegroup_labels(nodegroup, request),
            project,
        ),
    )


def _software(
    services: Services,
    request: ClusterRequest,
    lookup: ResolvedNames,
    refusals: list[str],
    own_images: Iterable[str],
    requirements: Iterable[preflight_capabilities.Requirement],
) -> CloudFacts:
    """Images and what labels name; the rest is for others to fill in."""
    project, texts = request.project_id, {request.image, *own_images}
    missing = images.images(services, texts - lookup.images.keys(), project)
    resolved_images = {
        **{text: lookup.images[text] for text in texts & lookup.images.keys()},
        **missing,
    }
    image = resolved_images.get(request.image)
    types = answer_or_refusal(refusals, capabilities.volume_types, services, project)
    other_requirements = [
        requirement
        for requirement in requirements
        if requirement[2] is not CloudCapability.VOLUME_TYPE
    ]
    available = _available(services, refusals, other_requirements, project)
    return CloudFacts(
        image_id=image.id if image else "",
        kubernetes_version=image.kubernetes_version if image else "",
        os_distro=image.os_distro if image else "",
        flavors={},
        auth_url="",
        volume_types=types or (),
        images=resolved_images,
        capabilities=available
        if types is None
        else {**available, CloudCapability.VOLUME_TYPE: types},
    )


def _flavors(
    services: Services, request: ClusterRequest, lookup: ResolvedNames, references: Iterable[str]
) -> Mapping[str, Flavor]:
    texts = set(references)
    missing = texts - lookup.flavors.keys()
    looked_up = compute.flavors(services, missing, request.project_id) if missing else {}
    return {**looked_up, **{text: lookup.flavors[text] for text in texts & lookup.flavors.keys()}}


def _with_networks(
    services: Services,
    request: ClusterRequest,
    lookup: ResolvedNames,
    refusals: list[str],
    facts: CloudFacts,
) -> CloudFacts:
    """*facts* with the networks, and the subnet that a cluster is on."""
    if lookup.external_network_id:
        return dataclasses.replace(
            facts,
            external_network_id=lookup.external_network_id,
            fixed_network_id=lookup.fixed_network_id or None,
            fixed_subnet_id=lookup.fixed_subnet_id or None,
            extra_networks={
                text: (nodegroup,) for text, nodegroup in lookup.extra_networks.items()
            },
        )
    project, fixed = request.project_id, request.fixed_network
    extras = {
        name: name
        for labels in (request.labels, *(nodegroup.labels for nodegroup in request.node_groups))
        for name in (labels.extra_network_names if labels else ())
    }
    references = sorted({name for name in (request.external_network, fixed, *extras) if name})
    visible = answer_or_refusal(refusals, networks.networks, services, references, project)
    own = [request.fixed_subnet] if request.fixed_subnet else []
    subnets = answer_or_refusal(refusals, networks.subnets, services, own, project) if own else None
    external = preflight_networks.external(request.external_network, visible, project)
    network = preflight_networks.references(fixed or "", visible, project)
    subnet = preflight_networks.references(request.fixed_subnet or "", subnets, project)
    return dataclasses.replace(
        facts,
        networks=visible,
        subnets=subnets,
        external_network_id=preflight_networks.single(external),
        fixed_network_id=preflight_networks.single(network),
        fixed_subnet_id=preflight_networks.single(subnet),
        extra_networks=preflight_networks.matches(extras, visible, project),
    )


def _available(
    services: Services,
    refusals: list[str],
    requirements: Iterable[preflight_capabilities.Requirement],
    project_id: str,
) -> dict[CloudCapability, tuple[str, ...]]:
    """What there is of everything that labels name, each kind asked for once."""
    available = {}
    for capability in sorted(preflight_capabilities.capability_kinds(requirements)):
        items = answer_or_refusal(
            refusals, capabilities.available, services, capability, project_id
        )
        if items is not None:
            available[capability] = items
    return available


def answer_or_refusal(
    refusals: list[str], question: Callable[..., _Answer], *args: Any
) -> _Answer | None:
    """The answer; None where the service says no, and then its sentence is kept."""
    try:
        return question(*args)
    except errors.CloudRefused as error:
        LOG.warning("Preflight: %s %s", error, error.detail)
        refusals.append(str(error))
        return None
