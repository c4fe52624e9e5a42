# SPDX-License-Identifier: Apache-2.0
"""Server groups and API address of a cluster: when they are made, found again and taken away.

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
from magnum.drivers.k8s_capi_helm.values import network, nodegroups

LOG = logging.getLogger(__name__)


def create(cloud: Cloud, request: ClusterRequest, facts: CloudFacts) -> CloudFacts:
    """Make what a new cluster needs, once; *facts* with it.

    :raises errors.DriverError: Nova or Neutron does not make it. What was made by then is taken
        away with the cluster.
    """
    groups = create_server_groups(cloud, request, (request.control_plane, *request.node_groups))
    address = None
    if network.needs_api_address(request) and facts.external_network_id:
        address = cloud.belongings.make_api_address(
            request.release, request.project_id, facts.external_network_id
        )
    return dataclasses.replace(facts, server_groups=groups, api_address=address)


def create_server_groups(
    cloud: Cloud, request: ClusterRequest, groups: Iterable[NodeGroupRequest]
) -> dict[str, str]:
    """Make the server groups of new nodegroups; ids by name of the nodegroup.

    :raises errors.DriverError: Nova does not make one.
    """
    return cloud.belongings.make_server_groups(request.release, _policies(request, groups))


def find(cloud: Cloud, request: ClusterRequest, facts: CloudFacts) -> CloudFacts:
    """*facts* with what was made for a cluster, to install a release that is not there any more.

    :param cloud: as Magnum's service user sees it.
    :raises errors.DriverError: Nova or Neutron cannot be asked.
    """
    mine, address = cloud.belongings, None
    if network.needs_api_address(request):
        address = mine.api_address(request.release, request.project_id)
    groups = find_server_groups(cloud, request, (request.control_plane, *request.node_groups))
    return dataclasses.replace(facts, server_groups=groups, api_address=address)


def find_server_groups(
    cloud: Cloud, request: ClusterRequest, groups: Iterable[NodeGroupRequest]
) -> dict[str, str]:
    """The server groups that were made for new nodegroups, by name of the nodegroup.

    :param cloud: as Magnum's service user sees it.
    :raises errors.DriverError: Nova cannot be asked.
    """
    wanted = _policies(request, groups)
    if not wanted:
        return {}
    there = cloud.belongings.server_groups(request.release, request.project_id, wanted)
    for name in wanted:
        if name not in there:
            LOG.warning(
                "Cluster %s: nodegroup %s has no server group: another driver created it, or "
                "the server group was deleted.",
                request.uuid,
                name,
            )
    return {name: there[name] for name in wanted if name in there}


def lacks_server_group(
    request: ClusterRequest, group: NodeGroupRequest, there: Mapping[str, str]
) -> bool:
    """Whether a nodegroup is to have a server group that is not *there*."""
    return group.name in _policies(request, [group]) and group.name not in there


def _policies(request: ClusterRequest, groups: Iterable[NodeGroupRequest]) -> dict[str, str]:
    """Nova's policy by name of each nodegroup that is to have a server group."""
    wanted = {one.name: nodegroups.server_group_policy(one, request.labels) for one in groups}
    return {name: policy for name, policy in wanted.items() if policy}


def delete(cloud: Cloud, owner: secrets.Owner) -> None:
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
    judged = []
    for group in verdict.groups:
        if group.gone:
            try:
                cloud.belongings.delete_server_groups(owner.release, owner.project_id, group.name)
            except errors.DriverError as error:
                LOG.warning(
                    "Cluster %s: the server group of deleted nodegroup %s cannot be deleted: %s",
                    owner.cluster_uuid,
                    group.name,
                    error.detail,
                )
                group = dataclasses.replace(group, gone=not error.retryable)
        judged.append(group)
    return dataclasses.replace(verdict, groups=tuple(judged))
