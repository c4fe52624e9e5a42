# SPDX-License-Identifier: Apache-2.0
"""``k8s-capi-helm credentials``: which application credentials work, and until when."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
import dataclasses
import datetime
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.lookup.clusters import (
    add_clusters_argument,
    find_cluster,
    own_clusters,
)
from magnum.drivers.k8s_capi_helm.commands.output.expiry import days_left, expiry_status
from magnum.drivers.k8s_capi_helm.commands.output.lister import (
    ExitStatus,
    operator_text,
    OperatorLister,
    Rows,
)
from magnum.drivers.k8s_capi_helm.model import ApplicationCredential, secrets
from magnum.drivers.k8s_capi_helm.model.management_cluster import release_of
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.ownership import ownership
from magnum.drivers.k8s_capi_helm.reconcile.process import credential_secret

COLUMNS = ("Cluster", "UUID", "User", "Credential", "Status", "Expires", "Next")
#: Of a credential, or of a whole user, that Keystone does not tell about.
_UNKNOWN = "unknown"


@dataclasses.dataclass(frozen=True, slots=True)
class CredentialState:
    """What is known of one credential of a cluster.

    :ivar credential: its id, "" where there is none.
    :ivar text: ``accepted``, ``refused`` and so on.
    :ivar expiry: days until it ends, ``never`` or ``unknown``; "" where there is none.
    """

    exit_status: ExitStatus
    credential: str
    text: str
    expiry: str | int = ""


class Credentials(OperatorLister):
    """Ask Keystone now whether it accepts the application credentials of clusters.

    "Expires" is the number of days until a credential ends; those that the driver creates never
    do. Retired credentials wait for their deletion by the driver. Only a user of the project can
    rotate: Keystone creates application credentials for no other user. Exit status 0: all are
    accepted, 1: one expires within 30 days, or it is unknown whether it is accepted, 2: one is
    refused, missing, or expires within 7 days, 3: the management cluster cannot be read.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Whose credentials are listed."""
        parser = super().get_parser(prog_name)
        add_clusters_argument(parser, is_required=False)
        parser.add_argument("--project", metavar="ID", help="Only clusters of this project.")
        return parser

    def rows(self, run: Reconciliation, arguments: argparse.Namespace) -> Rows:
        """A row for each credential."""
        clusters = [find_cluster(text) for text in arguments.clusters]
        if not arguments.clusters:
            clusters = list(own_clusters(arguments.project))
        rows, worst = [], ExitStatus.OK
        for cluster in clusters:
            if not release_of(cluster.stack_id) or ownership.foreign_reason(cluster):
                continue
            for state in _states(run, cluster):
                rows.append(_row(cluster, state))
                worst = max(worst, state.exit_status)
        return COLUMNS, rows, worst


def _states(run: Reconciliation, cluster: Any) -> Iterator[CredentialState]:
    """As :func:`credential_states`; one state that nothing is known where others may be.

    :raises errors.ManagementUnreachable: the only management cluster does not answer.
    """
    try:
        yield from credential_states(run.of_cluster(cluster.stack_id), cluster)
    except errors.ManagementUnreachable as error:
        if len(run.clients.all_clients()) == 1:
            raise
        yield CredentialState(ExitStatus.UNKNOWN, "", operator_text(error))


def _row(cluster: Any, state: CredentialState) -> tuple[Any, ...]:
    advice = ""
    if state.exit_status is not ExitStatus.OK and state.text != _UNKNOWN:
        advice = f"A user of the project runs 'openstack coe credential rotate {cluster.uuid}'."
    return (
        cluster.name,
        cluster.uuid,
        cluster.user_id,
        state.credential,
        state.text,
        state.expiry,
        advice,
    )


def credential_states(run: Reconciliation, cluster: Any) -> Iterator[CredentialState]:
    """What is known of the credentials of one cluster, used and retired.

    :raises errors.ManagementUnreachable: the management cluster does not answer.
    """
    owner = ownership.owner(cluster, run.settings)
    try:
        found = [
            credential
            for secret in credential_secret.secrets_in_use(run.clients.kube, owner)
            for credential in secrets.credentials_of(secret)
        ]
        record = run.clients.leases.read(owner.namespace, owner.release)
    except errors.ManagementUnreachable:
        raise
    except errors.DriverError as error:
        yield CredentialState(ExitStatus.WARNING, "", operator_text(error))
        return
    if not found:
        yield CredentialState(ExitStatus.CRITICAL, "", "missing")
    ends = _ends(run, owner)
    for credential in dict.fromkeys(found):
        yield _state(run, credential, ends)
    for retired in record.retired_credentials if record else ():
        text = f"retired since {retired.since:%Y-%m-%d %H:%M}"
        yield CredentialState(ExitStatus.OK, retired.id, text)


def _ends(
    run: Reconciliation, owner: secrets.Owner
) -> Mapping[str, datetime.datetime | None] | None:
    """When each credential of the cluster's user ends; None where Keystone does not tell."""
    try:
        return run.cloud().credential_expiries(owner.user_id, owner.project_id)
    except errors.DriverError:
        return None


def _state(
    run: Reconciliation,
    credential: ApplicationCredential,
    ends: Mapping[str, datetime.datetime | None] | None,
) -> CredentialState:
    """Whether Keystone accepts a credential, and when it expires."""
    try:
        if not run.cloud().accepts(credential):
            return CredentialState(ExitStatus.CRITICAL, credential.id, "refused")
    except errors.DriverError:
        return CredentialState(ExitStatus.WARNING, credential.id, _UNKNOWN, _UNKNOWN)
    if ends is None or credential.id not in ends:
        return CredentialState(ExitStatus.OK, credential.id, "accepted", _UNKNOWN)
    end = ends[credential.id]
    if end is None:
        return CredentialState(ExitStatus.OK, credential.id, "accepted", "never")
    days = days_left(end, run.now)
    return CredentialState(expiry_status(end, run.now), credential.id, "accepted", days)
