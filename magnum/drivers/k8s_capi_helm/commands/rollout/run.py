# SPDX-License-Identifier: Apache-2.0
"""``k8s-capi-helm rollout run``, and what commands about one rollout have in common."""

from __future__ import annotations

import abc
import argparse

from oslo_db import exception as db_exception

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.output.lister import exception_text, Rows
from magnum.drivers.k8s_capi_helm.commands.rollout.record import Rollout, RolloutState
from magnum.drivers.k8s_capi_helm.commands.rollout.status import (
    COLUMNS,
    exit_status,
    observed_clusters,
    rollout_row,
)
from magnum.drivers.k8s_capi_helm.commands.rollout.steps import RolloutSteps
from magnum.drivers.k8s_capi_helm.commands.rollout.store import RolloutStore
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation

#: Seconds between two looks at Magnum's records.
_INTERVAL = 15.0
#: What ends by itself: a service, the database or the message bus that is away for a while.
_PASSING = (errors.Conflict, errors.ManagementUnreachable, db_exception.DBError)


class RolloutCommand(RolloutSteps, metaclass=abc.ABCMeta):
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
        return COLUMNS, [rollout_row(run, rollout, observed_clusters(run))], exit_status(rollout)

    @abc.abstractmethod
    def carry_out(
        self, run: Reconciliation, store: RolloutStore, arguments: argparse.Namespace
    ) -> Rollout:
        """Do it; returns the rollout after that."""


class RolloutRun(RolloutCommand):
    """Carry out a rollout until it is finished, stopped or paused; any host can continue it.

    Upgrades are requested of magnum-conductor as the requests of an administrator are. A cluster
    that is not complete and healthy in time stops the rollout, and nothing else is requested. Exit
    status 0: it is finished, 1: it is not yet, or has left out clusters, 2: it has stopped, 3: a
    service did not answer.
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
        rollout = self.take_step(run, store, arguments.name)
        while rollout.state is RolloutState.RUNNING and not arguments.once:
            run.clients.pause(_INTERVAL)
            try:
                run = self.program.begin()
                rollout = self.take_step(run, store, arguments.name)
            except _PASSING as error:
                self.show(run, f"{type(error).__name__}: {exception_text(error)}")
        return rollout
