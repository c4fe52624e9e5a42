# SPDX-License-Identifier: Apache-2.0
"""Apply a release: cache the chart, run Helm, record generations and revision."""

from __future__ import annotations

import dataclasses

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.kube.watch import snapshot
from magnum.drivers.k8s_capi_helm.lease import HeldLease
from magnum.drivers.k8s_capi_helm.model import (
    Chart,
    ClusterRequest,
    Json,
    LiveRelease,
    Observed,
    Operation,
    Revisions,
)
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import (
    AppliedRelease,
    Reconciliation,
)
from magnum.drivers.k8s_capi_helm.reconcile.release import autoscaler_deployment, render
from magnum.drivers.k8s_capi_helm.status.objects import generations

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Revision:
    """A revision of a release that Helm is to make.

    :ivar operations: that the values carry out, for the log.
    :ivar adopts: whether objects that exist are made the release's.
    """

    chart: Chart
    values: Json
    operations: tuple[Operation, ...] = ()
    adopts: bool = False


def apply_release(
    run: Reconciliation, held_lease: HeldLease, request: ClusterRequest, revision: Revision
) -> AppliedRelease:
    """Install or upgrade the release by Helm, and record in the Lease what Helm has written.

    :raises errors.DriverError: as ``HelmClient.apply``, and where the lock is lost afterwards.
    """
    clients, conf, chart = run.clients, run.settings, revision.chart
    values = autoscaler_deployment.with_operators_settings(revision.values, chart, conf)
    clients.charts.secure(request.namespace, chart)
    try:
        deployed = clients.helm.apply(
            request.namespace,
            request.release,
            chart,
            values,
            held_lock=held_lease,
            adopt=revision.adopts,
        )
    except errors.ValuesRefused as error:
        raise render.explain_refusal(error, request, conf) from None
    autoscaler_deployment.enforce_pod_security(clients, request.namespace, conf)
    held_lease.check()
    objects = _record_revision(run, chart, deployed)
    operation_ids = ", ".join(operation.id for operation in revision.operations)
    LOG.info(
        "Cluster %s: release %s is at revision %d with chart %s %s, for %s.",
        request.uuid,
        request.release,
        deployed.revision,
        chart.name,
        chart.version,
        operation_ids or "an interrupted operation",
    )
    return AppliedRelease(deployed, objects)


def _record_revision(run: Reconciliation, chart: Chart, deployed: LiveRelease) -> Observed:
    """Record the revision, its chart and the generations of what Helm has written.

    :returns: Cluster API's objects after that.
    """
    clients, release_key = run.clients, (deployed.namespace, deployed.name)
    objects = snapshot.take_snapshot(clients.kube, *release_key, clients.clock())
    clients.leases.remember(
        *release_key,
        ready_fingerprint="",
        nodegroup_ready_fingerprints={},
        applied_generations=generations.applied_generations(objects),
        chart_source=chart.source or None,
        chart_digest=chart.digest,
        revisions=Revisions(newest=deployed.revision, last_applied=deployed.revision),
    )
    return objects
