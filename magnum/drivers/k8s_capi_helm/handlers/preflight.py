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
    more = quota_usage.cluster_usage(request, facts.flavors)
    return dataclasses.replace(facts, quotas=cloud.quotas(request.project_id, more))


def for_group(
    cloud: Cloud, request: ClusterRequest, group: NodeGroupRequest, live: Json, conf: Settings
) -> CloudFacts | None:
    """What the cloud says of a new nodegroup of a running cluster; None if it does not answer.

    :param live: values of the release; {} when nobody can read them.
    :raises errors.DoesNotFit: the nodegroup cannot be built, with everything that is in the way.
    :raises errors.CloudRefused: Glance or Nova says no.
    """
    known = Resolved(extra_networks=nodegroups.extra_networks(live, request.labels))
    try:
        facts = cloud.nodegroup_facts(request, group, lookup=known)
    except errors.CloudUnreachable as error:
        LOG.warning(
            "Cluster %s: nodegroup %s is not checked: %s %s",
            request.uuid,
            group.name,
            error,
            error.detail,
        )
        return None
    if conf.capi_helm.preflight_quota:
        more = quota_usage.machine_usage([quota_usage.new_nodegroup(group, request)], facts.flavors)
        facts = dataclasses.replace(facts, quotas=cloud.quotas(request.project_id, more))
    found = checks.nodegroup_problems(group, request, facts, requirements.requirements(conf))
    if live:
        version, distro = (
            upgrade.versions(live)[values_live.CONTROL_PLANE],
            live.get("osDistro") or "",
        )
        own = nodegroup_images.with_own_images(
            [group], facts.images, str(live.get("machineImageId") or "")
        )
        found = [*nodegroup_images.image_problems(own, facts.images, version, distro), *found]
    message.refuse(found)
    return facts


def for_resize(
    context: Any,
    request: ClusterRequest,
    growth: quota_usage.MachineDemand | None,
    conf: Settings,
) -> None:
    """Refuse more machines than the project's quotas leave room for.

    :param growth: machines that are asked for; None where that is not known, and then nothing is
        checked.
    :raises errors.DoesNotFit: naming what is needed and what is free.
    """
    if growth is None or not conf.capi_helm.preflight_quota:
        return
    cloud = clients.cloud(context)
    try:
        flavors = cloud.existing_flavors(request.project_id, [growth.flavor])
    except errors.DriverError as error:
        LOG.warning("Cluster %s: quotas are not checked: %s %s", request.uuid, error, error.detail)
        return
    needs = quota_usage.machine_usage([growth], flavors)
    quotas = cloud.quotas(request.project_id, needs)
    message.refuse(checks.quota_problems(needs, quotas))


def flavor(context: Any, cluster: Any, row: Any) -> Resolved:
    """The flavor of a nodegroup, as the requesting user sees it.

    :returns: nothing where Nova does not tell.
    """
    try:
        found = clients.cloud(context).existing_flavors(cluster.project_id, [row.flavor_id])
    except errors.DriverError as error:
        LOG.warning(
            "Cluster %s: the flavor of nodegroup %s is not known: %s %s",
            cluster.uuid,
            row.uuid,
            error,
            error.detail,
        )
        return NOTHING
    return Resolved(flavors=found)
