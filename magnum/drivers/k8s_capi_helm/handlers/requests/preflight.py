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
from magnum.drivers.k8s_capi_helm.cloud.preflight import (
    checks,
    message,
    nodegroup_images,
    quota_usage,
)
from magnum.drivers.k8s_capi_helm.model import (
    CloudFacts,
    ClusterRequest,
    Json,
    NodeGroupRequest,
    NOTHING,
    ResolvedNames,
)
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.policy import requirements
from magnum.drivers.k8s_capi_helm.values.sections import nodegroups
from magnum.drivers.k8s_capi_helm.values.tree import live as values_live
from magnum.drivers.k8s_capi_helm.values.upgrade import upgrade

LOG = logging.getLogger(__name__)


def for_cluster(run: Reconciliation, request: ClusterRequest) -> CloudFacts:
    """What the cloud says of a new cluster; nothing is judged yet.

    :raises errors.DriverError: a service does not answer, or says no.
    """
    cloud, options = run.cloud(), run.settings.capi_helm
    facts = cloud.facts(request, interface=options.app_cred_interface_type, new=True)
    if not options.preflight_quota:
        return facts
    usage = quota_usage.cluster_usage(request, facts.flavors)
    return dataclasses.replace(facts, quotas=cloud.quotas(request.project_id, usage))


def for_nodegroup(
    run: Reconciliation, request: ClusterRequest, nodegroup: NodeGroupRequest, live: Json
) -> CloudFacts | None:
    """What the cloud says of a new nodegroup of a running cluster; None if it does not answer.

    :param live: values of the release; {} when nobody can read them.
    :raises errors.DoesNotFit: the nodegroup cannot be built, with everything that is in the way.
    :raises errors.CloudRefused: Glance or Nova says no.
    """
    lookup = ResolvedNames(extra_networks=nodegroups.extra_networks(live, request.labels))
    cloud = run.cloud()
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
    if run.settings.capi_helm.preflight_quota:
        usage = quota_usage.machine_usage(
            [quota_usage.new_nodegroup(nodegroup, request)], facts.flavors
        )
        facts = dataclasses.replace(facts, quotas=cloud.quotas(request.project_id, usage))
    required = requirements.requirements(run.settings)
    problems = checks.nodegroup_problems(nodegroup, request, facts, required)
    message.refuse([*_image_problems(nodegroup, facts, live), *problems])
    return facts


def _image_problems(nodegroup: NodeGroupRequest, facts: CloudFacts, live: Json) -> list[str]:
    """What keeps the image of a new nodegroup from running what the cluster runs."""
    if not live:
        return []
    with_images = nodegroup_images.with_own_images(
        [nodegroup], facts.images, str(live.get("machineImageId") or "")
    )
    version = upgrade.versions(live)[values_live.CONTROL_PLANE]
    distro = live.get("osDistro") or ""
    return nodegroup_images.image_problems(with_images, facts.images, version, distro)


def for_resize(
    run: Reconciliation, request: ClusterRequest, demand: quota_usage.MachineDemand | None
) -> None:
    """Refuse more machines than the project's quotas leave room for.

    :param demand: machines that are asked for; None where that is not known, and then nothing is
        checked.
    :raises errors.DoesNotFit: naming what is needed and what is free.
    """
    if demand is None or not run.settings.capi_helm.preflight_quota:
        return
    cloud = run.cloud()
    try:
        flavors = cloud.existing_flavors(request.project_id, [demand.flavor])
    except errors.DriverError as error:
        LOG.warning("Cluster %s: quotas are not checked: %s %s", request.uuid, error, error.detail)
        return
    usage = quota_usage.machine_usage([demand], flavors)
    quotas = cloud.quotas(request.project_id, usage)
    message.refuse(checks.quota_problems(usage, quotas))


def flavor(run: Reconciliation, cluster: Any, nodegroup: Any) -> ResolvedNames:
    """The flavor of a nodegroup, as the requesting user sees it.

    :returns: nothing where Nova does not tell.
    """
    try:
        flavors = run.cloud().existing_flavors(cluster.project_id, [nodegroup.flavor_id])
    except errors.DriverError as error:
        LOG.warning(
            "Cluster %s: the flavor of nodegroup %s is not known: %s %s",
            cluster.uuid,
            nodegroup.uuid,
            error,
            error.detail,
        )
        return NOTHING
    return ResolvedNames(flavors=flavors)
