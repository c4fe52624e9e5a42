# SPDX-License-Identifier: Apache-2.0
"""What Magnum's periodic tasks do with one cluster: carry on, delete on, watch over."""

from __future__ import annotations

import datetime
import threading
from typing import Any

from oslo_log import log as logging

from magnum.common import context as magnum_context
from magnum.drivers.k8s_capi_helm import (
    assembly,
    certificates,
    deletion,
    errors,
    intake,
    names,
    ownership,
    reconcile,
    secrets,
    survey,
    teardown,
)
from magnum.drivers.k8s_capi_helm.cloud import Cloud
from magnum.drivers.k8s_capi_helm.driver import rows
from magnum.drivers.k8s_capi_helm.driver.rows import Status
from magnum.drivers.k8s_capi_helm.model import ClusterRequest, Verdict

LOG = logging.getLogger(__name__)

#: A create that has not saved its release by then has died.
_CREATE_START_LIMIT = datetime.timedelta(minutes=10)
#: Seconds until the tombstone of a deleted cluster is removed: Magnum destroys the row in between.
_SWEEP_AFTER = 30.0


def request(cluster: Any, conf: Any) -> ClusterRequest:
    """What the rows ask for, read now."""
    return intake.cluster_request(cluster, cluster.nodegroups, conf)


def admin_cloud() -> Cloud:
    """The cloud as Magnum's service user sees it; there is no user's token in a periodic task."""
    return assembly.cloud(magnum_context.make_admin_context(all_tenants=True))


def advance(context: Any, cluster: Any, conf: Any) -> None:
    """One pass: apply what is pending, look, judge, write."""
    if not names.is_release(cluster.stack_id):
        _fail_unfounded(cluster)
        return
    ports, now = assembly.ports(conf), utc_now()
    namespace = intake.namespace(cluster, conf)
    waiting = refusal = ""
    try:
        if ownership.is_being_deleted(ports.operations.read(namespace, cluster.stack_id)):
            rows.intend(cluster, Status.DELETE_IN_PROGRESS)
            return
        if not ownership.is_proved(ports, ownership.owner(cluster, conf)):
            raise errors.NotOurs(
                f"Nothing on the management cluster proves that release '{cluster.stack_id}' "
                "belongs to this cluster. An operator has to check the driver's kubeconfig."
            )
        waiting = reconcile.bring_up(
            ports, lambda: request(cluster, conf), admin_cloud, conf, now
        ).waiting
    except errors.DriverError as error:
        LOG.warning("Cluster %s: %s %s", cluster.uuid, error, error.detail)
        waiting, refusal = (str(error), "") if error.retryable else ("", str(error))
    judged = list(cluster.nodegroups)
    found = survey.judge(
        ports, cluster, judged, conf, now, cloud=admin_cloud, refusal=refusal, waiting=waiting
    )
    rows.write(context, cluster, judged, found, ports, namespace)


def delete_on(context: Any, cluster: Any, conf: Any) -> None:
    """One pass of a deletion; only here a cluster becomes DELETE_COMPLETE."""
    if not names.is_release(cluster.stack_id):
        certificates.remove_forgotten(context, cluster)
        rows.put(cluster, status=Status.DELETE_COMPLETE, status_reason=None)
        return
    ports, owner, now = assembly.ports(conf), ownership.owner(cluster, conf), utc_now()
    try:
        step = teardown.advance(ports, owner, admin_cloud, conf, now)
        late = _is_late(ports, owner, now)
    except errors.DriverError as error:
        LOG.warning("Cluster %s: %s %s", cluster.uuid, error, error.detail)
        rows.put(cluster, status_reason=str(error))
        return
    if step.action is deletion.Action.DONE:
        certificates.remove_forgotten(context, cluster)
        rows.put(cluster, status=Status.DELETE_COMPLETE, status_reason=None)
        _sweep_later(ports, owner)
    elif step.action is deletion.Action.NO_PROOF or late:
        rows.put(cluster, status=Status.DELETE_FAILED, status_reason=step.reason)
    else:
        rows.put(cluster, status_reason=step.reason or None)


def watch_over(context: Any, cluster: Any, conf: Any) -> Verdict | None:
    """The health poll, which also brings FAILED clusters back that have come good."""
    if not names.is_release(cluster.stack_id):
        return None
    ports, now = assembly.ports(conf), utc_now()
    judged = list(cluster.nodegroups)
    found = survey.judge(ports, cluster, judged, conf, now, cloud=admin_cloud)
    if cluster.status == Status.DELETE_FAILED:
        if not found.unreachable and ownership.is_proved(ports, ownership.owner(cluster, conf)):
            rows.put(cluster, status=Status.DELETE_IN_PROGRESS)
    elif cluster.status.endswith("_FAILED"):
        namespace = intake.namespace(cluster, conf)
        rows.write(context, cluster, judged, found, ports, namespace)
    elif cluster.status.endswith("_COMPLETE") and any(
        row.status.endswith("_IN_PROGRESS") for row in judged
    ):
        # A nodegroup verb and a pass that had looked before it crossed each other.
        rows.put(cluster, status=Status.UPDATE_IN_PROGRESS)
    return found.verdict


def utc_now() -> datetime.datetime:
    """Now, aware."""
    return datetime.datetime.now(datetime.UTC)


def _fail_unfounded(cluster: Any) -> None:
    """A row without a release: its create has just begun, or its conductor died."""
    created = cluster.created_at
    if created is None or utc_now() - created < _CREATE_START_LIMIT:
        return
    rows.put(
        cluster,
        status=Status.CREATE_FAILED,
        status_reason="The creation was interrupted before anything was made. "
        "Delete this cluster and create it again.",
    )


def _is_late(ports: assembly.Ports, owner: secrets.Owner, now: datetime.datetime) -> bool:
    record = ports.operations.read(owner.namespace, owner.release)
    limits = [op.deadline for op in (record.operations if record else ()) if op.deadline]
    return bool(limits) and now > max(limits)


def _sweep_later(ports: assembly.Ports, owner: secrets.Owner) -> None:
    """Remove the tombstone once Magnum has removed the row; a crash before that does no harm."""

    def sweep() -> None:
        try:
            ports.operations.sweep(owner.namespace, owner.release)
        except errors.DriverError as error:
            LOG.warning("Lease of release %s stays behind: %s", owner.release, error)

    timer = threading.Timer(_SWEEP_AFTER, sweep)
    timer.daemon = True
    timer.start()
