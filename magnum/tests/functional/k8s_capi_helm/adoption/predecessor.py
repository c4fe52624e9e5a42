# SPDX-License-Identifier: Apache-2.0
"""A conductor with magnum-capi-helm: predecessor.py MAGNUM.CONF, in the environment that has it."""

from __future__ import annotations

from collections.abc import Iterator
import sys
import types
from typing import Any

import conductor
import facts
from openstack import exceptions
from openstack.block_storage.v3 import type as volume_type
from openstack.compute.v2 import flavor
from openstack.image.v2 import image
from openstack.network.v2 import network

from magnum.common import clients


class Clients:
    """Stands for OpenStackClients of Magnum, as far as magnum-capi-helm asks."""

    def __init__(self, context: Any) -> None:
        self._user = context.user_id

    def glance(self) -> Any:
        return Glance()

    def nova(self) -> Any:
        return Nova()

    def cinder(self) -> Any:
        return Cinder()

    def neutron(self) -> Any:
        return Neutron()

    def keystone(self) -> Any:
        return types.SimpleNamespace(client=Keystone())

    def cinder_region_name(self) -> str:
        return "RegionOne"

    def url_for(self, **kwargs: str) -> str:
        return "http://keystone.example.org/v3"


class Glance:
    def images(self) -> Iterator[Any]:
        for name, found in facts.read()["images"].items():
            yield image.Image.existing(name=name, **found)

    def find_image(self, wanted: str) -> Any:
        return next(one for one in self.images() if wanted in (one.id, one.name))


class Nova:
    def flavors(self, min_ram: int = 0) -> Iterator[Any]:
        for name, found in facts.read()["flavors"].items():
            if found["ram"] >= min_ram:
                yield flavor.Flavor.existing(name=name, **found)


class Cinder:
    def types(self) -> Iterator[Any]:
        for name in facts.read()["volume_types"]:
            yield volume_type.Type.existing(id=f"id-{name}", name=name)


class Neutron:
    def networks(self, **query: Any) -> Iterator[Any]:
        found = facts.read()["external_network"]
        if query.get("is_router_external"):
            yield network.Network.existing(is_router_external=True, **found)


class Keystone:
    def application_credentials(self) -> None:
        """There, so that the SDK's way of making one is taken."""

    def create_application_credential(self, user: str, name: str, description: str) -> Any:
        identity = facts.add_credential(name, user)
        return types.SimpleNamespace(id=identity, name=name, secret=f"secret-of-{identity}")

    def get_application_credential(self, user: str, identity: str) -> Any:
        found = facts.read()["credentials"].get(identity)
        if found is None or found["user"] != user:
            raise exceptions.NotFoundException(identity)
        return types.SimpleNamespace(id=identity, name=found["name"])

    def delete_application_credential(self, user: str, identity: str) -> None:
        facts.drop_credential(identity)


def play() -> None:
    clients.OpenStackClients = Clients


if __name__ == "__main__":
    conductor.serve(sys.argv[1], play)
