# SPDX-License-Identifier: Apache-2.0
"""Find the clusters of this driver: in Magnum's database, and their Leases."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
import contextlib
from typing import Any

from oslo_utils import uuidutils

from magnum import objects
from magnum.common import context as magnum_context
from magnum.common import exception
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.lease import codec
from magnum.drivers.k8s_capi_helm.model import conditions, Json, names, ReleaseRecord, secrets
from magnum.drivers.k8s_capi_helm.model.management_cluster import release_of
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.ownership import ownership

#: Namespace and release.
ReleaseKey = tuple[str, str]


def own_clusters(project: str | None = None) -> Iterator[Any]:
    """The clusters of this driver, by name; with one query, whatever their number.

    :param project: only those of this project.
    """
    context = magnum_context.make_admin_context(all_tenants=True)
    filters = {"project_id": project} if project else None
    for cluster in objects.Cluster.list(context, sort_key="name", filters=filters):
        if not ownership.foreign_reason(cluster):
            yield cluster


def add_cluster_argument(parser: argparse.ArgumentParser) -> None:
    """Let a command take one cluster, which :func:`find_own_cluster` finds."""
    parser.add_argument("cluster", metavar="CLUSTER", help="UUID, name or release.")


def add_clusters_argument(parser: argparse.ArgumentParser, *, is_required: bool = True) -> None:
    """Let a command take several clusters; without *is_required* also none, for all of them."""
    ending = "" if is_required else "; all without"
    parser.add_argument(
        "clusters",
        nargs="+" if is_required else "*",
        metavar="CLUSTER",
        help=f"UUIDs, names or releases{ending}.",
    )


def find_own_cluster(text: str) -> Any:
    """As :func:`find_cluster`, of this driver.

    :raises errors.NotOwned: it is another driver's.
    """
    cluster = find_cluster(text)
    if sentence := ownership.foreign_reason(cluster):
        raise errors.NotOwned(sentence)
    return cluster


def find_cluster(text: str) -> Any:
    """The cluster with a UUID, a release or a name.

    :raises errors.InvalidRequest: there is none, or several have the name.
    """
    context = magnum_context.make_admin_context(all_tenants=True)
    if uuidutils.is_uuid_like(text):
        # A filter by UUID is none of Magnum's, which leaves out what it does not know.
        with contextlib.suppress(exception.ClusterNotFound):
            return objects.Cluster.get_by_uuid(context, text)
        raise _not_found(text)
    for field in ("stack_id", "name"):
        found = objects.Cluster.list(context, filters={field: text})
        if not found and field == "stack_id" and names.is_release(text):
            # It may stand beside the name of a management cluster, which no filter can leave out.
            found = [
                cluster
                for cluster in objects.Cluster.list(context)
                if release_of(cluster.stack_id) == text
            ]
        if len(found) > 1:
            uuids = ", ".join(sorted(f"{one.uuid} (project {one.project_id})" for one in found))
            raise errors.InvalidRequest(
                f"Several clusters have this name. Choose one that is named '{text}': {uuids}."
            )
        if found:
            return found[0]
    raise _not_found(text)


def _not_found(text: str) -> errors.InvalidRequest:
    return errors.InvalidRequest(
        f"There is no such cluster. '{text}' is no UUID, no name and no release of one."
    )


def find_record(run: Reconciliation, cluster: Any) -> tuple[secrets.Owner, ReleaseRecord]:
    """The owner of a cluster's objects, and the record in its Lease.

    :raises errors.InvalidRequest: there is no Lease yet.
    :raises errors.NotOwned: it is another cluster's.
    :raises errors.DriverError: the management cluster cannot be read.
    """
    owner = ownership.owner(cluster, run.settings)
    record = run.clients.leases.read(owner.namespace, owner.release) if owner.release else None
    if record is None:
        raise errors.InvalidRequest(
            f"The cluster is not adopted yet. Cluster '{cluster.name}' has no Lease: see "
            f"'k8s-capi-helm adopt --dry-run {cluster.uuid}'."
        )
    ownership.check_record(record, owner)
    return owner, record


def find_template(text: str) -> Any:
    """The cluster template with a UUID, or the public one with a name.

    A name of another one may be any tenant's choice.

    :raises errors.InvalidRequest: there is none, or several have the name.
    """
    context = magnum_context.make_admin_context(all_tenants=True)
    template = objects.ClusterTemplate
    try:
        if uuidutils.is_uuid_like(text):
            return template.get_by_uuid(context, text)
        found = template.get_by_name(context, text)
    except exception.ClusterTemplateNotFound:
        found = None
    except exception.Conflict:
        raise errors.InvalidRequest(
            f"Several cluster templates have this name. Give the UUID of one named '{text}'."
        ) from None
    if found is None:
        raise errors.InvalidRequest(
            f"There is no such cluster template. '{text}' is no UUID and no name of one."
        )
    if not found.public:
        raise errors.InvalidRequest(
            f"A name is for public cluster templates. Give the UUID of '{text}': {found.uuid} "
            f"(project {found.project_id})."
        )
    return found


def release_records(kube: KubeClient) -> Mapping[ReleaseKey, ReleaseRecord | None]:
    """The records of all releases, by one list of Leases; None for one that cannot be read.

    :raises errors.DriverError: the management cluster cannot be read.
    """
    return dict(kube.snapshot(names.LEASE, _record_of, names.LABEL_UUID)[0])


def _record_of(lease: Json) -> tuple[ReleaseKey, ReleaseRecord | None] | None:
    release = conditions.object_label(lease, names.LABEL_CLUSTER_NAME)
    if not release:
        return None
    key = str(conditions.metadata(lease).get("namespace")), release
    try:
        return key, codec.record(lease)
    except errors.DriverError:
        return key, None
