# SPDX-License-Identifier: Apache-2.0
"""Poll the health of failed clusters on releases of Magnum that do not poll it.

From Magnum 22 on ``sync_cluster_health_status`` (``magnum/service/periodic.py``) lists failed
clusters too; Magnum 20 and 21 list only clusters that are complete or being updated. There a failed
cluster that has become healthy would stay failed, and one that a refused request has left
UPDATE_FAILED would accept no update.
"""

from __future__ import annotations

from collections.abc import Callable
import threading
from typing import Any

from oslo_log import log as logging

import magnum.conf
from magnum.drivers.k8s_capi_helm.handlers.entry import log_context
from magnum.drivers.k8s_capi_helm.magnum_objects.rows.writer import Status
from magnum.drivers.k8s_capi_helm.reconcile.ownership import ownership
from magnum.objects import cluster as cluster_object
from magnum.service import periodic
from magnum.version import version_info

LOG = logging.getLogger(__name__)

#: The first release of Magnum whose own health poll includes failed clusters.
_MAGNUM_POLLS = 22
#: What oslo.service takes for an interval of 0, in seconds.
_DEFAULT_INTERVAL = 60.0
_FAILED = (Status.CREATE_FAILED, Status.UPDATE_FAILED, Status.DELETE_FAILED)


def polls(release: str) -> list[Callable[[threading.Event], None]]:
    """What a thread has to run beside a Magnum of this release: one function, or none."""
    return [serve] if int(release.partition(".")[0]) < _MAGNUM_POLLS else []


def magnum_release() -> str:
    """The version of the Magnum that runs, as "21.0.1"."""
    return str(version_info.version_string())


def serve(stop_event: threading.Event) -> None:
    """Poll once per ``[kubernetes] health_polling_interval``, until *stop_event* is set.

    As with Magnum's own poll, a negative interval turns it off.
    """
    seconds = float(magnum.conf.CONF.kubernetes.health_polling_interval)
    if seconds < 0:
        return
    while not stop_event.wait(seconds or _DEFAULT_INTERVAL):
        try:
            poll_health(log_context.make_admin_context())
        except Exception:
            # The database may be away for a while; the thread serves all clusters.
            LOG.exception("The health of failed clusters cannot be polled; the next round tries.")


def poll_health(context: Any) -> None:
    """Run Magnum's own health job for each failed cluster that may be this driver's."""
    clusters = cluster_object.Cluster.list(context, filters={"status": list(_FAILED)})
    for cluster in clusters:
        if not cluster.stack_id or ownership.foreign_reason(cluster):
            continue
        with log_context.log_errors(cluster, log_context.HEALTH_TASK, context):
            periodic.ClusterHealthUpdateJob(context, cluster).update_health_status()
