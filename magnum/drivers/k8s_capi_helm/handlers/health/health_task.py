# SPDX-License-Identifier: Apache-2.0
"""Magnum's health poll of one cluster: update health, and recover FAILED statuses."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.handlers.health import health_repairs
from magnum.drivers.k8s_capi_helm.handlers.outcome import write_status
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import writer
from magnum.drivers.k8s_capi_helm.magnum_objects.rows.writer import Status
from magnum.drivers.k8s_capi_helm.model import (
    conditions,
    Verdict,
)
from magnum.drivers.k8s_capi_helm.model.management_cluster import release_of
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import (
    Reconciliation,
    ReleaseSnapshot,
)
from magnum.drivers.k8s_capi_helm.reconcile.observe import evaluation_inputs, observe
from magnum.drivers.k8s_capi_helm.reconcile.observe.evaluation import Evaluation
from magnum.drivers.k8s_capi_helm.reconcile.ownership import ownership
from magnum.drivers.k8s_capi_helm.reconcile.process.evaluation_cache import Versions
from magnum.objects import fields

LOG = logging.getLogger(__name__)

#: Clients poll every ten to twenty seconds, people look now and then.
_REFUSAL_SHOWN = datetime.timedelta(minutes=10)
_REQUEST, _REFUSED = "request", "refused, UPDATE_FAILED since "


def repair(run: Reconciliation, context: Any, cluster: Any) -> Verdict | None:
    """The health poll, which also brings FAILED clusters back that have come good."""
    if sentence := ownership.foreign_reason(cluster):
        return _unknown(cluster, sentence)
    versions = evaluation_inputs.read_versions(run, cluster)
    if evaluation_inputs.last_verdict(run, cluster, versions, include_health=True) is not None:
        # Magnum shows it already: without a verdict, its job does not save the cluster once more.
        return None
    return _repair_changed(run, context, cluster, versions)


def _repair_changed(
    run: Reconciliation, context: Any, cluster: Any, versions: Versions | None
) -> Verdict | None:
    """The same where something may have changed since the last poll.

    :param versions: as they were before anything was read.
    """
    nodegroups_observed = list(cluster.nodegroups)
    if ownership.is_cluster_deleting(nodegroups_observed) and not cluster.status.startswith(
        "DELETE_"
    ):
        # A request that failed has written its own status over the deletion.
        writer.mark_in_progress(cluster, Status.DELETE_IN_PROGRESS)
    if not cluster.stack_id:
        return None
    known = None
    try:
        check = evaluation_inputs.compare_snapshot(
            run, cluster, nodegroups_observed, include_health=True
        )
        if check is not None:
            if check.verdict is not None:
                return check.verdict
            known = check.snapshot
    except errors.DriverError as error:
        LOG.warning("Cluster %s: %s %s", cluster.uuid, error, error.detail)
    case = _evaluated(run, context, cluster, nodegroups_observed, known)
    evaluation = case.evaluation
    try:
        is_repaired = health_repairs.apply_first(case)
    except errors.DriverError as error:
        # What was seen is true all the same; the next poll tries again.
        LOG.warning("Cluster %s: %s %s", cluster.uuid, error, error.detail)
        return _with_refusal(run, context, cluster, nodegroups_observed, evaluation)
    if _is_shown(run, cluster, evaluation, is_repaired):
        evaluation.keep(run, cluster, versions)
    return _with_refusal(run, context, cluster, nodegroups_observed, evaluation)


def _evaluated(
    run: Reconciliation,
    context: Any,
    cluster: Any,
    nodegroups_observed: list[Any],
    known: ReleaseSnapshot | None,
) -> health_repairs.Case:
    """The cluster with its status and health, by a record of now where a repair needs one.

    :param known: as this poll has found it; None to read it.
    """
    outcome = observe.ApplyOutcome(snapshot=known)
    evaluation = observe.evaluate_cluster(
        run, cluster, nodegroups_observed, outcome, include_health=True
    )
    case = health_repairs.Case(run, context, cluster, nodegroups_observed, evaluation)
    if not (evaluation.is_cached and health_repairs.is_record_needed(case)):
        return case
    run.clients.evaluations.forget(release_of(cluster.stack_id))
    evaluation = observe.evaluate_cluster(run, cluster, nodegroups_observed, include_health=True)
    return dataclasses.replace(case, evaluation=evaluation)


def _is_shown(run: Reconciliation, cluster: Any, evaluation: Evaluation, is_repaired: bool) -> bool:
    """Whether Magnum shows the verdict already, and no repair has changed its objects."""
    verdict, inputs = evaluation.verdict, evaluation.inputs
    shown = cluster.health_status, dict(cluster.health_status_reason or {})
    if inputs is None or shown != (verdict.health, dict(verdict.health_reason)):
        return False
    if not is_repaired:
        return True
    magnum = evaluation_inputs.magnum_digest(run.settings, cluster, list(cluster.nodegroups))
    return magnum == inputs.magnum


def _with_refusal(
    run: Reconciliation,
    context: Any,
    cluster: Any,
    nodegroups_observed: list[Any],
    evaluation: Evaluation,
) -> Verdict:
    """The verdict; a cluster that a refused request left UPDATE_FAILED is released after a while.

    Magnum lets no upgrade and no update through from UPDATE_FAILED, and nothing else would ever
    end it. So the refusal is shown long enough for everybody who waits for the request; if
    everything is in place then, as it was before, the cluster is UPDATE_COMPLETE again and keeps
    the words. Since when stands in the health's reasons, for people and for conductors that come
    later; how long that is a conductor tells by what it has seen itself.
    """
    verdict = evaluation.verdict
    is_complete = (
        bool(verdict.fingerprint)
        and not evaluation.unreachable
        and not evaluation.unfinished_operations
    )
    if not (is_complete and cluster.status == verdict.status == Status.UPDATE_FAILED):
        return verdict
    previous = (cluster.health_status_reason or {}).get(_REQUEST, "")
    since = conditions.instant(previous.removeprefix(_REFUSED)) or run.now
    since_text = f"{since:%Y-%m-%dT%H:%M:%SZ}"
    if (
        run.clients.first_seen.age((cluster.uuid, _REQUEST, since_text), since, run.now)
        >= _REFUSAL_SHOWN
    ):
        write_status.reset_refused(context, cluster, nodegroups_observed)
        return verdict
    texts = {**verdict.health_reason, _REQUEST: f"{_REFUSED}{since_text}"}
    return dataclasses.replace(verdict, health_reason=texts)


def _unknown(cluster: Any, sentence: str) -> Verdict:
    """What is to be said of a cluster that cannot be looked at."""
    return Verdict(
        status=cluster.status,
        reason=cluster.status_reason,
        groups=(),
        health=fields.ClusterHealthStatus.UNKNOWN,
        health_reason={"management": sentence},
    )
