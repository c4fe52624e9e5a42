# SPDX-License-Identifier: Apache-2.0
"""Bisect the nodegroups of a pass that Helm refuses: fail those, apply the others.

In the good case everything goes through Helm in one run. Only when that is refused, what is wanted
of single nodegroups is tried in halves, on top of what is known to be accepted. A new group that is
refused never enters the release; one that is there stays as it is, and its row goes back to that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
import dataclasses
from typing import Any

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
from magnum.drivers.k8s_capi_helm.reconcile import node_removal
from magnum.drivers.k8s_capi_helm.reconcile.clients import Clients
from magnum.drivers.k8s_capi_helm.values import change
from magnum.drivers.k8s_capi_helm.values import live as values_live

LOG = logging.getLogger(__name__)

#: What changes nodegroups that are there.
_CHANGES = (Verb.NODEGROUP_UPDATE, Verb.RESIZE)
#: What can be left out of a pass for single nodegroups.
_SINGLE = (Verb.NODEGROUP_CREATE, *_CHANGES)


def record(ports: Clients, live: LiveRelease) -> LiveRelease:
    """The live release without what only a failed or interrupted revision says of nodegroups.

    Helm keeps the values of a revision that the management cluster has refused, or would have, had
    helm not been killed: groups in there were never made, and changes of groups that nobody has
    accepted.
    """
    if live.status == "deployed":
        return live
    deployed = ports.helm.deployed(live.namespace, live.name)
    if deployed is None:
        return live
    return dataclasses.replace(live, values=change.without_unaccepted(live.values, deployed.values))


def changed(operations: Iterable[Operation]) -> tuple[str, ...]:
    """Nodegroups that are there and are to be changed, and the control plane; each once."""
    return tuple(
        dict.fromkeys(name for one in operations if one.verb in _CHANGES for name in one.groups)
    )


def without(operations: Iterable[Operation], left_out: Collection[str]) -> tuple[Operation, ...]:
    """Operations without what is wanted of the nodegroups *left_out*; what goes, goes."""
    kept = []
    for operation in operations:
        if operation.verb in _SINGLE:
            groups = tuple(name for name in operation.groups if name not in left_out)
            if operation.groups and not groups:
                continue
            operation = dataclasses.replace(operation, groups=groups)
        kept.append(operation)
    return tuple(kept)


def apply_with_bisect(
    groups: Sequence[str],
    attempt: Callable[[Collection[str]], LiveRelease],
    known_good: Callable[[], Any],
    refuse: Callable[[str, errors.DriverError], None],
) -> LiveRelease:
    """Bring the release to what is asked for, as far as Helm takes it.

    :param groups: of which something is wanted, new ones and others.
    :param attempt: brings it there with what is wanted of these and no others; does nothing when
        it is there already.
    :param known_good: the same with none of them; called when something was refused.
    :param refuse: called with each group of which Helm does not take what is wanted, and with why.
    :raises errors.DriverError: it is refused without any of it, too.
    """
    accepted: frozenset[str] = frozenset()
    rest = [tuple(groups)] if groups else []
    while rest:
        some = rest.pop()
        try:
            attempt(accepted | set(some))
        except errors.HelmRefused as error:
            if len(some) == len(groups):
                # Chart, release or management cluster may be to blame; that raises here.
                known_good()
            if len(some) == 1:
                refuse(some[0], error)
            else:
                middle = len(some) // 2
                rest += [some[middle:], some[:middle]]
        else:
            accepted |= set(some)
    return attempt(accepted)


def is_requested_anew(tried: ClusterRequest, current: ClusterRequest, name: str) -> bool:
    """Whether something else was asked for of a nodegroup since: then nothing is rolled back.

    :param name: of the nodegroup, or ``values.live.CONTROL_PLANE``.
    """
    if _asked(current, name) == _asked(tried, name):
        return False
    LOG.info(
        "Cluster %s: a newer request for %s is pending, nothing is rolled back.", tried.uuid, name
    )
    return True


def fields_before(
    live: LiveRelease,
    request: ClusterRequest,
    recorded: Sequence[Operation],
    tried: Sequence[Operation],
    name: str,
) -> tuple[Json, list[str]]:
    """The fields of a nodegroup's row as the release has them, and the operations about it.

    :param live: the release before.
    :param recorded: operations on record when it was tried.
    :param tried: what the release lacked; a conductor may have died before it was on record.
    :param name: of the nodegroup, or ``values.live.CONTROL_PLANE``.
    """
    group = None if name == values_live.CONTROL_PLANE else name
    called = request.control_plane.name if group is None else name
    mine = [one for one in recorded if one.verb in _CHANGES and one.groups == (called,)]
    asked = [dataclasses.replace(one, groups=(called,)) for one in tried if name in one.groups]
    return change.nodegroup_fields(live.values, group, [*mine, *asked]), [one.id for one in mine]


def remove_node_annotations(ports: Clients, request: ClusterRequest, name: str) -> None:
    """Take the marks of nodes that were to be removed off a nodegroup's machines.

    :raises errors.DriverError: the management cluster cannot be used.
    """
    group = None if name == values_live.CONTROL_PLANE else name
    node_removal.remove_group_annotations(ports.kube, request.namespace, request.release, group)


def _asked(request: ClusterRequest, name: str) -> NodeGroupRequest | None:
    if name == values_live.CONTROL_PLANE:
        return request.control_plane
    return next((group for group in request.node_groups if group.name == name), None)
