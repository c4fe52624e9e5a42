# SPDX-License-Identifier: Apache-2.0
"""Whether Cluster and OpenStackCluster are ready: network, API endpoint."""

from __future__ import annotations

import datetime

from magnum.drivers.k8s_capi_helm.model import conditions, Json, Missing, Observed
from magnum.drivers.k8s_capi_helm.status.objects import timestamps
from magnum.drivers.k8s_capi_helm.status.texts.issue import Issue

#: Until then a load balancer that is not there yet is just new.
BALANCER_PATIENCE = datetime.timedelta(seconds=30)
#: Outermost last: the first bad one is the nearest to the fault.
PARTS = (
    "OpenStackAuthenticationSucceeded",
    "NetworkReady",
    "RouterReady",
    "SecurityGroupsReady",
    "APIEndpointReady",
    "Ready",
)


def openstack_missing(owner: Json | Missing) -> Issue | None:
    """What the OpenStackCluster still lacks; None when network and API endpoint are there."""
    if owner is Missing.UNREADABLE:
        return Issue("the OpenStackCluster cannot be read")
    if isinstance(owner, Missing):
        return Issue("the OpenStackCluster does not exist yet")
    if conditions.is_terminating(owner):
        return Issue("the OpenStackCluster is being deleted")
    if not conditions.is_initialized(owner, "provisioned", "ready"):
        return Issue("the network and the API load balancer are being created")
    if any(conditions.condition(owner, kind).bad for kind in PARTS):
        return Issue("the network or the API load balancer is not ready")
    return None


def is_reported(owner: Json) -> bool:
    """Whether CAPO has said how far an OpenStackCluster is.

    CAPO before 0.14 has no conditions: its status has the network from the moment it is found.
    """
    status = conditions.mapping(owner.get("status"))
    network_id = conditions.at_path(owner, "status", "network", "id")
    is_provisioned = conditions.is_initialized(owner, "provisioned", "ready")
    return bool(status.get("conditions") or network_id or is_provisioned)


def is_balancer_awaited(observed: Observed) -> bool:
    """Whether CAPO may be waiting for a load balancer, about whose state it says nothing."""
    owner = observed.infrastructure
    if isinstance(owner, Missing) or conditions.is_initialized(owner, "provisioned", "ready"):
        return False
    created = conditions.instant(conditions.metadata(owner).get("creationTimestamp"))
    is_enabled = conditions.at_path(owner, "spec", "apiServerLoadBalancer", "enabled") is True
    return is_enabled and timestamps.is_older(created, observed, BALANCER_PATIENCE)


def cluster_missing(owner: Json | Missing) -> Issue | None:
    """What the Cluster object itself still lacks; its view of machines is late: asked last."""
    if owner is Missing.UNREADABLE:
        return Issue("the Cluster cannot be read")
    if isinstance(owner, Missing):
        return Issue("the Cluster does not exist yet")
    if conditions.is_terminating(owner):
        return Issue("the Cluster is being deleted")
    if conditions.paused(owner) or conditions.condition(owner, "Paused").bad:
        return Issue("the Cluster is paused on the management cluster")
    if not conditions.generation_seen(owner):
        return Issue("Cluster API has not processed the change of the Cluster yet")
    if api_address(owner) is None:
        return Issue("the API endpoint is not known yet")
    for kind in ("InfrastructureReady", "ControlPlaneInitialized", "Available"):
        if not conditions.condition(owner, kind).good:
            return Issue(f"the Cluster does not report {kind} yet")
    return None


def api_address(owner: Json | Missing) -> str | None:
    """``https://host:port`` of the Kubernetes API, None until it is known.

    Read at v1beta1 an endpoint that is not set is host "" and port 0, not absent.
    """
    if isinstance(owner, Missing):
        return None
    endpoint = conditions.mapping(conditions.at_path(owner, "spec", "controlPlaneEndpoint"))
    host, port = endpoint.get("host"), endpoint.get("port")
    if not host or not port:
        return None
    text = str(host).strip("[]")
    return f"https://[{text}]:{port}" if ":" in text else f"https://{text}:{port}"
