# SPDX-License-Identifier: Apache-2.0
"""Two projects and three people who share a cloud; one of them is hostile.

Images, networks and clusters of both projects have the same names. Nothing that the stranger makes,
names or asks for reaches the other project, its credential or what runs on the management cluster.
"""

from __future__ import annotations

import dataclasses
import json
import secrets
from typing import Any

import openstack

from magnum.tests.functional.k8s_capi_helm.sandbox import provider, setting
from magnum.tests.functional.k8s_capi_helm.sandbox.customer import Customer, VERSION
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.sandbox.magnum_api import MagnumApi
from magnum.tests.functional.k8s_capi_helm.sandbox.management import Json, management
from magnum.tests.functional.k8s_capi_helm.sandbox.tenant import Tenant
from sandbox.cloud import seed

_OLD = "v1.33.8"
#: What all clusters here are called, but for one that is called like another's release.
_NAME = "twin"
_EVIL = "evil.example.org/x"
_EVIL_TAG = "v9.9.9"
_FLAVOR = "team-only"
#: A further network of the customer's nodegroup, and what the stranger calls one, too.
_LAN = "lan"


def _image(version: str) -> str:
    return f"ubuntu-kube-{version}"


class Neighbours(Life):
    """The customer, a colleague in the customer's project, and a stranger in another one."""

    name = "neighbours"
    stranger: Customer
    #: The customer's second cluster, which is called like the first one's release.
    shadow: Customer
    _images: dict[str, str]
    #: Ids of what the stranger has made.
    _networks: list[str]
    #: Id of the customer's further network.
    _lan: str

    def new_customer(self) -> Customer:
        customer = Customer.new(self.name)
        self.stranger = Customer.new("stranger")
        self._images = {version: _public(version) for version in (_OLD, VERSION)}
        return customer

    @step
    def same_names(self) -> None:
        """The stranger has the names of the public images and of the external network.

        Images are private, hidden, and shared with the customer; networks are shared with it.
        """
        own, project = self.stranger.tenant, self.customer.tenant.project_id
        for version in (_OLD, VERSION):
            own.add_image(_image(version), version)
            hidden = own.add_image(_image(version), version)
            own.connection.image.update_image(hidden, is_hidden=True)
        shared = own.add_image(_image(VERSION), "v1.36.0")
        own.connection.image.update_image(shared, visibility="shared")
        own.connection.image.add_member(shared, member_id=project)
        network = own.connection.network.create_network(name=seed.EXTERNAL_NETWORK)
        lan = own.connection.network.create_network(name=_LAN)
        own.connection.network.create_rbac_policy(
            object_type="network",
            object_id=lan.id,
            action="access_as_shared",
            target_project_id=project,
        )
        self._networks = [network.id, lan.id]
        admin = _admin()
        provider.withdraw_flavor(_FLAVOR)
        flavor = admin.compute.create_flavor(
            name=_FLAVOR, ram=4096, vcpus=4, disk=40, is_public=False
        )
        admin.compute.flavor_add_tenant_access(flavor, project)

    @step
    def create(self) -> None:
        self.customer.create(version=_OLD, name=_NAME).complete("CREATE")
        assert self._used(self.customer) == {self._images[_OLD]}, self._used(self.customer)

    @step
    def evil_images(self) -> None:
        """Neither prefix nor tag of a stranger reaches what runs on the management cluster."""
        labels = {
            "container_infra_prefix": _EVIL,
            "autoscaler_tag": _EVIL_TAG,
            "auto_scaling_enabled": "true",
            "min_node_count": "1",
            "max_node_count": "2",
        }
        image = self._images[VERSION]
        for given in (labels, {k: v for k, v in labels.items() if k != "autoscaler_tag"}):
            template = self.stranger.template(image_id=image, labels=given)
            self.stranger.create(template=template, name=_NAME)
            rows = self.stranger.cluster.until(
                lambda rows: rows.status == "CREATE_FAILED" or bool(self._autoscalers()),
                "an autoscaler, or a refusal",
                fail=False,
            )
            if rows.status != "CREATE_FAILED":
                break
            assert "autoscaler_tag" in (rows.reason or ""), rows
            assert not self._autoscalers(), "there is one all the same"
            self.stranger.delete()
        (found,) = self._autoscalers()
        text = json.dumps(found)
        for evil in (_EVIL, _EVIL_TAG):
            assert evil not in text, found["spec"]["template"]["spec"]
        (container,) = found["spec"]["template"]["spec"]["containers"]
        assert "memory" in (container["resources"].get("limits") or {}), container

    @step
    def nodegroup(self) -> None:
        """The customer's nodegroup takes the image that the customer means, its own flavor, and its
        own network; the stranger shares one of that name with the project.
        """
        neutron = self.customer.tenant.connection.network
        self._lan = neutron.create_network(name=_LAN).id
        neutron.create_subnet(network_id=self._lan, ip_version=4, cidr="192.0.2.0/24")
        assert len(list(neutron.networks(name=_LAN))) == 2, "the stranger has shared none"
        labels, self.cluster.networks["more"] = {"extra_network_names": _LAN}, 2
        self.customer.create_group("more", 1, flavor_id=_FLAVOR, labels=labels)
        self.cluster.complete(none_fails=True)
        assert self._plugged() == 1, self._plugged()
        assert self._used(self.customer) == {self._images[_OLD]}, self._used(self.customer)

    @step
    def upgrade(self) -> None:
        """A colleague upgrades; a conductor that has just started carries it out, with the image
        that the colleague means.
        """
        colleague = MagnumApi(_colleague(self.customer.tenant))
        template = self.customer.template(VERSION)
        colleague.upgrade(self.cluster.uuid, template)
        provider.reconfigure({})
        intent = dataclasses.replace(self.cluster.intent, version=VERSION)
        self.cluster.intent = intent
        self.cluster.complete()
        assert self._plugged() == 1, self._plugged()
        # A group that was made by its own name of the image follows, too.
        assert self._used(self.customer) == {self._images[VERSION]}, self._used(self.customer)

    @step
    def shadow_of_the_first(self) -> None:
        """A second cluster of the project is called like the first one's release."""
        self.shadow = Customer(self.customer.tenant, "shadow")
        self.shadow.create(name=self.cluster.release)
        self.shadow.cluster.until(lambda rows: rows.status == "CREATE_COMPLETE", "COMPLETE")
        assert self.shadow.cluster.release.startswith(f"{self.cluster.release}-")

    @step
    def delete_the_first(self) -> None:
        """It takes neither credential nor servers of the one whose name begins like its own."""
        first, second = self.cluster.release, self.shadow.cluster.release
        before = {name for name in self.customer.tenant.credentials() if second in name}
        servers = self._servers_of(second)
        assert before and servers, (before, servers)
        self.customer.magnum.delete(self.cluster.uuid)
        self.cluster.forgotten()
        self.customer.tenant.connection.network.delete_network(self._lan)
        assert self._servers_of(second) == servers, self._servers_of(second)
        left = {name for name in self.customer.tenant.credentials() if first in name}
        assert left == before, (left, before)
        of_first = {name for name in self._names() if name.startswith(f"{first}-")}
        assert {name for name in of_first if not name.startswith(second)} == set(), of_first
        self.shadow.cluster.begun()
        self.shadow.resize(2)
        self.shadow.cluster.until(lambda rows: rows.status == "UPDATE_COMPLETE", "COMPLETE")

    @ending
    def delete_the_shadow(self) -> None:
        """With it the project is empty."""
        self.shadow.delete()
        self.shadow.cluster.swept()

    @ending
    def delete_the_strangers(self) -> None:
        """And so is the other one."""
        for network in self._networks:
            self.stranger.tenant.connection.network.delete_network(network)
        self.stranger.delete()
        assert not self.stranger.tenant.left(), self.stranger.tenant.left()
        self.stranger.leave()

    @ending
    def leave(self) -> None:
        provider.withdraw_flavor(_FLAVOR)
        self.customer.leave()

    def _plugged(self) -> int:
        """How many ports of servers there are on the customer's further network."""
        ports = self.customer.tenant.connection.network.ports(network_id=self._lan)
        return sum(str(one.device_owner).startswith("compute:") for one in ports)

    def _autoscalers(self) -> list[Json]:
        return management().objects("Deployment", self.stranger.tenant.namespace)

    @staticmethod
    def _used(customer: Customer) -> set[str]:
        """Ids of the images of all servers of a project."""
        return {one.image.id for one in customer.tenant.connection.compute.servers()}

    def _names(self) -> set[str]:
        """Of the project's servers."""
        return {one.name for one in self.customer.tenant.connection.compute.servers()}

    def _servers_of(self, release: str) -> set[str]:
        return {name for name in self._names() if name.startswith(f"{release}-")}


def _admin() -> Any:
    return seed.connect(setting.state(), "admin")


def _public(version: str) -> str:
    """Id of the public image; an administrator sees those of that name of all projects."""
    found = _admin().image.images(name=_image(version), visibility="public")
    (one,) = found
    return str(one.id)


def _colleague(tenant: Tenant) -> Any:
    """A connection of another member of a project, with a key of the usual name."""
    admin, password = _admin(), secrets.token_urlsafe(16)
    name = f"colleague-{secrets.token_hex(3)}"
    user = admin.identity.create_user(name=name, domain_id="default", password=password)
    for role in seed.TENANT_ROLES:
        found = admin.identity.find_role(role, ignore_missing=False)
        project = admin.identity.get_project(tenant.project_id)
        admin.identity.assign_project_role_to_user(project, user, found)
    made = openstack.connection.Connection(
        auth={
            "auth_url": admin.config.get_auth_args()["auth_url"],
            "username": name,
            "password": password,
            "project_id": tenant.project_id,
            "user_domain_id": "default",
        },
        region_name=admin.config.get_region_name(),
        connect_retries=seed.CONNECT_RETRIES,
    )
    made.compute.create_keypair(name=tenant.keypair)
    return made


class TestNeighbours(LifeCase, life=Neighbours):
    """Names that both have, evil labels, a nodegroup, an upgrade, two deletions."""
