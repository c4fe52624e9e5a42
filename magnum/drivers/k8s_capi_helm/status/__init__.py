# SPDX-License-Identifier: Apache-2.0
"""Observed + MagnumState + now -> Verdict (cluster, nodegroups, health, reason).

:func:`evaluate` is a list of small questions, worst answer first. Each takes objects that were read
already; none reads anything. What is absent, unreadable or stale is never a yes.
"""

from __future__ import annotations

import dataclasses
import datetime

from magnum.drivers.k8s_capi_helm.errors import Cause
from magnum.drivers.k8s_capi_helm.model import (
    conditions,
    GroupState,
    MagnumState,
    Missing,
    Observed,
    present,
    Verdict,
)
from magnum.drivers.k8s_capi_helm.status import health, nodegroups
from magnum.drivers.k8s_capi_helm.status.causes import reasons
from magnum.drivers.k8s_capi_helm.status.deletion import progress as deletion_progress
from magnum.drivers.k8s_capi_helm.status.objects import (
    addons,
    certificate_expiry,
    control_plane,
    fingerprint,
    generations,
    infrastructure,
    machine_deployment,
    timestamps,
)
from magnum.drivers.k8s_capi_helm.status.texts.issue import Issue, shorten_reason

__all__ = ["evaluate", "is_control_plane_ready", "servers_in_error"]

#: An older look is no news any more: the same as not having looked.
FRESH = datetime.timedelta(minutes=5)

_JUDGED = ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "CREATE_FAILED", "UPDATE_FAILED")


def evaluate(observed: Observed, state: MagnumState, now: datetime.datetime) -> Verdict:
    """What Magnum should say about a cluster after one look.

    A cluster that is being deleted gets only a reason here; deletion.py decides about it.

    :param now: the conductor's clock (aware, UTC), for the age of the look, and for deadlines,
        which conductors write down. Nothing that controllers wrote is compared with it.
    """
    observed = _fresh(observed, now)
    observed = dataclasses.replace(observed, asof=timestamps.observed_at(observed))
    issue = _first_issue(observed, state)
    current_fingerprint = "" if issue else fingerprint.cluster_fingerprint(observed, state)
    agreed = bool(current_fingerprint) and current_fingerprint == state.ready_fingerprint
    verdicts = tuple(
        nodegroups.evaluate(nodegroup, observed, state, now, cluster_confirmed=agreed)
        for nodegroup in state.groups
    )
    status, reason = _lifecycle(observed, state, now, issue, current_fingerprint)
    healthy, texts = health.evaluate(observed, state)
    expiry = certificate_expiry.control_plane_expiry(observed)
    return Verdict(
        status=status,
        reason=reason,
        groups=verdicts,
        health=healthy,
        health_reason=texts,
        fingerprint=current_fingerprint,
        api_address=infrastructure.api_address(observed.cluster),
        coe_version=control_plane.running_version(observed.control_plane),
        certificate_expiry=expiry[0] if expiry else None,
    )


def is_control_plane_ready(observed: Observed, nodegroup: GroupState) -> bool:
    """Whether nothing keeps the control plane from being what *nodegroup* says, its version too."""
    return (
        not observed.unreachable
        and control_plane.missing(nodegroup, observed, nodegroup.version) is None
    )


def servers_in_error(observed: Observed) -> tuple[str, ...]:
    """Ids of the Nova servers whose fault only Nova can tell, to be put into ``server_faults``."""
    servers = [conditions.mapping(server.get("status")) for server in present(observed.servers)]
    ids = (server.get("instanceID") for server in servers if server.get("instanceState") == "ERROR")
    return tuple(str(server_id) for server_id in ids if server_id)


def _fresh(observed: Observed, now: datetime.datetime) -> Observed:
    """The look itself, or one that knows nothing when it is too old to be true now."""
    if now - observed.at <= FRESH:
        return observed
    lost = Missing.UNREADABLE
    return Observed(
        at=observed.at,
        cluster=lost,
        infrastructure=lost,
        control_plane=lost,
        machine_deployments=lost,
        machine_sets=lost,
        machines=lost,
        servers=lost,
        addons=lost,
        events=lost,
        unreachable=observed.unreachable or f"the last look is from {observed.at:%H:%M:%S} UTC",
    )


def _first_issue(observed: Observed, state: MagnumState) -> Issue | None:
    """The first thing that keeps the whole from being what was asked for, or None.

    None leaves no group in progress: each is judged by the same questions.
    """
    if observed.unreachable:
        return Issue("the management cluster cannot be reached", Cause.MANAGEMENT)
    return (
        reasons.not_applied(state)
        or generations.missing(observed, state)
        or infrastructure.openstack_missing(observed.infrastructure)
        or nodegroups.first_missing(observed, state)
        or machine_deployment.deletion_issue(observed)
        or addons.core_missing(observed, state.without_addons, state.status_reason or "")
        or infrastructure.cluster_missing(observed.cluster)
    )


def _lifecycle(
    observed: Observed,
    state: MagnumState,
    now: datetime.datetime,
    issue: Issue | None,
    current_fingerprint: str,
) -> tuple[str, str | None]:
    """The cluster's status and reason, by the first rule that fits.

    :param current_fingerprint: fingerprint of this look when everything is in place, else "".
    """
    if state.status == "DELETE_IN_PROGRESS":
        waited = f"waiting: {deletion_progress.describe(observed)}"
        return state.status, shorten_reason(reasons.without_cause(observed, waited))
    if state.status.endswith("_COMPLETE"):
        return state.status, None
    if state.status not in _JUDGED:
        return state.status, state.status_reason
    verb, _, outcome = state.status.partition("_")
    if state.refusal:
        return f"{verb}_FAILED", state.refusal
    if current_fingerprint and current_fingerprint == state.ready_fingerprint:
        return f"{verb}_COMPLETE", None
    if issue is None:
        return state.status, _unconfirmed(state, outcome)
    reason = reasons.with_cause(issue, observed, state)
    if reasons.is_late(state, now):
        return f"{verb}_FAILED", reasons.timeout(state, reason)
    if outcome == "FAILED":
        return state.status, reasons.kept_reason(state.status_reason, reason)
    return state.status, reason


def _unconfirmed(state: MagnumState, outcome: str) -> str | None:
    """Between two looks that find everything in place."""
    if outcome == "FAILED":
        return state.status_reason
    return reasons.ONCE_MORE
