# SPDX-License-Identifier: Apache-2.0
"""Preflight checks of cloud and project, with the requesting user's permissions.

For a new cluster everything has to be known. For one that runs, a cloud that does not answer now
keeps nobody from resizing it: Cluster API tries again as long as it takes. A new nodegroup is held
up by it only if it is to have a server group, which nobody makes later.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.cloud import Cloud
from magnum.drivers.k8s_capi_helm.cloud.preflight import (
    checks,
    message,
    nodegroup_images,
    quota_usage,
)
from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.model import (
    CloudFacts,
    ClusterRequest,
    Json,
    NodeGroupRequest,
    NOTHING,
    Resolved,
)
from magnum.drivers.k8s_capi_helm.reconcile import clients, requirements
from magnum.drivers.k8s_capi_helm.values import live as values_live
from magnum.drivers.k8s_capi_helm.values import nodegroups, upgrade

LOG = logging.getLogger(__name__)


def for_cluster(cloud: Cloud, request: ClusterRequest, conf: Settings) -> CloudFacts:
    """What the cloud says of a new cluster; nothing is judged yet.

    :raises errors.DriverError: a service does not answer, or says no.
    """
    facts = cloud.facts(request, interface=conf.capi_helm.app_cred_interface_type, new=True)
    if not conf.capi_helm.preflight_quota:
        return facts
    usage = quota_usage.cluster_usage(request, facts.flavors)
    return dataclasses.replace(facts, quotas=cloud.quotas(request.project_id, usage))


def for_nodegroup(
    cloud: Cloud, request: ClusterRequest, nodegroup: NodeGroupRequest, live: Json, conf: Settings
) -> CloudFacts | None:
    """What the cloud says of a new nodegroup of a running cluster; None if it does not answer.

    :param live: values of the release; {} when nobody can read them.
    :raises errors.DoesNotFit: the nodegroup cannot be built, with everything that is in the way.
    :raises errors.CloudRefused: Glance or Nova says no.
    """
    lookup = Resolved(extra_networks=nodegroups.extra_networks(live, request.labels))
    try:
        facts = cloud.nodegroup_facts(request, nodegroup, lookup=lookup)
    except errors.CloudUnreachable as error:
        LOG.warning(
            "Cluster %s: nodegroup %s is not checked: %s %s",
            request.uuid,
            nodegroup.name,
            error,
            error.detail,
        )
        return None
    if conf.capi_helm.preflight_quota:
        usage = quota_usage.machine_usage(
            [quota_usage.new_nodegroup(nodegroup, request)], facts.flavors
        )
        facts = dataclasses.replace(facts, quotas=cloud.quotas(request.project_id, usage))
    problems = checks.nodegroup_problems(nodegroup, request, facts, requirements.requirements(conf))
    if live:
        version, distro = (
            upgrade.versions(live)[values_live.CONTROL_PLANE],
            live.get("osDistro") or "",
        )
        with_images = nodegroup_images.with_own_images(
            [nodegroup], facts.images, str(live.get("machineImageId") or "")
        )
        problems = [
            *nodegroup_images.image_problems(with_images, facts.images, version, distro),
            *problems,
        ]
    message.refuse(problems)
    return facts


def for_resize(
    context: Any,
    request: ClusterRequest,
    demand: quota_usage.MachineDemand | None,
    conf: Settings,
) -> None:
    """Refuse more machines than the project's quotas leave room for.

    :param demand: machines that are asked for; None where that is not known, and then nothing is
        checked.
    :raises errors.DoesNotFit: naming what is needed and what is free.
    """
    if demand is None or not conf.capi_helm.preflight_quota:
        return
    cloud = clients.cloud(context)
    try:
        flavors = cloud.existing_flavors(request.project_id, [demand.flavor])
    except errors.DriverError as error:
        LOG.warning("Cluster %s: quotas are not checked: %s %s", request.uuid, error, error.detail)
        return
    usage = quota_usage.machine_usage([demand], flavors)
    quotas = cloud.quotas(request.project_id, usage)
    message.refuse(checks.quota_problems(usage, quotas))


def flavor(context: Any, cluster: Any, nodegroup: Any) -> Resolved:
    """The flavor of a nodegroup, as the requesting user sees it.

    :returns: nothing where Nova does not tell.
    """
    try:
        flavors = clients.cloud(context).existing_flavors(cluster.project_id, [nodegroup.flavor_id])
    except errors.DriverError as error:
        LOG.warning(
            "Cluster %s: the flavor of nodegroup %s is not known: %s %s",
            cluster.uuid,
            nodegroup.uuid,
            error,
            error.detail,
        )
        return NOTHING
    return Resolved(flavors=flavors)
