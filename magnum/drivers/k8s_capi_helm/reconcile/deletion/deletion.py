# SPDX-License-Identifier: Apache-2.0
"""One pass of a deletion: carry out steps until one has to wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import dataclasses
import datetime

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.cloud import Cloud, provision
from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.kube.watch import snapshot
from magnum.drivers.k8s_capi_helm.lease import HeldLease
from magnum.drivers.k8s_capi_helm.model import Json, names, Observed, ReleaseRecord, secrets
from magnum.drivers.k8s_capi_helm.reconcile.credentials import credentials
from magnum.drivers.k8s_capi_helm.reconcile.deletion import orphans
from magnum.drivers.k8s_capi_helm.reconcile.ownership import ownership
from magnum.drivers.k8s_capi_helm.reconcile.process.clients import Clients
from magnum.drivers.k8s_capi_helm.status.causes import reasons
from magnum.drivers.k8s_capi_helm.status.deletion import order as deletion_order
from magnum.drivers.k8s_capi_helm.status.deletion.order import DeletionAction, DeletionStep
from magnum.drivers.k8s_capi_helm.status.texts.issue import joined_reasons, shorten_reason

LOG = logging.getLogger(__name__)

#: More steps than a deletion has kinds of: a pass that needs more goes round in circles.
_MOST_STEPS = 8
#: Steps that take the last proof away: nothing may be left anywhere before them.
_ENDING = frozenset({DeletionAction.REMOVE_SECRETS, DeletionAction.BURY})


def advance_deletion(
    clients: Clients,
    owner: secrets.Owner,
    cloud: Callable[[], Cloud],
    conf: Settings,
    now: datetime.datetime,
    previous_reason: str = "",
) -> DeletionStep:
    """Carry a deletion on as far as it goes now, under the release's lock.

    :param cloud: the cloud as Magnum's service user sees it; removes the application credential and
        what else was made for the cluster.
    :param previous_reason: what the cluster's row says now.
    :returns: the step at which the pass stopped: DONE, WAIT or NO_PROOF.
    :raises errors.DriverError: the management cluster or Keystone could not be asked.
    """
    record = clients.leases.read(owner.namespace, owner.release)
    proof = ownership.proved_record(clients, owner, record)
    if proof is None:
        return _next(clients, owner, _full_snapshot(clients, owner, now), record, proof=False)
    lock_wait = conf.capi_helm.lock_wait
    with clients.leases.acquire(owner.namespace, owner.release, wait=lock_wait) as held_lease:
        record, observed, is_whole = held_lease.record, _full_snapshot(clients, owner, now), True
        for _ in range(_MOST_STEPS):
            step = _next(clients, owner, observed, record, proof=_is_proof(record, owner))
            if step.action in _ENDING and not is_whole:
                # What takes the last proof away is decided by nothing that was read before an act.
                observed, is_whole = _full_snapshot(clients, owner, now), True
                continue
            if step.action is DeletionAction.WAIT:
                return _with_blocker(clients, owner, observed, cloud, step, previous_reason)
            if step.action in deletion_order.STOPS:
                return _ended(clients, owner, step)
            if step.action in _ENDING and not record.is_cloud_cleared:
                remaining = orphans.remaining_resources(owner, cloud)
                if remaining:
                    return DeletionStep(DeletionAction.WAIT, remaining)
            record = _carry_out(clients, owner, cloud, step, record, held_lease)
            observed, is_whole = _snapshot_after(clients, owner, observed, step), False
        return step


def _ended(clients: Clients, owner: secrets.Owner, step: DeletionStep) -> DeletionStep:
    """The last step of a pass; charts go when the tombstone is written.

    So the later of two deletions at once finds both tombstones.
    """
    if step.action is DeletionAction.DONE:
        _sweep_charts(clients, owner)
    return step


def _full_snapshot(clients: Clients, owner: secrets.Owner, now: datetime.datetime) -> Observed:
    return snapshot.take_snapshot(clients.kube, owner.namespace, owner.release, now)


def _snapshot_after(
    clients: Clients, owner: secrets.Owner, observed: Observed, step: DeletionStep
) -> Observed:
    """A snapshot after an act: the objects that were deleted are read again, and no others."""
    return snapshot.read_again(
        clients.kube,
        owner.namespace,
        owner.release,
        observed,
        [target.kind for target in step.targets],
    )


def _is_proof(record: ReleaseRecord, owner: secrets.Owner) -> bool:
    return record.cluster_uuid == owner.cluster_uuid


def _with_blocker(
    clients: Clients,
    owner: secrets.Owner,
    observed: Observed,
    cloud: Callable[[], Cloud],
    step: DeletionStep,
    previous_reason: str,
) -> DeletionStep:
    """The step with what it hangs on in the cloud, which no object may tell."""
    if observed.unreachable:
        return step
    observed = clients.controller_check.observe_controllers(clients.kube, observed, previous_reason)
    if observed.stale_controllers:
        blocked_reason = reasons.without_cause(observed, step.reason)
        return dataclasses.replace(step, reason=blocked_reason)
    credential_problem = clients.credential_check.problem(
        clients.kube, owner, cloud, observed.at, is_waiting=True
    )
    if credential_problem:
        reason = f"{errors.Cause.CREDENTIAL}: {credential_problem}"
    else:
        remaining = orphans.delete_orphans(observed, owner, cloud)
        reason = joined_reasons(step.reason, remaining) if remaining else step.reason
    return dataclasses.replace(step, reason=shorten_reason(reason))


def _next(
    clients: Clients,
    owner: secrets.Owner,
    observed: Observed,
    record: ReleaseRecord | None,
    *,
    proof: bool,
) -> DeletionStep:
    return deletion_order.next_step(
        observed,
        proof=proof,
        release_present=clients.helm.live(owner.namespace, owner.release) is not None,
        secrets_present=bool(_own_secrets(clients, owner)),
        has_tombstone=record is not None and record.tombstone,
    )


def _carry_out(
    clients: Clients,
    owner: secrets.Owner,
    cloud: Callable[[], Cloud],
    step: DeletionStep,
    record: ReleaseRecord,
    held_lease: HeldLease,
) -> ReleaseRecord:
    """Do what a step says.

    :returns: the record of the release afterwards.
    """
    LOG.info(
        "Cluster %s: deletion of release %s: %s.",
        owner.cluster_uuid,
        owner.release,
        step.action.value,
    )
    match step.action:
        case DeletionAction.DELETE_CLUSTER:
            for target in step.targets:
                clients.kube.delete(target.kind, owner.namespace, target.name, uid=target.uid)
        case DeletionAction.UNINSTALL:
            clients.helm.uninstall(owner.namespace, owner.release, held_lock=held_lease)
        case DeletionAction.REMOVE_SECRETS:
            _remove_secrets(clients, owner, cloud, record)
        case DeletionAction.BURY:
            # Somebody else may have taken the Secrets away, and with them what says which they are.
            with _in_the_cloud(owner, record):
                credentials.delete_all(clients, owner, (), cloud)
            with _in_the_cloud(owner, record):
                provision.delete_resources(cloud(), owner)
            _remove_templates(clients, owner)
            return clients.leases.set_tombstone(owner.namespace, owner.release)
    return record


@contextlib.contextmanager
def _in_the_cloud(owner: secrets.Owner, record: ReleaseRecord) -> Iterator[None]:
    """What has to succeed in OpenStack, unless an operator has declared that nothing is left."""
    try:
        yield
    except (errors.CloudRefused, errors.CloudUnreachable) as error:
        if not record.is_cloud_cleared:
            raise
        LOG.warning(
            "Cluster %s: the operator has confirmed that no cloud resource is left; ignored: %s",
            owner.cluster_uuid,
            error.detail,
        )


def _remove_secrets(
    clients: Clients, owner: secrets.Owner, cloud: Callable[[], Cloud], record: ReleaseRecord
) -> None:
    """The application credentials first: as long as a Secret is there, a pass comes here again."""
    own_secrets = _own_secrets(clients, owner)
    with _in_the_cloud(owner, record):
        credentials.delete_all(clients, owner, own_secrets, cloud)
    for secret in own_secrets:
        clients.kube.delete(names.SECRET, owner.namespace, secret["metadata"]["name"])


def _remove_templates(clients: Clients, owner: secrets.Owner) -> None:
    """Remove what Helm has kept for machines that still stood; there are none any more.

    Kubernetes collects those that Cluster API has made its Cluster's own, some time after it. Those
    that it has never seen, of a cluster that was deleted right away, nobody would.
    """
    selector = {names.LABEL_CHART_CLUSTER: owner.release}
    for kind in (names.MACHINE_TEMPLATE, names.BOOTSTRAP_TEMPLATE):
        clients.kube.delete_collection(kind, owner.namespace, selector)


def _sweep_charts(clients: Clients, owner: secrets.Owner) -> None:
    """Take away the copies of charts that no other cluster of the namespace has.

    While one of them has not noted its chart all stay; the next deletion looks again.
    """
    try:
        used = clients.leases.chart_digests(owner.namespace, other=owner.release)
        if "" not in used:
            clients.charts.delete_unused(owner.namespace, used)
    except errors.DriverError as error:
        LOG.warning(
            "Namespace %s: unused cached charts are not deleted: %s", owner.namespace, error.detail
        )


def _own_secrets(clients: Clients, owner: secrets.Owner) -> list[Json]:
    selector = {names.LABEL_UUID: owner.cluster_uuid}
    return clients.kube.list(names.SECRET, owner.namespace, selector)
