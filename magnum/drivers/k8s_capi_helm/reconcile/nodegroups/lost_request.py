# SPDX-License-Identifier: Apache-2.0
"""When a nodegroup's request counts as lost, and a reconciliation creates the nodegroup."""

from __future__ import annotations

from collections.abc import Callable, Iterable
import dataclasses
import datetime
from typing import Any

from magnum.drivers.k8s_capi_helm.model import ClusterRequest, Json, Operation, operation
from magnum.drivers.k8s_capi_helm.reconcile.process.clients import Clients
from magnum.drivers.k8s_capi_helm.values.tree import live as values_live

#: A request is checked by then: Magnum's API waits a minute for an answer, unless an operator has
#: said otherwise.
CHECKED_BY_THEN = datetime.timedelta(minutes=5)


def is_recent(clients: Clients, now: datetime.datetime) -> Callable[[Any], bool]:
    """Whether this process has seen a nodegroup's row for less than its request takes.

    :param now: aware, UTC.
    """
    return lambda nodegroup: (
        clients.first_seen.age(nodegroup.uuid, nodegroup.created_at, now) < CHECKED_BY_THEN
    )


def without_unvalidated(
    request: ClusterRequest, operations: Iterable[Operation], live: Json
) -> ClusterRequest:
    """The request without nodegroups whose own requests are still being checked.

    Magnum saves the row of a nodegroup before it calls the driver, and any pass sees it from then
    on. Only the request itself can refuse it or make its server group; then it is on record. One
    that is not by the time that a request takes has lost its conductor, and is carried out.

    :param operations: the operations on record.
    :param live: values of the live release, in which a group is no newcomer any more.
    """
    operations, entries = tuple(operations), values_live.node_groups(live)
    node_groups = (
        nodegroup
        for nodegroup in request.node_groups
        if not nodegroup.may_be_unvalidated
        or nodegroup.name in entries
        or operation.is_creation_recorded(operations, nodegroup.name, nodegroup.uuid)
    )
    return dataclasses.replace(request, node_groups=tuple(node_groups))
