# SPDX-License-Identifier: Apache-2.0
"""Application credentials of a cluster: create, retire and delete them.

Cluster API's OpenStack provider does not watch the Secret: it reads it whenever it looks at an
object, at the latest after its resync period of ten minutes. So the OpenStackCluster is touched,
and the old credential lives on until everybody must have looked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.cloud import Cloud
from magnum.drivers.k8s_capi_helm.cloud.access.roles import credential_roles
from magnum.drivers.k8s_capi_helm.cloud.access.services import not_deleted
from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.model import (
    Chart,
    ClusterRequest,
    CredentialRoles,
    Json,
    names,
    secrets,
)
from magnum.drivers.k8s_capi_helm.reconcile.process.clients import Clients

LOG = logging.getLogger(__name__)


def refuse_credential_copy(request: ClusterRequest, chart: Chart) -> None:
    """Refuse a chart that would copy the credential of the machines into the cluster all the same.

    :raises errors.InvalidConfiguration: it is not of this project's family.
    """
    if request.separate_addon_credential and chart.family != names.CHART_FAMILY:
        raise errors.InvalidConfiguration(
            "This Magnum service cannot create clusters with this chart because of its "
            "configuration. Ask its operator to look into the log.",
            f"[capi_helm] separate_addon_credential is true, and chart {chart.name} "
            f"{chart.version} does not support it",
        )


def roles_for(context: Any, conf: Settings, *, separate: bool) -> CredentialRoles:
    """What the credentials of a cluster may do that a person makes or takes over.

    :param context: Magnum's context of that person.
    :param separate: whether what runs inside the cluster has a credential of its own.
    :raises errors.InvalidRequest: the person has no role for it.
    """
    options = conf.capi_helm
    return credential_roles(
        context.roles or (), options.app_cred_roles, options.addon_cred_roles, separate=separate
    )


def delete_all(
    clients: Clients,
    owner: secrets.Owner,
    cluster_secrets: Sequence[Json],
    cloud: Callable[[], Cloud],
) -> None:
    """Delete every application credential that was made for a cluster, known or not.

    One that was made a moment before its conductor died stands nowhere: its name finds it.

    :param cluster_secrets: the cluster's Secrets.
    :param cloud: the cloud as Magnum's service user sees it.
    :raises errors.DriverError: Keystone or the management cluster could not be asked.
    """
    ids_by_user: dict[str, set[str]] = {owner.user_id: set()}
    for secret in cluster_secrets:
        user = secrets.user_of(secret, owner)
        ids_by_user.setdefault(user, set()).update(
            credential.id for credential in secrets.credentials_of(secret)
        )
    record = clients.leases.read(owner.namespace, owner.release)
    for retired in record.retired_credentials if record else ():
        ids_by_user.setdefault(retired.user, set()).update({retired.id} - {""})
    failure: errors.DriverError | None = None
    for user, ids in sorted(ids_by_user.items()):
        try:
            _delete_of_user(cloud(), owner, user, ids)
        except (errors.CloudRefused, errors.CloudUnreachable) as error:
            LOG.warning(
                "Cluster %s: application credentials of user %s are not deleted yet: %s",
                owner.cluster_uuid,
                user,
                error.detail,
            )
            failure = failure or error
    if failure is not None:
        raise failure


def _delete_of_user(cloud: Cloud, owner: secrets.Owner, user: str, ids: Collection[str]) -> None:
    """Delete a user's credentials for a cluster: what is known first.

    Whom Keystone lets delete it need not list to, and who ends a deletion all the same is to leave
    no credential that works.

    :raises errors.DriverError: Keystone could not be asked, or still has one.
    """
    for credential_id in sorted(ids):
        cloud.delete_credential(user, credential_id)
    existing = cloud.credential_names(user, owner.project_id)
    own_ids = {
        credential_id
        for credential_id, name in existing.items()
        if secrets.is_credential_name(owner, name)
    }
    delete_and_verify(cloud, owner, user, own_ids | (set(ids) & existing.keys()))


def delete_and_verify(cloud: Cloud, owner: secrets.Owner, user: str, ids: Collection[str]) -> None:
    """Delete credentials of a user, and see that they are gone: a proxy answers deletions, too.

    :raises errors.DriverError: Keystone could not be asked, or still has one.
    """
    for credential_id in sorted(ids):
        cloud.delete_credential(user, credential_id)
    if ids and (remaining := set(ids) & cloud.credential_names(user, owner.project_id).keys()):
        raise not_deleted("Keystone", f"application credential '{min(remaining)}'")
