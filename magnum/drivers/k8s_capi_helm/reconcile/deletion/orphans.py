# SPDX-License-Identifier: Apache-2.0
"""Delete orphaned cloud resources without a janitor; report those that block a deletion.

cluster-api-janitor-openstack puts its finalizer on every OpenStackCluster. Where it does not, or
has ended, the driver deletes the load balancers, floating IPs and security groups of the cluster's
Services itself, when there is no machine any more on which something could make them again. Volumes
are the tenant's data: without a janitor they stay.
"""

from __future__ import annotations

from collections.abc import Callable
import datetime

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.cloud import Cloud
from magnum.drivers.k8s_capi_helm.model import (
    CloudResource,
    conditions,
    Json,
    Missing,
    names,
    Observed,
    secrets,
)
from magnum.drivers.k8s_capi_helm.status.objects import timestamps

LOG = logging.getLogger(__name__)

#: A janitor that runs has seen a new OpenStackCluster by then.
_JANITOR_PATIENCE = datetime.timedelta(minutes=1)
#: A deletion that takes longer than this is told what it waits for in Neutron.
_PORT_PATIENCE = datetime.timedelta(minutes=1)
_FEW = 3
_UNTOLD = (
    "{error} Until this is known the cluster does not count as deleted. Ask the operator to let "
    "Magnum's service user read this; the operator's documentation on deletions says how to "
    "finish one without it."
)
NO_JANITOR = (
    "This cloud's management cluster runs no janitor (cluster-api-janitor-openstack): deleting "
    "the cluster deletes load balancers and floating IPs of its Services, and keeps its volumes."
)


def notice(observed: Observed, recorded_text: str = "") -> str:
    """A notice for a tenant whose cluster has no janitor, "" with one.

    :param recorded_text: the notices that its row has now.
    """
    owner = observed.infrastructure
    if isinstance(owner, Missing) or conditions.is_terminating(owner) or _has_janitor(owner):
        return ""
    created = conditions.instant(conditions.metadata(owner).get("creationTimestamp"))
    is_shown = NO_JANITOR in recorded_text or timestamps.is_older(
        created, observed, _JANITOR_PATIENCE
    )
    return NO_JANITOR if is_shown else ""


def delete_orphans(observed: Observed, owner: secrets.Owner, cloud: Callable[[], Cloud]) -> str:
    """Clear what can be, once the last machine is gone; what still blocks the network, in words.

    What a janitor has taken on itself is only named: its own log is the operator's alone, and one
    that has stopped half-way writes none.

    :param cloud: as Magnum's service user sees it. If it does not answer nothing is said.
    """
    network = observed.infrastructure
    if observed.machines != () or isinstance(network, Missing):
        return ""
    try:
        cloud_orphans = cloud().remains
        if _has_janitor(network):
            remaining = cloud_orphans.service_resources(owner.release, owner.project_id)
            if remaining:
                return f"{names.JANITOR_FINALIZER} has not deleted {_joined(remaining)}"
        else:
            remaining = cloud_orphans.delete_services(owner.release, owner.project_id)
        remaining = remaining or _ports(network, observed, cloud)
        return f"still there: {_joined(remaining)}" if remaining else ""
    except errors.DriverError as error:
        LOG.warning(
            "Cluster %s: remaining cloud resources cannot be read: %s %s",
            owner.cluster_uuid,
            error,
            error.detail,
        )
        return ""


def remaining_resources(owner: secrets.Owner, cloud: Callable[[], Cloud]) -> str:
    """What has to go before a cluster counts as deleted, in words; "" when nothing is left.

    Nova is the second witness: a management cluster that was moved, restored or lost knows nothing
    of machines that run.

    Only an answer that nothing is there counts as that. A service that refuses to tell may have all
    of it; a cloud whose catalogue has no Octavia has no load balancers.

    :param cloud: as Magnum's service user sees it.
    :raises errors.CloudUnreachable: Nova, Octavia or Neutron does not answer.
    """
    cloud_orphans = cloud().remains
    try:
        servers = cloud_orphans.servers(owner.release, owner.project_id, owner.namespace)
        remaining = (
            () if servers else cloud_orphans.delete_services(owner.release, owner.project_id)
        )
    except errors.CloudRefused as error:
        LOG.warning(
            "Cluster %s: remaining cloud resources cannot be read: %s %s",
            owner.cluster_uuid,
            error,
            error.detail,
        )
        return f"{errors.Cause.PERMISSION}: {_UNTOLD.format(error=error)}"
    if servers:
        return (
            f"management: Nova still has {_joined(servers)} of this cluster, and this management "
            "cluster does not know the cluster: it was moved, restored or lost. The cluster does "
            "not count as deleted; ask the operator to check the management cluster."
        )
    return f"waiting: deletion of {_joined(remaining)}" if remaining else ""


def _has_janitor(owner: Json) -> bool:
    finalizers = conditions.metadata(owner).get("finalizers")
    return isinstance(finalizers, list) and names.JANITOR_FINALIZER in finalizers


def _ports(network: Json, observed: Observed, cloud: Callable[[], Cloud]) -> tuple[str, ...]:
    """The ports that keep Neutron from deleting a network, in words, once that takes long."""
    requested_at = conditions.instant(conditions.metadata(network).get("deletionTimestamp"))
    if not timestamps.is_older(requested_at, observed, _PORT_PATIENCE):
        return ()
    return tuple(f"{port.title} {port.id} ({port.state})" for port in ports_on(network, cloud))


def ports_on(network: Json, cloud: Callable[[], Cloud]) -> tuple[CloudResource, ...]:
    """The ports that keep Neutron from deleting a network that Cluster API has made.

    :param network: the OpenStackCluster.
    :param cloud: as Magnum's service user sees it.
    :raises errors.DriverError: Neutron cannot be asked.
    """
    network_id = conditions.at_path(network, "status", "network", "id")
    if not network_id or not conditions.at_path(network, "spec", "managedSubnets"):
        return ()
    return cloud().remains.ports(str(network_id))


def _joined(titles: tuple[str, ...]) -> str:
    suffix = f" and {len(titles) - _FEW} more" if len(titles) > _FEW else ""
    return ", ".join(titles[:_FEW]) + suffix
