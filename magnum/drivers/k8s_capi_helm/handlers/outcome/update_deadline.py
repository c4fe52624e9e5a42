# SPDX-License-Identifier: Apache-2.0
"""The deadline of an update whose request could not record one."""

from __future__ import annotations

from typing import Any

from magnum.drivers.k8s_capi_helm.magnum_objects import state
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import reader, refresh
from magnum.drivers.k8s_capi_helm.magnum_objects.rows.writer import Status
from magnum.drivers.k8s_capi_helm.model import Operation, ReleaseRecord, Verb
from magnum.drivers.k8s_capi_helm.model.management_cluster import release_of
from magnum.drivers.k8s_capi_helm.model.operation import UPDATE
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation


def add(run: Reconciliation, context: Any, cluster: Any, record: ReleaseRecord) -> ReleaseRecord:
    """Give an update that its request could not record its whole time, from now on.

    :returns: the record of the release then.
    :raises errors.DriverError: the management cluster cannot be used.
    """
    if cluster.status != Status.UPDATE_IN_PROGRESS or record.operations:
        return record
    if not refresh.is_unchanged(cluster, context):
        # Another reconciliation has ended it, and its operations.
        return record
    return run.clients.leases.add(
        reader.cluster_namespace(cluster, run.settings),
        release_of(cluster.stack_id),
        Operation(
            id=UPDATE,
            verb=Verb.RESIZE,
            started_at=run.now,
            deadline=state.deadline(run.now, run.settings.capi_helm.update_timeout),
        ),
    )


def is_recorded(record: ReleaseRecord | None) -> bool:
    """Whether a record has a deadline of an update."""
    return record is not None and any(one.id == UPDATE for one in record.operations)


def remove(run: Reconciliation, cluster: Any, record: ReleaseRecord | None) -> None:
    """Remove the deadline that was recorded while another reconciliation ended the update.

    It would be that of the next update.

    :param cluster: settled.
    :raises errors.DriverError: the management cluster cannot be used.
    """
    if is_recorded(record):
        run.clients.leases.finish(
            reader.cluster_namespace(cluster, run.settings),
            release_of(cluster.stack_id),
            [UPDATE],
        )
