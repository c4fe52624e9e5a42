# SPDX-License-Identifier: Apache-2.0
"""Credential rotation: create the new one first, delete old ones when unused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import dataclasses
import datetime
from typing import Any

from oslo_utils import uuidutils

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.cloud import Cloud
from magnum.drivers.k8s_capi_helm.lease import HeldLease
from magnum.drivers.k8s_capi_helm.model import names, ReleaseRecord, RetiredCredential, secrets
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.credentials import credentials
from magnum.drivers.k8s_capi_helm.reconcile.process import credential_secret
from magnum.drivers.k8s_capi_helm.reconcile.process.clients import Clients
from magnum.drivers.k8s_capi_helm.reconcile.release import prerequisites

#: Longer than the resync period of the OpenStack provider, and than an addon takes to follow.
_GRACE = datetime.timedelta(minutes=30)


_TOUCHED = "k8s-capi-helm.magnum.openstack.org/credential-rotated"


def rotate_credentials(run: Reconciliation, owner: secrets.Owner, context: Any) -> None:
    """Replace all application credentials of a cluster by new ones of the requesting user.

    :param owner: whom the cluster belongs to until now.
    :param context: Magnum's context of the user whose credentials it is to have.
    :raises errors.DriverError: it keeps the one that it has.
    """
    if context.project_id != owner.project_id:
        raise errors.InvalidRequest(
            f"The cluster belongs to project '{owner.project_id}', and your credential would be "
            f"one for project '{context.project_id}'. Log in to the cluster's project and try "
            "again."
        )
    clients, cloud = run.clients, run.cloud()
    _check_keypair(clients, cloud, owner, context)
    lock_wait = run.settings.capi_helm.lock_wait
    with (
        _to_be_asked_again(),
        clients.leases.acquire(owner.namespace, owner.release, wait=lock_wait) as held_lease,
    ):
        _rotate_held(run, held_lease, owner, context, cloud)
    _touch(clients, owner, run.now)


def _rotate_held(
    run: Reconciliation, held_lease: HeldLease, owner: secrets.Owner, context: Any, cloud: Cloud
) -> None:
    """The same for a caller that holds the lock already; parameters as for :func:`rotate`.

    :param cloud: the cloud as the user sees it whose credentials the cluster is to have.
    """
    clients, conf, now = run.clients, run.settings, run.now
    if held_lease.record.tombstone:
        # The deletion has searched for credentials and Secrets already.
        raise errors.InvalidRequest("The cluster has been deleted.")
    live = clients.helm.live(owner.namespace, owner.release)
    secret_name = credential_secret.secret_name(clients.kube, owner, live.values if live else {})
    secret = clients.kube.get(names.SECRET, owner.namespace, secret_name)
    roles = credentials.roles_for(context, conf, separate=secrets.has_addon_credential(secret))
    user_id = secrets.user_of(secret, owner)
    old_ids = [credential.id for credential in secrets.credentials_of(secret)]
    retired = [RetiredCredential(credential_id, user_id, now) for credential_id in old_ids]
    # Should this conductor die before the Secret is written, only the name finds what it made.
    name = f"{names.credential(owner.release)}-{uuidutils.generate_uuid()[:8]}"
    for credential in (*retired, RetiredCredential("", context.user_id, now, name)):
        clients.leases.retire(owner.namespace, owner.release, credential)
    try:
        auth_url = cloud.auth_url(conf.capi_helm.app_cred_interface_type)
        requested = prerequisites.NewCredential(name, auth_url, roles, secret_name=secret_name)
        new_owner = dataclasses.replace(owner, user_id=context.user_id)
        prerequisites.save_credentials(run, held_lease, new_owner, requested)
    except (errors.ManagementUnreachable, errors.Busy):
        # The cluster may have the new ones already, or another rotation's; the clean-up looks
        # which it uses.
        raise
    except errors.DriverError:
        clients.leases.forget(owner.namespace, owner.release, [*old_ids, name])
        raise
    with contextlib.suppress(errors.DriverError):
        # It is done; what stays on record is found to be in use by the clean-up.
        clients.leases.forget(owner.namespace, owner.release, [name])
        # From now on they have been seen.
        _due(clients, owner, clients.leases.read(owner.namespace, owner.release), now)


@contextlib.contextmanager
def _to_be_asked_again() -> Iterator[None]:
    """A rotation that cannot have the lock is not recorded: its user has to send it again."""
    try:
        yield
    except errors.Busy as error:
        raise errors.Busy(
            "A change of this cluster is being applied, so its credential was not replaced. Try "
            "again in a minute.",
            error.detail,
        ) from None


def _check_keypair(clients: Clients, cloud: Cloud, owner: secrets.Owner, context: Any) -> None:
    """Refuse another user's credential with which Nova would make no machine of this cluster.

    Nova looks for a keypair among those of the user whose credential asks for the server
    (https://docs.openstack.org/api-ref/compute/#keypairs-keypairs).

    :raises errors.InvalidRequest: that user has no keypair of the name that the machines are
        made with.
    """
    if context.user_id == owner.user_id:
        return
    live = clients.helm.live(owner.namespace, owner.release)
    keypair = live.values.get("machineSSHKeyName") if live else None
    if keypair and not cloud.has_keypair(keypair):
        raise errors.InvalidRequest(
            "You do not have the keypair that new machines of this cluster need. The keypair is "
            f"'{keypair}': create it first (openstack keypair create --public-key FILE {keypair}), "
            "then try again."
        )


def delete_retired(
    clients: Clients,
    owner: secrets.Owner,
    record: ReleaseRecord | None,
    cloud: Callable[[], Cloud],
    now: datetime.datetime,
) -> None:
    """Delete retired credentials that are no longer used.

    :param cloud: the cloud as Magnum's service user sees it: the old owner may be gone.
    """
    if not _due(clients, owner, record, now):
        return
    try:
        # Who rotates holds the lock: what is being made is not in use yet.
        with clients.leases.acquire(owner.namespace, owner.release, wait=0) as held_lease:
            for credential in _due(clients, owner, held_lease.record, now):
                _delete(clients, owner, credential, cloud)
    except errors.DriverError as error:
        credentials.LOG.warning("Credentials of %s stay: %s", owner.release, error.detail)


def _due(
    clients: Clients, owner: secrets.Owner, record: ReleaseRecord | None, now: datetime.datetime
) -> list[RetiredCredential]:
    """Those that have been on record for long enough, as far as this process has seen it itself."""

    def age(credential: RetiredCredential) -> datetime.timedelta:
        return clients.first_seen.age(
            (owner.release, credential.id or credential.name), credential.since, now
        )

    return [
        credential
        for credential in (record.retired_credentials if record else ())
        if age(credential) > _GRACE
    ]


def _delete(
    clients: Clients,
    owner: secrets.Owner,
    credential: RetiredCredential,
    cloud: Callable[[], Cloud],
) -> None:
    try:
        used_ids = _in_use(clients, owner)
        ids: tuple[str, ...] = (credential.id,)
        if credential.name:
            credential_names = (credential.name, secrets.addon_credential(credential.name))
            names_by_id = cloud().credential_names(credential.user, owner.project_id)
            ids = tuple(
                credential_id
                for credential_id, name in names_by_id.items()
                if name in credential_names
            )
        # A conductor may have died between retiring it and saving another one.
        credentials.delete_and_verify(cloud(), owner, credential.user, set(ids) - used_ids)
        recorded_id = credential.id or credential.name
        clients.leases.forget(owner.namespace, owner.release, [recorded_id])
    except errors.DriverError as error:
        credentials.LOG.warning("Application credential %s stays: %s", credential, error.detail)


def _in_use(clients: Clients, owner: secrets.Owner) -> frozenset[str]:
    """Ids of the credentials that the cluster has.

    :raises errors.DriverError: they could not be read.
    """
    secrets_found = credential_secret.find_secrets(clients.kube, owner)
    return frozenset(
        credential.id for secret in secrets_found for credential in secrets.credentials_of(secret)
    )


def _touch(clients: Clients, owner: secrets.Owner, now: datetime.datetime) -> None:
    """Make the OpenStack provider look at once, and not only at its next resync."""
    note = {"metadata": {"annotations": {_TOUCHED: now.isoformat()}}}
    try:
        clients.kube.patch(names.OPENSTACK_CLUSTER, owner.namespace, owner.release, note)
    except errors.DriverError as error:
        credentials.LOG.warning(
            "OpenStackCluster %s was not touched: %s", owner.release, error.detail
        )
