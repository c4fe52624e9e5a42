# SPDX-License-Identifier: Apache-2.0
"""A request for a new cluster: everything that is refused before anything is made."""

from __future__ import annotations

import dataclasses
from typing import Any

from magnum.drivers.k8s_capi_helm import (
    assembly,
    credentials,
    installation,
    intake,
    names,
    transition,
)
from magnum.drivers.k8s_capi_helm.cloud import Cloud
from magnum.drivers.k8s_capi_helm.driver import room
from magnum.drivers.k8s_capi_helm.model import CloudFacts, ClusterRequest, Grants


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """A cluster that can be made.

    :ivar facts: what the cloud said of it.
    :ivar grants: what its credentials may do.
    """

    request: ClusterRequest
    facts: CloudFacts
    grants: Grants


def plan(
    ports: assembly.Ports, cloud: Cloud, context: Any, cluster: Any, groups: list[Any], conf: Any
) -> Plan:
    """The plan of a cluster, under a name that no release has yet.

    :param groups: rows of its nodegroups.
    :raises errors.DriverError: it cannot be made; nothing was touched.
    """
    intake.validate_new_cluster(cluster, groups, conf)
    request = intake.cluster_request(cluster, groups, conf, release=names.release(cluster.name))
    intake.check_new_cluster(request)
    grants = credentials.grants(context, conf, separate=request.separate_addon_credential)
    ports.helm.version()
    chart = transition.new_chart(ports, request.labels)
    credentials.check_chart(request, chart)
    family = names.family_of_keys(chart.family, chart.version)
    known = names.takes_containerd_disk(chart.family, chart.version)
    for group in groups:
        intake.validate_chart(group, cluster, conf, family)
        intake.validate_disk(group, cluster, known=known)
    intake.check_chart(request.labels, chart.family)
    facts = room.for_cluster(cloud, request, conf)
    installation.render(request, facts, conf, chart)
    return Plan(request, facts, grants)
