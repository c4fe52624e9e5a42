# SPDX-License-Identifier: Apache-2.0
"""What a cluster has left in the tenant's project: its servers, and what its Services had made.

OpenStack's cloud controller makes load balancers, floating IPs and security groups for Services and
writes the cluster's name into them; by that they are found
(https://github.com/kubernetes/cloud-provider-openstack, "openstack-cloud-controller-manager").
Everything here is asked as Magnum's service user, who sees all projects.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from openstack import exceptions as sdk_exceptions
from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors, names
from magnum.drivers.k8s_capi_helm.cloud.services import asking, Services

LOG = logging.getLogger(__name__)
_Found = TypeVar("_Found")

_DEAD_SERVERS = frozenset({"DELETED", "SOFT_DELETED"})


class Remains:
    """What is left of clusters in a cloud."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def servers(self, release: str, project_id: str) -> tuple[str, ...]:
        """Names of a cluster's servers that Nova still has, whatever a management cluster says.

        :raises errors.DriverError: Nova cannot be asked.
        """
        compute, beginning = self._services.nova(), f"{release}-"
        with asking("Nova", "the servers"):
            listed = list(
                compute.servers(all_projects=True, project_id=project_id, name=f"^{beginning}")
            )
        return tuple(
            sorted(
                one.name
                for one in listed
                if one.name.startswith(beginning) and one.status not in _DEAD_SERVERS
            )
        )

    def clear_services(self, release: str, project_id: str) -> tuple[str, ...]:
        """Delete what the cluster's Services of type LoadBalancer have left.

        A load balancer that another cluster's Service shares stays, with its floating IP. A service
        of the cloud that is not there, or refuses, is logged and passed over: nobody would ever get
        further.

        :returns: what is on its way and not gone yet, in words, () once nothing is left.
        :raises errors.CloudUnreachable: a service does not answer.
        """
        balancers = _if_allowed(release, self._balancers, release, project_id)
        shared = [one for one in balancers if _is_shared(one, release)]
        mine = [one for one in balancers if one not in shared]
        left = _if_allowed(release, self._clear_balancers, mine)
        kept = {one.vip_port_id for one in shared}
        _if_allowed(release, self._clear_addresses, release, project_id, kept)
        left = left or _if_allowed(release, self._clear_groups, release, project_id)
        return tuple(left)

    def ports(self, network_id: str) -> tuple[str, ...]:
        """Ports on a network that are none of Neutron's own, in words.

        :raises errors.DriverError: Neutron cannot be asked.
        """
        with asking("Neutron", "the ports"):
            listed = list(self._services.neutron().ports(network_id=network_id))
        return tuple(
            f"port {one.id} ({one.device_owner or 'of nobody'})"
            for one in sorted(listed, key=lambda one: str(one.id))
            if not (one.device_owner or "").startswith("network:")
        )

    def _balancers(self, release: str, project_id: str) -> list[Any]:
        with asking("Octavia", "the load balancers"):
            listed = list(self._services.octavia().load_balancers(project_id=project_id))
        return [
            one
            for one in listed
            if one.project_id == project_id and names.is_service_balancer(release, one.name)
        ]

    def _clear_balancers(self, balancers: list[Any]) -> list[str]:
        left = []
        for one in balancers:
            state = one.provisioning_status or "in an unknown state"
            if not state.startswith("PENDING"):
                with asking("Octavia", f"load balancer '{one.name}'"):
                    octavia = self._services.octavia()
                    octavia.delete_load_balancer(one.id, cascade=True, ignore_missing=True)
            left.append(f"load balancer {one.name} ({state})")
        return left

    def _clear_addresses(self, release: str, project_id: str, kept: set[str]) -> list[str]:
        network = self._services.neutron()
        with asking("Neutron", "the floating IPs"):
            listed = list(network.ips(project_id=project_id))
        for one in listed:
            mine = one.project_id == project_id and one.port_id not in kept
            if mine and names.is_service_address(release, one.description):
                with asking("Neutron", f"floating IP '{one.floating_ip_address}'"):
                    network.delete_ip(one.id, ignore_missing=True)
        return []

    def _clear_groups(self, release: str, project_id: str) -> list[str]:
        network, left = self._services.neutron(), []
        with asking("Neutron", "the security groups"):
            listed = list(network.security_groups(project_id=project_id))
        for one in listed:
            if one.project_id != project_id or not names.is_service_group(release, one.description):
                continue
            with asking("Neutron", f"security group '{one.name}'"):
                try:
                    network.delete_security_group(one.id, ignore_missing=True)
                except sdk_exceptions.ConflictException:
                    left.append(f"security group {one.name} (in use)")
        return left


def _is_shared(balancer: Any, release: str) -> bool:
    """Whether a Service of another cluster uses it too: each Service that does adds its tag."""
    tags = [one for one in balancer.tags or () if one.startswith("kube_service_")]
    return not all(names.is_service_balancer(release, one) for one in tags)


def _if_allowed(release: str, ask: Callable[..., list[_Found]], *args: Any) -> list[_Found]:
    try:
        return ask(*args)
    except errors.CloudRefused as error:
        LOG.warning("What Services of %s have left: %s %s", release, error, error.detail)
        return []
