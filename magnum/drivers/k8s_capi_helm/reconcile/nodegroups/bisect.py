# SPDX-License-Identifier: Apache-2.0
"""Bisect the nodegroups of a pass that Helm refuses: fail those, apply the others.

In the good case everything goes through Helm in one run. Only when that is refused, what is wanted
of single nodegroups is tried in halves, on top of what is known to be accepted. A new group that is
refused never enters the release; one that is there stays as it is, and its row goes back to that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
import dataclasses
from typing import Any, TypeVar

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import (
    ClusterRequest,
    Json,
    LiveRelease,
    NodeGroupRequest,
    Operation,
    Verb,
)
from magnum.drivers.k8s_capi_helm.reconcile.nodegroups import node_removal
from magnum.drivers.k8s_capi_helm.reconcile.process.clients import Clients
from magnum.drivers.k8s_capi_helm.values import change
from magnum.drivers.k8s_capi_helm.values.tree import live as values_live

LOG = logging.getLogger(__name__)
Release = TypeVar("Release")

#: What changes nodegroups that are there.
_CHANGES = (Verb.NODEGROUP_UPDATE, Verb.RESIZE)
#: What can be left out of a pass for single nodegroups.
_SINGLE = (Verb.NODEGROUP_CREATE, *_CHANGES)


def accepted_release(clients: Clients, live: LiveRelease) -> LiveRelease:
    """The live release without what only a failed or interrupted revision says of nodegroups.

    Helm keeps the values of a revision that the management cluster has refused, or would have, had
    helm not been killed: groups in there were never made, and changes of groups that nobody has
    accepted.
    """
    if live.status == "deployed":
        return live
    deployed = clients.helm.deployed_release(live.namespace, live.name)
    if deployed is None:
        return live
    return dataclasses.replace(live, values=change.without_unaccepted(live.values, deployed.values))


def changed_nodegroups(operations: Iterable[Operation]) -> tuple[str, ...]:
    """Nodegroups that are there and are to be changed, and the control plane; each once."""
    return tuple(
        dict.fromkeys(
            name
            for operation in operations
            if operation.verb in _CHANGES
            for name in operation.groups
        )
    )


def without_nodegroups(
    operations: Iterable[Operation], names: Collection[str]
) -> tuple[Operation, ...]:
    """Operations without what is wanted of the nodegroups *names*; what goes, goes."""
    remaining = []
    for operation in operations:
        if operation.verb in _SINGLE:
            nodegroups = tuple(name for name in operation.groups if name not in names)
            if operation.groups and not nodegroups:
                continue
            operation = dataclasses.replace(operation, groups=nodegroups)
        remaining.append(operation)
    return tuple(remaining)


def apply_with_bisect(
    nodegroups: Sequence[str],
    attempt: Callable[[Collection[str]], Release],
    apply_without: Callable[[], Any],
    refuse: Callable[[str, errors.DriverError], None],
) -> Release:
    """Bring the release to what is asked for, as far as Helm takes it.

    :param nodegroups: of which something is wanted, new ones and others.
    :param attempt: brings it there with what is wanted of these and no others; does nothing when
        it is there already.
    :param apply_without: the same with none of them; called when something was refused.
    :param refuse: called with each group of which Helm does not take what is wanted, and with why.
    :returns: what the last attempt returned.
    :raises errors.DriverError: it is refused without any of it, too.
    """
    accepted: frozenset[str] = frozenset()
    untried = [tuple(nodegroups)] if nodegroups else []
    applied: Release | None = None
    while untried:
        candidates = untried.pop()
        try:
            applied = attempt(accepted | set(candidates))
        except errors.HelmRefused as error:
            applied = None
            if len(candidates) == len(nodegroups):
                # Chart, release or management cluster may be to blame; that raises here.
                apply_without()
            if len(candidates) == 1:
                refuse(candidates[0], error)
            else:
                half = len(candidates) // 2
                untried += [candidates[half:], candidates[:half]]
        else:
            accepted |= set(candidates)
    return attempt(accepted) if applied is None else applied


def has_newer_request(previous: ClusterRequest, current: ClusterRequest, name: str) -> bool:
    """Whether something else was asked for of a nodegroup since: then nothing is rolled back.

    :param name: of the nodegroup, or ``values.tree.live.CONTROL_PLANE``.
    """
    if _nodegroup_request(current, name) == _nodegroup_request(previous, name):
        return False
    LOG.info(
        "Cluster %s: a newer request for %s is pending, nothing is rolled back.",
        previous.uuid,
        name,
    )
    return True


def previous_fields(
    live: LiveRelease,
    request: ClusterRequest,
    recorded_operations: Sequence[Operation],
    missing: Sequence[Operation],
    name: str,
) -> tuple[Json, list[str]]:
    """The fields of a nodegroup's row as the release has them, and the operations about it.

    :param live: the release before.
    :param recorded_operations: operations on record when it was tried.
    :param missing: what the release lacked; a conductor may have died before it was on record.
    :param name: of the nodegroup, or ``values.tree.live.CONTROL_PLANE``.
    """
    nodegroup = None if name == values_live.CONTROL_PLANE else name
    entry_name = request.control_plane.name if nodegroup is None else name
    own_operations = [
        operation
        for operation in recorded_operations
        if operation.verb in _CHANGES and operation.groups == (entry_name,)
    ]
    requested = [
        dataclasses.replace(operation, groups=(entry_name,))
        for operation in missing
        if name in operation.groups
    ]
    return change.nodegroup_fields(live.values, nodegroup, [*own_operations, *requested]), [
        operation.id for operation in own_operations
    ]


def remove_node_annotations(clients: Clients, request: ClusterRequest, name: str) -> None:
    """Take the marks of nodes that were to be removed off a nodegroup's machines.

    :raises errors.DriverError: the management cluster cannot be used.
    """
    nodegroup = None if name == values_live.CONTROL_PLANE else name
    node_removal.remove_nodegroup_annotations(
        clients.kube, request.namespace, request.release, nodegroup
    )


def _nodegroup_request(request: ClusterRequest, name: str) -> NodeGroupRequest | None:
    if name == values_live.CONTROL_PLANE:
        return request.control_plane
    return next((nodegroup for nodegroup in request.node_groups if nodegroup.name == name), None)
