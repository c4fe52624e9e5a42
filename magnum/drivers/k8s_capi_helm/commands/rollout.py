# SPDX-License-Identifier: Apache-2.0
"""``k8s-capi-helm rollout``: carry out, show, pause, resume and delete rollouts."""

from __future__ import annotations

import abc
import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from oslo_db import exception as db_exception

from magnum import objects
from magnum.common import context as magnum_context
from magnum.common import exception
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.lister import (
    clean_text,
    exception_text,
    ExitStatus,
    operator_text,
    OperatorLister,
    Rows,
)
from magnum.drivers.k8s_capi_helm.commands.maintenance_window import parse_window
from magnum.drivers.k8s_capi_helm.commands.rollout_plan import (
    plan_next,
    soak_end,
    with_refusal,
    with_request,
)
from magnum.drivers.k8s_capi_helm.commands.rollout_record import (
    MemberState,
    ObservedCluster,
    Rollout,
    RolloutState,
)
from magnum.drivers.k8s_capi_helm.commands.rollout_store import RolloutStore, StoredRollout
from magnum.drivers.k8s_capi_helm.reconcile import ownership, planned_upgrade
from magnum.drivers.k8s_capi_helm.reconcile.context import Reconciliation

COLUMNS = ("Name", "State", "Template", "Wave", "Done", "Of", "Failed", "Skipped", "Next", "Reason")
MEMBER_COLUMNS = ("Wave", "Cluster", "UUID", "State", "Since", "Reason")
#: Seconds between two looks at Magnum's records.
_INTERVAL = 15.0
_STATUSES = {
    RolloutState.RUNNING: ExitStatus.WARNING,
    RolloutState.PAUSED: ExitStatus.WARNING,
    RolloutState.STOPPED: ExitStatus.CRITICAL,
    RolloutState.FINISHED: ExitStatus.OK,
}
#: What ends by itself: a service, the database or the message bus that is away for a while.
_PASSING = (errors.Conflict, errors.ManagementUnreachable, db_exception.DBError)


def _exit_status(rollout: Rollout) -> ExitStatus:
    """A finished rollout that has left out clusters is no success."""
    status = _STATUSES[rollout.state]
    has_skipped = bool(rollout.counts()[MemberState.SKIPPED])
    return max(status, ExitStatus.WARNING) if has_skipped else status


class RolloutCommand(OperatorLister, metaclass=abc.ABCMeta):
    """A command about one rollout, which prints it afterwards."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Which rollout."""
        parser = super().get_parser(prog_name)
        parser.add_argument("name", metavar="NAME", help="Of the rollout.")
        return parser

    def rows(self, run: Reconciliation, arguments: argparse.Namespace) -> Rows:
        """The rollout afterwards."""
        store = RolloutStore(run)
        rollout = self.carry_out(run, store, arguments)
        return COLUMNS, [_row(run, rollout)], _exit_status(rollout)

    def clear_notices(self, run: Reconciliation, before: Rollout, after: Rollout) -> None:
        """Take the tenants' notice from clusters for which nothing is planned any more.

        A notice that stays is withdrawn by the driver when the cluster has the template.
        """
        planned = {member.uuid for member in after.members if member.is_open}
        context = magnum_context.make_admin_context(all_tenants=True)
        for member in before.members:
            if not member.is_open or member.uuid in planned:
                continue
            try:
                cluster = objects.Cluster.get_by_uuid(context, member.uuid)
                owner = ownership.owner(cluster, run.settings)
                clients = run.of_cluster(cluster.stack_id).clients
                planned_upgrade.record_plan(clients, owner, None)
            except exception.ClusterNotFound:
                continue
            except errors.DriverError as error:
                self.program.LOG.error(
                    "Cluster %s keeps its notice: %s", member.uuid, operator_text(error)
                )

    @abc.abstractmethod
    def carry_out(
        self, run: Reconciliation, store: RolloutStore, arguments: argparse.Namespace
    ) -> Rollout:
        """Do it; returns the rollout after that."""


class RolloutRun(RolloutCommand):
    """Carry out a rollout until it is finished, stopped or paused; any host can continue it.

    Upgrades are requested of magnum-conductor as the requests of an administrator are. A cluster
    that is not complete and healthy in time stops the rollout, and nothing else is requested. Exit
    status 0: it is
    finished, 1: it is not yet, or has left out clusters, 2: it has stopped, 3: a service did not
    answer.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Which rollout, and for how long."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--once", action="store_true", help="Take the steps that are due now, and end."
        )
        return parser

    def carry_out(
        self, run: Reconciliation, store: RolloutStore, arguments: argparse.Namespace
    ) -> Rollout:
        """Take step by step."""
        rollout = self._step(run, store, arguments.name)
        while rollout.state is RolloutState.RUNNING and not arguments.once:
            run.clients.pause(_INTERVAL)
            try:
                run = self.program.begin()
                rollout = self._step(run, store, arguments.name)
            except _PASSING as error:
                self._say(run, f"{type(error).__name__}: {exception_text(error)}")
        return rollout

    def _step(self, run: Reconciliation, store: RolloutStore, name: str) -> Rollout:
        """Look, record what has changed, and request what is next, one by one."""
        stored = store.read(name)
        before = stored.rollout
        is_open = not before.window or parse_window(before.window).is_open(run.now)
        rollout, chosen = plan_next(before, _observed(before), run.now, is_window_open=is_open)
        if rollout != before:
            stored = store.replace(stored, rollout)
            self._after(run, before, rollout)
        for uuid in chosen:
            if stored.rollout.state is RolloutState.RUNNING:
                stored = self._request(run, store, stored, uuid)
        return stored.rollout

    def _request(
        self, run: Reconciliation, store: RolloutStore, stored: StoredRollout, uuid: str
    ) -> StoredRollout:
        """Record a request, and make it.

        :raises errors.Conflict: the rollout has changed meanwhile; nothing is requested.
        """
        before, clock = stored.rollout, run.clients.clock
        stored = store.replace(stored, with_request(before, uuid, clock()))
        self._after(run, before, stored.rollout)
        rollout = stored.rollout
        try:
            self.program.request_upgrade(uuid, rollout.template, rollout.max_batch_size)
        except errors.InvalidRequest as error:
            stored = store.replace(stored, with_refusal(rollout, uuid, str(error), clock()))
            self._after(run, rollout, stored.rollout)
        return stored

    def _after(self, run: Reconciliation, before: Rollout, rollout: Rollout) -> None:
        """Say what has changed, and take notices from clusters for which nothing is planned."""
        for old, member in zip(before.members, rollout.members, strict=True):
            if old != member:
                text = f": {member.text}" if member.text else ""
                self._say(run, f"cluster {member.name} is {member.state.value}{text}")
        self.clear_notices(run, before, rollout)

    def _say(self, run: Reconciliation, text: str) -> None:
        """A line of progress on the standard error."""
        self.program.stderr.write(f"{run.clients.clock():%H:%M:%S} {clean_text(text)}\n")
        self.program.stderr.flush()


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
            return MEMBER_COLUMNS, _member_rows(rollout), _exit_status(rollout)
        stored, unreadable = store.list_all()
        rows = [_row(run, one.rollout) for one in stored]
        status = max((_exit_status(one.rollout) for one in stored), default=ExitStatus.OK)
        for name, error in unreadable.items():
            rows.append((name, "unreadable", *[""] * (len(COLUMNS) - 3), operator_text(error)))
            status = ExitStatus.CRITICAL
        return COLUMNS, rows, status


def _observed(rollout: Rollout) -> Mapping[str, ObservedCluster]:
    """What Magnum shows of the clusters of a rollout, with one query."""
    context = magnum_context.make_admin_context(all_tenants=True)
    uuids = {member.uuid for member in rollout.members}
    return {
        cluster.uuid: ObservedCluster(
            status=cluster.status or "",
            health=cluster.health_status or "",
            template=cluster.cluster_template_id,
            reason=cluster.status_reason or "",
        )
        for cluster in objects.Cluster.list(context)
        if cluster.uuid in uuids
    }


def _row(run: Reconciliation, rollout: Rollout) -> tuple[Any, ...]:
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
        _next_text(run, rollout, waves),
        rollout.text,
    )


def _next_text(run: Reconciliation, rollout: Rollout, waves: list[int]) -> str:
    """When the next upgrades are requested, "" if none are."""
    if rollout.state is not RolloutState.RUNNING or not waves:
        return ""
    at = max(run.now, soak_end(rollout, min(waves)))
    if rollout.window:
        at = parse_window(rollout.window).next_opening(at)
    return "now" if at <= run.now else f"{at:%Y-%m-%d %H:%M} UTC"


def _member_rows(rollout: Rollout) -> Iterator[tuple[Any, ...]]:
    for member in rollout.members:
        since = f"{member.since:%Y-%m-%d %H:%M} UTC" if member.since else ""
        yield member.wave, member.name, member.uuid, member.state.value, since, member.text
