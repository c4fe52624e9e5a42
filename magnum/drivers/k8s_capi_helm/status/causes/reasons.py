# SPDX-License-Identifier: Apache-2.0
"""Reasons: one line for the tenant with issue, cause and progress."""

from __future__ import annotations

import datetime

from magnum.drivers.k8s_capi_helm.errors import Cause
from magnum.drivers.k8s_capi_helm.model import (
    conditions,
    GroupState,
    MagnumState,
    Missing,
    Observed,
)
from magnum.drivers.k8s_capi_helm.status.causes import root_cause
from magnum.drivers.k8s_capi_helm.status.causes.scope import Scope, scope_of
from magnum.drivers.k8s_capi_helm.status.objects import (
    controller_leases,
    infrastructure,
    machine_stage,
    machines,
)
from magnum.drivers.k8s_capi_helm.status.texts.issue import (
    clause,
    Issue,
    joined_reasons,
    REASON_LIMIT,
    shorten_reason,
)

#: Until then an OpenStackCluster without any status is just new.
SILENCE_PATIENCE = datetime.timedelta(minutes=3)
#: Between two looks that find something in place.
ONCE_MORE = Issue("all checks passed, confirming").line()
#: A creation whose nodegroups have failed: nobody asks for them any more.
_NEVER_APPLIED = (
    "the cluster was not applied to the management cluster in time; delete it and create it again"
)
_NOTHING_CHANGED = f"{Cause.REQUEST.value}: nothing was changed."


#: What a status says before anything was looked at, by the verb that it begins with.
_STARTING = {
    "CREATE": Issue("the creation is starting").line(),
    "UPDATE": Issue("the update is starting").line(),
    "DELETE": Issue("the deletion is starting").line(),
}


def starting_reason(status: str) -> str | None:
    """The reason of a status that has just been set, until a look says more.

    :param status: Magnum's word, e.g. ``UPDATE_IN_PROGRESS``.
    """
    return _STARTING.get(status.partition("_")[0])


def is_starting(reason: str | None) -> bool:
    """Whether a reason says no more than that something has been requested."""
    return not reason or reason in _STARTING.values()


def with_cause(
    issue: Issue,
    observed: Observed,
    state: MagnumState,
    nodegroup: GroupState | None = None,
) -> str:
    """The fault if there is one, else what is waited for, and since when.

    :param issue: what is not in place.
    :param nodegroup: tell only what concerns this group and what all groups need; None for
        everything.
    """
    if observed.unreachable:
        text = "the management cluster cannot be reached; changes already applied continue"
        return Issue(text, Cause.MANAGEMENT).line()
    if observed.stale_controllers:
        return without_cause(observed, issue.text)
    previous_reasons = f"{state.status_reason or ''} {nodegroup.reason or '' if nodegroup else ''}"
    # What the objects say until then is why an earlier request had to wait.
    fault = (
        None if issue.is_unapplied else _root_cause(issue, observed, nodegroup, previous_reasons)
    )
    if fault is None or fault.cause is None:
        return issue.line() if issue.cause else _waiting(issue, observed, state, previous_reasons)
    is_repeated = issue.text in fault.text or fault.text in issue.text
    return (
        fault.line()
        if is_repeated
        else joined_reasons(f"{fault.cause.value}: {fault.text}", issue.text)
    )


def _root_cause(
    issue: Issue, observed: Observed, nodegroup: GroupState | None, previous_reasons: str
) -> Issue | None:
    """The deepest fault; the cluster tells that of the group that it waits for, if it has one."""
    if nodegroup is None and issue.group is not None:
        nodegroup_fault = root_cause.root_cause(scope_of(observed, issue.group, previous_reasons))
        if nodegroup_fault is not None:
            return nodegroup_fault
    return root_cause.root_cause(scope_of(observed, nodegroup, previous_reasons))


def without_cause(observed: Observed, text: str) -> str:
    """A reason while controllers are silent: nothing goes on without them; else *text* itself."""
    description = controller_leases.describe(observed.stale_controllers)
    if description is None:
        return text
    words, since = description
    waited = text.removeprefix("waiting: ")
    return Issue(f"{words} {clock(since)}; {waited}", Cause.MANAGEMENT).line()


def is_late(state: MagnumState, now: datetime.datetime) -> bool:
    """The running operation's deadline has passed."""
    return state.deadline is not None and now > state.deadline


def timeout(state: MagnumState, reason: str) -> str:
    """The deadline, and what it was missed for."""
    minutes = ""
    if state.started_at is not None and state.deadline is not None:
        count = round((state.deadline - state.started_at).total_seconds() / 60)
        minutes = f" within {count} minute{'' if count == 1 else 's'}"
    return shorten_reason(f"{Cause.TIMEOUT.value}: not finished{minutes}; {reason}")


def not_applied(state: MagnumState) -> Issue | None:
    """Why the release does not carry yet what the rows ask for; None when it does."""
    if state.is_applied:
        return None
    if state.status == "CREATE_FAILED" and not state.waiting_reason:
        return Issue(_NEVER_APPLIED, Cause.MANAGEMENT)
    text = state.waiting_reason or "the request is not applied to the management cluster yet"
    return Issue(text, state.waiting_cause, is_unapplied=True)


def is_timeout(reason: str | None) -> bool:
    """Whether a reason says that a deadline was missed, which heals; a refusal does not."""
    return (reason or "").startswith(f"{Cause.TIMEOUT.value}:")


def refused_reason(sentence: str) -> str:
    """What a nodegroup says of a request about it alone that was refused, until the next one."""
    return shorten_reason(f"{_NOTHING_CHANGED} {sentence}")


def is_refused(reason: str | None) -> bool:
    """Whether a reason is such a refusal; what a pass could not apply yet is none."""
    return (reason or "").startswith(_NOTHING_CHANGED)


def kept_reason(before: str | None, reason: str) -> str:
    """What something FAILED goes on saying: its own words; after a missed deadline today's news.

    :param before: what it says now.
    """
    head, _, _ = (before or "").partition("; ")
    if is_timeout(head):
        return shorten_reason(f"{head}; {reason}")
    return before or reason


def _waiting(issue: Issue, observed: Observed, state: MagnumState, previous_reasons: str) -> str:
    """What is waited for, what it does just now, and since when; the operation's begin at last."""
    detail = _detail(issue, observed, previous_reasons)
    text = clause(f"{issue.line()}; {_without_machine(issue, detail)}" if detail else issue.line())
    since_time = (detail.since if detail else None) or issue.since or state.started_at
    since = f"since {clock(since_time)}" if since_time else ""
    # Behind several sentences a clause would belong to the last of them, which says what to do.
    since = since and (f" ({since})" if ". " in text else f", {since}")
    return f"{clause(shorten_reason(text, REASON_LIMIT - len(since)))}{since}"


def _without_machine(issue: Issue, detail: Issue) -> str:
    """A detail; of the machine that the gap has named just before, without the name."""
    subject = f"machine {issue.text.rpartition(': ')[2]} "
    text = detail.text
    return f"it {text.removeprefix(subject)}" if text.startswith(subject) else text


def clock(at: datetime.datetime) -> str:
    """A time, UTC; with its date, since who reads it may have another clock than who wrote it."""
    return f"{at:%Y-%m-%d %H:%M} UTC"


def _detail(issue: Issue, observed: Observed, previous_reasons: str) -> Issue | None:
    """What the object that the gap is about does just now."""
    if issue.group is None:
        return _no_report(scope_of(observed, None, previous_reasons))
    scope = scope_of(observed, issue.group, previous_reasons)
    blocked = root_cause.preflight(scope)
    if blocked is not None:
        return blocked
    for machine in sorted(scope.machines, key=conditions.name):
        if machines.is_ready(machine) and not conditions.condition(machine, "UpToDate").bad:
            continue
        return machine_stage.stage(machine)
    return None


def _no_report(scope: Scope) -> Issue | None:
    """CAPO that waits for a load balancer, has no network or cannot log in may write no status."""
    owner = scope.observed.infrastructure
    if isinstance(owner, Missing) or infrastructure.is_reported(owner):
        return None
    created = conditions.instant(conditions.metadata(owner).get("creationTimestamp"))
    text = "the OpenStack provider reports nothing (check network, load balancer and credential)"
    return Issue(text, since=created) if scope.is_older(created, SILENCE_PATIENCE, text) else None
