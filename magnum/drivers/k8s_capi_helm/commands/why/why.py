# SPDX-License-Identifier: Apache-2.0
"""``k8s-capi-helm why``: the cause of a cluster's state, and what leads there."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.lookup.clusters import add_cluster_argument, find_cluster
from magnum.drivers.k8s_capi_helm.commands.output.lister import (
    ExitStatus,
    operator_text,
    OperatorLister,
    Rows,
)
from magnum.drivers.k8s_capi_helm.commands.why import advice, object_rows
from magnum.drivers.k8s_capi_helm.commands.why.object_rows import Row
from magnum.drivers.k8s_capi_helm.errors import Cause
from magnum.drivers.k8s_capi_helm.model import Missing, Verdict
from magnum.drivers.k8s_capi_helm.model.management_cluster import release_of
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import (
    Reconciliation,
    ReleaseSnapshot,
)
from magnum.drivers.k8s_capi_helm.reconcile.observe import observe, observe_cluster
from magnum.drivers.k8s_capi_helm.reconcile.ownership import ownership
from magnum.drivers.k8s_capi_helm.reconcile.process.credential_check import CredentialCheck
from magnum.drivers.k8s_capi_helm.status import health
from magnum.drivers.k8s_capi_helm.status.texts import issue

COLUMNS = ("Object", "State", "Message")
_NOTHING = "nothing is wrong"
#: Parts of the health that are about one class of causes, whatever their words.
_CAUSES = {
    "addons": Cause.ADDON,
    "credential": Cause.CREDENTIAL,
    "inside": Cause.ADDON,
    "management": Cause.MANAGEMENT,
}


class Why(OperatorLister):
    """Show the cause of a cluster's state, from Magnum's record down to the servers.

    The first line is the cause, by the rules of the driver's own status; the last line is what to
    do next. Exit status 0: nothing is wrong, 1: something is in progress or unknown, 2: a cause
    is named, 3: the cluster cannot be found or read.
    """

    @property
    def formatter_default(self) -> str:
        """A tree needs no frame."""
        return "value"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Which cluster is explained."""
        parser = super().get_parser(prog_name)
        add_cluster_argument(parser)
        return parser

    def rows(self, run: Reconciliation, arguments: argparse.Namespace) -> Rows:
        """The cause, the tree, and what to do."""
        cluster = find_cluster(arguments.cluster)
        try:
            status, found = explanation(run.of_cluster(cluster.stack_id), cluster)
        except errors.DriverError as error:
            cause = Row(0, "Cause:", error.cause.value, operator_text(error))
            found = [
                cause,
                *object_rows.database_rows(cluster),
                _next(cluster, error.cause.value, cause.message),
            ]
            status = ExitStatus.CRITICAL
        return COLUMNS, [row.columns for row in found], status


def explanation(run: Reconciliation, cluster: Any) -> tuple[ExitStatus, list[Row]]:
    """The rows about a cluster, by what the driver would say of it now.

    :raises errors.DriverError: it cannot be looked at.
    """
    if sentence := ownership.foreign_reason(cluster):
        raise errors.NotOwned(sentence)
    if not cluster.stack_id:
        text = cluster.status_reason or "the cluster has no release: its creation did not get there"
        return ExitStatus.CRITICAL, [
            _cause_row(issue.reason_class(text), text),
            *object_rows.database_rows(cluster),
            _next(cluster, Cause.REQUEST.value, text),
        ]
    snapshot = _read(run, cluster)
    nodegroups = list(cluster.nodegroups)
    outcome = observe.ApplyOutcome(waiting_error=_last_refusal(cluster), snapshot=snapshot)
    verdict = observe.evaluate_cluster(
        run, cluster, nodegroups, outcome, include_health=True
    ).verdict
    assert snapshot.observed is not None  # _read has done it
    owner = ownership.owner(cluster, run.settings)
    cause, text = _cause(verdict, cluster.status or "")
    is_deleting = (cluster.status or "").startswith("DELETE_")
    absent = object_rows.DELETED if is_deleting else Missing.NOT_FOUND.value
    rows = [
        _cause_row(cause, text or _well(cluster)),
        *object_rows.database_rows(cluster, None if is_deleting else verdict),
        *object_rows.record_rows(release_of(cluster.stack_id), snapshot.record),
        *object_rows.release_rows(owner, snapshot.live, absent),
        *object_rows.observed_rows(snapshot.observed, absent),
    ]
    return _exit_status(verdict, cause), [*rows, _next(cluster, cause, text)]


def _read(run: Reconciliation, cluster: Any) -> ReleaseSnapshot:
    """Record, release and objects, read now.

    :raises errors.DriverError: the management cluster cannot be read, or proves nothing.
    """
    # A new process spreads its first questions about credentials; here one person waits for one.
    check = CredentialCheck(lambda: 1.0)
    run = dataclasses.replace(run, clients=dataclasses.replace(run.clients, credential_check=check))
    owner = ownership.owner(cluster, run.settings)
    record = run.clients.leases.read(owner.namespace, owner.release)
    if record is None:
        raise errors.ProofNotFound(
            f"The release has no Lease. Release '{owner.release}' is deleted, or in another "
            f"management cluster, or its cluster is of magnum-capi-helm and was not adopted yet.",
            f"namespace {owner.namespace}",
        )
    live = run.clients.helm.live(owner.namespace, owner.release)
    observed = observe_cluster.observe(run, cluster, live, None, include_health=True)
    if observed.unreachable:
        raise errors.ManagementUnreachable(
            "The management cluster did not answer completely.", observed.unreachable
        )
    return ReleaseSnapshot(record, live, observed, observed)


def _last_refusal(cluster: Any) -> errors.DriverError | None:
    """Why a request was not applied at the last attempt, by the reason that Magnum has.

    Only a conductor applies requests. The evaluation uses this only while one is not applied.
    """
    reason = cluster.status_reason or ""
    cause = issue.reason_class(reason)
    if cause in ("", Cause.TIMEOUT.value):
        return None
    error = errors.DriverError(reason.removeprefix(f"{cause}: "))
    error.cause = Cause(cause)
    return error


def _cause(verdict: Verdict, status: str) -> tuple[str, str]:
    """Class and text of what is wrong; texts that are empty where nothing is.

    The reason of the status; without one, the first part that is not healthy.

    :param status: of Magnum's row.
    """
    if verdict.reason:
        return issue.row_class(status, verdict.reason), verdict.reason
    if verdict.health == health.HEALTHY:
        return "", ""
    parts = health.parts_not_ready(verdict.health_reason)
    for part, text in parts.items():
        cause = _CAUSES.get(part) or issue.cause_of(text, Cause.MANAGEMENT)
        return cause.value, f"{part}: {text}"
    return "", ""


def _well(cluster: Any) -> str:
    """That nothing is wrong; a refused request stays in Magnum's row until the next one."""
    reason, is_complete = cluster.status_reason, (cluster.status or "").endswith("_COMPLETE")
    if not reason or not is_complete:
        return _NOTHING
    return f"{_NOTHING}, and the last request was refused: {reason}"


def _exit_status(verdict: Verdict, cause: str) -> ExitStatus:
    """Whether something is wrong, or only not finished, or not known."""
    if verdict.reason:
        return ExitStatus.CRITICAL if cause else ExitStatus.WARNING
    statuses = {health.HEALTHY: ExitStatus.OK, health.UNKNOWN: ExitStatus.WARNING}
    return statuses.get(verdict.health, ExitStatus.CRITICAL)


def _cause_row(cause: str, text: str) -> Row:
    """The first row; the class, which a reason has in front, is in a column of its own."""
    state = cause or ("waiting" if text.startswith("waiting: ") else "")
    return Row(0, "Cause:", state, text.removeprefix(f"{state}: "))


def _next(cluster: Any, cause: str, text: str) -> Row:
    return Row(0, "Next:", "", advice.advice(cause, text, cluster.uuid) if text else advice.FINE)
