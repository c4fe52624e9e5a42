# SPDX-License-Identifier: Apache-2.0
"""``k8s-capi-helm rollout``: carry out, show, pause, resume and delete rollouts."""

from __future__ import annotations

import abc
import argparse
from collections.abc import Iterator, Mapping
import contextlib
import dataclasses
from typing import Any

from magnum import objects
from magnum.common import context as magnum_context
from magnum.common import exception
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.lister import ExitStatus, OperatorLister, Rows
from magnum.drivers.k8s_capi_helm.commands.maintenance_window import parse_window
from magnum.drivers.k8s_capi_helm.commands.rollout_plan import (
    MemberState,
    ObservedCluster,
    plan_next,
    resume_rollout,
    Rollout,
    RolloutMember,
    RolloutState,
    soak_end,
    with_refusal,
)
from magnum.drivers.k8s_capi_helm.commands.rollout_store import RolloutStore
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


class _OfRollout(OperatorLister, metaclass=abc.ABCMeta):
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
        return COLUMNS, [_row(run, rollout)], _STATUSES[rollout.state]

    @abc.abstractmethod
    def carry_out(
        self, run: Reconciliation, store: RolloutStore, arguments: argparse.Namespace
    ) -> Rollout:
        """Do it; returns the rollout after that."""


class RolloutRun(_OfRollout):
    """Carry out a rollout until it is finished, stopped or paused; any host can continue it.

    Upgrades are requested of magnum-conductor as the requests of an administrator are. A cluster
    that does not come good stops the rollout, and nothing else is requested. Exit status 0: it is
    finished, 1: it is not yet, 2: it has stopped, 3: a service did not answer.
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
            except (errors.Conflict, errors.ManagementUnreachable) as error:
                self.program.LOG.warning("Rollout %s: %s", arguments.name, error)
        return rollout

    def _step(self, run: Reconciliation, store: RolloutStore, name: str) -> Rollout:
        """Look, store what is next, and request it."""
        stored = store.read(name)
        is_open = not stored.rollout.window or parse_window(stored.rollout.window).is_open(run.now)
        rollout, chosen = plan_next(
            stored.rollout, _observed(stored.rollout), run.now, is_open=is_open
        )
        if rollout != stored.rollout:
            _withdraw(run, stored.rollout, rollout)
            stored = store.replace(stored, rollout)
        for uuid in chosen:
            try:
                self.program.request_upgrade(uuid, rollout.template, rollout.max_batch_size)
            except errors.InvalidRequest as error:
                rollout = with_refusal(rollout, uuid, str(error), run.now)
                stored = store.replace(stored, rollout)
                break
        return rollout


class RolloutPause(_OfRollout):
    """Request no further upgrades; those that were requested go on.

    Exit status 1: it is paused, 3: it cannot be.
    """

    def carry_out(
        self, run: Reconciliation, store: RolloutStore, arguments: argparse.Namespace
    ) -> Rollout:
        """Pause it, if it is running."""
        stored = store.read(arguments.name)
        if stored.rollout.state is not RolloutState.RUNNING:
            raise _wrong_state(stored.rollout, RolloutState.RUNNING)
        changed = dataclasses.replace(stored.rollout, state=RolloutState.PAUSED)
        return store.replace(stored, changed).rollout


class RolloutResume(_OfRollout):
    """Let a rollout go on that is paused, or that has stopped at a cluster.

    Exit status 1: it is running again, 3: it cannot be.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Which rollout, and whether the cluster that has failed is upgraded again."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--retry",
            action="store_true",
            help="Request the clusters that have failed again, instead of leaving them out.",
        )
        return parser

    def carry_out(
        self, run: Reconciliation, store: RolloutStore, arguments: argparse.Namespace
    ) -> Rollout:
        """Resume it, if it is paused or stopped."""
        stored = store.read(arguments.name)
        if stored.rollout.state not in (RolloutState.PAUSED, RolloutState.STOPPED):
            raise _wrong_state(stored.rollout, RolloutState.PAUSED, RolloutState.STOPPED)
        changed = resume_rollout(stored.rollout, retry=arguments.retry)
        return store.replace(stored, changed).rollout


class RolloutDelete(_OfRollout):
    """Delete the record of a rollout; clusters stay unchanged.

    Exit status 0, 1 or 2: that of the rollout that is deleted, 3: it cannot be.
    """

    def carry_out(
        self, run: Reconciliation, store: RolloutStore, arguments: argparse.Namespace
    ) -> Rollout:
        """Delete it, unless it is running."""
        stored = store.read(arguments.name)
        if stored.rollout.state is RolloutState.RUNNING:
            others = [state for state in RolloutState if state is not RolloutState.RUNNING]
            raise _wrong_state(stored.rollout, *others)
        ended = dataclasses.replace(stored.rollout, members=())
        _withdraw(run, stored.rollout, ended)
        store.delete(stored)
        return stored.rollout


class RolloutStatus(OperatorLister):
    """Show all rollouts, or the clusters of one.

    Exit status 0: all are finished, 1: one is not yet, 2: one has stopped, 3: the management
    cluster cannot be read.
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
            return MEMBER_COLUMNS, _member_rows(rollout), _STATUSES[rollout.state]
        rollouts = [stored.rollout for stored in store.list_all()]
        status = max((_STATUSES[rollout.state] for rollout in rollouts), default=ExitStatus.OK)
        return COLUMNS, [_row(run, rollout) for rollout in rollouts], status


def _wrong_state(rollout: Rollout, *states: RolloutState) -> errors.InvalidRequest:
    expected = " or ".join(state.value for state in states)
    return errors.InvalidRequest(
        f"The rollout is not in a state for this. Rollout '{rollout.name}' is "
        f"{rollout.state.value}; it has to be {expected}."
    )


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


def _withdraw(run: Reconciliation, before: Rollout, after: Rollout) -> None:
    """Take the tenants' notice from clusters for which nothing is planned any more.

    :raises errors.DriverError: the management cluster cannot be used.
    """
    planned = {member.uuid for member in after.members if _is_open(member)}
    context = magnum_context.make_admin_context(all_tenants=True)
    for member in before.members:
        if not _is_open(member) or member.uuid in planned:
            continue
        with contextlib.suppress(exception.ClusterNotFound):
            cluster = objects.Cluster.get_by_uuid(context, member.uuid)
            owner = ownership.owner(cluster, run.settings)
            planned_upgrade.record_plan(run.clients, owner, None)


def _is_open(member: RolloutMember) -> bool:
    return member.state in (MemberState.PENDING, MemberState.REQUESTED)


def _row(run: Reconciliation, rollout: Rollout) -> tuple[Any, ...]:
    counts = rollout.counts()
    waves = [member.wave for member in rollout.members if _is_open(member)]
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
