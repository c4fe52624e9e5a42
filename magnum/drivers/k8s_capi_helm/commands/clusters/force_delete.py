# SPDX-License-Identifier: Apache-2.0
"""``k8s-capi-helm force-delete``: what is left of a cluster, and its end without Cluster API."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.lookup.clusters import (
    add_cluster_argument,
    find_own_cluster,
)
from magnum.drivers.k8s_capi_helm.commands.output.lister import (
    ExitStatus,
    operator_text,
    OperatorLister,
    Rows,
)
from magnum.drivers.k8s_capi_helm.model import conditions, Json, names, secrets
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.deletion import forced_deletion, orphans
from magnum.drivers.k8s_capi_helm.reconcile.ownership import ownership

COLUMNS = ("Where", "Resource", "ID", "State")
_MANAGEMENT = "management cluster"


class ForceDelete(OperatorLister):
    """Show what is left of a cluster, by id; finish a deletion that Cluster API cannot finish.

    Without options nothing is changed. Exit status 0: nothing is left, 1: something is left, 3: it
    could not be found out, or the cluster is not being deleted.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Which cluster, and what is changed."""
        parser = super().get_parser(prog_name)
        add_cluster_argument(parser)
        parser.add_argument(
            "--release-objects",
            action="store_true",
            help="Delete the objects of Cluster API without waiting for their controllers. "
            "Refused while Nova has servers of the cluster.",
        )
        parser.add_argument(
            "--confirm-cloud-cleared",
            action="store_true",
            help="Declare that nothing of the cluster is left in OpenStack, where a service cannot "
            "be asked any more. The driver does not ask it about this cluster from then on.",
        )
        return parser

    def rows(self, run: Reconciliation, arguments: argparse.Namespace) -> Rows:
        """What is left afterwards."""
        cluster = find_own_cluster(arguments.cluster)
        if not cluster.stack_id:
            raise errors.InvalidRequest("The cluster has no release: nothing is left of it.")
        run, owner = run.of_cluster(cluster.stack_id), ownership.owner(cluster, run.settings)
        if arguments.confirm_cloud_cleared or arguments.release_objects:
            record = forced_deletion.require_deleting(run.clients, cluster, owner)
            if arguments.confirm_cloud_cleared:
                _require_none_known(run, owner)
                forced_deletion.confirm_cloud_cleared(run.clients, owner)
                record = forced_deletion.require_deleting(run.clients, cluster, owner)
            if arguments.release_objects:
                forced_deletion.release_objects(run, owner, record)
        return _rows(run, owner)


def _require_none_known(run: Reconciliation, owner: secrets.Owner) -> None:
    """Refuse a declaration that OpenStack itself contradicts.

    :raises errors.InvalidRequest: with what is there.
    """
    try:
        found = forced_deletion.cloud_resources(run, owner)
    except errors.DriverError:
        return  # that is what the declaration is for
    if found:
        titles = ", ".join(f"{resource.title} ({resource.id})" for resource in found)
        raise errors.InvalidRequest(
            f"OpenStack has resources of the cluster. Delete them: {titles}."
        )


def _rows(run: Reconciliation, owner: secrets.Owner) -> Rows:
    rows, status = [], ExitStatus.OK
    objects = list(forced_deletion.existing_objects(run.clients, owner))
    networks = [obj for kind, obj in objects if kind is names.OPENSTACK_CLUSTER]
    try:
        found = [
            *forced_deletion.cloud_resources(run, owner),
            *(port for network in networks for port in orphans.ports_on(network, run.cloud)),
        ]
        rows += [(one.service, one.title, one.id, one.state) for one in found]
    except errors.DriverError as error:
        rows.append(("OpenStack", "unknown", "", operator_text(error)))
        status = ExitStatus.UNKNOWN
    rows += _object_rows(objects)
    return COLUMNS, rows, max(status, ExitStatus.WARNING) if rows else status


def _object_rows(objects: list[tuple[names.Kind, Json]]) -> Iterator[tuple[str, str, str, str]]:
    for kind, obj in objects:
        uid = str(conditions.metadata(obj).get("uid") or "")
        yield _MANAGEMENT, f"{kind.name} {conditions.name(obj)}", uid, _state(kind, obj)


def _state(kind: names.Kind, obj: Json) -> str:
    """Whether an object is being deleted, and by what it is held."""
    finalizers = conditions.metadata(obj).get("finalizers")
    held = ", ".join(map(str, finalizers)) if isinstance(finalizers, list) else ""
    words = [
        "deleting" if conditions.is_terminating(obj) else "exists",
        "paused" if kind is names.CLUSTER and conditions.paused(obj) else "",
        f"held by {held}" if held else "",
    ]
    return ", ".join(filter(None, words))
