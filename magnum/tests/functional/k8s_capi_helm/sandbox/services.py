# SPDX-License-Identifier: Apache-2.0
"""What a cluster's users make in OpenStack through Kubernetes, as its cloud programs make it.

openstack-cloud-controller-manager names load balancers after the cluster, and writes the cluster
into the descriptions of floating IPs and security groups; the Cinder CSI driver writes it into the
metadata of volumes and snapshots. Only by that are they found.
https://github.com/kubernetes/cloud-provider-openstack: pkg/openstack/loadbalancer.go,
pkg/csi/cinder/controllerserver.go
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
import functools
import secrets
import time
from typing import Any

from magnum.tests.functional.k8s_capi_helm.sandbox.tenant import Tenant

_CSI = "cinder.csi.openstack.org/cluster"
#: The property of a volume that the janitor's documentation names.
_KEPT = "janitor.capi.azimuth-cloud.com/keep"
_SETTLED_AFTER = 60.0

#: Kind and name of each thing.
Things = set[tuple[str, str]]


class Services:
    """A Service of type LoadBalancer with a floating IP, and three volumes, one with a snapshot.

    :ivar things: all that was made; of them the volumes, and those that a user wants to keep.
    """

    def __init__(self, tenant: Tenant, release: str) -> None:
        self._tenant = tenant
        self._cloud = tenant.connection
        self._release = release
        self._service = f"default/web-{secrets.token_hex(3)}"
        self.things: Things = set()
        self.volumes: Things = set()
        self.kept: Things = set()

    @property
    def balancer(self) -> str:
        """Name of the load balancer."""
        return f"kube_service_{self._release}_{self._service.replace('/', '_')}"

    def create(self, *, tags: tuple[str, ...] = ()) -> Services:
        """Make all of it, and wait until it is usable.

        :param tags: further ones of the load balancer: Services that share it.
        """
        subnet, public = self._subnet(), self._public()
        made = self._cloud.load_balancer.create_load_balancer(
            name=self.balancer,
            description=f"Kubernetes external service {self._service} from cluster {self._release}",
            vip_subnet_id=subnet.id,
            tags=[self.balancer, *tags],
        )
        self._cloud.network.create_ip(
            floating_network_id=public.id,
            port_id=made.vip_port_id,
            description=f"Floating IP for Kubernetes external service {self._service} "
            f"from cluster {self._release}",
        )
        self._cloud.network.create_security_group(
            name=f"lb-sg-{secrets.token_hex(4)}-{self._service.replace('/', '-')}",
            description=f"Security Group for {self._service} Service LoadBalancer in cluster "
            f"{self._release}",
        )
        self._create_volumes()
        self._until(lambda: self._is_usable(made.id), "they are usable")
        self.things = self.existing()
        kinds = [kind for kind, _ in self.things]
        assert sorted(kinds) == sorted(
            ["load balancer", "floating IP", "security group", "snapshot", *["volume"] * 3]
        ), self.things
        return self

    def existing(self) -> Things:
        """What there is of this cluster now, whoever made it."""
        return set(self._existing())

    def delete_volumes(self) -> None:
        """As their owner does: snapshots first."""
        storage = self._cloud.block_storage
        for snapshot in list(storage.snapshots()):
            if self._is_own(snapshot):
                storage.delete_snapshot(snapshot)
        self._until(lambda: not self._named("snapshot"), "the snapshots are deleted")
        for volume in list(storage.volumes()):
            if self._is_own(volume):
                storage.delete_volume(volume)
        self._until(lambda: not self._named("volume"), "the volumes are deleted")

    def delete(self) -> None:
        """Take everything away that nobody else has."""
        own = {name for kind, name in self.existing() if kind == "load balancer"}
        for balancer in list(self._cloud.load_balancer.load_balancers()):
            if balancer.name in own:
                self._cloud.load_balancer.delete_load_balancer(balancer, cascade=True)
        for address in self._addresses():
            self._cloud.network.delete_ip(address)
        for group in self._groups():
            self._cloud.network.delete_security_group(group)
        self.delete_volumes()
        self._until(lambda: not self.existing(), "everything is deleted")

    def _create_volumes(self) -> None:
        storage = self._cloud.block_storage
        plain, kept, held = (
            storage.create_volume(size=1, name=f"pvc-{secrets.token_hex(8)}", metadata=metadata)
            for metadata in (
                {_CSI: self._release},
                {_CSI: self._release, _KEPT: "true"},
                {_CSI: self._release},
            )
        )
        for volume in (plain, kept, held):
            self._until(functools.partial(self._is_available, volume), "a volume is available")
            self.volumes.add(("volume", volume.name))
        self.kept.add(("volume", kept.name))
        snapshot = storage.create_snapshot(
            volume_id=held.id,
            name=f"snapshot-{secrets.token_hex(8)}",
            metadata={_CSI: self._release},
        )
        self.volumes.add(("snapshot", snapshot.name))

    def _existing(self) -> Iterator[tuple[str, str]]:
        for balancer in self._cloud.load_balancer.load_balancers():
            if balancer.name.startswith(f"kube_service_{self._release}_"):
                yield "load balancer", balancer.name
        for address in self._addresses():
            yield "floating IP", address.floating_ip_address
        for group in self._groups():
            yield "security group", group.name
        for kind, items in (
            ("volume", self._cloud.block_storage.volumes()),
            ("snapshot", self._cloud.block_storage.snapshots()),
        ):
            for item in items:
                if self._is_own(item):
                    yield kind, item.name

    def _addresses(self) -> list[Any]:
        found = self._cloud.network.ips(project_id=self._tenant.project_id)
        return [ip for ip in found if self._ends(ip, f" from cluster {self._release}")]

    def _groups(self) -> list[Any]:
        found = self._cloud.network.security_groups(project_id=self._tenant.project_id)
        return [one for one in found if self._ends(one, f" in cluster {self._release}")]

    @staticmethod
    def _ends(item: Any, ending: str) -> bool:
        return str(item.description or "").endswith(ending)

    def _is_own(self, item: Any) -> bool:
        return bool((item.metadata or {}).get(_CSI) == self._release)

    def _named(self, kind: str) -> Things:
        return {thing for thing in self.existing() if thing[0] == kind}

    def _is_usable(self, balancer_id: str) -> bool:
        balancer = self._cloud.load_balancer.get_load_balancer(balancer_id)
        snapshots = [one for one in self._cloud.block_storage.snapshots() if self._is_own(one)]
        return balancer.provisioning_status == "ACTIVE" and all(
            one.status == "available" for one in snapshots
        )

    def _is_available(self, volume: Any) -> bool:
        return bool(self._cloud.block_storage.get_volume(volume.id).status == "available")

    def _subnet(self) -> Any:
        """Of the cluster's own network; Cluster API names it after namespace and cluster."""
        found = self._cloud.network.subnets(project_id=self._tenant.project_id)
        return next(one for one in found if str(one.name).endswith(self._release))

    def _public(self) -> Any:
        return next(iter(self._cloud.network.networks(is_router_external=True)))

    def _until(self, answer: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _SETTLED_AFTER
        while not answer():
            assert time.monotonic() < deadline, f"not after {_SETTLED_AFTER:.0f} s: {what}"
            time.sleep(0.5)
