# SPDX-License-Identifier: Apache-2.0
"""Write into the Lease what a verdict leaves: fingerprints, and which operations have ended."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.handlers.outcome import deleting_nodegroups
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import writer
from magnum.drivers.k8s_capi_helm.model import Operation, ReleaseRecord, Verb, Verdict
from magnum.drivers.k8s_capi_helm.model.management_cluster import release_of
from magnum.drivers.k8s_capi_helm.reconcile.observe.evaluation import Evaluation
from magnum.drivers.k8s_capi_helm.reconcile.process.clients import Clients


def record_verdict(
    cluster: Any, nodegroups: list[Any], evaluation: Evaluation, clients: Clients, namespace: str
) -> ReleaseRecord | None:
    """Keep what the verdict leaves in the record.

    :param nodegroups: the rows of the cluster's nodegroups, read a moment ago.
    :returns: the record as it is then; None where the verdict is not to be written.
    """
    release, verdict = release_of(cluster.stack_id), evaluation.verdict
    key, record = (namespace, release), evaluation.record
    if record is None:
        return None
    if deleted_names(verdict) or deleting_nodegroups.needs_deleting_status(nodegroups, record):
        latest = clients.leases.read(*key)
        if latest is None or latest.operations != record.operations:
            return None
        if deleting_nodegroups.reassert_deleting(nodegroups, latest):
            return None
        if deleted_names(verdict) and not _is_lock_free(clients, *key, latest):
            # The holder of the lock may be about to create it: nothing is written until then.
            return None
    try:
        latest = clients.leases.record_verdict(
            *key,
            record,
            ready_fingerprint=verdict.fingerprint,
            nodegroup_ready_fingerprints=fingerprints(verdict),
            ids=_finished(nodegroups, evaluation, record),
            same_version=evaluation.is_cached,
        )
    except errors.Conflict as error:
        writer.LOG.debug("Release %s: a verdict is not written: %s", release, error.detail)
        latest = None
    is_written = latest is None or latest.version != record.version
    if is_written and not (latest and clients.evaluations.replace_record(release, latest)):
        # The watches may tell of this change a moment later only.
        clients.evaluations.forget(release)
    return latest


def _finished(
    nodegroups: Iterable[Any], evaluation: Evaluation, record: ReleaseRecord
) -> frozenset[str]:
    """Ids of the operations that a verdict ends, but for those whose nodegroups are gone."""
    verdict = evaluation.verdict
    if not verdict.status.endswith(("_COMPLETE", "_FAILED")):
        return frozenset()
    unfinished = _handed_over_deletions(nodegroups, evaluation, record)
    unfinished |= evaluation.unfinished_operations
    return frozenset(
        item.id
        for item in record.operations
        if item.id not in unfinished and not is_finished(item, verdict)
    )


def _is_lock_free(clients: Clients, namespace: str, release: str, record: ReleaseRecord) -> bool:
    """Whether the lock of a release is free, or its holder has ended.

    No reconciliation takes a dead conductor's while the release is as the rows ask for; and who
    takes it later reads rows and record again, so that nothing has to hold it until they are saved.
    """
    if not record.holder:
        return True
    try:
        with clients.leases.acquire(namespace, release, wait=0):
            return True
    except errors.Busy:
        return False
    except errors.DriverError as error:
        writer.LOG.warning("Release %s: its lock: %s %s", release, error, error.detail)
        return False


def _handed_over_deletions(
    nodegroups: Iterable[Any], evaluation: Evaluation, record: ReleaseRecord
) -> frozenset[str]:
    """Deletions that only their own end ends: Cluster API is at it, however late that is.

    One whose nodegroup the release still has was refused, and is none: who wants to keep it can.
    """
    uuids = {nodegroup.uuid for nodegroup in nodegroups}
    deletions = (
        deletion for deletion in record.operations if deletion.verb is Verb.NODEGROUP_DELETE
    )
    return frozenset(
        deletion.id
        for deletion in deletions
        if deletion.nodegroup_uuid in uuids
        and evaluation.rendered_nodegroups.isdisjoint(deletion.groups)
    )


def is_finished(operation: Operation, verdict: Verdict) -> bool:
    """Whether all that an operation is about are nodegroups that are gone."""
    return bool(operation.groups) and deleted_names(verdict).issuperset(operation.groups)


def deleted_names(verdict: Verdict) -> frozenset[str]:
    """Names of the nodegroups that are gone."""
    return frozenset(nodegroup.name for nodegroup in verdict.groups if nodegroup.is_deleted)


def fingerprints(verdict: Verdict) -> dict[str, str]:
    """The fingerprint of each nodegroup that has one."""
    return {item.name: item.fingerprint for item in verdict.groups if item.fingerprint}
