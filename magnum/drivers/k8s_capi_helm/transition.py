# SPDX-License-Identifier: Apache-2.0
"""An upgrade on its way: what is refused before it, its first values, and when groups follow."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

from magnum.drivers.k8s_capi_helm import change, helm_values, intake, observer, status, upgrade
from magnum.drivers.k8s_capi_helm.assembly import Ports
from magnum.drivers.k8s_capi_helm.model import (
    Chart,
    CloudFacts,
    ClusterRequest,
    GroupState,
    Json,
    LiveRelease,
    Operation,
    Record,
    Target,
    Verb,
)


def pending(record: Record | None) -> Operation | None:
    """The upgrade that is on its way, None without one. Magnum lets only one through at a time."""
    operations = record.operations if record else ()
    return next((one for one in reversed(operations) if one.verb is Verb.UPGRADE), None)


def unfinished(record: Record | None, values: Json) -> frozenset[str]:
    """Ids of the operations that have to stay on record, whatever the rows say."""
    operations = record.operations if record else ()
    return frozenset(one.id for one in operations if upgrade.held(values, one))


def is_due(ports: Ports, record: Record | None, live: LiveRelease | None) -> bool:
    """Whether the next step of an upgrade can be taken now."""
    operation = pending(record)
    if operation is None or live is None:
        return False
    if not operation.accepted:
        return True
    return bool(upgrade.held(live.values, operation)) and _control_plane_is_through(ports, live)


def begun(
    live: Json,
    request: ClusterRequest,
    target: Target,
    operation: Operation,
    facts: CloudFacts,
    conf: Any,
) -> Json:
    """The values with which an upgrade begins; nothing is touched.

    :param request: what the rows ask for now.
    :param facts: as :meth:`cloud.Cloud.software` gives them for the target.
    :raises errors.InvalidRequest: the cluster cannot go there.
    """
    intake.check_software(target.request, facts)
    theirs = rendered(target.request, facts, conf)
    have, wanted = upgrade.versions(live), theirs["kubernetesVersion"]
    if change.CONTROL_PLANE not in operation.groups:
        for name in operation.groups:
            upgrade.check_node_group(name, have[name], wanted, have[change.CONTROL_PLANE])
            live = upgrade.moved(live, name, wanted, facts.image_id, operation.batch)
        return live
    kept = {name: have[name] for name in have if name not in operation.groups}
    upgrade.check_control_plane(have[change.CONTROL_PLANE], wanted, kept)
    untagged = dataclasses.replace(request.labels, kube_tag=None)
    base = rendered(dataclasses.replace(request, labels=untagged), facts, conf)
    return upgrade.begun(live, base, theirs)


def chart(ports: Ports, operation: Operation, target: Target) -> Chart | None:
    """The chart that an upgrade leads to; None if it keeps the live one, as for a nodegroup alone.

    :raises errors.DriverError: it is not to be had.
    """
    if change.CONTROL_PLANE not in operation.groups:
        return None
    return ports.charts.wanted(target.request.labels.capi_helm_chart_version)


def groups(nodegroup: Any, name: str, request: ClusterRequest) -> tuple[str, ...]:
    """What an upgrade is about: Magnum names the default worker group for a whole cluster.

    :param name: the nodegroup's in the values.
    """
    if nodegroup.role == intake.MASTER:
        return (change.CONTROL_PLANE,)
    if not nodegroup.is_default:
        return (name,)
    return (change.CONTROL_PLANE, *(group.name for group in request.node_groups))


def rendered(request: ClusterRequest, facts: CloudFacts, conf: Any) -> Json:
    """All values as this cloud's configuration wants them.

    :raises errors.InvalidRequest: rows and cloud contradict each other.
    """
    return helm_values.render(
        request,
        facts,
        storage_class_default=conf.capi_helm.csi_cinder_default_volume_type or None,
        allowed_topologies=conf.capi_helm.csi_cinder_allowed_topologies,
    )


def _control_plane_is_through(ports: Ports, live: LiveRelease) -> bool:
    now = datetime.datetime.now(datetime.UTC)
    observed = observer.look(ports.kube, live.namespace, live.name, now)
    wanted = GroupState(
        name=change.CONTROL_PLANE,
        status="",
        count=change.count(live.values, None),
        is_control_plane=True,
        version=upgrade.versions(live.values)[change.CONTROL_PLANE].removeprefix("v"),
    )
    return status.control_plane_in_place(observed, wanted)
