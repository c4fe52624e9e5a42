# SPDX-License-Identifier: Apache-2.0
"""``k8s-capi-helm rollout status``: what is done, and when what is next."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
import datetime
from typing import Any

from magnum import objects
from magnum.common import context as magnum_context
from magnum.drivers.k8s_capi_helm.commands.output.lister import (
    ExitStatus,
    operator_text,
    OperatorLister,
    Rows,
)
from magnum.drivers.k8s_capi_helm.commands.rollout.plan import next_request
from magnum.drivers.k8s_capi_helm.commands.rollout.record import (
    MemberState,
    ObservedCluster,
    Rollout,
    RolloutMember,
    RolloutState,
)
from magnum.drivers.k8s_capi_helm.commands.rollout.store import RolloutStore
from magnum.drivers.k8s_capi_helm.magnum_objects import cluster_labels
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation

COLUMNS = ("Name", "State", "Template", "Wave", "Done", "Of", "Failed", "Skipped", "Next", "Reason")
MEMBER_COLUMNS = ("Wave", "Cluster", "UUID", "State", "Since", "Window", "Next", "Reason")
_STATUSES = {
    RolloutState.RUNNING: ExitStatus.WARNING,
    RolloutState.PAUSED: ExitStatus.WARNING,
    RolloutState.STOPPED: ExitStatus.CRITICAL,
    RolloutState.FINISHED: ExitStatus.OK,
}
_GONE = ObservedCluster("", "", "")


class RolloutStatus(OperatorLister):
    """Show all rollouts, or the clusters of one.

    Exit status 0: all are finished, 1: one is not yet, or has left out clusters, 2: one has
    stopped, or cannot be read, 3: the management cluster cannot be read.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Which rollout."""
        parser = super().get_parser(prog_name)
        parser.add_argument("name", nargs="?", metavar="NAME", help="Of one rollout.")
        return parser

    def rows(self, run: Reconciliation, arguments: argparse.Namespace) -> Rows:
        """A row for each rollout, or for each cluster of one."""
        store = RolloutStore(run)
        if arguments.name:
            rollout = store.read(arguments.name).rollout
            members = _member_rows(run, rollout, observed_clusters(run))
            return MEMBER_COLUMNS, members, exit_status(rollout)
        stored, unreadable = store.list_all()
        observed = observed_clusters(run) if stored else {}
        rows = [rollout_row(run, one.rollout, observed) for one in stored]
        status = max((exit_status(one.rollout) for one in stored), default=ExitStatus.OK)
        for name, error in unreadable.items():
            rows.append((name, "unreadable", *[""] * (len(COLUMNS) - 3), operator_text(error)))
            status = ExitStatus.CRITICAL
        return COLUMNS, rows, status


def exit_status(rollout: Rollout) -> ExitStatus:
    """Of a command about a rollout: a finished one that has left out clusters is no success."""
    status = _STATUSES[rollout.state]
    has_skipped = bool(rollout.counts()[MemberState.SKIPPED])
    return max(status, ExitStatus.WARNING) if has_skipped else status


def observed_clusters(run: Reconciliation) -> Mapping[str, ObservedCluster]:
    """What Magnum shows of all clusters by UUID, with one query."""
    context = magnum_context.make_admin_context(all_tenants=True)
    return {
        cluster.uuid: ObservedCluster(
            status=cluster.status or "",
            health=cluster.health_status or "",
            template=cluster.cluster_template_id,
            reason=cluster.status_reason or "",
            window=cluster_labels.parsed_labels(cluster, run.settings).maintenance_window or "",
        )
        for cluster in objects.Cluster.list(context)
    }


def rollout_row(
    run: Reconciliation, rollout: Rollout, observed: Mapping[str, ObservedCluster]
) -> tuple[Any, ...]:
    """A rollout as a row of COLUMNS.

    :param observed: what Magnum shows of its clusters by UUID.
    """
    counts = rollout.counts()
    waves = [member.wave for member in rollout.members if member.is_open]
    return (
        rollout.name,
        rollout.state.value,
        rollout.template_name,
        min(waves, default=""),
        counts[MemberState.DONE],
        len(rollout.members),
        counts[MemberState.FAILED],
        counts[MemberState.SKIPPED],
        _next_text(run, rollout, observed),
        rollout.text,
    )


def _next_text(
    run: Reconciliation, rollout: Rollout, observed: Mapping[str, ObservedCluster]
) -> str:
    """When the next upgrades are requested, "" if none are."""
    if rollout.state is not RolloutState.RUNNING:
        return ""
    pending = [member for member in rollout.members if member.is_open]
    wave = min((member.wave for member in pending), default=0)
    current = [one for one in pending if one.wave == wave and one.state is MemberState.PENDING]
    # While the last of a wave are upgraded, the next one is not known better than by its windows.
    waiting = current or [one for one in pending if one.state is MemberState.PENDING]
    times = [_next_request(run, rollout, member, observed) for member in waiting]
    return _time_text(run.now, times) if times else ""


def _next_request(
    run: Reconciliation,
    rollout: Rollout,
    member: RolloutMember,
    observed: Mapping[str, ObservedCluster],
) -> datetime.datetime | None:
    window = observed.get(member.uuid, _GONE).window
    return next_request(rollout, member, window, run.now)


def _time_text(now: datetime.datetime, times: list[datetime.datetime | None]) -> str:
    """The first of some times; None is never."""
    known = [time for time in times if time is not None]
    if not known:
        return "never: its windows have no hour in common"
    return "now" if min(known) <= now else f"{min(known):%Y-%m-%d %H:%M} UTC"


def _member_rows(
    run: Reconciliation, rollout: Rollout, observed: Mapping[str, ObservedCluster]
) -> Iterator[tuple[Any, ...]]:
    is_running = rollout.state is RolloutState.RUNNING
    for member in rollout.members:
        since = f"{member.since:%Y-%m-%d %H:%M} UTC" if member.since else ""
        following = ""
        if is_running and member.state is MemberState.PENDING:
            following = _time_text(run.now, [_next_request(run, rollout, member, observed)])
        window = observed.get(member.uuid, _GONE).window
        known = member.wave, member.name, member.uuid, member.state.value, since
        yield (*known, window, following, member.text)
