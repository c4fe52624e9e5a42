# SPDX-License-Identifier: Apache-2.0
"""Simulated hypervisor: a server is ACTIVE at once and runs nothing.

API, quotas, scheduler, placement, zones, server groups, ports and volumes around it are Nova's
own. https://docs.openstack.org/nova/latest/reference/driver-api.html (ComputeDriver)
"""

from typing import Any

from nova import context as nova_context
from nova import exception, objects
from nova.virt import fake

from sandbox.cloud import faults
from sandbox.cloud.config import compute_node_id


class Driver(fake.FakeDriver):  # type: ignore[misc]
    """Nova's own fake driver, with three things that it lacks.

    It survives a restart of the service, each host keeps the identity of its compute node, and it
    can fail.
    """

    vcpus = 64
    memory_mb = 262144
    local_gb = 2000

    def init_host(self, host: str) -> None:
        """Take up the servers that were on ``host`` before this process started."""
        super().init_host(host)
        known = objects.InstanceList.get_by_host(nova_context.get_admin_context(), host)
        for instance in known:
            if instance.vm_state == "building":
                continue  # never spawned; Nova sets it to ERROR
            self.instances[instance.uuid] = fake.FakeInstance(
                instance.name, instance.power_state, instance.uuid
            )
            self.resources.claim(
                vcpus=instance.flavor.vcpus,
                mem=instance.flavor.memory_mb,
                disk=instance.flavor.root_gb,
            )

    def spawn(self, context: Any, instance: Any, *args: Any, **kwargs: Any) -> None:
        """Start a server, or fail on every host as a hypervisor does that has no disk left."""
        if faults.hits(faults.SERVER_FAILS, instance.display_name):
            raise exception.InstanceDeployFailure(reason="asked for with the fault server-fails")
        super().spawn(context, instance, *args, **kwargs)

    def get_nodenames_by_uuid(self, refresh: bool = False) -> dict[str, str]:
        """One node, named like its host."""
        return {compute_node_id(self._host): self._host}

    def get_available_resource(self, nodename: str) -> dict[str, Any]:
        """The node's capacity under its own UUID (the parent class makes one per process)."""
        return {
            **super().get_available_resource(nodename),
            "uuid": compute_node_id(nodename),
        }
