# SPDX-License-Identifier: Apache-2.0
"""Add to a snapshot: Nova faults, load balancer state, credential, autoscaler."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors, status
from magnum.drivers.k8s_capi_helm.cloud import Cloud
from magnum.drivers.k8s_capi_helm.model import Json, LiveRelease, Missing, names, Observed, secrets
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.process.clients import Clients
from magnum.drivers.k8s_capi_helm.status.objects import infrastructure
from magnum.drivers.k8s_capi_helm.values.tree import live as values_live

LOG = logging.getLogger(__name__)


def add_cloud_observations(
    run: Reconciliation,
    observed: Observed,
    owner: secrets.Owner,
    live: LiveRelease | None,
    *,
    is_settled: bool,
    recorded_text: str = "",
) -> Observed:
    """The look with what the others say; each is asked only where that may matter.

    :param live: the release, whose credential and autoscaler are asked about; None for neither.
    :param is_settled: whether the cluster is complete; then its credential is tried less often.
    :param recorded_text: what its row says of its credential.
    """
    clients, cloud = run.clients, run.cloud
    observed = _with_faults(observed, cloud)
    observed = _with_balancer(observed, owner, cloud)
    if live is None:
        return observed
    problem = clients.credential_check.problem(
        clients.kube,
        owner,
        cloud,
        observed.at,
        is_waiting=not is_settled,
        recorded_text=recorded_text,
    )
    return dataclasses.replace(
        observed, credential=problem, autoscaler=_autoscaler(clients, owner, live)
    )


def is_cloud_needed(observed: Observed) -> bool:
    """Whether something of a snapshot is asked of OpenStack itself, which cannot be watched."""
    return bool(status.servers_in_error(observed)) or infrastructure.is_balancer_awaited(observed)


def _autoscaler(
    clients: Clients, owner: secrets.Owner, live: LiveRelease
) -> tuple[Json, ...] | Missing | None:
    entries = values_live.node_groups(live.values).values()
    if not any(values_live.is_autoscaled(entry) for entry in entries):
        return None
    selector = {
        names.LABEL_CHART_CLUSTER: owner.release,
        names.LABEL_CHART_COMPONENT: names.AUTOSCALER,
    }
    try:
        return tuple(clients.kube.list(names.DEPLOYMENT, owner.namespace, selector))
    except errors.DriverError as error:
        LOG.warning(
            "Cluster %s: its autoscaler cannot be read: %s", owner.cluster_uuid, error.detail
        )
        return Missing.UNREADABLE


def _with_faults(observed: Observed, cloud: Callable[[], Cloud]) -> Observed:
    failed = status.servers_in_error(observed)
    if not failed:
        return observed
    try:
        return dataclasses.replace(observed, server_faults=cloud().server_faults(failed))
    except errors.DriverError as error:
        LOG.warning("Servers %s: their faults cannot be read: %s", ", ".join(failed), error.detail)
        return observed


def _with_balancer(
    observed: Observed, owner: secrets.Owner, cloud: Callable[[], Cloud]
) -> Observed:
    """The look with the load balancer of which nobody says anything on the management cluster."""
    if not infrastructure.is_balancer_awaited(observed):
        return observed
    name = names.api_balancer(owner.namespace, owner.release)
    try:
        failed = cloud().is_balancer_failed(name, owner.project_id)
    except errors.DriverError as error:
        LOG.warning(
            "Cluster %s: load balancer %s cannot be read: %s",
            owner.cluster_uuid,
            name,
            error.detail,
        )
        return observed
    return dataclasses.replace(observed, failed_balancer=name if failed else "")
