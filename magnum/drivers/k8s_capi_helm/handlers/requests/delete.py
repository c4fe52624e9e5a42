# SPDX-License-Identifier: Apache-2.0
"""The request to delete a cluster: it is recorded; the status task carries it out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.handlers.requests import pending_operation
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import writer
from magnum.drivers.k8s_capi_helm.magnum_objects.rows.writer import Status
from magnum.drivers.k8s_capi_helm.model import Verb
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.ownership import ownership
from magnum.drivers.k8s_capi_helm.status.deletion import order as deletion_order


def begin(begin_run: Callable[[], Reconciliation], cluster: Any) -> None:
    """Record the deletion of a cluster.

    :param begin_run: makes the reconciliation. A cluster without a release needs none, so that one
        can be deleted that was refused because none could be made.

    :raises errors.NotOwned: nothing proves that the cluster is of this driver and here.
    """
    if cluster.stack_id:
        run = begin_run()
        try:
            ownership.require(run.clients, cluster, run.settings)
        except errors.ProofNotFound as error:
            raise errors.ProofNotFound(deletion_order.NO_PROOF_SENTENCE) from error
        pending_operation.begin(run, cluster, pending_operation.NewOperation(Verb.DELETE))
    else:
        writer.mark_in_progress(cluster, Status.DELETE_IN_PROGRESS)
    # Nodegroup verbs overwrite the cluster's status, also while nothing can be written on the
    # management cluster; the control plane's row, which nobody can delete alone, keeps it.
    for nodegroup in cluster.nodegroups:
        writer.mark_in_progress(nodegroup, Status.DELETE_IN_PROGRESS)
