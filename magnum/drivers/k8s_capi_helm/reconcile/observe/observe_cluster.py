# SPDX-License-Identifier: Apache-2.0
"""A snapshot of one cluster: Cluster API's objects, and what only others know of it."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

from magnum.drivers.k8s_capi_helm.kube.watch import snapshot
from magnum.drivers.k8s_capi_helm.kube.watch.informers import CachedReader
from magnum.drivers.k8s_capi_helm.model import LiveRelease, Observed
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.observe import observe_cloud
from magnum.drivers.k8s_capi_helm.reconcile.ownership import ownership


def observe(
    run: Reconciliation,
    cluster: Any,
    live: LiveRelease | None,
    view: CachedReader | None,
    objects: Observed | None = None,
    *,
    include_health: bool = False,
) -> Observed:
    """A snapshot with what others than Cluster API know.

    :param live: the deployed release; None where there is none or it is unknown.
    :param view: through which objects are read; None to ask for all of them.
    :param objects: Cluster API's, where the API server was asked for all of them already.
    :param include_health: whether the health is asked for as well.
    """
    clients, owner = run.clients, ownership.owner(cluster, run.settings)
    at = run.now - datetime.timedelta(seconds=view.behind if view else 0.0)
    kube = view or clients.kube
    observed = objects or snapshot.take_snapshot(kube, owner.namespace, owner.release, at)
    if observed.unreachable:
        return observed
    health = dict(cluster.health_status_reason or {})
    recorded_texts = "\n".join((cluster.status_reason or "", *health.values()))
    observed = clients.controller_check.observe_controllers(clients.kube, observed, recorded_texts)
    is_settled = cluster.status.endswith("_COMPLETE")
    text = health.get("credential", "")
    observed = observe_cloud.add_cloud_observations(
        run, observed, owner, live, is_settled=is_settled, recorded_text=text
    )
    if not (include_health and is_settled):
        return observed
    inside = clients.addon_check.inside(
        clients.kube, owner.namespace, owner.release, observed, health.get("inside", "")
    )
    return dataclasses.replace(observed, inside=inside)
