# SPDX-License-Identifier: Apache-2.0
"""A request for a new cluster: everything that is refused before anything is made."""

from __future__ import annotations

import dataclasses
from typing import Any

from magnum.drivers.k8s_capi_helm.cloud import Cloud
from magnum.drivers.k8s_capi_helm.handlers import preflight
from magnum.drivers.k8s_capi_helm.magnum_objects import (
    reader,
    validate_cluster,
    validate_labels,
    validate_nodegroup,
)
from magnum.drivers.k8s_capi_helm.model import CredentialRoles, names
from magnum.drivers.k8s_capi_helm.reconcile import clients, credentials, install, upgrade


@dataclasses.dataclass(frozen=True, slots=True)
class CreatePlan:
    """A cluster that can be created.

    :ivar rendered: its request, what the cloud said of it, and its values.
    :ivar grants: what its credentials may do.
    """

    rendered: install.CreatedCluster
    grants: CredentialRoles


def plan_create(
    ports: clients.Clients, cloud: Cloud, context: Any, cluster: Any, groups: list[Any], conf: Any
) -> CreatePlan:
    """The plan of a cluster, under a name that no release has yet.

    :param groups: rows of its nodegroups.
    :raises errors.DriverError: it cannot be made; nothing was touched.
    """
    validate_cluster.validate_new_cluster(cluster, groups, conf)
    request = reader.cluster_request(cluster, groups, conf, release=names.release(cluster.name))
    validate_labels.check_new_cluster(request)
    grants = credentials.roles_for(context, conf, separate=request.separate_addon_credential)
    ports.helm.version()
    chart = upgrade.new_chart(ports, request.labels)
    credentials.check_chart(request, chart)
    family = names.family_of_keys(chart.family, chart.version)
    known = names.takes_containerd_disk(chart.family, chart.version)
    for group in groups:
        validate_nodegroup.validate_chart(group, cluster, conf, family)
        validate_nodegroup.validate_disk(group, cluster, known=known)
    validate_labels.check_chart(request.labels, chart.family)
    facts = preflight.for_cluster(cloud, request, conf)
    values = install.render(request, facts, conf, chart)
    return CreatePlan(install.CreatedCluster(request, facts, chart, values), grants)
