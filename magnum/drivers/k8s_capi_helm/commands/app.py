# SPDX-License-Identifier: Apache-2.0
"""The program ``k8s-capi-helm``: its options, its commands, its exit status."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from importlib import metadata
import logging
from typing import Any, TextIO

from cliff import app, commandmanager

from magnum.drivers.k8s_capi_helm.commands.output.installation import InstallationCheck
from magnum.drivers.k8s_capi_helm.commands.output.lister import Conductor, ExitStatus
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation

NAME = "k8s-capi-helm"
#: The class of each command, as an entry point names it below this package. A command is loaded
#: when it is called: all of them together import a thousand modules that one does not need.
COMMANDS: Mapping[str, str] = {
    "adopt": "adoption.adopt:Adopt",
    "catalogue apply": "catalogue.catalogue:CatalogueApply",
    "catalogue diff": "catalogue.catalogue:CatalogueDiff",
    "catalogue show": "catalogue.catalogue:CatalogueShow",
    "certificates": "credentials.certificates:Certificates",
    "charts": "charts.charts:Charts",
    "charts bundle": "charts.bundle:ChartBundle",
    "charts fetch": "charts.fetch:ChartFetch",
    "charts prune": "charts.prune:ChartPrune",
    "check": "check.check:Check",
    "complete-move": "move.complete_move:CompleteMove",
    "credentials": "credentials.credentials:Credentials",
    "diff": "desired.diff:Diff",
    "explain": "explain.explain:Explain",
    "force-delete": "clusters.force_delete:ForceDelete",
    "images": "templates.images:Images",
    "list": "clusters.list_clusters:ListClusters",
    "move": "move.move:MoveClusters",
    "orphans": "clusters.list_orphans:ListOrphans",
    "pause": "clusters.pause:Pause",
    "reconcile": "clusters.reconcile:Reconcile",
    "render": "desired.render:Render",
    "resume": "clusters.pause:Resume",
    "rollout delete": "rollout.control:RolloutDelete",
    "rollout patch": "rollout.patch:RolloutPatch",
    "rollout pause": "rollout.control:RolloutPause",
    "rollout resume": "rollout.control:RolloutResume",
    "rollout run": "rollout.run:RolloutRun",
    "rollout start": "rollout.start:RolloutStart",
    "rollout status": "rollout.status:RolloutStatus",
    "support-bundle": "support.support_bundle:SupportBundle",
    "translate": "templates.translate:Translate",
    "why": "why.why:Why",
}
_GROUP = "k8s_capi_helm.commands"
_DESCRIPTION = (
    "Shows what the Magnum driver k8s_capi_helm_v1 knows of its clusters and of what it needs. "
    "Run it as the user of magnum-conductor on a host of it. Exit status: 0 all is well, "
    "1 warnings, 2 faults, 3 it could not be found out or the command is wrong."
)
#: Of what the driver logs, by how often -v is given.
_LEVELS = (logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG)


class OperatorApp(app.App):
    """The program.

    :param begin: begins with the files and directories of ``--config-file`` and ``--config-dir``;
        raises errors.DriverError where these cannot be used.
    :param installation_checks: what ``check`` asks about the host.
    :param conductor: returns what Magnum's conductor does for the command.
    """

    NAME = NAME
    LOG = logging.getLogger(NAME)
    DEFAULT_VERBOSE_LEVEL = 0

    def __init__(
        self,
        begin: Callable[[argparse.Namespace], Reconciliation],
        installation_checks: Iterable[InstallationCheck],
        conductor: Callable[[], Conductor],
        *,
        version: str,
        stdout: TextIO | None = None,
        stderr: TextIO | None = None,
    ) -> None:
        manager = commandmanager.CommandManager(_GROUP)
        super().__init__(_DESCRIPTION, version, manager, stdout=stdout, stderr=stderr)
        for name, command in COMMANDS.items():
            value = f"{__package__}.{command}"
            manager.commands[name] = metadata.EntryPoint(name, value, _GROUP)
        self._begin = begin
        self.installation_checks = tuple(installation_checks)
        self.conductor = conductor

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
