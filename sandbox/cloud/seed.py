# SPDX-License-Identifier: Apache-2.0
"""The initial resources of the cloud; every function is idempotent."""

import io
import ipaddress
from typing import Any

import openstack
import yaml

from sandbox.cloud.ini import write_private
from sandbox.cloud.services import (
    auth_url,
    COMPUTE_HOSTS,
    REGION,
    SERVICES,
    TRUSTEE_ADMIN,
    TRUSTEE_DOMAIN,
)
from sandbox.state import State

TENANT = "demo"
TENANT_ROLES = ("member", "load-balancer_member", "creator")
KEYPAIR = "demo"
# Servers close connections that were idle for a while, sometimes just when they are used again.
CONNECT_RETRIES = 2
EXTERNAL_NETWORK = "public"
# name -> Kubernetes version; the last one is an image that no cluster can be made of.
IMAGES = {
    "ubuntu-kube-v1.33.8": "v1.33.8",
    "ubuntu-kube-v1.34.4": "v1.34.4",
    "ubuntu-plain": None,
}
# name -> (MiB of memory, virtual CPUs, GiB of disk)
FLAVORS = {"m1.tiny": (512, 1, 10), "m1.small": (2048, 2, 20), "m1.medium": (4096, 4, 40)}
VOLUME_TYPES = ("standard", "fast")

# The demo tenant's limits: enough for a dozen clusters. The quota fault lowers Nova's.
COMPUTE_QUOTA = {"instances": 100, "cores": 400, "ram": 1_000_000, "server_groups": 100}
UNLIMITED_IN_NEUTRON = (
    "networks",
    "subnets",
    "ports",
    "routers",
    "floating_ips",
    "security_groups",
    "security_group_rules",
)
UNLIMITED_IN_OCTAVIA = ("load_balancers", "listeners", "pools", "members", "health_monitors")
VOLUME_QUOTA = {"volumes": 200, "gigabytes": 10_000}


def write_clouds_yaml(state: State, password: str) -> None:
    """Write clouds.yaml with ``admin`` and the tenant ``demo``."""
    common = {
        "auth_url": auth_url(state),
        "password": password,
        "user_domain_id": "default",
        "project_domain_id": "default",
    }
    clouds = {
        name: {
            "auth": {**common, "username": name, "project_name": name},
            "region_name": REGION,
            "connect_retries": CONNECT_RETRIES,
        }
        for name in ("admin", TENANT)
    }
    path = state.path("cloud", "clouds.yaml")
    write_private(path, yaml.safe_dump({"clouds": clouds}))


def connect(state: State, cloud: str, user: str = "", project: str = "") -> Any:
    """An SDK connection as ``admin`` or ``demo``, or as another user who has their password."""
    config = openstack.config.OpenStackConfig(
        config_files=[str(state.path("cloud", "clouds.yaml"))], load_envvars=False
    )
    other = {"username": user, "project_name": project} if user else {}
    return openstack.connection.Connection(config=config.get_one(cloud, auth=other))


def identity(state: State, password: str) -> None:
    """Service users, the catalog, and the tenant with its user and roles."""
    keystone = connect(state, "admin").identity
    roles = {role.name: role for role in keystone.roles()}
    for name in TENANT_ROLES:
        roles[name] = roles.get(name) or keystone.create_role(name=name)
    services = _project(keystone, "service")
    for name in SERVICES:
        if name == "keystone":
            continue
        user = _user(keystone, name, password)
        for role in ("admin", "service"):
            keystone.assign_project_role_to_user(services, user, roles[role])
    _catalog(state, keystone)
    _trustee_domain(keystone, roles["admin"], password)
    tenant, user = _project(keystone, TENANT), _user(keystone, TENANT, password)
    for role in TENANT_ROLES:
        keystone.assign_project_role_to_user(tenant, user, roles[role])


def _catalog(state: State, keystone: Any) -> None:
    known = {service.name for service in keystone.services()}
    for service in SERVICES.values():
        if service.name in known:
            continue
        entry = keystone.create_service(name=service.name, type=service.kind)
        for interface in ("public", "internal", "admin"):
            keystone.create_endpoint(
                service_id=entry.id,
                interface=interface,
                url=service.endpoint(state),
                region_id=REGION,
            )


def _trustee_domain(keystone: Any, role: Any, password: str) -> None:
    """What Magnum's installation guide asks for: until Magnum 22 each request looks for it."""
    found = next(keystone.domains(name=TRUSTEE_DOMAIN), None)
    domain = found or keystone.create_domain(name=TRUSTEE_DOMAIN)
    user = next(keystone.users(name=TRUSTEE_ADMIN, domain_id=domain.id), None)
    if user is None:
        user = keystone.create_user(name=TRUSTEE_ADMIN, password=password, domain_id=domain.id)
    keystone.assign_domain_role_to_user(domain, user, role)


def _project(keystone: Any, name: str) -> Any:
    found = next(keystone.projects(name=name, domain_id="default"), None)
    return found or keystone.create_project(name=name, domain_id="default")


def _user(keystone: Any, name: str, password: str) -> Any:
    found = next(keystone.users(name=name, domain_id="default"), None)
    return found or keystone.create_user(name=name, password=password, domain_id="default")


def resources(state: State) -> None:
    """Images, flavors, zones, volume types, quotas: the same in every sandbox."""
    admin = connect(state, "admin")
    for name, version in IMAGES.items():
        _image(admin, name, version)
    for name, (ram, vcpus, disk) in FLAVORS.items():
        if not admin.compute.find_flavor(name):
            admin.compute.create_flavor(name=name, ram=ram, vcpus=vcpus, disk=disk)
    _zones(admin)
    for name in VOLUME_TYPES:
        if not admin.block_storage.find_type(name):
            admin.block_storage.create_type(name=name)
    tenant = admin.identity.find_project(TENANT).id
    admin.compute.update_quota_set(tenant, **COMPUTE_QUOTA)
    admin.network.update_quota(tenant, **dict.fromkeys(UNLIMITED_IN_NEUTRON, -1))
    admin.block_storage.update_quota_set(tenant, **VOLUME_QUOTA)
    # Octavia makes a tenant's quota row at its first load balancer, and fails at two at once.
    admin.load_balancer.update_quota(tenant, **dict.fromkeys(UNLIMITED_IN_OCTAVIA, -1))


def _image(admin: Any, name: str, kube_version: str | None) -> None:
    if admin.image.find_image(name):
        return
    properties = {"os_distro": "ubuntu", "os_version": "24.04"}
    if kube_version:
        properties["kube_version"] = kube_version
    # Zeros: no server ever boots them.
    admin.image.create_image(
        name=name,
        container_format="bare",
        disk_format="raw",
        visibility="public",
        data=io.BytesIO(bytes(1024)),
        **properties,
    )


def _zones(admin: Any) -> None:
    """One host aggregate per availability zone."""
    known = {aggregate.name for aggregate in admin.compute.aggregates()}
    for zone, host in COMPUTE_HOSTS.items():
        if zone not in known:
            aggregate = admin.compute.create_aggregate(name=zone, availability_zone=zone)
            admin.compute.add_host_to_aggregate(aggregate, host)


def external_network(state: State) -> None:
    """The network of floating IPs, on this sandbox's own loopback addresses."""
    admin = connect(state, "admin")
    if admin.network.find_network(EXTERNAL_NETWORK):
        return
    cidr = ipaddress.ip_network(state.external_network)
    network = admin.network.create_network(
        name=EXTERNAL_NETWORK,
        is_router_external=True,
        provider_network_type="flat",
        provider_physical_network="external",
    )
    admin.network.create_subnet(
        network_id=network.id,
        name=EXTERNAL_NETWORK,
        ip_version=4,
        cidr=str(cidr),
        is_dhcp_enabled=False,  # Neutron refuses loopback addresses with DHCP
    )


def keypair(state: State) -> None:
    """The demo user's key; its private half is thrown away, as nothing answers to SSH."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519

    compute = connect(state, TENANT).compute
    if compute.find_keypair(KEYPAIR):
        return
    public = ed25519.Ed25519PrivateKey.generate().public_key()
    text = public.public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    ).decode()
    compute.create_keypair(name=KEYPAIR, public_key=f"{text} {KEYPAIR}")


def warm_up(state: State) -> None:
    """One request to each service, one after another.

    Services set themselves up in their first request; several first ones at once get errors.
    """
    tenant = connect(state, TENANT)
    list(tenant.image.images(limit=1))
    list(tenant.compute.flavors())
    list(tenant.compute.servers())
    list(tenant.network.networks())
    list(tenant.block_storage.types())
    list(tenant.load_balancer.load_balancers())
