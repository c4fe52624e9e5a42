# SPDX-License-Identifier: Apache-2.0
"""Create the prerequisites of a release in its namespace: Lease, credential, Secrets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import contextlib
import dataclasses
import datetime

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.cloud import Cloud
from magnum.drivers.k8s_capi_helm.lease import HeldLease
from magnum.drivers.k8s_capi_helm.model import (
    Chart,
    CloudFacts,
    ClusterRequest,
    CredentialRoles,
    Json,
    log_scope,
    names,
    Operation,
    ReleaseRecord,
    secrets,
    Verb,
)
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.nodegroups import autoscaling
from magnum.drivers.k8s_capi_helm.reconcile.process import credential_secret
from magnum.drivers.k8s_capi_helm.reconcile.process.clients import ca_bundle, Clients
from magnum.drivers.k8s_capi_helm.reconcile.release import revisions

LOG = logging.getLogger(__name__)

#: How long a create may take from its Lease to its saved credential before it counts as dead.
_FOUNDING_TIME = datetime.timedelta(minutes=3)


def ensure_lease(
    clients: Clients,
    request: ClusterRequest,
    facts: CloudFacts,
    now: datetime.datetime,
    deadline: datetime.datetime | None,
) -> None:
    """Make the Lease that proves from now on whose release this is; the create is pending.

    With it goes the number of machines that no chart gives to a nodegroup of the autoscaler's.
    Magnum makes a cluster with one nodegroup of workers.

    :param facts: what the user who asks saw in the cloud.
    """
    first = autoscaling.first_replicas(request.node_groups, request.labels)
    clients.leases.open(
        request.namespace,
        request.release,
        cluster_uuid=request.uuid,
        project_id=request.project_id,
    )
    clients.leases.add(
        request.namespace,
        request.release,
        Operation(
            id=str(Verb.CREATE),
            verb=Verb.CREATE,
            started_at=now,
            groups=tuple(first),
            deadline=deadline,
            target_node_count=next(iter(first.values()), None),
            resolved_names=facts.resolved_names,
            request_ids=log_scope.request_ids(),
        ),
    )


@dataclasses.dataclass(frozen=True, slots=True)
class NewCredential:
    """Application credentials that are to be created, and the Secret that they go to.

    :ivar name: of the credential, which no other one of the user may have; with an ending, of the
        one inside the cluster.
    :ivar auth_url: of Keystone, for clouds.yaml.
    :ivar secret_name: None for the Secret of a new cluster.
    """

    name: str
    auth_url: str
    roles: CredentialRoles
    secret_name: str | None = None


def save_secrets(
    run: Reconciliation,
    held_lease: HeldLease,
    request: ClusterRequest,
    facts: CloudFacts,
    pairs: Mapping[str, secrets.KeyPair],
    roles: CredentialRoles,
) -> None:
    """Create the application credentials and save them and the CAs as Secrets.

    :param held_lease: the lock; who has lost it writes nothing, the cluster may be gone by then.
    :raises errors.InvalidConfiguration: the CA bundle for the cloud cannot be read.
    :raises errors.DriverError: as Keystone or the management cluster said.
    """
    owner = secrets.Owner.of(request)
    held_lease.check()
    for manifest in secrets.ca_secrets(owner, pairs):
        run.clients.kube.apply(names.SECRET, manifest)
    name = names.credential(request.release)
    save_credentials(run, held_lease, owner, NewCredential(name, facts.auth_url, roles))


def save_credentials(
    run: Reconciliation, held_lease: HeldLease, owner: secrets.Owner, new: NewCredential
) -> None:
    """Create application credentials of the owner's user and save them as the cluster's Secret.

    Credentials that cannot be saved are taken back: nobody would ever find them again.

    :param held_lease: the lock; who has lost it by then saves none.
    :raises errors.InvalidConfiguration: the CA bundle for the cloud cannot be read, or its region
        is not clear.
    :raises errors.DriverError: as Keystone or the management cluster said.
    """
    cloud = run.cloud()
    bundle, region = ca_bundle(run.settings), cloud.region()
    with contextlib.ExitStack() as rollback:

        def clouds_yaml(name: str, roles: Sequence[str]) -> str:
            about = f"Kubernetes cluster {owner.cluster_uuid} made by Magnum"
            credential = cloud.create_credential(owner.user_id, name, about, roles)
            rollback.callback(_delete_credential, cloud, owner.user_id, credential.id)
            return secrets.clouds_yaml(
                credential,
                auth_url=new.auth_url,
                region=region,
                interface=run.settings.capi_helm.app_cred_interface_type,
                verify=run.settings.drivers.verify_ca,
            )

        clouds = clouds_yaml(new.name, new.roles.machines)
        addons = None
        if new.roles.addons is not None:
            addons = clouds_yaml(secrets.addon_credential(new.name), new.roles.addons)
        secret = secrets.credential_secret(owner, clouds, bundle, addons, name=new.secret_name)
        held_lease.check()
        _apply_secret(run.clients, secret, rollback)


def _apply_secret(clients: Clients, secret: Json, rollback: contextlib.ExitStack) -> None:
    """Write a Secret, after which its credentials stay; so they do when it may be written.

    :param rollback: takes the credentials back.
    """
    try:
        clients.kube.apply(names.SECRET, secret)
    except errors.ManagementUnreachable:
        if _may_have_arrived(clients, secret):
            rollback.pop_all()
        raise
    rollback.pop_all()


def _may_have_arrived(clients: Clients, secret: Json) -> bool:
    """Whether the cluster may be using a Secret whose writing nobody has confirmed."""
    metadata = secret["metadata"]
    try:
        stored = clients.kube.get(names.SECRET, metadata["namespace"], metadata["name"])
    except errors.DriverError as error:
        LOG.error(
            "Secret %s cannot be read after an unconfirmed write, its credential is kept: %s",
            metadata["name"],
            error.detail,
        )
        return True
    return stored is not None and stored.get("data") == secret["data"]


def _delete_credential(cloud: Cloud, user_id: str, credential_id: str) -> None:
    try:
        cloud.delete_credential(user_id, credential_id)
    except errors.DriverError as error:
        LOG.error("Application credential %s is not deleted: %s", credential_id, error.detail)


def record_start(
    clients: Clients, request: ClusterRequest, chart: Chart, record: ReleaseRecord
) -> None:
    """Write down which chart a release is to have, and that its revisions begin to be counted.

    Should this conductor die after Helm and before it has said so, nobody else would know.

    :param record: of the release, which is not there (any more).
    :raises errors.DriverError: the management cluster cannot be used.
    """
    clients.leases.remember(
        request.namespace,
        request.release,
        chart_source=chart.source or None,
        chart_digest=chart.digest,
        revisions=dataclasses.replace(record.revisions, pending_install=revisions.FIRST),
    )


def has_credential(clients: Clients, request: ClusterRequest) -> bool:
    """Whether the credential of the cluster was saved; without it nothing can be built."""
    return bool(credential_secret.find_secrets(clients.kube, secrets.Owner.of(request)))


def create_interrupted(
    clients: Clients, record: ReleaseRecord, now: datetime.datetime
) -> errors.DriverError:
    """No release and no credential: the create is on its way, or it died on the way.

    Which of both is told by how long this process has seen it so: who makes it may be on a host
    with another clock.
    """
    started = min((operation.started_at for operation in record.operations), default=None)
    seen = clients.first_seen.age((record.cluster_uuid, "credential"), started, now)
    if started is not None and seen < _FOUNDING_TIME:
        return errors.Busy("The cluster's application credential is being created.")
    return errors.DriverError(
        "The creation was interrupted before the cluster's credential was saved, and only a "
        "request of its user can create one. Delete this cluster and create it again."
    )
