# SPDX-License-Identifier: Apache-2.0
"""Orphaned cloud resources of a cluster: its servers, and resources of its Services.

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
from magnum.drivers.k8s_capi_helm.cloud.access.services import (
    list_all,
    list_of_project,
    Services,
    translate_errors,
)
from magnum.drivers.k8s_capi_helm.cloud.resources import server_ownership
from magnum.drivers.k8s_capi_helm.model import CloudCluster, CloudResource, names

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
        servers = self._own_servers(release, project_id, namespace)
        return tuple(sorted(server.name for server in servers))

    def resources(self, release: str, project_id: str, namespace: str) -> tuple[CloudResource, ...]:
        """A cluster's servers and what its Services have left, by id; nothing is deleted.

        :param namespace: of the cluster on its management cluster.
        :raises errors.DriverError: Nova, Octavia or Neutron cannot be asked.
        """
        found = [
            CloudResource("Nova", f"server {server.name}", str(server.id), server.status or "")
            for server in self._own_servers(release, project_id, namespace)
        ]
        for balancer in self._existing_balancers(release, project_id):
            state = balancer.provisioning_status or ""
            title = f"load balancer {balancer.name}"
            found.append(CloudResource("Octavia", title, str(balancer.id), state))
        for floating_ip in self._addresses(release, project_id, set()):
            title = _address_title(floating_ip)
            found.append(CloudResource("Neutron", title, str(floating_ip.id)))
        for security_group in self._security_groups(release, project_id):
            title = _group_title(security_group)
            found.append(CloudResource("Neutron", title, str(security_group.id)))
        return tuple(found)

    def clusters(self, namespace_prefix: str) -> tuple[CloudCluster, ...]:
        """The clusters whose security groups Neutron has, in all projects.

        Each cluster has some, unless its own ones are chosen for it.

        :param namespace_prefix: of the namespaces of projects on management clusters.
        :raises errors.DriverError: Neutron cannot be asked.
        """
        security_groups = list_all(
            "Neutron", "the security groups", lambda: self._services.neutron().security_groups()
        )
        found: dict[tuple[str, str], list[CloudResource]] = {}
        for security_group in security_groups:
            project_id = str(security_group.project_id or "")
            namespace = names.namespace(namespace_prefix, project_id)
            release = server_ownership.release_of_security_group(security_group.name, namespace)
            if release:
                resource = CloudResource(
                    "Neutron", _group_title(security_group), str(security_group.id)
                )
                found.setdefault((project_id, release), []).append(resource)
        return tuple(
            CloudCluster(release, project_id, tuple(sorted(resources, key=lambda one: one.id)))
            for (project_id, release), resources in sorted(found.items())
        )

    def delete_services(self, release: str, project_id: str) -> tuple[str, ...]:
        """Delete what the cluster's Services of type LoadBalancer have left.

        A load balancer that another cluster's Service shares stays, with its floating IP. A cloud
        whose catalogue has no Octavia has no load balancers.

        :returns: what is on its way and not gone yet, in words, () once nothing is left.
        :raises errors.CloudUnreachable: a service does not answer.
        :raises errors.CloudRefused: a service does not tell what there is, or does not delete it.
        """
        balancers = self._existing_balancers(release, project_id)
        shared = [balancer for balancer in balancers if _is_shared(balancer, release)]
        remaining = self._delete_balancers(
            [balancer for balancer in balancers if balancer not in shared]
        )
        remaining += self._delete_addresses(
            release, project_id, {balancer.vip_port_id for balancer in shared}
        )
        return tuple(remaining or self._clear_security_groups(release, project_id))

    def service_resources(self, release: str, project_id: str) -> tuple[str, ...]:
        """What the cluster's Services of type LoadBalancer have left, in words; nothing is deleted.

        :raises errors.DriverError: Octavia or Neutron cannot be asked.
        """
        return (
            *(_balancer_title(item) for item in self._existing_balancers(release, project_id)),
            *(_address_title(item) for item in self._addresses(release, project_id, set())),
            *(_group_title(item) for item in self._security_groups(release, project_id)),
        )

    def ports(self, network_id: str) -> tuple[CloudResource, ...]:
        """Ports on a network that are none of Neutron's own, each with its owner as its state.

        :raises errors.DriverError: Neutron cannot be asked.
        """
        ports = self._ports(network_id=network_id)
        return tuple(
            CloudResource("Neutron", "port", str(port.id), port.device_owner or "without an owner")
            for port in sorted(ports, key=lambda port: str(port.id))
            if not (port.device_owner or "").startswith("network:")
        )

    def is_balancer_failed(self, name: str, project_id: str) -> bool:
        """Whether a project's load balancer of that name is in ERROR.

        :raises errors.DriverError: Octavia cannot be asked.
        """
        query, subject = {"name": name, "project_id": project_id}, f"load balancer '{name}'"
        balancers = list_of_project(
            "Octavia", subject, project_id, lambda: self._services.octavia().load_balancers(**query)
        )
        return any(
            balancer.provisioning_status == "ERROR"
            for balancer in balancers
            if balancer.name == name
        )

    def _own_servers(self, release: str, project_id: str, namespace: str) -> list[Any]:
        prefix = f"{release}-"
        query: dict[str, Any] = {"name": f"^{prefix}"}
        if self._services.is_admin:  # a tenant sees the own project without, and none with it
            query |= {"all_projects": True, "project_id": project_id}
        servers = list_of_project(
            "Nova", "the servers", project_id, lambda: self._services.nova().servers(**query)
        )
        existing = [
            server
            for server in servers
            if (server.name or "").startswith(prefix) and server.status not in _DEAD_SERVERS
        ]
        return [
            server
            for server in existing
            if self._is_own_server(server, release, project_id, namespace)
        ]

    def _is_own_server(self, server: Any, release: str, project_id: str, namespace: str) -> bool:
        # Neutron lets anybody write any server into a port of the own project.
        query = {"device_id": server.id, "project_id": project_id}
        ports = list_of_project(
            "Neutron", "the ports", project_id, lambda: self._services.neutron().ports(**query)
        )
        is_owned = server_ownership.by_ports(
            (port.description for port in ports), namespace, release
        )
        return server_ownership.is_machine(server.name, release) if is_owned is None else is_owned

    def _ports(self, **query: str) -> list[Any]:
        return list_all("Neutron", "the ports", lambda: self._services.neutron().ports(**query))

    def _existing_balancers(self, release: str, project_id: str) -> list[Any]:
        """As :meth:`_balancers`; none in a cloud whose catalogue has no Octavia."""
        try:
            return self._balancers(release, project_id)
        except errors.EndpointNotFound as error:
            LOG.debug("Release %s: the cloud has no load balancers: %s", release, error.detail)
            return []

    def _balancers(self, release: str, project_id: str) -> list[Any]:
        balancers = list_of_project(
            "Octavia",
            "the load balancers",
            project_id,
            lambda: self._services.octavia().load_balancers(project_id=project_id),
        )
        return [
            balancer for balancer in balancers if names.is_service_balancer(release, balancer.name)
        ]

    def _delete_balancers(self, balancers: list[Any]) -> list[str]:
        remaining = []
        for balancer in balancers:
            title = _balancer_title(balancer)
            if not (balancer.provisioning_status or "").startswith("PENDING"):
                with translate_errors("Octavia", f"load balancer '{balancer.name}'"):
                    octavia = self._services.octavia()
                    octavia.delete_load_balancer(balancer.id, cascade=True, ignore_missing=True)
            remaining.append(title)
        return remaining

    def _addresses(self, release: str, project_id: str, kept_ports: set[str]) -> list[Any]:
        floating_ips = list_of_project(
            "Neutron",
            "the floating IPs",
            project_id,
            lambda: self._services.neutron().ips(project_id=project_id),
        )
        return [
            floating_ip
            for floating_ip in floating_ips
            if floating_ip.port_id not in kept_ports
            and names.is_service_address(release, floating_ip.description)
        ]

    def _delete_addresses(self, release: str, project_id: str, kept_ports: set[str]) -> list[str]:
        floating_ips = self._addresses(release, project_id, kept_ports)
        for floating_ip in floating_ips:
            with translate_errors("Neutron", f"floating IP '{floating_ip.floating_ip_address}'"):
                self._services.neutron().delete_ip(floating_ip.id, ignore_missing=True)
        remaining = self._addresses(release, project_id, kept_ports) if floating_ips else []
        return [_address_title(floating_ip) for floating_ip in remaining]

    def _security_groups(self, release: str, project_id: str) -> list[Any]:
        security_groups = list_of_project(
            "Neutron",
            "the security groups",
            project_id,
            lambda: self._services.neutron().security_groups(project_id=project_id),
        )
        return [
            security_group
            for security_group in security_groups
            if names.is_service_group(release, security_group.description)
        ]

    def _clear_security_groups(self, release: str, project_id: str) -> list[str]:
        security_groups, used = self._security_groups(release, project_id), set()
        for security_group in security_groups:
            with translate_errors("Neutron", f"security group '{security_group.name}'"):
                try:
                    self._services.neutron().delete_security_group(
                        security_group.id, ignore_missing=True
                    )
                except sdk_exceptions.ConflictException:
                    used.add(security_group.id)
        remaining = self._security_groups(release, project_id) if security_groups else []
        return [
            f"{_group_title(security_group)}{' (in use)' if security_group.id in used else ''}"
            for security_group in remaining
        ]


def _balancer_title(balancer: Any) -> str:
    state = balancer.provisioning_status or "in an unknown state"
    return f"load balancer {balancer.name} ({state})"


def _address_title(floating_ip: Any) -> str:
    return f"floating IP {floating_ip.floating_ip_address}"


def _group_title(security_group: Any) -> str:
    return f"security group {security_group.name}"


def _is_shared(balancer: Any, release: str) -> bool:
    """Whether a Service of another cluster uses it too: each Service that does adds its tag."""
    tags = [tag for tag in balancer.tags or () if tag.startswith("kube_service_")]
    return not all(names.is_service_balancer(release, tag) for tag in tags)
