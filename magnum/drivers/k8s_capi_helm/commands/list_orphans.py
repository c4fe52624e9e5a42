# SPDX-License-Identifier: Apache-2.0
"""``k8s-capi-helm orphans``: what Nova and the management cluster have of clusters alone."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Container, Iterator
from typing import Any

from magnum.drivers.k8s_capi_helm.commands.clusters import (
    add_clusters_argument,
    find_own_cluster,
    own_clusters,
)
from magnum.drivers.k8s_capi_helm.commands.lister import ExitStatus, OperatorLister, Rows
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.model import conditions, names, secrets
from magnum.drivers.k8s_capi_helm.model.management_cluster import management_of, release_of
from magnum.drivers.k8s_capi_helm.reconcile import forced_deletion, ownership
from magnum.drivers.k8s_capi_helm.reconcile.context import Reconciliation

COLUMNS = ("Cluster", "UUID", "Resource", "ID", "Finding")
_Row = tuple[str, str, str, str, str]
_NO_MACHINE = "no machine of the management cluster has this server"
_NO_CLUSTER = "the management cluster does not have this cluster, and the server runs"
_NO_ROW = "Magnum has no such cluster"
_NOBODY = "neither Magnum nor a management cluster has this cluster"


class ListOrphans(OperatorLister):
    """List servers that no machine has, and clusters that Magnum does not have.

    So it is after a restore of the management cluster or of Magnum's database from a backup that
    is older than the last change. Clusters that neither has are found by the security groups that
    Cluster API creates for each. Nothing is changed. Without CLUSTER all clusters are read. Exit
    status 0: there are none, 1: there are some, 3: it could not be found out.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Which clusters."""
        parser = super().get_parser(prog_name)
        add_clusters_argument(parser, is_required=False)
        return parser

    def rows(self, run: Reconciliation, arguments: argparse.Namespace) -> Rows:
        """A row for each orphan."""
        is_all = not arguments.clusters
        clusters = list(own_clusters() if is_all else map(find_own_cluster, arguments.clusters))
        rows = [row for cluster in clusters for row in _server_rows(run, cluster)]
        if is_all:
            rows += _all_cluster_rows(run, clusters)
        return COLUMNS, rows, ExitStatus.WARNING if rows else ExitStatus.OK


def _server_rows(run: Reconciliation, cluster: Any) -> Iterator[_Row]:
    """The servers of a cluster that none of its machines has."""
    if not cluster.stack_id:
        return
    run, owner = run.of_cluster(cluster.stack_id), ownership.owner(cluster, run.settings)
    obj = run.clients.kube.get(names.CLUSTER, owner.namespace, owner.release)
    ids, unassigned = _known_servers(run, owner)
    for resource in forced_deletion.cloud_resources(run, owner):
        name = resource.title.removeprefix("server ")
        if name == resource.title or resource.id in ids or name in unassigned:
            continue
        finding = _NO_CLUSTER if obj is None else _NO_MACHINE
        yield cluster.name, cluster.uuid, resource.title, resource.id, finding


def _known_servers(run: Reconciliation, owner: secrets.Owner) -> tuple[set[str], set[str]]:
    """The ids of servers that the management cluster has, and the names of those without an id."""
    selector = {names.LABEL_CLUSTER_NAME: owner.release}
    ids, unassigned = set(), set()
    for obj in run.clients.kube.list(names.OPENSTACK_SERVER, owner.namespace, selector):
        if server_id := conditions.at_path(obj, "status", "instanceID"):
            ids.add(str(server_id))
        else:
            unassigned.add(conditions.name(obj))
    return ids, unassigned


def _all_cluster_rows(run: Reconciliation, clusters: Collection[Any]) -> Iterator[_Row]:
    """The clusters that Magnum does not have: first Clusters, then what only OpenStack has."""
    magnum_clusters = {
        (management_of(one.stack_id), release_of(one.stack_id)) for one in clusters if one.stack_id
    }
    found: set[tuple[str, str]] = set()
    peers = run.clients.all_clients()
    for clients in peers:
        where = f" (management cluster {clients.management})" if len(peers) > 1 else ""
        for namespace, name, uid in _clusters(run, clients.kube):
            found.add((namespace, name))
            if (clients.management, name) not in magnum_clusters:
                yield "", "", f"Cluster {namespace}/{name}", uid, f"{_NO_ROW}{where}"
    owners = [ownership.owner(one, run.settings) for one in clusters if one.stack_id]
    yield from _unknown_rows(run, found | {(one.namespace, one.release) for one in owners})


def _clusters(run: Reconciliation, kube: KubeClient) -> Iterator[tuple[str, str, str]]:
    """Namespace, name and uid of each Cluster in the namespaces of projects."""
    prefix = f"{run.settings.capi_helm.namespace_prefix}-"
    for obj in kube.list(names.CLUSTER, None):
        namespace, name = str(conditions.metadata(obj).get("namespace")), conditions.name(obj)
        if namespace.startswith(prefix):
            yield namespace, name, str(conditions.metadata(obj).get("uid") or "")


def _unknown_rows(run: Reconciliation, known: Container[tuple[str, str]]) -> Iterator[_Row]:
    """What OpenStack has of clusters that neither Magnum nor a management cluster has.

    :param known: namespaces and names of the others.
    """
    remains, prefix = run.cloud().remains, run.settings.capi_helm.namespace_prefix
    for cluster in remains.clusters(prefix):
        namespace = names.namespace(prefix, cluster.project_id)
        if (namespace, cluster.release) in known:
            continue
        resources = remains.resources(cluster.release, cluster.project_id, namespace)
        for resource in (*resources, *cluster.security_groups):
            finding = f"{_NOBODY} (project {cluster.project_id})"
            yield cluster.release, "", resource.title, resource.id, finding
