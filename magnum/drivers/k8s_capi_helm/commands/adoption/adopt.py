# SPDX-License-Identifier: Apache-2.0
"""``k8s-capi-helm adopt``: predict the adoption of magnum-capi-helm's clusters, or prove one."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
import itertools
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.adoption.plan import (
    AdoptionPlan,
    AdoptionState,
    plan_adoption,
)
from magnum.drivers.k8s_capi_helm.commands.lookup.clusters import (
    add_clusters_argument,
    find_cluster,
    find_own_cluster,
    own_clusters,
)
from magnum.drivers.k8s_capi_helm.commands.lookup.namespace_reader import NamespaceReader
from magnum.drivers.k8s_capi_helm.commands.output.lister import ExitStatus, OperatorLister, Rows
from magnum.drivers.k8s_capi_helm.helm import manifest_diff
from magnum.drivers.k8s_capi_helm.magnum_objects import notices
from magnum.drivers.k8s_capi_helm.model import conditions, names, secrets
from magnum.drivers.k8s_capi_helm.model.management_cluster import management_of
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.ownership import ownership
from magnum.drivers.k8s_capi_helm.reconcile.process import credential_secret

COLUMNS = ("Cluster", "UUID", "State", "Chart", "Result", "Changes", "Notices")
_STATUSES = {
    AdoptionState.ADOPTED: ExitStatus.OK,
    AdoptionState.UNCHANGED: ExitStatus.OK,
    AdoptionState.CHANGES: ExitStatus.WARNING,
    AdoptionState.WAITS: ExitStatus.WARNING,
    AdoptionState.REFUSED: ExitStatus.CRITICAL,
    AdoptionState.UNKNOWN: ExitStatus.UNKNOWN,
}


class Adopt(OperatorLister):
    """Predict what the adoption of clusters of magnum-capi-helm changes, or confirm one by hand.

    The driver adopts a cluster by itself with the first operation on it. With --dry-run nothing is
    written. Exit status 0: nothing changes, 1: something changes or a cluster is in progress, 2: a
    cluster is refused, 3: it could not be found out.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Which clusters, and whether something is written."""
        parser = super().get_parser(prog_name)
        add_clusters_argument(parser, is_required=False)
        parser.add_argument("--all", action="store_true", help="All clusters of this driver.")
        mode = parser.add_mutually_exclusive_group(required=True)
        mode.add_argument("--dry-run", action="store_true", help="Predict; write nothing.")
        mode.add_argument(
            "--confirm",
            action="store_true",
            help="Declare that the release belongs to this one cluster, where no Secret proves it: "
            "creates its Lease and labels its Secret.",
        )
        return parser

    def rows(self, run: Reconciliation, arguments: argparse.Namespace) -> Rows:
        """A row for each cluster."""
        if bool(arguments.clusters) == arguments.all:
            raise errors.InvalidRequest("Name clusters, or use --all.")
        if arguments.confirm:
            if len(arguments.clusters) != 1:
                raise errors.InvalidRequest("--confirm takes one cluster.")
            cluster = find_own_cluster(arguments.clusters[0])
            _confirm(run.of_cluster(cluster.stack_id), cluster)
        clusters = map(find_cluster, arguments.clusters) if arguments.clusters else own_clusters()
        return _rows(run, clusters)


def _rows(run: Reconciliation, clusters: Iterable[Any]) -> Rows:
    """The rows in the order of the clusters, which are read project by project."""
    listed, worst = list(clusters), ExitStatus.OK
    rows: dict[int, tuple[str, ...]] = {}
    by_project = sorted(enumerate(listed), key=lambda entry: _namespace(entry[1]))
    for _, group in itertools.groupby(by_project, key=lambda entry: _namespace(entry[1])):
        reader: NamespaceReader | None = None
        for index, cluster in group:
            own_run = run.of_cluster(cluster.stack_id)
            reader = reader or NamespaceReader(own_run)
            plan = plan_adoption(own_run, cluster, reader)
            rows[index] = _row(run, cluster, plan)
            worst = max(worst, _STATUSES[plan.state])
    return COLUMNS, [rows[index] for index in range(len(listed))], worst


def _namespace(cluster: Any) -> tuple[str, str]:
    """Management cluster and project, which have a namespace in common."""
    return management_of(cluster.stack_id), cluster.project_id


def _row(run: Reconciliation, cluster: Any, plan: AdoptionPlan) -> tuple[str, ...]:
    sentences: tuple[str, ...] = ()
    if plan.state not in (AdoptionState.ADOPTED, AdoptionState.REFUSED):
        sentences = notices.field_notices(cluster, run.settings, None, list(cluster.nodegroups))
    return (
        cluster.name or "",
        cluster.uuid,
        plan.state.value,
        plan.chart,
        plan.text,
        "; ".join(plan.changes),
        " ".join(sentences),
    )


def _confirm(run: Reconciliation, cluster: Any) -> None:
    """Write down that a release belongs to a cluster, unless something says the contrary.

    :raises errors.NotOwned: it is another cluster's.
    :raises errors.ProofNotFound: there is no such release here.
    :raises errors.DriverError: the management cluster cannot be used.
    """
    owner, kube = ownership.owner(cluster, run.settings), run.clients.kube
    obj = kube.get(names.CLUSTER, owner.namespace, owner.release) if owner.release else None
    if obj is None:
        raise errors.ProofNotFound(
            "The release is not on this management cluster. There is no Cluster "
            f"'{owner.release}' in namespace '{owner.namespace}'. Check the kubeconfig and "
            "[capi_helm] namespace_prefix."
        )
    other = manifest_diff.owner_uuid(obj)
    if other not in ("", owner.cluster_uuid):
        raise errors.NotOwned(
            "The release belongs to another cluster of Magnum. Its Cluster "
            f"'{owner.release}' is labelled as that of cluster '{other}'."
        )
    live = run.clients.helm.live(owner.namespace, owner.release)
    name = credential_secret.secret_name(kube, owner, live.values if live else {})
    run.clients.leases.open(
        owner.namespace,
        owner.release,
        cluster_uuid=owner.cluster_uuid,
        project_id=owner.project_id,
    )
    secret = kube.get(names.SECRET, owner.namespace, name)
    if secret is not None and conditions.object_label(secret, names.LABEL_UUID) is None:
        kube.patch(
            names.SECRET, owner.namespace, name, {"metadata": {"labels": secrets.labels(owner)}}
        )
