# SPDX-License-Identifier: Apache-2.0
"""Requests against the provider's policy."""

from __future__ import annotations

import dataclasses
from typing import Any

from magnum.drivers.k8s_capi_helm.conf import policy_file
from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.model import ClusterRequest, Json
from magnum.drivers.k8s_capi_helm.values import provider_policy
from magnum.drivers.k8s_capi_helm.values.tree import live as values_live
from magnum.drivers.k8s_capi_helm.values.upgrade import upgrade


def check_cluster_policy(settings: Settings, request: ClusterRequest, version: str) -> None:
    """Refuse a new cluster that a rule does not allow.

    :param version: of Kubernetes, "" if neither label nor image says it.
    :raises errors.InvalidRequest: naming the rule.
    :raises errors.InvalidConfiguration: the policy cannot be read.
    """
    rules = policy_file.read_policy(settings.capi_helm.policy_file)
    provider_policy.check_request(rules, request, None, version)


def check_upgrade_policy(
    settings: Settings, request: ClusterRequest, target: ClusterRequest, version: str, live: Json
) -> None:
    """Refuse an upgrade to what a rule does not allow.

    :param target: the cluster as it is to be.
    :param version: of Kubernetes that it is to have.
    :param live: values of the deployed release.
    :raises errors.InvalidRequest: naming the rule.
    :raises errors.InvalidConfiguration: the policy cannot be read.
    """
    rules = policy_file.read_policy(settings.capi_helm.policy_file)
    previous = upgrade.versions(live)[values_live.CONTROL_PLANE].removeprefix("v")
    provider_policy.check_request(rules, target, request, version.removeprefix("v"), previous)


def check_nodegroup_policy(
    settings: Settings, request: ClusterRequest, name: str, version: str
) -> None:
    """Refuse a new nodegroup that a rule does not allow.

    :param request: of the cluster, with the nodegroup.
    :param version: of Kubernetes, of an image of its own; "" without one, and if Glance does not
        respond.
    :raises errors.InvalidRequest: naming the rule.
    :raises errors.InvalidConfiguration: the policy cannot be read.
    """
    others = tuple(group for group in request.node_groups if group.name != name)
    previous = dataclasses.replace(request, node_groups=others)
    rules = policy_file.read_policy(settings.capi_helm.policy_file)
    provider_policy.check_request(rules, request, previous, version)


def check_size_policy(
    settings: Settings, request: ClusterRequest, name: str | None, previous_count: int, **size: Any
) -> None:
    """Refuse a size of a nodegroup that a rule does not allow.

    :param request: of the cluster.
    :param name: of the nodegroup, None for the control plane.
    :param previous_count: machines that it has.
    :param size: fields of the nodegroup's request that change: ``count``, ``maximum``.
    :raises errors.InvalidRequest: naming the rule.
    :raises errors.InvalidConfiguration: the policy cannot be read.
    """
    rules = policy_file.read_policy(settings.capi_helm.policy_file)
    previous = _with_size(request, name, count=previous_count)
    provider_policy.check_request(rules, _with_size(previous, name, **size), previous)


def _with_size(request: ClusterRequest, name: str | None, **size: Any) -> ClusterRequest:
    """The request with another size of one nodegroup."""
    if name is None:
        changed = dataclasses.replace(request.control_plane, **size)
        return dataclasses.replace(request, control_plane=changed)
    nodegroups = tuple(
        dataclasses.replace(nodegroup, **size) if nodegroup.name == name else nodegroup
        for nodegroup in request.node_groups
    )
    return dataclasses.replace(request, node_groups=nodegroups)
