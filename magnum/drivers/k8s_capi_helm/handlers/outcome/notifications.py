# SPDX-License-Identifier: Apache-2.0
"""Send the notifications that Magnum does not: recoveries, node counts, nodegroup requests.

Magnum's conductor sends a CADF event when a request about a cluster begins or is refused
(``magnum/conductor/handlers/cluster_conductor.py``), and its status task when a pass ends one
(``magnum/service/periodic.py``). It sends none for requests about nodegroups, and none for what its
health task changes.

The conductor that has written the row sends the event after that, so of several conductors one
does. One that dies in between sends nothing, as with Magnum's own; the next event has the counts.
"""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
from typing import Any

from oslo_log import log as logging
from pycadf import cadftaxonomy as taxonomy

from magnum.conductor import utils as conductor_utils
from magnum.service import periodic

LOG = logging.getLogger(__name__)


def notify_ended(context: Any, cluster: Any) -> None:
    """Send what the status of a cluster says has ended, as Magnum's status task would."""
    action = periodic.ClusterUpdateJob.status_to_event.get(cluster.status)
    if action is not None:
        is_failed = cluster.status.endswith("_FAILED")
        outcome = taxonomy.OUTCOME_FAILURE if is_failed else taxonomy.OUTCOME_SUCCESS
        _notify(context, action, outcome, cluster)


def notify_node_counts(context: Any, cluster: Any) -> None:
    """Send that the autoscaler, or an operator, has changed the number of nodes of a cluster."""
    _notify(context, taxonomy.ACTION_UPDATE, taxonomy.OUTCOME_SUCCESS, cluster)


@contextlib.contextmanager
def notify_request(context: Any, cluster: Any) -> Iterator[None]:
    """Send for a request about a nodegroup what Magnum sends for those about a cluster.

    What it ends within the request is sent here, too: no status task visits the cluster then.
    """
    _notify(context, taxonomy.ACTION_UPDATE, taxonomy.OUTCOME_PENDING, cluster)
    try:
        yield
    except Exception:
        # Magnum makes the cluster UPDATE_FAILED, without a word.
        _notify(context, taxonomy.ACTION_UPDATE, taxonomy.OUTCOME_FAILURE, cluster)
        raise
    notify_ended(context, cluster)


def _notify(context: Any, action: str, outcome: str, cluster: Any) -> None:
    """Send one event; what keeps it from being sent keeps nothing else from being done."""
    try:
        conductor_utils.notify_about_cluster_operation(context, action, outcome, cluster)
    except Exception:
        LOG.exception("Cluster %s: the notification '%s' is not sent.", cluster.uuid, action)
