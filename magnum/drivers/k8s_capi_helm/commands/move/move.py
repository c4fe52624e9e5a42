# SPDX-License-Identifier: Apache-2.0
"""``k8s-capi-helm move``: bring clusters from one management cluster of this Magnum to another."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
import contextlib
import os
import shutil
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.lookup.clusters import (
    add_clusters_argument,
    find_own_cluster,
    own_clusters,
)
from magnum.drivers.k8s_capi_helm.commands.move.complete_move import is_moved
from magnum.drivers.k8s_capi_helm.commands.output.lister import ExitStatus, OperatorLister, Rows
from magnum.drivers.k8s_capi_helm.helm import process
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import refresh, saving
from magnum.drivers.k8s_capi_helm.model import names
from magnum.drivers.k8s_capi_helm.model.management_cluster import (
    management_of,
    release_of,
    with_management,
)
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.ownership import moved_release, ownership
from magnum.drivers.k8s_capi_helm.reconcile.process.clients import Clients

COLUMNS = ("Cluster", "UUID", "Object", "Change")
#: Seconds for ``clusterctl move`` of one namespace.
_LIMIT = 600.0
_CLUSTERCTL = ("clusterctl", "kubeconfig", "to_kubeconfig")


class MoveClusters(OperatorLister):
    """Move clusters to another management cluster of this Magnum, with clusterctl move.

    First Magnum's record names the other one, so that no conductor changes a cluster until it is
    there; then clusterctl moves the namespace, with administrators' kubeconfigs, or an operator
    does so by hand; then what clusterctl leaves behind is brought. Interrupted at any point, the
    same command continues, and with the former name it takes them back as long as clusterctl has
    not started. All clusters of a project move together. Exit status 0: all are there, 1:
    clusterctl has to be run, 3: one was refused, or a management cluster cannot be used.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Which clusters, where to, and how clusterctl is run."""
        parser = super().get_parser(prog_name)
        add_clusters_argument(parser)
        parser.add_argument(
            "--to", required=True, metavar="NAME", help="Of the other management cluster."
        )
        group = parser.add_argument_group("clusterctl (all three, or none to run it by hand)")
        group.add_argument("--clusterctl", metavar="PATH", help="The program.")
        for option, whose in (("--kubeconfig", "former"), ("--to-kubeconfig", "other")):
            group.add_argument(
                option,
                metavar="PATH",
                help=f"An administrator's kubeconfig of the {whose} management cluster.",
            )
        return parser

    def rows(self, run: Reconciliation, arguments: argparse.Namespace) -> Rows:
        """A row for each change; all clusters are checked before one is changed."""
        _check_options(arguments)
        target = run.clients.at(arguments.to)
        clusters = list(map(find_own_cluster, arguments.clusters))
        for cluster in clusters:
            _check(cluster)
        _require_whole_projects(clusters, target)
        found = [(one, _former(run, one, target)) for one in clusters]
        rows: list[tuple[str, ...]] = []
        with contextlib.ExitStack() as locks:
            for cluster, former in found:
                rows += _write(run, cluster, former, target, locks)
            if arguments.clusterctl:
                rows += _run_clusterctl(run, arguments, found, target)
        status = ExitStatus.OK
        for cluster, former in found:
            changes = list(_complete(run, cluster, former, target))
            rows += changes
            if any(change[-1].startswith("run ") for change in changes):
                status = ExitStatus.WARNING
        return COLUMNS, rows, status


def _check_options(arguments: argparse.Namespace) -> None:
    """See that clusterctl can be run, if it is to be.

    :raises errors.InvalidRequest: an option is missing, or names no file.
    """
    given = [name for name in _CLUSTERCTL if getattr(arguments, name)]
    if given and len(given) < len(_CLUSTERCTL):
        raise errors.InvalidRequest(
            "To run clusterctl, give --clusterctl, --kubeconfig and --to-kubeconfig."
        )
    if not given:
        return
    for name in _CLUSTERCTL:
        path = getattr(arguments, name)
        if not os.path.isfile(path) and not (name == "clusterctl" and shutil.which(path)):
            option = name.replace("_", "-")
            raise errors.InvalidRequest(f"There is no such file. --{option} is '{path}'.")


def _check(cluster: Any) -> None:
    """Refuse what clusterctl cannot move.

    :raises errors.InvalidRequest: the cluster is being changed, or has no release.
    """
    if not release_of(cluster.stack_id):
        raise errors.InvalidRequest(
            f"A cluster has no release. Nothing is to be moved of cluster '{cluster.name}'."
        )
    if (cluster.status or "").endswith("_IN_PROGRESS"):
        raise errors.InvalidRequest(
            "A cluster is being changed. Wait until nothing of cluster "
            f"'{cluster.name}' is in progress: its status is {cluster.status}."
        )


def _require_whole_projects(clusters: Iterable[Any], target: Clients) -> None:
    """See that no cluster of a project stays where the others leave.

    :raises errors.InvalidRequest: naming those that would.
    """
    moving = [one for one in clusters if management_of(one.stack_id) != target.management]
    leaving = {(one.project_id, management_of(one.stack_id)) for one in moving}
    uuids = {one.uuid for one in moving}
    others = [
        f"{one.name} ({one.uuid})"
        for one in own_clusters()
        if (one.project_id, management_of(one.stack_id)) in leaving
        and release_of(one.stack_id)
        and one.uuid not in uuids
    ]
    if others:
        raise errors.InvalidRequest(
            "A project has other clusters on the same management cluster. clusterctl moves them "
            f"too, so name them as well: {', '.join(others)}."
        )


def _former(run: Reconciliation, cluster: Any, target: Clients) -> Clients | None:
    """The management cluster that a cluster leaves: the one that has its Lease; None without.

    :raises errors.ProofNotFound: none has it, and neither has the target.
    :raises errors.DriverError: one of them cannot be asked.
    """
    owner = ownership.owner(cluster, run.settings)
    own = run.of_cluster(cluster.stack_id).clients
    for clients in (own, *run.clients.all_clients()):
        if clients.management == target.management:
            continue
        record = clients.leases.read(owner.namespace, owner.release)
        if record is not None and record.cluster_uuid == owner.cluster_uuid:
            return clients
    if target.leases.read(owner.namespace, owner.release) is None:
        raise errors.ProofNotFound(
            "No management cluster has the Lease of the cluster. There is none of release "
            f"'{owner.release}' of cluster '{cluster.name}'."
        )
    if target.kube.get(names.CLUSTER, owner.namespace, owner.release) is None:
        raise errors.InvalidRequest(
            "The Cluster is on its way to another management cluster. Move cluster "
            f"'{cluster.name}' there completely first: '{own.management}'."
        )
    return None


def _write(
    run: Reconciliation,
    cluster: Any,
    former: Clients | None,
    target: Clients,
    locks: contextlib.ExitStack,
) -> Iterator[tuple[str, ...]]:
    """Write the name into the row under the lock of the release, which is kept.

    :raises errors.LockHeld: a conductor changes it.
    :raises errors.InvalidRequest: a request has come meanwhile.
    """
    owner, wait = ownership.owner(cluster, run.settings), run.settings.capi_helm.lock_wait
    if former is not None:
        locks.enter_context(former.leases.acquire(owner.namespace, owner.release, wait=wait))
    if management_of(cluster.stack_id) == target.management:
        return
    if not refresh.is_unchanged(cluster, cluster.obj_context):
        _check(cluster)
    saving.save(cluster, stack_id=with_management(owner.release, target.management))
    yield _row(cluster, "Magnum's record", f"names {target.management}")


def _run_clusterctl(
    run: Reconciliation,
    arguments: argparse.Namespace,
    found: Iterable[tuple[Any, Clients | None]],
    target: Clients,
) -> Iterator[tuple[str, ...]]:
    """Move each namespace whose Cluster is not on the target yet, or not whole.

    :raises errors.ManagementRefused: clusterctl fails; run it again with this command.
    """
    namespaces: set[str] = set()
    for cluster, former in found:
        owner = ownership.owner(cluster, run.settings)
        where = names.CLUSTER, owner.namespace, owner.release
        is_there = former is not None and former.kube.get(*where) is not None
        if not is_there or owner.namespace in namespaces:
            continue
        namespaces.add(owner.namespace)
        command = [
            *(str(shutil.which(arguments.clusterctl) or arguments.clusterctl), "move"),
            *("--namespace", owner.namespace),
            *("--kubeconfig", arguments.kubeconfig),
            *("--to-kubeconfig", arguments.to_kubeconfig),
        ]
        finished = process.run(command, timeout=_LIMIT)
        if finished.end is not process.ProcessOutcome.EXITED or finished.code:
            lines = (finished.stdout + finished.stderr).decode(errors="replace").splitlines()
            raise errors.ManagementRefused(
                "clusterctl move has failed. Correct the cause, and run this command again for "
                f"namespace '{owner.namespace}'.",
                " ".join(lines[-5:]),
            )
        yield _row(cluster, f"Namespace {owner.namespace}", f"moved to {target.management}")


def _complete(
    run: Reconciliation, cluster: Any, former: Clients | None, target: Clients
) -> Iterator[tuple[str, ...]]:
    """Bring what clusterctl has left, or say that clusterctl is next.

    :raises errors.InvalidRequest: clusterctl has not finished.
    :raises errors.DriverError: a management cluster cannot be used.
    """
    if former is None:
        yield _row(cluster, f"Release {release_of(cluster.stack_id)}", f"on {target.management}")
        return
    owner, level = ownership.owner(cluster, run.settings), run.settings.capi_helm.pod_security_level
    if target.kube.get(names.CLUSTER, owner.namespace, owner.release) is None:
        text = f"run clusterctl move --namespace {owner.namespace} ... and this command again"
        yield _row(cluster, f"Cluster {owner.release}", text)
        return
    move = moved_release.Move(target, former.kube, owner, level)
    if is_moved(move):
        for change in moved_release.complete_move(move):
            yield _row(cluster, change.title, change.text)


def _row(cluster: Any, title: str, text: str) -> tuple[str, ...]:
    return cluster.name, cluster.uuid, title, text
