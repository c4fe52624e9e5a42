# SPDX-License-Identifier: Apache-2.0
"""``k8s-capi-helm check``: everything that the driver needs, each fault with its cure."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
import dataclasses

from oslo_db import exception as db_exception

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.check import cloud, host, identity, management_cluster
from magnum.drivers.k8s_capi_helm.commands.check.result import (
    CheckResult,
    error_result,
    warning_result,
)
from magnum.drivers.k8s_capi_helm.commands.output.lister import ExitStatus, OperatorLister, Rows
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation

COLUMNS = ("Check", "Status", "Finding")
RunCheck = Callable[[Reconciliation], Iterator[CheckResult]]
_INSTALLATION = "installation"
_MANAGEMENT_CLUSTER = "management-cluster"
#: Checks that ask this host and the cloud only.
_LOCAL: Mapping[str, RunCheck] = {
    "database": host.check_database,
    "charts": host.check_charts,
    "policy": host.check_policy,
    "cloud": cloud.check_cloud,
    "authority": cloud.check_authority,
}
_KUBECONFIG = "kubeconfig"
#: Checks that ask the management cluster.
_REMOTE: Mapping[str, RunCheck] = {
    "permissions": identity.check_permissions,
    "cluster-api": management_cluster.check_cluster_api,
    "controllers": management_cluster.check_controllers,
    "addon-provider": management_cluster.check_addon_provider,
    "janitor": management_cluster.check_janitor,
    "clocks": management_cluster.check_clocks,
}
CHECKS = (_INSTALLATION, *_LOCAL, _KUBECONFIG, _MANAGEMENT_CLUSTER, *_REMOTE)
_UNREACHABLE = "Check the network to it, the server of the kubeconfig, and its certificate."


class Check(OperatorLister):
    """Check everything that the driver needs, on this host and elsewhere; change nothing.

    Faults come first, each in one line with its cure. Exit status 0: all is well, 1: warnings,
    2: faults, 3: the check could not run.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """The names of checks to run."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "checks",
            nargs="*",
            metavar="CHECK",
            help=f"Only these checks: {', '.join(CHECKS)}. By default all.",
        )
        return parser

    def rows(self, run: Reconciliation, arguments: argparse.Namespace) -> Rows:
        """All results, the worst first."""
        check_names = arguments.checks or CHECKS
        if unknown := sorted(set(check_names) - set(CHECKS)):
            raise errors.InvalidRequest(
                f"There is no such check. '{unknown[0]}' is none of: {', '.join(CHECKS)}."
            )
        installation = self.program.installation_checks
        found = [
            *(
                (_INSTALLATION, result)
                for result in host.check_installation(run, installation)
                if _INSTALLATION in check_names
            ),
            *results(run, check_names),
        ]
        worst = max((result.status for _, result in found), default=ExitStatus.OK)
        ordered = sorted(found, key=lambda item: -item[1].status)
        rows = [(name, result.status.name, result.text) for name, result in ordered]
        return COLUMNS, rows, worst


def results(run: Reconciliation, check_names: Sequence[str]) -> Iterator[tuple[str, CheckResult]]:
    """What each of the chosen checks finds, in the order of the checks.

    Where management clusters are configured by name, each has results of its own.
    """
    for name, check in _LOCAL.items():
        if name in check_names:
            yield from _results(name, check, run)
    if _MANAGEMENT_CLUSTER in check_names:
        yield from _results(_MANAGEMENT_CLUSTER, host.check_management_clusters, run)
    for clients in run.clients.all_clients():
        own_run = dataclasses.replace(run, clients=clients)
        found = _management_results(own_run, check_names)
        if not run.settings.capi_helm.management_clusters:
            yield from found
            return
        for name, result in found:
            text = f"Management cluster {clients.management}: {result.text}"
            yield name, dataclasses.replace(result, text=text)


def _management_results(
    run: Reconciliation, check_names: Sequence[str]
) -> Iterator[tuple[str, CheckResult]]:
    """What is found of one management cluster.

    Where it does not answer, that is one fault and not one of each check.
    """
    if _KUBECONFIG in check_names:
        yield from _results(_KUBECONFIG, identity.check_kubeconfig, run)
    if not set(check_names) & {_MANAGEMENT_CLUSTER, *_REMOTE}:
        return
    try:
        answers = list(management_cluster.check_management_cluster(run))
    except errors.DriverError as error:
        yield _MANAGEMENT_CLUSTER, error_result(error, _UNREACHABLE)
        return
    if _MANAGEMENT_CLUSTER in check_names:
        yield from ((_MANAGEMENT_CLUSTER, answer) for answer in answers)
    for name, check in _REMOTE.items():
        if name in check_names:
            yield from _results(name, check, run)


def _results(name: str, check: RunCheck, run: Reconciliation) -> Iterator[tuple[str, CheckResult]]:
    """The results of one check; an error that it did not expect is its last one."""
    try:
        for result in check(run):
            yield name, result
    except errors.DriverError as error:
        yield name, error_result(error, _UNREACHABLE)
    except db_exception.DBError:
        yield (
            name,
            warning_result(
                "Not checked completely, because Magnum's database cannot be read: see the check "
                "'database'."
            ),
        )
