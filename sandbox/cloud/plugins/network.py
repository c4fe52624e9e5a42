# SPDX-License-Identifier: Apache-2.0
"""Simulated Neutron agents: every port is bound, every floating IP is active.

No packet moves; addresses of the external network are loopback addresses of this machine.
https://docs.openstack.org/neutron/latest/contributor/internals/ml2_ext_manager.html and
https://docs.openstack.org/neutron-lib/latest/contributor/callbacks.html
"""

from typing import Any

from neutron_lib import constants
from neutron_lib.api.definitions import portbindings
from neutron_lib.callbacks import events, registry, resources
from neutron_lib.plugins import constants as plugin_types
from neutron_lib.plugins import directory
from neutron_lib.plugins.ml2 import api
from neutron_lib.services import base


class AlwaysBound(api.MechanismDriver):  # type: ignore[misc]
    """Binds each port to the first segment that is offered and calls it ACTIVE."""

    def initialize(self) -> None:
        """Nothing to prepare."""

    @property
    def connectivity(self) -> str:
        """Layer 2, like Open vSwitch, for which it answers."""
        return str(portbindings.CONNECTIVITY_L2)

    def bind_port(self, context: Any) -> None:
        """Say that the port is wired on the host that asks."""
        for segment in context.segments_to_bind[:1]:
            context.set_binding(
                segment[api.ID],
                portbindings.VIF_TYPE_OVS,
                {portbindings.CAP_PORT_FILTER: True},
                status=constants.PORT_STATUS_ACTIVE,
            )


@registry.has_registry_receivers
class FloatingIPStatus(base.ServicePluginBase):  # type: ignore[misc]
    """Reports a floating IP's status as the L3 agent would: ACTIVE while it has a port."""

    supported_extension_aliases: list[str] = []

    @classmethod
    def get_plugin_type(cls) -> str:
        """The name under which neutron.conf lists it."""
        return "sandbox_floating_ip"

    def get_plugin_description(self) -> str:
        """A sentence for Neutron's log."""
        return "Floating IP status without an L3 agent"

    @registry.receives(resources.FLOATING_IP, [events.AFTER_CREATE, events.AFTER_UPDATE])  # type: ignore[untyped-decorator]
    def report(self, _resource: str, _event: str, _trigger: Any, payload: Any) -> None:
        """Set the status when a port came or went.

        State and session are the payload's: at the deletion of a port the change is not
        committed yet, and another session would read the old port and leave ACTIVE.
        """
        after = payload.states[-1]
        wanted = (
            constants.FLOATINGIP_STATUS_ACTIVE
            if after["port_id"]
            else constants.FLOATINGIP_STATUS_DOWN
        )
        if after["status"] != wanted:
            router = directory.get_plugin(plugin_types.L3)
            router.update_floatingip_status(payload.context.elevated(), payload.resource_id, wanted)
