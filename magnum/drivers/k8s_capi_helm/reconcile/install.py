# SPDX-License-Identifier: Apache-2.0
"""Install a release: of a new cluster, or of one whose release is lost."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses

from magnum.drivers.k8s_capi_helm import errors, helm_values
from magnum.drivers.k8s_capi_helm.cloud import provision
from magnum.drivers.k8s_capi_helm.cloud.preflight import checks, message, nodegroup_images
from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.model import (
    Chart,
    CloudFacts,
    ClusterRequest,
    Json,
    names,
    NOTHING,
    ReleaseRecord,
    ResolvedNames,
    secrets,
    Verb,
)
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.ownership import adoption
from magnum.drivers.k8s_capi_helm.reconcile.policy import requirements
from magnum.drivers.k8s_capi_helm.reconcile.process import credential_secret
from magnum.drivers.k8s_capi_helm.reconcile.release import render as reconcile_render
from magnum.drivers.k8s_capi_helm.reconcile.upgrade import upgrade
from magnum.drivers.k8s_capi_helm.values.tree import chart_family


@dataclasses.dataclass(frozen=True, slots=True)
class CreatedCluster:
    """A cluster that was rendered, so that nothing is created for one that cannot be.

    :ivar request: that was rendered.
    :ivar facts: what the cloud said of it, with what was created for it since.
    :ivar values: as they were rendered before that.
    """

    request: ClusterRequest
    facts: CloudFacts
    chart: Chart
    values: Json


@dataclasses.dataclass(frozen=True, slots=True)
class InstallPlan:
    """What a release is to be made of.

    :ivar adopts: its objects are there and are to stay as they are.
    """

    chart: Chart
    values: Json
    adopts: bool = False


def plan_install(
    run: Reconciliation,
    record: ReleaseRecord,
    request: ClusterRequest,
    request_with_deleted: Callable[[], ClusterRequest],
    created_cluster: CreatedCluster | None = None,
) -> InstallPlan:
    """What to install, with the whole of the rows; nothing is touched.

    :param request_with_deleted: what the rows ask for as if no nodegroup was to go.
    :param created_cluster: the cluster as it was checked a moment ago, None for an older one.
    :raises errors.ReleaseLost: the objects are there, and would become others.
    :raises errors.NotOwned: one of them is somebody else's.
    :raises errors.DriverError: it cannot be made, or not now.
    """
    clients = run.clients
    adopts = adoption.is_requested(clients, record, request)
    if adopts:
        request = adoption.deployed_values(clients, request_with_deleted())
    if created_cluster is not None and not adopts and created_cluster.request == request:
        values = helm_values.with_created(created_cluster.values, request, created_cluster.facts)
        return InstallPlan(created_cluster.chart, values)
    facts = _facts(run, record, request) if created_cluster is None else created_cluster.facts
    chart = (
        clients.charts.recorded_chart(request.namespace, record.chart_digest) if adopts else None
    )
    chart = chart or upgrade.new_chart(clients, request.labels)
    # Whoever has saved the credential may have called the Secret otherwise.
    secret_of_credential = (
        credential_secret.secret_name(clients.kube, secrets.Owner.of(request), {})
        if created_cluster is None
        else None
    )
    if adopts:
        values = _adopted_values(run, request, facts, chart, secret_of_credential)
    else:
        values = _values(request, facts, run.settings, chart, secret_of_credential)
    return InstallPlan(chart, values, adopts)


def _facts(run: Reconciliation, record: ReleaseRecord, request: ClusterRequest) -> CloudFacts:
    """What the cloud says of a cluster now, with what was created for it."""
    service = run.cloud()
    interface, lookup = run.settings.capi_helm.app_cred_interface_type, _resolved(record)
    facts = service.facts(request, interface=interface, lookup=lookup)
    return provision.find(service, request, facts)


def _adopted_values(
    run: Reconciliation,
    request: ClusterRequest,
    facts: CloudFacts,
    chart: Chart,
    secret_of_credential: str | None,
) -> Json:
    """Values with which the objects that are there stay as they are.

    :param secret_of_credential: as for :func:`_values`.
    :raises errors.ReleaseLost: they would become others.
    """
    clients, conf = run.clients, run.settings
    values = _values(request, facts, conf, chart, secret_of_credential)
    try:
        adoption.require_same_manifest(clients, request, chart, values)
    except errors.ReleaseLost:
        if not facts.extra_networks:
            raise
        # An older driver has left it to the OpenStack provider which networks the names mean.
        facts = dataclasses.replace(facts, extra_networks=None)
        values = _values(request, facts, conf, chart, secret_of_credential)
        adoption.require_same_manifest(clients, request, chart, values)
    return values


def _values(
    request: ClusterRequest,
    facts: CloudFacts,
    conf: Settings,
    chart: Chart,
    secret_of_credential: str | None,
) -> Json:
    """
    :param secret_of_credential: name of the credential's Secret, None for the usual name.
    """
    values = render_cluster(request, facts, conf, chart)
    return (
        values
        if secret_of_credential is None
        else {**values, credential_secret.VALUE: secret_of_credential}
    )


def _resolved(record: ReleaseRecord) -> ResolvedNames:
    """What the user who asked for a cluster saw, as long as its creation is pending."""
    creations = (
        operation.resolved_names for operation in record.operations if operation.verb is Verb.CREATE
    )
    return next(creations, NOTHING)


def render_cluster(
    request: ClusterRequest, facts: CloudFacts, conf: Settings, chart: Chart | None = None
) -> Json:
    """The values of a new cluster; nothing is touched.

    :param chart: that is to take them, None for this project's newest.
    :raises errors.DoesNotFit: with everything that keeps the cluster from being built.
    :raises errors.InvalidRequest: rows and cloud contradict each other, or the chart cannot do it.
    """
    problems = checks.problems(request, facts, requirements.requirements(conf))
    version = request.labels.kube_tag or facts.kubernetes_version
    nodegroups_with_images = nodegroup_images.with_own_images(
        request.node_groups, facts.images, facts.image_id
    )
    if facts.image_id and version:
        distro = facts.os_distro
        problems = [
            *nodegroup_images.image_problems(nodegroups_with_images, facts.images, version, distro),
            *problems,
        ]
    message.refuse(problems)
    request = dataclasses.replace(request, node_groups=nodegroups_with_images)
    values = reconcile_render.render_values(request, facts, conf, chart)
    if chart is not None:
        chart_family.check_family(values, names.family_of_keys(chart.family, chart.version))
    nodegroup_images.check_annotations(request.node_groups, values)
    nodegroup_images.check_disks((request.control_plane, *request.node_groups), facts.os_distro)
    return values
