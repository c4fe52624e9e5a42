# SPDX-License-Identifier: Apache-2.0
"""All preflight checks, in the order in which a tenant fixes the problems."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from magnum.drivers.k8s_capi_helm.cloud.preflight import capabilities
from magnum.drivers.k8s_capi_helm.cloud.preflight.capabilities import capability_problems
from magnum.drivers.k8s_capi_helm.cloud.preflight.machines import (
    flavor_problems,
    image_problems,
    keypair_problems,
    MachineRequirements,
    own_image_problems,
)
from magnum.drivers.k8s_capi_helm.cloud.preflight.message import in_quotes
from magnum.drivers.k8s_capi_helm.cloud.preflight.networks import (
    address_problems,
    extra_network_problems,
    network_problems,
)
from magnum.drivers.k8s_capi_helm.cloud.preflight.quota_usage import (
    cluster_usage,
    machine_usage,
    new_nodegroup,
)
from magnum.drivers.k8s_capi_helm.model import (
    CloudFacts,
    ClusterRequest,
    NodeGroupRequest,
    Quota,
    QuotaKey,
    QuotaResource,
)
from magnum.drivers.k8s_capi_helm.values.tree import live

#: A label of something that runs cannot be changed.
_WAY_OUT = (
    " Choose a template that names another one. A label of the cluster itself cannot be changed: "
    "for one, ask the cloud's operator to offer this value again."
)
_WAY_OUT_OF_GROUP = (
    " The label of a nodegroup cannot be changed: delete the nodegroup and create another one, "
    "or ask the cloud's operator to offer this value again."
)
_ORDER = {resource: place for place, resource in enumerate(QuotaResource)}


def problems(
    request: ClusterRequest, facts: CloudFacts, requirements: MachineRequirements
) -> list[str]:
    """What keeps a new cluster from being built, a sentence or two each.

    What names the wrong thing comes first: the tenant can mend it alone. Quotas come last. Of
    what the facts do not hold, because nobody asked or nobody could tell, nothing is said.
    """
    return [
        *facts.refusals,
        *image_problems(request, facts, requirements),
        *own_image_problems(request.node_groups, facts),
        *capability_problems(capabilities.of_cluster(request), facts),
        *flavor_problems(
            (request.control_plane, *request.node_groups), request, facts, requirements
        ),
        *keypair_problems(request, facts),
        *network_problems(request, facts),
        *address_problems(request, facts),
        *quota_problems(cluster_usage(request, facts.flavors), facts.quotas),
    ]


def software_problems(
    request: ClusterRequest,
    facts: CloudFacts,
    requirements: MachineRequirements,
    nodegroups: Collection[str],
) -> list[str]:
    """The part of it that an upgrade changes: the image, and what labels say of its machines.

    :param nodegroups: nodegroups that it replaces, and :data:`change.CONTROL_PLANE` where it does;
        what others were made with is nobody's request.
    """
    problem_texts = [*facts.refusals, *image_problems(request, facts, requirements)]
    common = capabilities.of_labels(request)
    if live.CONTROL_PLANE in nodegroups:
        problem_texts += capability_problems(common, facts, way_out=_WAY_OUT)
    for nodegroup in request.node_groups:
        if nodegroup.name in nodegroups:
            capabilities_of_nodegroup = capabilities.of_nodegroup_labels(nodegroup, request)
            if live.CONTROL_PLANE not in nodegroups:
                inherited = [
                    requirement
                    for requirement in capabilities_of_nodegroup
                    if requirement in common
                ]
                problem_texts += capability_problems(inherited, facts, way_out=_WAY_OUT)
            own = [
                requirement
                for requirement in capabilities_of_nodegroup
                if requirement not in common
            ]
            problem_texts += capability_problems(own, facts, nodegroup.name, _WAY_OUT_OF_GROUP)
    return problem_texts


def nodegroup_problems(
    nodegroup: NodeGroupRequest,
    request: ClusterRequest,
    facts: CloudFacts,
    requirements: MachineRequirements,
) -> list[str]:
    """What keeps a new nodegroup of a running cluster from being built."""
    labels = nodegroup.labels or request.labels
    usage = machine_usage([new_nodegroup(nodegroup, request)], facts.flavors)
    return [
        *facts.refusals,
        *own_image_problems((nodegroup,), facts),
        *capability_problems(capabilities.of_nodegroup_labels(nodegroup, request), facts),
        *flavor_problems((nodegroup,), request, facts, requirements),
        *extra_network_problems(labels.extra_network_names, facts.extra_networks),
        *quota_problems(usage, facts.quotas),
    ]


def quota_problems(usage: Mapping[QuotaKey, int], quotas: Mapping[QuotaKey, Quota]) -> list[str]:
    """What the project's quotas leave no room for: all of it in one sentence, with its numbers."""
    shortages = [
        (key, amount)
        for key, amount in sorted(usage.items(), key=_sort_key)
        if key in quotas and amount > quotas[key].free
    ]
    if not shortages:
        return []
    kinds = dict.fromkeys(
        str(key if isinstance(key, QuotaResource) else key[0]) for key, _ in shortages
    )
    details = (
        f"{_words(key)}: {amount} needed, {quotas[key].free} free of {quotas[key].limit}"
        for key, amount in shortages
    )
    return [
        f"The project's quota is too small for {', '.join(kinds)}. {'; '.join(details)}. Delete "
        "what is no longer needed, or ask the cloud's operator for a higher quota."
    ]


def _words(key: QuotaKey) -> str:
    return str(key) if isinstance(key, QuotaResource) else f"{key[0]} of type {in_quotes(key[1])}"


def _sort_key(item: tuple[QuotaKey, int]) -> tuple[int, str]:
    key = item[0]
    return (_ORDER[key], "") if isinstance(key, QuotaResource) else (_ORDER[key[0]], key[1])
