# SPDX-License-Identifier: Apache-2.0
"""``k8s-capi-helm complete-move``: take along what ``clusterctl move`` has left behind."""

from __future__ import annotations

import argparse
import pathlib

from magnum.drivers.k8s_capi_helm import errors, kube_client
from magnum.drivers.k8s_capi_helm.commands.lookup.clusters import (
    add_clusters_argument,
    find_own_cluster,
    own_clusters,
)
from magnum.drivers.k8s_capi_helm.commands.output.lister import ExitStatus, OperatorLister, Rows
from magnum.drivers.k8s_capi_helm.model import conditions, names
from magnum.drivers.k8s_capi_helm.model.management_cluster import release_of
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.ownership import moved_release, ownership
from magnum.drivers.k8s_capi_helm.reconcile.ownership.moved_release import Move

COLUMNS = ("Cluster", "UUID", "Object", "Change")


class CompleteMove(OperatorLister):
    """Complete clusterctl move: bring here what it has left on the former management cluster.

    The configuration names the new management cluster already. For each cluster whose Cluster is
    here and not there: the Lease with the driver's record, the namespace's labels and the driver's
    role in it, Secrets without clusterctl's label, addons, and the cluster autoscaler; then these
    are removed there. What is here already stays; the command can be repeated. Exit status 0: done,
    1: a cluster is not here, 3: one was refused, or a management cluster cannot be used.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """From where, and which clusters."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--from-kubeconfig",
            required=True,
            metavar="PATH",
            help="The driver's kubeconfig of the former management cluster.",
        )
        add_clusters_argument(parser, is_required=False)
        return parser

    def rows(self, run: Reconciliation, arguments: argparse.Namespace) -> Rows:
        """A row for each change; all clusters are checked before one is changed."""
        path = arguments.from_kubeconfig
        if not pathlib.Path(path).is_file():
            raise errors.InvalidRequest(
                f"There is no such kubeconfig. --from-kubeconfig has '{path}'."
            )
        former = former_client(run, path)
        found = map(find_own_cluster, arguments.clusters) if arguments.clusters else own_clusters()
        rows, status, moves = [], ExitStatus.OK, []
        level = run.settings.capi_helm.pod_security_level
        for cluster in found:
            if not cluster.stack_id:
                continue
            clients = run.of_cluster(cluster.stack_id).clients
            move = Move(clients, former, ownership.owner(cluster, run.settings), level)
            if is_moved(move):
                moves.append((cluster, move))
            elif arguments.clusters:
                status = ExitStatus.WARNING
                text = "is not on this management cluster"
                rows.append(
                    (cluster.name, cluster.uuid, f"Cluster {release_of(cluster.stack_id)}", text)
                )
        for cluster, move in moves:
            for change in moved_release.complete_move(move):
                rows.append((cluster.name, cluster.uuid, change.title, change.text))
        return COLUMNS, rows, status


def is_moved(move: Move) -> bool:
    """Whether the Cluster of a release is here, and not on the former management cluster.

    :raises errors.InvalidRequest: it is on both, or clusterctl has not finished.
    :raises errors.DriverError: one of them cannot be asked.
    """
    where = names.CLUSTER, move.owner.namespace, move.owner.release
    here, there = move.kube.get(*where), move.former.get(*where)
    if here is None:
        return False
    if there is not None:
        raise errors.InvalidRequest(
            "The Cluster is on both management clusters. Nothing was changed. Run clusterctl move "
            f"again, which continues: '{move.owner.release}' in '{move.owner.namespace}'."
        )
    if conditions.paused(here):
        raise errors.InvalidRequest(
            "The Cluster is paused, as while clusterctl moves it. Nothing was changed. Run "
            f"clusterctl move again, or set spec.paused of '{move.owner.release}' in "
            f"'{move.owner.namespace}' to false if it has ended."
        )
    return True


def former_client(run: Reconciliation, path: str) -> kube_client.KubeClient:
    """A client of the former management cluster.

    :raises errors.InvalidRequest: the kubeconfig is the one that is configured.
    """
    options = run.settings.capi_helm
    configured = run.clients.kube.kubeconfig_path
    if configured and pathlib.Path(configured).read_bytes() == pathlib.Path(path).read_bytes():
        raise errors.InvalidRequest(
            "The former management cluster is the one that the configuration names. "
            f"--from-kubeconfig has '{path}': let [capi_helm] kubeconfig_file name the new one."
        )
    return kube_client.KubeClient(
        path,
        connect_timeout=options.management_connect_timeout,
        read_timeout=options.management_read_timeout,
    )
