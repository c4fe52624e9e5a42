# SPDX-License-Identifier: Apache-2.0
"""A new application credential for a cluster that runs, and the end of the old one.

Cluster API's OpenStack provider does not watch the Secret: it reads it whenever it looks at an
object, at the latest after its resync period of ten minutes. So the OpenStackCluster is touched,
and the old credential lives on until everybody must have looked.
"""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
import datetime
from typing import Any

from oslo_log import log as logging
from oslo_utils import uuidutils

from magnum.drivers.k8s_capi_helm import errors, founding, names, secrets
from magnum.drivers.k8s_capi_helm.assembly import Ports
from magnum.drivers.k8s_capi_helm.cloud import Cloud
from magnum.drivers.k8s_capi_helm.model import Record, Retired

LOG = logging.getLogger(__name__)

#: Longer than the resync period of the OpenStack provider, and than an addon takes to follow.
_GRACE = datetime.timedelta(minutes=30)
_TOUCHED = "k8s-capi-helm.magnum.openstack.org/credential-rotated"


def rotate(
    ports: Ports, cloud: Cloud, owner: secrets.Owner, user: str, conf: Any, now: datetime.datetime
) -> None:
    """Give a cluster a new application credential, of the user who asks for it.

    :param owner: whom the cluster belongs to until now.
    :param user: id of the user whose credential it is to have.
    :raises errors.DriverError: it keeps the one that it has.
    """
    name = names.credential_secret(owner.release)
    with ports.operations.hold(owner.namespace, owner.release, wait=conf.capi_helm.lock_wait):
        before = ports.kube.get(names.SECRET, owner.namespace, name)
        old = secrets.credential_of(before) if before else None
        if before is not None and old is not None:
            labels = before["metadata"].get("labels") or {}
            whose = labels.get(names.LABEL_USER) or owner.user_id
            ports.operations.retire(owner.namespace, owner.release, Retired(old.id, whose, now))
        try:
            founding.save_credential(
                ports,
                cloud,
                dataclasses.replace(owner, user_id=user),
                f"magnum-{owner.release}-{uuidutils.generate_uuid()[:8]}",
                cloud.auth_url(conf.capi_helm.app_cred_interface_type),
                conf,
            )
        except errors.DriverError:
            if old is not None:
                ports.operations.forget(owner.namespace, owner.release, [old.id])
            raise
    _touch(ports, owner, now)


def clean_up(
    ports: Ports,
    owner: secrets.Owner,
    record: Record | None,
    cloud: Callable[[], Cloud],
    now: datetime.datetime,
) -> None:
    """Delete the credentials that nobody can be using any more.

    :param cloud: the cloud as Magnum's service user sees it: the old owner may be gone.
    """
    due = [one for one in (record.retired if record else ()) if now - one.since > _GRACE]
    for credential in due:
        try:
            # A conductor may have died between retiring it and saving another one.
            if credential.id != _id_in_use(ports, owner):
                cloud().delete_credential(credential.user, credential.id)
            ports.operations.forget(owner.namespace, owner.release, [credential.id])
        except errors.DriverError as error:
            LOG.warning("Application credential %s stays: %s", credential.id, error.detail)


def _id_in_use(ports: Ports, owner: secrets.Owner) -> str | None:
    """Id of the credential that the cluster has.

    :raises errors.DriverError: it could not be read.
    """
    name = names.credential_secret(owner.release)
    found = secrets.credential_of(ports.kube.get(names.SECRET, owner.namespace, name) or {})
    return found.id if found else None


def _touch(ports: Ports, owner: secrets.Owner, now: datetime.datetime) -> None:
    """Make the OpenStack provider look at once, and not only at its next resync."""
    note = {"metadata": {"annotations": {_TOUCHED: now.isoformat()}}}
    try:
        ports.kube.patch(names.OPENSTACK_CLUSTER, owner.namespace, owner.release, note)
    except errors.DriverError as error:
        LOG.warning("OpenStackCluster %s was not touched: %s", owner.release, error.detail)
