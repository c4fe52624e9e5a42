# SPDX-License-Identifier: Apache-2.0
"""What a cluster has left in the tenant's project: its servers, and what its Services had made.

OpenStack's cloud controller makes load balancers, floating IPs and security groups for Services and
writes the cluster's name into them; by that they are found
(https://github.com/kubernetes/cloud-provider-openstack, "openstack-cloud-controller-manager").
Everything here is asked as Magnum's service user, who sees all projects. What was told to go is
gone when a list does not have it any more: a proxy answers a deletion, too.
"""

from __future__ import annotations

from typing import Any

from openstack import exceptions as sdk_exceptions
from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.cloud import server_ownership
from magnum.drivers.k8s_capi_helm.cloud.services import (
    list_all,
    listed_of_project,
    Services,
    translate_errors,
)
from magnum.drivers.k8s_capi_helm.model import names

LOG = logging.getLogger(__name__)

_DEAD_SERVERS = frozenset({"DELETED", "SOFT_DELETED"})


class Orphans:
    """What is left of clusters in a cloud."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def servers(self, release: str, project_id: str, namespace: str) -> tuple[str, ...]:
        """Names of a cluster's servers that Nova still has, whatever a management cluster says.

        Another cluster's name may begin like this one's, so the ports of a server decide whose it
        is, and where there are none, its name.

        :param namespace: of the cluster on its management cluster.
        :raises errors.DriverError: Nova or Neutron cannot be asked.
        """
        beginning = f"{release}-"
        found = listed_of_project(
            "Nova",
            "the servers",
            project_id,
            lambda: self._services.nova().servers(
                all_projects=True, project_id=project_id, name=f"^{beginning}"
            ),
        )
        alive = [
            one
            for one in found
            if (one.name or "").startswith(beginning) and one.status not in _DEAD_SERVERS
        ]
        mine = (one for one in alive if self._is_mine(one, release, project_id, namespace))
        return tuple(sorted(one.name for one in mine))

    def clear_services(self, release: str, project_id: str) -> tuple[str, ...]:
        """Delete what the cluster's Services of type LoadBalancer have left.

        A load balancer that another cluster's Service shares stays, with its floating IP. A cloud
        whose catalogue has no Octavia has no load balancers.

        :returns: what is on its way and not gone yet, in words, () once nothing is left.
        :raises errors.CloudUnreachable: a service does not answer.
        :raises errors.CloudRefused: a service does not tell what there is, or does not delete it.
        """
        try:
            balancers = self._balancers(release, project_id)
        except errors.CloudLacks as error:
            LOG.debug("Release %s: the cloud has no load balancers: %s", release, error.detail)
            balancers = []
        shared = [one for one in balancers if _is_shared(one, release)]
        left = self._clear_balancers([one for one in balancers if one not in shared])
        left += self._clear_addresses(release, project_id, {one.vip_port_id for one in shared})
        return tuple(left or self._clear_groups(release, project_id))

    def ports(self, network_id: str) -> tuple[str, ...]:
        """Ports on a network that are none of Neutron's own, in words.

        :raises errors.DriverError: Neutron cannot be asked.
        """
        found = self._ports(network_id=network_id)
        return tuple(
            f"port {one.id} ({one.device_owner or 'of nobody'})"
            for one in sorted(found, key=lambda one: str(one.id))
            if not (one.device_owner or "").startswith("network:")
        )

    def is_balancer_failed(self, name: str, project_id: str) -> bool:
        """Whether a project's load balancer of that name is in ERROR.

        :raises errors.DriverError: Octavia cannot be asked.
        """
        query, what = {"name": name, "project_id": project_id}, f"load balancer '{name}'"
        mine = listed_of_project(
            "Octavia", what, project_id, lambda: self._services.octavia().load_balancers(**query)
        )
        return any(one.provisioning_status == "ERROR" for one in mine if one.name == name)

    def _is_mine(self, server: Any, release: str, project_id: str, namespace: str) -> bool:
        # Neutron lets anybody write any server into a port of the own project.
        query = {"device_id": server.id, "project_id": project_id}
        ports = listed_of_project(
            "Neutron", "the ports", project_id, lambda: self._services.neutron().ports(**query)
        )
        said = server_ownership.by_ports((one.description for one in ports), namespace, release)
        return server_ownership.is_machine(server.name, release) if said is None else said

    def _ports(self, **query: str) -> list[Any]:
        return list_all("Neutron", "the ports", lambda: self._services.neutron().ports(**query))

    def _balancers(self, release: str, project_id: str) -> list[Any]:
        found = listed_of_project(
            "Octavia",
            "the load balancers",
            project_id,
            lambda: self._services.octavia().load_balancers(project_id=project_id),
        )
        return [one for one in found if names.is_service_balancer(release, one.name)]

    def _clear_balancers(self, balancers: list[Any]) -> list[str]:
        left = []
        for one in balancers:
            state = one.provisioning_status or "in an unknown state"
            if not state.startswith("PENDING"):
                with translate_errors("Octavia", f"load balancer '{one.name}'"):
                    octavia = self._services.octavia()
                    octavia.delete_load_balancer(one.id, cascade=True, ignore_missing=True)
            left.append(f"load balancer {one.name} ({state})")
        return left

    def _addresses(self, release: str, project_id: str, kept: set[str]) -> list[Any]:
        found = listed_of_project(
            "Neutron",
            "the floating IPs",
            project_id,
            lambda: self._services.neutron().ips(project_id=project_id),
        )
        return [
            one
            for one in found
            if one.port_id not in kept and names.is_service_address(release, one.description)
        ]

    def _clear_addresses(self, release: str, project_id: str, kept: set[str]) -> list[str]:
        mine = self._addresses(release, project_id, kept)
        for one in mine:
            with translate_errors("Neutron", f"floating IP '{one.floating_ip_address}'"):
                self._services.neutron().delete_ip(one.id, ignore_missing=True)
        left = self._addresses(release, project_id, kept) if mine else []
        return [f"floating IP {one.floating_ip_address}" for one in left]

    def _groups(self, release: str, project_id: str) -> list[Any]:
        found = listed_of_project(
            "Neutron",
            "the security groups",
            project_id,
            lambda: self._services.neutron().security_groups(project_id=project_id),
        )
        return [one for one in found if names.is_service_group(release, one.description)]

    def _clear_groups(self, release: str, project_id: str) -> list[str]:
        mine, used = self._groups(release, project_id), set()
        for one in mine:
            with translate_errors("Neutron", f"security group '{one.name}'"):
                try:
                    self._services.neutron().delete_security_group(one.id, ignore_missing=True)
                except sdk_exceptions.ConflictException:
                    used.add(one.id)
        left = self._groups(release, project_id) if mine else []
        return [f"security group {one.name}{' (in use)' if one.id in used else ''}" for one in left]


def _is_shared(balancer: Any, release: str) -> bool:
    """Whether a Service of another cluster uses it too: each Service that does adds its tag."""
    tags = [one for one in balancer.tags or () if one.startswith("kube_service_")]
    return not all(names.is_service_balancer(release, one) for one in tags)
