# SPDX-License-Identifier: Apache-2.0
"""A command of the operator, one that prints rows among them, and its exit status."""

from __future__ import annotations

import abc
import argparse
from collections.abc import Iterable, Sequence
import enum
import logging
from typing import Any, cast, Protocol, TextIO

from cliff import command, lister
from oslo_utils import strutils

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.output.installation import InstallationCheck
from magnum.drivers.k8s_capi_helm.helm import failures
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation


class ExitStatus(enum.IntEnum):
    """What is reported to a monitoring system: the four statuses of monitoring plug-ins.

    https://www.monitoring-plugins.org/doc/guidelines.html, "Plugin Return Codes".
    """

    OK = 0
    WARNING = 1
    CRITICAL = 2
    #: The command could not find out, or was called wrongly.
    UNKNOWN = 3


#: Rows with their columns, and what the command's exit status is.
Rows = tuple[Sequence[str], Iterable[Sequence[Any]], ExitStatus]


class Conductor(Protocol):
    """What a command needs of Magnum's conductor."""

    def run_tasks(self, cluster: Any) -> None:
        """Run Magnum's periodic tasks for one cluster of its database, in this process."""

    def request_upgrade(self, uuid: str, template: str, max_batch_size: int) -> None:
        """Request the upgrade of a cluster to a template, both by UUID.

        :raises errors.InvalidRequest: it is refused.
        :raises errors.DriverError: no conductor has answered.
        """


class Program(Protocol):
    """What a command needs of the program; ``app.OperatorApp`` has it."""

    LOG: logging.Logger
    options: argparse.Namespace
    stdout: TextIO
    stderr: TextIO
    installation_checks: Sequence[InstallationCheck]

    def begin(self) -> Reconciliation: ...

    def conductor(self) -> Conductor: ...


class OperatorCommand(command.Command, metaclass=abc.ABCMeta):
    """A command of the operator; an error is one line, and an exit status."""

    _exit_status = ExitStatus.OK

    @property
    def program(self) -> Program:
        """The program that runs this command."""
        return cast("Program", self.app)

    def get_epilog(self) -> str:
        """Nothing below the help: to find out whose plug-in this is, cliff reads all packages."""
        return ""

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Do it; the exit status says what came of it."""
        try:
            super().run(parsed_args)
        except BrokenPipeError:
            raise
        except errors.DriverError as error:
            self.program.LOG.error("%s", operator_text(error))
            return ExitStatus.UNKNOWN
        except Exception as error:
            # A database that is away, or a fault of the program: neither is a result.
            if self.program.options.debug:
                raise
            self.program.LOG.error("%s: %s", type(error).__name__, exception_text(error))
            return ExitStatus.UNKNOWN
        return self._exit_status


class OperatorLister(OperatorCommand, lister.Lister, metaclass=abc.ABCMeta):
    """A command of the operator: it asks, and prints rows."""

    @abc.abstractmethod
    def rows(self, run: Reconciliation, arguments: argparse.Namespace) -> Rows:
        """What is printed.

        :param run: with Magnum's service user, as in a periodic task.
        :raises errors.DriverError: it cannot be found out.
        """

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """The columns and the rows, for cliff."""
        columns, rows, self._exit_status = self.rows(self.program.begin(), parsed_args)
        return columns, ([_clean(cell) for cell in row] for row in rows)


def clean_text(text: str) -> str:
    """A text of a tenant or of a service, without what a terminal would obey.

    Control characters, and those that turn the direction of a line, become question marks.
    """
    return "".join(one if one.isprintable() else " " if one.isspace() else "?" for one in text)


def _clean(cell: Any) -> Any:
    """A cell may have several lines."""
    return "\n".join(map(clean_text, cell.split("\n"))) if isinstance(cell, str) else cell


def exception_text(error: Exception) -> str:
    """What a library says, in one line and without passwords.

    Of a database the first line is the cause; statement and parameters follow.
    """
    line = clean_text(" ".join(str(error).partition("\n")[0].split()))
    masked: str = strutils.mask_password(failures.without_passwords(line))
    return masked


def operator_text(error: errors.DriverError) -> str:
    """An error in one line for the operator: what the tenant reads, and the detail of the log."""
    detail = " ".join(error.detail.split())
    return clean_text(f"{error} ({detail})" if detail else str(error))
