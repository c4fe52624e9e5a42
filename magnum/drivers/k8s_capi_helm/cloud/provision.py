# SPDX-License-Identifier: Apache-2.0
"""Create, find and delete server groups and the API's floating IP of a cluster.

They are made inside the request of a person, before the credential of the cluster is saved: who
finds the credential knows that they were made. Clusters that exist are never given any.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import dataclasses

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.cloud import Cloud
from magnum.drivers.k8s_capi_helm.model import (
    CloudFacts,
    ClusterRequest,
    NodeGroupRequest,
    secrets,
    Verdict,
)
from magnum.drivers.k8s_capi_helm.values.sections import network, nodegroups

LOG = logging.getLogger(__name__)


def create_resources(cloud: Cloud, request: ClusterRequest, facts: CloudFacts) -> CloudFacts:
    """Make what a new cluster needs, once; *facts* with it.

    :raises errors.DriverError: Nova or Neutron does not make it. What was made by then is taken
        away with the cluster.
    """
    nodegroups = create_server_groups(cloud, request, (request.control_plane, *request.node_groups))
    address = None
    if network.needs_api_address(request) and facts.external_network_id:
        address = cloud.belongings.make_api_address(
            request.release, request.project_id, facts.external_network_id
        )
    return dataclasses.replace(facts, server_groups=nodegroups, api_address=address)


def create_server_groups(
    cloud: Cloud, request: ClusterRequest, nodegroups: Iterable[NodeGroupRequest]
) -> dict[str, str]:
    """Make the server groups of new nodegroups; ids by name of the nodegroup.

    :raises errors.DriverError: Nova does not make one.
    """
    return cloud.belongings.make_server_groups(request.release, _policies(request, nodegroups))


def find(cloud: Cloud, request: ClusterRequest, facts: CloudFacts) -> CloudFacts:
    """*facts* with what was made for a cluster, to install a release that is not there any more.

    :param cloud: as Magnum's service user sees it.
    :raises errors.DriverError: Nova or Neutron cannot be asked.
    """
    resources, address = cloud.belongings, None
    if network.needs_api_address(request):
        address = resources.api_address(request.release, request.project_id)
    server_groups = find_server_groups(
        cloud, request, (request.control_plane, *request.node_groups)
    )
    return dataclasses.replace(facts, server_groups=server_groups, api_address=address)


def find_server_groups(
    cloud: Cloud, request: ClusterRequest, nodegroups: Iterable[NodeGroupRequest]
) -> dict[str, str]:
    """The server groups that were made for new nodegroups, by name of the nodegroup.

    :param cloud: as Magnum's service user sees it.
    :raises errors.DriverError: Nova cannot be asked.
    """
    policies = _policies(request, nodegroups)
    if not policies:
        return {}
    existing = cloud.belongings.server_groups(request.release, request.project_id, policies)
    for name in policies:
        if name not in existing:
            LOG.warning(
                "Cluster %s: nodegroup %s has no server group: another driver created it, or "
                "the server group was deleted.",
                request.uuid,
                name,
            )
    return {name: existing[name] for name in policies if name in existing}


def is_server_group_missing(
    request: ClusterRequest, nodegroup: NodeGroupRequest, existing_groups: Mapping[str, str]
) -> bool:
    """Whether a nodegroup is to have a server group that is not *existing_groups*."""
    return (
        nodegroup.name in _policies(request, [nodegroup]) and nodegroup.name not in existing_groups
    )


def _policies(
    request: ClusterRequest, new_nodegroups: Iterable[NodeGroupRequest]
) -> dict[str, str]:
    """Nova's policy by name of each nodegroup that is to have a server group."""
    policies = {
        nodegroup.name: nodegroups.server_group_policy(nodegroup, request.labels)
        for nodegroup in new_nodegroups
    }
    return {name: policy for name, policy in policies.items() if policy}


def delete_resources(cloud: Cloud, owner: secrets.Owner) -> None:
    """Take away what was made for a cluster of which nothing else is left.

    :param cloud: as Magnum's service user sees it.
    :raises errors.DriverError: something is left.
    """
    cloud.belongings.delete_server_groups(owner.release, owner.project_id)
    cloud.belongings.delete_api_address(owner.release, owner.project_id)


def delete_unused_server_groups(cloud: Cloud, owner: secrets.Owner, verdict: Verdict) -> Verdict:
    """Take away the server groups of nodegroups whose last machine is gone.

    :param cloud: as Magnum's service user sees it.
    :returns: the verdict, in which a nodegroup stays while Nova does not answer. One that Nova
        refuses to delete is left for the end of the cluster, so that nobody waits for it for ever.
    """
    verdicts = []
    for nodegroup in verdict.groups:
        if nodegroup.is_deleted:
            try:
                cloud.belongings.delete_server_groups(
                    owner.release, owner.project_id, nodegroup.name
                )
            except errors.DriverError as error:
                LOG.warning(
                    "Cluster %s: the server group of deleted nodegroup %s cannot be deleted: %s",
                    owner.cluster_uuid,
                    nodegroup.name,
                    error.detail,
                )
                nodegroup = dataclasses.replace(nodegroup, is_deleted=not error.retryable)
        verdicts.append(nodegroup)
    return dataclasses.replace(verdict, groups=tuple(verdicts))
