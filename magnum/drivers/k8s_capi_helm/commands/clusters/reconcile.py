# SPDX-License-Identifier: Apache-2.0
"""``k8s-capi-helm reconcile``: Magnum's periodic tasks of a cluster, now."""

from __future__ import annotations

import argparse
from typing import Any

from magnum.common import exception
from magnum.drivers.k8s_capi_helm.commands.lookup.clusters import (
    add_clusters_argument,
    find_own_cluster,
)
from magnum.drivers.k8s_capi_helm.commands.output.lister import ExitStatus, OperatorLister, Rows
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.objects import Cluster

COLUMNS = ("Cluster", "UUID", "Before", "After", "Health", "Reason")
_GONE = "deleted"


class Reconcile(OperatorLister):
    """Run Magnum's status and health tasks for clusters now, as a conductor does.

    Pending operations are continued, and status and health are written. Conductors may run: the
    lock of the release decides who acts. Exit status 0: COMPLETE and not unhealthy, 1: in progress,
    2: FAILED or UNHEALTHY, 3: it could not be done.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Which clusters."""
        parser = super().get_parser(prog_name)
        add_clusters_argument(parser)
        return parser

    def rows(self, run: Reconciliation, arguments: argparse.Namespace) -> Rows:
        """A row for each cluster, with its status before and after."""
        rows, worst = [], ExitStatus.OK
        for cluster in list(map(find_own_cluster, arguments.clusters)):
            before = cluster.status
            self.program.conductor().run_tasks(cluster)
            after = _read(cluster)
            status, health = (after.status, after.health_status) if after else (_GONE, "")
            reason = (after.status_reason or "") if after else ""
            rows.append((cluster.name, cluster.uuid, before, status, health or "", reason))
            worst = max(worst, _status(status, health or ""))
        return COLUMNS, rows, worst


def _read(cluster: Any) -> Any | None:
    """The cluster as it is stored now, None if it is gone."""
    try:
        return Cluster.get_by_uuid(cluster.obj_context, cluster.uuid)
    except exception.ClusterNotFound:
        return None


def _status(status: str, health: str) -> ExitStatus:
    if status.endswith("_FAILED") or health == "UNHEALTHY":
        return ExitStatus.CRITICAL
    return ExitStatus.WARNING if status.endswith("_IN_PROGRESS") else ExitStatus.OK
