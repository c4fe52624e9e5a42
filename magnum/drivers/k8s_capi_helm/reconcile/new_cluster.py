# SPDX-License-Identifier: Apache-2.0
"""The checks of a cluster that does not exist yet, and its values: nothing is touched.

A create goes through them, and so does a template that is to be offered, for its first cluster.
"""

from __future__ import annotations

from typing import Any

from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import reader
from magnum.drivers.k8s_capi_helm.magnum_objects.validation import (
    validate_cluster,
    validate_labels,
    validate_nodegroup,
)
from magnum.drivers.k8s_capi_helm.model import Chart, CloudFacts, ClusterRequest, Json, names
from magnum.drivers.k8s_capi_helm.reconcile import install
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.credentials import credentials
from magnum.drivers.k8s_capi_helm.reconcile.policy import policy_check
from magnum.drivers.k8s_capi_helm.reconcile.upgrade import upgrade


def read_new_request(
    cluster: Any, nodegroups: list[Any], settings: Settings, release: str
) -> ClusterRequest:
    """What Magnum's rows of a new cluster ask for.

    :param release: the name that its release gets.
    :raises errors.InvalidRequest: with the field or the label that is wrong.
    """
    validate_cluster.validate_new_cluster(cluster, nodegroups, settings)
    request = reader.cluster_request(cluster, nodegroups, settings, release=release)
    validate_labels.check_new_cluster(request)
    return request


def find_chart(
    run: Reconciliation, request: ClusterRequest, cluster: Any, nodegroups: list[Any]
) -> Chart:
    """The chart of a new cluster, which has everything that is asked for.

    :raises errors.DriverError: it cannot be had, or lacks something.
    """
    settings, chart = run.settings, upgrade.new_chart(run.clients, request.labels)
    credentials.refuse_credential_copy(request, chart)
    family = names.family_of_keys(chart.family, chart.version)
    takes_disk = names.takes_containerd_disk(chart.family, chart.version)
    for nodegroup in nodegroups:
        validate_nodegroup.validate_chart(nodegroup, cluster, settings, family)
        validate_nodegroup.validate_disk(nodegroup, cluster, is_supported=takes_disk)
    validate_labels.check_chart(request.labels, chart.family)
    return chart


def render_new_cluster(
    settings: Settings, request: ClusterRequest, facts: CloudFacts, chart: Chart
) -> Json:
    """The values of a new cluster, within the provider's policy.

    :raises errors.DriverError: the policy refuses it, or the cloud has not what it needs.
    """
    version = request.labels.kube_tag or facts.kubernetes_version
    policy_check.check_cluster_policy(settings, request, version)
    return install.render_cluster(request, facts, settings, chart)
