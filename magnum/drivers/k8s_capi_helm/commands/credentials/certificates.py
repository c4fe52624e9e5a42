# SPDX-License-Identifier: Apache-2.0
"""``k8s-capi-helm certificates``: when certificates of clusters expire, and their renewal."""

from __future__ import annotations

import argparse
import base64
import binascii
from collections.abc import Iterator
import datetime
from typing import Any

from cryptography import x509

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.lookup.clusters import (
    add_clusters_argument,
    find_own_cluster,
    find_record,
    own_clusters,
)
from magnum.drivers.k8s_capi_helm.commands.output.expiry import days_left, expiry_status
from magnum.drivers.k8s_capi_helm.commands.output.lister import (
    ExitStatus,
    operator_text,
    OperatorLister,
    Rows,
)
from magnum.drivers.k8s_capi_helm.model import conditions, Json, names, secrets
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.ownership import ownership
from magnum.drivers.k8s_capi_helm.status.objects import certificate_expiry, machines

COLUMNS = ("Cluster", "UUID", "Certificate", "Expires", "Days", "Next")
#: Secrets of a cluster with its certificate authorities, by the end of their names
#: (https://cluster-api.sigs.k8s.io/tasks/certs/using-custom-certificates).
_AUTHORITIES = {
    "ca": "authority of the cluster",
    "etcd": "authority of etcd",
    "proxy": "authority of the front proxy",
}
_UNKNOWN = "unknown"


class Certificates(OperatorLister):
    """List when certificates of clusters expire: those of control plane machines, and authorities.

    With --renew Cluster API replaces the control plane machines of the named clusters one by one,
    with new certificates. Exit status 0: all are valid for 30 days, 1: one expires before, or is
    not known, 2: one expires within 7 days, 3: the management cluster cannot be used.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Whose certificates, and whether they are renewed."""
        parser = super().get_parser(prog_name)
        add_clusters_argument(parser, is_required=False)
        parser.add_argument(
            "--renew",
            action="store_true",
            help="Replace the control plane machines of the named clusters.",
        )
        return parser

    def rows(self, run: Reconciliation, arguments: argparse.Namespace) -> Rows:
        """A row for each certificate."""
        clusters = list(map(find_own_cluster, arguments.clusters))
        if arguments.renew:
            _renew(run, clusters)
        rows, worst = [], ExitStatus.OK
        for cluster in clusters or own_clusters():
            found, is_read = _certificates_of(run, cluster)
            worst = worst if is_read else ExitStatus.UNKNOWN
            for title, end, advice in found or [("all", None, "None was found.")]:
                status = expiry_status(end, run.now) if end else ExitStatus.WARNING
                worst = max(worst, status)
                shown = (f"{end:%Y-%m-%d}", days_left(end, run.now)) if end else (_UNKNOWN, "")
                needs_advice = status is not ExitStatus.OK
                rows.append(
                    (cluster.name, cluster.uuid, title, *shown, advice if needs_advice else "")
                )
        return COLUMNS, rows, worst


def _certificates_of(
    run: Reconciliation, cluster: Any
) -> tuple[list[tuple[str, datetime.datetime | None, str]], bool]:
    """The certificates of a cluster, and whether its management cluster has answered.

    :raises errors.ManagementUnreachable: it has not, and there is no other one.
    """
    try:
        own_run = run.of_cluster(cluster.stack_id)
        return list(_certificates(own_run, cluster)) if cluster.stack_id else [], True
    except errors.ManagementUnreachable as error:
        if len(run.clients.all_clients()) == 1:
            raise
        return [("all", None, operator_text(error))], False


def _certificates(
    run: Reconciliation, cluster: Any
) -> Iterator[tuple[str, datetime.datetime | None, str]]:
    """Title, end and advice of each certificate; None for an end that is not known.

    :raises errors.ManagementUnreachable: the management cluster does not answer.
    """
    owner, kube = ownership.owner(cluster, run.settings), run.clients.kube
    selector = {names.LABEL_CLUSTER_NAME: owner.release}
    try:
        own_machines = kube.list(names.MACHINE, owner.namespace, selector)
        found = [
            (title, kube.get(names.SECRET, owner.namespace, f"{owner.release}-{ending}"))
            for ending, title in _AUTHORITIES.items()
        ]
    except errors.ManagementUnreachable:
        raise
    except errors.DriverError as error:
        yield "all", None, operator_text(error)
        return
    renew = f"Run 'k8s-capi-helm certificates --renew {cluster.uuid}'."
    for machine in machines.of_control_plane(own_machines):
        expiry = certificate_expiry.first_expiry([machine])
        title = f"machine {conditions.name(machine)}"
        if expiry is None:
            yield title, None, "Cluster API does not report when they expire."
        else:
            yield title, expiry[0], renew
    for title, secret in found:
        if secret is not None:
            yield title, _end(secret), "Its rotation needs a new cluster."


def _end(secret: Json) -> datetime.datetime | None:
    """When the certificate in a Secret ends, None if it cannot be read."""
    text = conditions.mapping(secret.get("data")).get("tls.crt")
    try:
        chain = x509.load_pem_x509_certificates(base64.b64decode(str(text or "")))
        return min(certificate.not_valid_after_utc for certificate in chain)
    except (ValueError, binascii.Error):
        return None


def _renew(run: Reconciliation, clusters: list[Any]) -> None:
    """Let Cluster API roll control planes; all of them are found before one is changed.

    As ``clusterctl alpha rollout restart kubeadmcontrolplane`` does
    (https://cluster-api.sigs.k8s.io/clusterctl/commands/alpha-rollout).

    :raises errors.InvalidRequest: no cluster is named, or one has no control plane.
    """
    if not clusters:
        raise errors.InvalidRequest("--renew replaces machines. Name the clusters.")
    time = run.now.strftime("%Y-%m-%dT%H:%M:%SZ")
    control_planes = []
    for cluster in clusters:
        own_run = run.of_cluster(cluster.stack_id)
        owner, _ = find_record(own_run, cluster)
        kube = own_run.clients.kube
        is_old = kube.served_version(names.CONTROL_PLANE) == "v1beta1"
        spec: Json = {"rolloutAfter": time} if is_old else {"rollout": {"after": time}}
        found = _control_planes(own_run, owner)
        control_planes += [(kube, owner, name, spec) for name in found]
    for kube, owner, name, spec in control_planes:
        kube.patch(names.CONTROL_PLANE, owner.namespace, name, {"spec": spec})


def _control_planes(run: Reconciliation, owner: secrets.Owner) -> list[str]:
    """Names of the KubeadmControlPlanes of a cluster."""
    selector = {names.LABEL_CLUSTER_NAME: owner.release}
    found = run.clients.kube.list(names.CONTROL_PLANE, owner.namespace, selector)
    if not found:
        raise errors.InvalidRequest(
            "There is no KubeadmControlPlane on the management cluster. Release "
            f"'{owner.release}' has none."
        )
    return list(map(conditions.name, found))
