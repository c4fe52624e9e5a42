# SPDX-License-Identifier: Apache-2.0
"""``k8s-capi-helm orphans``: what Nova and the management cluster have of clusters alone."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Iterator
import dataclasses
from typing import Any

from magnum.drivers.k8s_capi_helm.commands.lookup.clusters import (
    add_clusters_argument,
    find_own_cluster,
    own_clusters,
)
from magnum.drivers.k8s_capi_helm.commands.output.lister import ExitStatus, OperatorLister, Rows
from magnum.drivers.k8s_capi_helm.model import CloudCluster, conditions, names, secrets
from magnum.drivers.k8s_capi_helm.model.management_cluster import management_of
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.deletion import forced_deletion
from magnum.drivers.k8s_capi_helm.reconcile.ownership import ownership

COLUMNS = ("Cluster", "UUID", "Resource", "ID", "Finding")
_Row = tuple[str, str, str, str, str]
_NO_MACHINE = "no machine of the management cluster has this server"
_NO_CLUSTER = "the management cluster does not have this cluster, and the server runs"
_NO_ROW = "Magnum has no such cluster"
_NOBODY = "neither Magnum nor a management cluster has this cluster"


@dataclasses.dataclass(frozen=True, slots=True)
class _Existing:
    """A cluster that exists on a management cluster, or in OpenStack.

    :ivar management: name of the management cluster, "" for one of OpenStack.
    :ivar uid: of its Cluster.
    :ivar cloud: what OpenStack has of it; None for one of a management cluster.
    """

    namespace: str
    name: str
    management: str = ""
    uid: str = ""
    cloud: CloudCluster | None = None


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
        # Magnum has a record of a cluster before anything else has: records are read after this.
        existing = list(_existing_clusters(run)) if is_all else []
        clusters = list(own_clusters() if is_all else map(find_own_cluster, arguments.clusters))
        rows = [row for cluster in clusters for row in _server_rows(run, cluster)]
        if is_all:
            rows += _unrecorded_rows(run, clusters, existing)
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


def _existing_clusters(run: Reconciliation) -> Iterator[_Existing]:
    """The clusters of each management cluster, then those of OpenStack."""
    prefix = run.settings.capi_helm.namespace_prefix
    for clients in run.clients.all_clients():
        for obj in clients.kube.list(names.CLUSTER, None):
            namespace, name = str(conditions.metadata(obj).get("namespace")), conditions.name(obj)
            if namespace.startswith(f"{prefix}-"):
                uid = str(conditions.metadata(obj).get("uid") or "")
                yield _Existing(namespace, name, management=clients.management, uid=uid)
    for cluster in run.cloud().remains.clusters(prefix):
        namespace = names.namespace(prefix, cluster.project_id)
        yield _Existing(namespace, cluster.release, cloud=cluster)


def _unrecorded_rows(
    run: Reconciliation, clusters: Iterable[Any], existing: Collection[_Existing]
) -> Iterator[_Row]:
    """What exists of clusters that Magnum does not have."""
    known = {(one.management, one.namespace, one.name) for one in existing if one.cloud is None}
    recorded = set()
    for cluster in clusters:
        if cluster.stack_id:
            owner = ownership.owner(cluster, run.settings)
            recorded.add((management_of(cluster.stack_id), owner.namespace, owner.release))
    # A cluster of OpenStack may be that of any management cluster.
    names_of_all = {(namespace, name) for _, namespace, name in known | recorded}
    unrecorded = [
        one
        for one in existing
        if (one.management, one.namespace, one.name) not in recorded
        and (one.cloud is None or (one.namespace, one.name) not in names_of_all)
    ]
    # Those that were deleted meanwhile are gone.
    remaining = set(_existing_clusters(run)) if unrecorded else set()
    for one in unrecorded:
        if one in remaining:
            yield from _rows_of(run, one)


def _rows_of(run: Reconciliation, existing: _Existing) -> Iterator[_Row]:
    """The rows of a cluster that Magnum does not have."""
    namespace, name, cloud = existing.namespace, existing.name, existing.cloud
    if cloud is None:
        has_peers = len(run.clients.all_clients()) > 1
        where = f" (management cluster {existing.management})" if has_peers else ""
        yield "", "", f"Cluster {namespace}/{name}", existing.uid, f"{_NO_ROW}{where}"
        return
    resources = run.cloud().remains.resources(name, cloud.project_id, namespace)
    for resource in (*resources, *cloud.security_groups):
        finding = f"{_NOBODY} (project {cloud.project_id})"
        yield name, "", resource.title, resource.id, finding
