# SPDX-License-Identifier: Apache-2.0
"""The program ``k8s-capi-helm``: its options, its commands, its exit status."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
import logging
from typing import Any, Protocol, TextIO

from cliff import app, commandmanager

from magnum.drivers.k8s_capi_helm.commands.adoption.adopt import Adopt
from magnum.drivers.k8s_capi_helm.commands.catalogue.catalogue import (
    CatalogueApply,
    CatalogueDiff,
    CatalogueShow,
)
from magnum.drivers.k8s_capi_helm.commands.charts.bundle import ChartBundle
from magnum.drivers.k8s_capi_helm.commands.charts.charts import Charts
from magnum.drivers.k8s_capi_helm.commands.charts.fetch import ChartFetch
from magnum.drivers.k8s_capi_helm.commands.charts.prune import ChartPrune
from magnum.drivers.k8s_capi_helm.commands.check.check import Check
from magnum.drivers.k8s_capi_helm.commands.clusters.force_delete import ForceDelete
from magnum.drivers.k8s_capi_helm.commands.clusters.list_clusters import ListClusters
from magnum.drivers.k8s_capi_helm.commands.clusters.list_orphans import ListOrphans
from magnum.drivers.k8s_capi_helm.commands.clusters.pause import Pause, Resume
from magnum.drivers.k8s_capi_helm.commands.clusters.reconcile import Reconcile
from magnum.drivers.k8s_capi_helm.commands.credentials.certificates import Certificates
from magnum.drivers.k8s_capi_helm.commands.credentials.credentials import Credentials
from magnum.drivers.k8s_capi_helm.commands.desired.diff import Diff
from magnum.drivers.k8s_capi_helm.commands.desired.render import Render
from magnum.drivers.k8s_capi_helm.commands.explain.explain import Explain
from magnum.drivers.k8s_capi_helm.commands.move.complete_move import CompleteMove
from magnum.drivers.k8s_capi_helm.commands.move.move import MoveClusters
from magnum.drivers.k8s_capi_helm.commands.output.installation import InstallationCheck
from magnum.drivers.k8s_capi_helm.commands.output.lister import ExitStatus
from magnum.drivers.k8s_capi_helm.commands.rollout.control import (
    RolloutDelete,
    RolloutPause,
    RolloutResume,
)
from magnum.drivers.k8s_capi_helm.commands.rollout.patch import RolloutPatch
from magnum.drivers.k8s_capi_helm.commands.rollout.run import RolloutRun
from magnum.drivers.k8s_capi_helm.commands.rollout.start import RolloutStart
from magnum.drivers.k8s_capi_helm.commands.rollout.status import RolloutStatus
from magnum.drivers.k8s_capi_helm.commands.support.support_bundle import SupportBundle
from magnum.drivers.k8s_capi_helm.commands.templates.images import Images
from magnum.drivers.k8s_capi_helm.commands.templates.translate import Translate
from magnum.drivers.k8s_capi_helm.commands.why.why import Why
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation

NAME = "k8s-capi-helm"
COMMANDS: Mapping[str, Any] = {
    "adopt": Adopt,
    "catalogue apply": CatalogueApply,
    "catalogue diff": CatalogueDiff,
    "catalogue show": CatalogueShow,
    "certificates": Certificates,
    "charts": Charts,
    "charts bundle": ChartBundle,
    "charts fetch": ChartFetch,
    "charts prune": ChartPrune,
    "check": Check,
    "complete-move": CompleteMove,
    "credentials": Credentials,
    "diff": Diff,
    "explain": Explain,
    "force-delete": ForceDelete,
    "images": Images,
    "list": ListClusters,
    "move": MoveClusters,
    "orphans": ListOrphans,
    "pause": Pause,
    "reconcile": Reconcile,
    "render": Render,
    "resume": Resume,
    "rollout delete": RolloutDelete,
    "rollout patch": RolloutPatch,
    "rollout pause": RolloutPause,
    "rollout resume": RolloutResume,
    "rollout run": RolloutRun,
    "rollout start": RolloutStart,
    "rollout status": RolloutStatus,
    "support-bundle": SupportBundle,
    "translate": Translate,
    "why": Why,
}
_DESCRIPTION = (
    "Shows what the Magnum driver k8s_capi_helm_v1 knows of its clusters and of what it needs. "
    "Run it as the user of magnum-conductor on a host of it. Exit status: 0 all is well, "
    "1 warnings, 2 faults, 3 it could not be found out or the command is wrong."
)
#: Of what the driver logs, by how often -v is given.
_LEVELS = (logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG)


class Conductor(Protocol):
    """What a command needs of Magnum's conductor."""

    def run_tasks(self, cluster: Any) -> None:
        """Run Magnum's periodic tasks for one cluster of its database, in this process."""

    def request_upgrade(self, uuid: str, template: str, max_batch_size: int) -> None:
        """Request the upgrade of a cluster to a template, both by UUID.

        :raises errors.InvalidRequest: it is refused.
        :raises errors.DriverError: no conductor has answered.
        """


class OperatorApp(app.App):
    """The program.

    :param begin: begins with the files and directories of ``--config-file`` and ``--config-dir``;
        raises errors.DriverError where these cannot be used.
    :param installation_checks: what ``check`` asks about the host.
    :param conductor: what Magnum's conductor does for the command.
    """

    NAME = NAME
    LOG = logging.getLogger(NAME)
    DEFAULT_VERBOSE_LEVEL = 0

    def __init__(
        self,
        begin: Callable[[argparse.Namespace], Reconciliation],
        installation_checks: Iterable[InstallationCheck],
        conductor: Conductor,
        *,
        version: str,
        stdout: TextIO | None = None,
        stderr: TextIO | None = None,
    ) -> None:
        manager = commandmanager.CommandManager("k8s_capi_helm.commands")
        super().__init__(_DESCRIPTION, version, manager, stdout=stdout, stderr=stderr)
        for name, command in COMMANDS.items():
            manager.add_command(name, command)
        self._begin = begin
        self.installation_checks = tuple(installation_checks)
        self.run_tasks = conductor.run_tasks
        self.request_upgrade = conductor.request_upgrade

    def build_option_parser(
        self,
        description: str | None,
        version: str | None,
        argparse_kwargs: dict[str, Any] | None = None,
    ) -> argparse.ArgumentParser:
        """The options in front of the command: cliff's, and where Magnum's configuration is."""
        parser = super().build_option_parser(description, version, argparse_kwargs)
        parser.add_argument(
            "--config-file",
            action="append",
            metavar="PATH",
            help="A file of Magnum's configuration; may be repeated. By default those that "
            "magnum-conductor reads: /etc/magnum/magnum.conf and its like.",
        )
        parser.add_argument(
            "--config-dir",
            action="append",
            metavar="DIRECTORY",
            help="A directory with files of Magnum's configuration; may be repeated.",
        )
        return parser

    def configure_logging(self) -> None:
        """Warnings of the driver are shown with ``-v``: what matters of them is in the rows."""
        super().configure_logging()
        level = _LEVELS[min(self.options.verbose_level, len(_LEVELS) - 1)]
        root = logging.getLogger()
        root.handlers[-1].setLevel(level)
        if not self.options.log_file:
            root.setLevel(level)

    def begin(self) -> Reconciliation:
        """A reconciliation with Magnum's service user, which begins now.

        :raises errors.DriverError: the configuration cannot be used.
        """
        return self._begin(self.options)

    def run_subcommand(self, argv: list[str]) -> int:
        """Run a command; one that does not exist is not a fault that was found."""
        try:
            self.command_manager.find_command(argv)
        except ValueError:
            super().run_subcommand(argv)
            return ExitStatus.UNKNOWN
        return super().run_subcommand(argv)

    def run(self, argv: list[str]) -> int:
        """Run one command; without one, print the help.

        :returns: an ExitStatus.
        """
        try:
            return super().run(argv or ["help"])
        except SystemExit as end:
            # argparse ends a wrong call with 2, which is a fault that was found.
            return ExitStatus.UNKNOWN if end.code else ExitStatus.OK
