# SPDX-License-Identifier: Apache-2.0
"""A network of a tenant's own, for clusters that are not to make one."""

from __future__ import annotations

from typing import Any

from sandbox.cloud import seed


class OwnNetwork:
    """A network with a subnet, and a router to the external network; all have its name.

    :param connection: the tenant's connection of the SDK.
    :ivar id: Neutron's, of the network.
    """

    def __init__(self, connection: Any, name: str) -> None:
        self._neutron = neutron = connection.network
        public = neutron.find_network(seed.EXTERNAL_NETWORK, ignore_missing=False)
        self._network = neutron.create_network(name=name)
        self.id: str = self._network.id
        self._subnet = neutron.create_subnet(
            network_id=self._network.id, name=name, ip_version=4, cidr="10.30.0.0/24"
        )
        gateway = {"network_id": public.id}
        self._router = neutron.create_router(name=name, external_gateway_info=gateway)
        neutron.add_interface_to_router(self._router, subnet_id=self._subnet.id)

    def remove(self) -> None:
        """As it was before; nobody may use it any more."""
        self._neutron.remove_interface_from_router(self._router, subnet_id=self._subnet.id)
        self._neutron.delete_router(self._router)
        self._neutron.delete_network(self._network)
