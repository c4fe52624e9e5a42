# SPDX-License-Identifier: Apache-2.0
"""An upgrade in progress: its chart, its nodegroups, and whether its next step is due."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
from typing import Any

from magnum.drivers.k8s_capi_helm import errors, labels, status
from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.kube.watch import snapshot
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import reader
from magnum.drivers.k8s_capi_helm.model import (
    Chart,
    ClusterRequest,
    GroupState,
    Json,
    LiveRelease,
    Observed,
    Operation,
    ReleaseRecord,
    UpgradeTarget,
    Verb,
)
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import (
    Reconciliation,
    ReleaseSnapshot,
)
from magnum.drivers.k8s_capi_helm.reconcile.process.clients import Clients
from magnum.drivers.k8s_capi_helm.values.tree import live as values_live
from magnum.drivers.k8s_capi_helm.values.upgrade import deferred, upgrade, upgrade_nodegroups


def pending_upgrade(record: ReleaseRecord | None) -> Operation | None:
    """The upgrade that is on its way, None without one. Only one at a time is written down."""
    operations = record.operations if record else ()
    upgrades = [operation for operation in operations if operation.verb is Verb.UPGRADE]
    return upgrades[-1] if upgrades else None


def is_step_due(
    record: ReleaseRecord | None,
    live: LiveRelease | None,
    request: ClusterRequest,
    objects: Observed | None,
) -> bool:
    """Whether the next step of an upgrade can be taken now.

    :param objects: Cluster API's, None where they were not read: then no nodegroup can follow.
    """
    operation = pending_upgrade(record)
    if operation is None or live is None:
        return False
    if not operation.is_accepted:
        return True
    return are_nodegroups_due(record, live, request) and is_control_plane_upgraded(objects, live)


def are_nodegroups_due(
    record: ReleaseRecord | None, live: LiveRelease | None, request: ClusterRequest
) -> bool:
    """Whether nodegroups take their step of an upgrade as soon as the control plane is ready."""
    operation = pending_upgrade(record)
    if operation is None or record is None or live is None or not operation.is_accepted:
        return False
    names = upgrade_nodegroups.due_nodegroups(live.values, operation, request, record.deferred)
    return bool(names)


def is_control_plane_upgraded(objects: Observed | None, live: LiveRelease) -> bool:
    """Whether the control plane is ready, of the version that the release has."""
    state = GroupState(
        name=values_live.CONTROL_PLANE,
        status="",
        count=values_live.count(live.values, None),
        is_control_plane=True,
        version=upgrade.versions(live.values)[values_live.CONTROL_PLANE].removeprefix("v"),
    )
    return objects is not None and status.is_control_plane_ready(objects, state)


def read_objects(
    run: Reconciliation, current: ReleaseSnapshot, request: ClusterRequest
) -> ReleaseSnapshot:
    """Record and release with Cluster API's objects, where the next step depends on them.

    What comes from a watch can put the step off by a reconciliation, and never take it.
    """
    record, live = current.record, current.live
    if live is None or current.objects or not are_nodegroups_due(record, live, request):
        return current
    if current.observed and not is_control_plane_upgraded(current.observed, live):
        return current
    return _with_objects(run, current, live)


def _with_objects(
    run: Reconciliation, current: ReleaseSnapshot, live: LiveRelease
) -> ReleaseSnapshot:
    objects = snapshot.take_snapshot(
        run.clients.kube, live.namespace, live.name, run.clients.clock()
    )
    return dataclasses.replace(current, observed=None, objects=objects)


def with_new_nodegroups(
    run: Reconciliation,
    current: ReleaseSnapshot,
    request: ClusterRequest,
    ready: dict[str, Json],
) -> tuple[LiveRelease, dict[str, Json]]:
    """Entries of new nodegroups, as far as upgrades have come.

    They have at once what upgrades have brought and the defaults do not have yet, and wait for the
    control plane like those that exist.

    :param current: record and release; there is a release.
    :param ready: their entries by name.
    :returns: with the release that they are to be added to, whose machines are those of *current*.
    :raises errors.DriverError: the record cannot be written.
    """
    live = current.live
    assert live is not None
    changes = current.record.deferred if current.record else ()
    if ready and changes:
        values, ready = deferred.expand_for_new(live.values, ready, changes)
        live = dataclasses.replace(live, values=values)
        # Changes that wait for former nodegroups of these names are not for the new ones.
        remaining = deferred.left_over(changes, ready, live.values, include_shared=False)
        run.clients.leases.defer(live.namespace, live.name, remaining)
    current = dataclasses.replace(current, live=live)
    return live, _join_upgrade(run, current, request, ready)


def _join_upgrade(
    run: Reconciliation,
    current: ReleaseSnapshot,
    request: ClusterRequest,
    ready: dict[str, Json],
) -> dict[str, Json]:
    """Entries of new nodegroups, which are recorded as part of an upgrade of the control plane.

    So they follow with the others.
    """
    live, operation = current.live, pending_upgrade(current.record)
    if live is None or operation is None or values_live.CONTROL_PLANE not in operation.groups:
        return ready
    new = [name for name, entry in ready.items() if not upgrade.is_pinned(entry)]
    if not new:
        return ready
    current = current if current.objects else _with_objects(run, current, live)
    is_upgraded = is_control_plane_upgraded(current.objects, live)
    if operation.is_accepted and is_upgraded:
        return ready
    nodegroups = tuple(dict.fromkeys((*operation.groups, *new)))
    joined = dataclasses.replace(operation, groups=nodegroups)
    run.clients.leases.add(live.namespace, live.name, joined)
    if is_upgraded:
        return ready
    own = request.own_images
    return {name: upgrade.pinned_entry(entry, live.values, own) for name, entry in ready.items()}


def new_chart(clients: Clients, cluster_labels: labels.Labels) -> Chart:
    """The chart that a cluster with these labels is made with.

    :raises errors.DriverError: it is not allowed, or not to be had.
    """
    return clients.charts.for_new_cluster(
        cluster_labels.capi_helm_chart_version,
        name=cluster_labels.capi_helm_chart_name,
        repository=cluster_labels.capi_helm_chart_repo,
    )


def chart(
    clients: Clients, operation: Operation, target: UpgradeTarget, live: LiveRelease, conf: Settings
) -> Chart | None:
    """The chart that an upgrade leads to; None if it keeps the live one, as for a nodegroup alone.

    :raises errors.InvalidRequest: it is of another family than the live one.
    :raises errors.DriverError: it is not allowed, or not to be had.
    """
    if values_live.CONTROL_PLANE not in operation.groups:
        return None
    new = new_chart(clients, target.request.labels)
    is_same = new.family == live.chart_family and (new.family or new.name == live.chart_name)
    if not (is_same or conf.capi_helm.allow_chart_family_change):
        raise errors.InvalidRequest(
            "The template has a chart of another family, which would replace all machines. It has "
            f"'{new.name}' {new.version}, and the cluster has '{live.chart_name}' "
            f"{live.chart_version}. Use a template of the same chart, or ask the cloud's operator.",
            f"family '{live.chart_family}' to '{new.family}'; [capi_helm] "
            "allow_chart_family_change is false",
        )
    return new


def interrupted_chart(
    clients: Clients,
    record: ReleaseRecord | None,
    live: LiveRelease,
    target: Callable[[Operation], UpgradeTarget],
) -> Chart | None:
    """The chart of an upgrade that a run of Helm was in the middle of, None for any other run.

    The release is of that chart already, and the record still has the one before.

    :raises errors.DriverError: the chart is not to be had any more.
    """
    operation = pending_upgrade(record)
    if live.status == "deployed" or operation is None or operation.is_accepted:
        return None
    if values_live.CONTROL_PLANE not in operation.groups:
        return None
    new = new_chart(clients, target(operation).request.labels)
    is_same = (new.name, new.version) == (live.chart_name, live.chart_version)
    return new if is_same else None


def groups(
    nodegroup: Any, name: str, request: ClusterRequest, live: Json, image: str
) -> tuple[str, ...]:
    """What an upgrade is about: Magnum names the default worker group for a whole cluster.

    Nodegroups with an image of their own are none of a cluster's; each is upgraded by its name.

    :param name: the nodegroup's in the values.
    :param image: the one that the upgrade leads to.
    """
    if nodegroup.role == reader.MASTER:
        return (values_live.CONTROL_PLANE,)
    if not nodegroup.is_default:
        return (name,)
    following = upgrade_nodegroups.nodegroups_to_upgrade(request, live, image)
    return (values_live.CONTROL_PLANE, *following)
