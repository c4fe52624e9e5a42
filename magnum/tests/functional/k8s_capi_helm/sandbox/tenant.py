# SPDX-License-Identifier: Apache-2.0
"""A project with a user of its own, and all that it has in OpenStack.

A project per cluster's life makes "nothing is left" exact: no names have to be guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
import io
import os
from pathlib import Path
import secrets
import subprocess
import sys
from typing import Any

import openstack

from magnum.tests.functional.k8s_capi_helm.sandbox import setting
from sandbox.cloud import seed
from sandbox.cloud.environment import without_proxy

#: kind -> names or ids of what is there.
Inventory = dict[str, set[str]]

_API = {"OS_IDENTITY_API_VERSION": "3"}
_UNLIMITED_LOAD_BALANCING = (
    "load_balancers",
    "listeners",
    "pools",
    "members",
    "health_monitors",
)


class Tenant:
    """One project and its user, who has the rights of the sandbox's demo tenant.

    :ivar connection: the SDK's connection as that user.
    :ivar keypair: name of the user's key in Nova.
    """

    def __init__(self, connection: Any, keypair: str) -> None:
        self.connection = connection
        self.keypair = keypair
        self.project_id: str = connection.current_project_id
        self.user_id: str = connection.current_user_id
        self._images: list[str] = []
        self._before = self._inventory()

    @classmethod
    def demo(cls) -> Tenant:
        """The tenant that the sandbox has from the beginning, and that its quota fault is about."""
        return cls(seed.connect(setting.state(), seed.TENANT), seed.KEYPAIR)

    @classmethod
    def new(cls, name: str) -> Tenant:
        """A project and a user of their own, with room for some clusters.

        :param name: beginning of their names.
        """
        admin = _admin()
        name = f"{name}-{secrets.token_hex(3)}"
        password = secrets.token_urlsafe(16)
        project = admin.identity.create_project(name=name, domain_id="default")
        user = admin.identity.create_user(
            name=name, domain_id="default", password=password, default_project_id=project.id
        )
        for role in seed.TENANT_ROLES:
            found = admin.identity.find_role(role, ignore_missing=False)
            admin.identity.assign_project_role_to_user(project, user, found)
        admin.compute.update_quota_set(project.id, **seed.COMPUTE_QUOTA)
        admin.network.update_quota(project.id, **dict.fromkeys(seed.UNLIMITED_IN_NEUTRON, -1))
        admin.load_balancer.update_quota(project.id, **dict.fromkeys(_UNLIMITED_LOAD_BALANCING, -1))
        admin.block_storage.update_quota_set(project.id, **seed.VOLUME_QUOTA)
        connection = openstack.connection.Connection(
            auth={
                "auth_url": admin.config.get_auth_args()["auth_url"],
                "username": name,
                "password": password,
                "project_name": name,
                "user_domain_id": "default",
                "project_domain_id": "default",
            },
            region_name=admin.config.get_region_name(),
            connect_retries=seed.CONNECT_RETRIES,
        )
        connection.compute.create_keypair(name=seed.KEYPAIR)
        return cls(connection, seed.KEYPAIR)

    @property
    def namespace(self) -> str:
        """The namespace that the driver gives this project."""
        return f"magnum-{self.project_id}"

    def servers(self) -> dict[str, str]:
        """Nova's servers: id -> status."""
        return {server.id: server.status for server in self.connection.compute.servers()}

    def floating_ips(self) -> set[str]:
        """Addresses of the project's floating IPs."""
        found = self.connection.network.ips(project_id=self.project_id)
        return {ip.floating_ip_address for ip in found}

    def load_balancers(self) -> dict[str, str]:
        """Octavia's load balancers: name -> provisioning status."""
        found = self.connection.load_balancer.load_balancers()
        return {balancer.name: balancer.provisioning_status for balancer in found}

    def networks(self) -> set[str]:
        """Names of the project's own networks."""
        found = self.connection.network.networks(project_id=self.project_id)
        return {network.name for network in found}

    def security_groups(self) -> set[str]:
        """Names of its security groups, without the one that every project has."""
        found = self.connection.network.security_groups(project_id=self.project_id)
        return {group.name for group in found} - {"default"}

    def credentials(self) -> set[str]:
        """Names of the user's application credentials."""
        found = self.connection.identity.application_credentials(self.user_id)
        return {credential.name for credential in found}

    def volumes(self) -> list[tuple[str, int]]:
        """Cinder's type and size in GiB of every volume."""
        found = self.connection.block_storage.volumes()
        return sorted((volume.volume_type, volume.size) for volume in found)

    def holder(self, address: str) -> str:
        """Id of the server that a floating IP leads to; "" while it leads nowhere."""
        network = self.connection.network
        (found,) = network.ips(project_id=self.project_id, floating_ip_address=address)
        return str(network.get_port(found.port_id).device_id) if found.port_id else ""

    def add_image(self, name: str, version: str) -> str:
        """An image of the project's own that holds a Kubernetes; returns its id.

        :param version: with ``v``.
        """
        made = self.connection.image.create_image(
            name=name,
            allow_duplicates=True,
            container_format="bare",
            disk_format="raw",
            visibility="private",
            data=io.BytesIO(bytes(1024)),
            os_distro="ubuntu",
            os_version="24.04",
            kube_version=version,
        )
        self._images.append(made.id)
        return self._images[-1]

    def openstack(self, *arguments: str) -> str:
        """What ``openstack ARGUMENTS`` writes, run by this user.

        :raises AssertionError: the command fails.
        """
        config = self.connection.config
        login = {f"OS_{key.upper()}": text for key, text in config.get_auth_args().items()}
        kept = {key: text for key, text in os.environ.items() if not key.startswith("OS_")}
        done = subprocess.run(
            [str(Path(sys.executable).with_name("openstack")), *arguments],
            # `coe cluster config` wants to know for which shell it prints.
            env={**kept, **without_proxy(), "SHELL": "/bin/sh", **login, **_API},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, (arguments, done.stderr)
        return done.stdout

    def left(self) -> list[str]:
        """What there is in OpenStack that was not there at the beginning, as ``kind name``."""
        now = self._inventory()
        return sorted(
            f"{kind} {name}" for kind, found in now.items() for name in found - self._before[kind]
        )

    def leave(self) -> None:
        """Remove the images of :meth:`add_image`, user and project of :meth:`new`."""
        for image in self._images:
            self.connection.image.delete_image(image)
        admin = _admin()
        admin.identity.delete_user(self.user_id)
        admin.identity.delete_project(self.project_id)

    def _inventory(self) -> Inventory:
        cloud, mine = self.connection, {"project_id": self.project_id}
        lists: dict[str, Callable[[], Iterable[Any]]] = {
            "server": cloud.compute.servers,
            "server group": cloud.compute.server_groups,
            "volume": cloud.block_storage.volumes,
            "network": lambda: cloud.network.networks(**mine),
            "subnet": lambda: cloud.network.subnets(**mine),
            "router": lambda: cloud.network.routers(**mine),
            "port": lambda: cloud.network.ports(**mine),
            "floating IP": lambda: cloud.network.ips(**mine),
            "load balancer": cloud.load_balancer.load_balancers,
        }
        found = {kind: {f"{one.name} {one.id}" for one in get()} for kind, get in lists.items()}
        found["security group"] = self.security_groups()
        found["application credential"] = self.credentials()
        return found


def certificates(name: str) -> list[str]:
    """Barbican's containers with the CAs of a cluster of that name, which are the service's own."""
    state = setting.state()
    if state.get("certificates") != "barbican":
        return []
    magnum = seed.connect(state, "admin", user="magnum", project="service")
    return [one.container_ref for one in magnum.key_manager.containers() if one.name == name]


def _admin() -> Any:
    return seed.connect(setting.state(), "admin")
