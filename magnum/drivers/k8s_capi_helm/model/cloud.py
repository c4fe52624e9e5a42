# SPDX-License-Identifier: Apache-2.0
"""Answers of the cloud: images, flavors, quotas and other facts."""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
import enum
from typing import TypeAlias


@dataclasses.dataclass(frozen=True, slots=True)
class Flavor:
    """A Nova flavor: RAM in MiB, disk in GiB."""

    id: str
    name: str
    vcpus: int
    ram: int
    disk: int


@dataclasses.dataclass(frozen=True, slots=True)
class Image:
    """A Glance image.

    :ivar kubernetes_version: its property kube_version without a leading ``v``, "" without one.
    :ivar os_distro: its property of that name, "" without one.
    :ivar disk: GiB that a disk needs to hold it, the larger of its size and its own minimum.
    :ivar ram: MiB that a flavor has to have, by its own minimum.
    """

    id: str
    kubernetes_version: str = ""
    os_distro: str = ""
    status: str = "active"
    disk: int = 0
    ram: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class ListedImage:
    """A Glance image, with what its operator sets.

    :ivar image: what the driver reads of it.
    :ivar project_id: of its owner, "" without one.
    :ivar visibility: ``public``, ``community``, ``shared`` or ``private``.
    :ivar min_disk: GiB that its operator asks of a disk.
    :ivar data_hash: SHA-512 of its data as Glance has computed it, "" where it has not.
    :ivar properties: texts of the properties that belong to no attribute, by name.
    """

    image: Image
    name: str
    project_id: str = ""
    visibility: str = "private"
    hidden: bool = False
    min_disk: int = 0
    data_hash: str = ""
    properties: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class Network:
    """A Neutron network that this project sees."""

    id: str
    name: str
    project_id: str = ""
    external: bool = False
    subnets: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Subnet:
    """A Neutron subnet that this project sees."""

    id: str
    name: str
    network_id: str
    project_id: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class FloatingIp:
    """A Neutron floating IP that this project sees; in use where it belongs to a port."""

    address: str
    project_id: str = ""
    in_use: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class CloudResource:
    """A resource in OpenStack that belongs to a cluster.

    :ivar service: that has it, such as ``Nova``.
    :ivar title: what it is, with its name.
    :ivar state: in the words of the service, "" where it has none.
    """

    service: str
    title: str
    id: str
    state: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class CloudCluster:
    """A cluster as OpenStack shows it, which knows nothing of Magnum.

    :ivar release: its name in Cluster API.
    :ivar security_groups: those that Cluster API's OpenStack provider has made for it.
    """

    release: str
    project_id: str
    security_groups: tuple[CloudResource, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class ResolvedNames:
    """The resolved names of a request, as the requesting user saw them.

    It is kept with the request: whoever carries it out later is shown other things under these
    names.

    :ivar images: by the text, name or id, that the request used; ``flavors`` the same.
    :ivar external_network_id: "" where nobody asked for networks.
    :ivar fixed_network_id: "" without one, ``fixed_subnet_id`` the same.
    :ivar extra_networks: ids of workers' further networks, by the text that a label used.
    """

    images: Mapping[str, Image] = dataclasses.field(default_factory=dict)
    flavors: Mapping[str, Flavor] = dataclasses.field(default_factory=dict)
    external_network_id: str = ""
    fixed_network_id: str = ""
    fixed_subnet_id: str = ""
    extra_networks: Mapping[str, str] = dataclasses.field(default_factory=dict)


#: Nobody has looked anything up.
NOTHING = ResolvedNames()


class CloudCapability(str, enum.Enum):
    """Of what a cloud has several to choose from; the value is its name in a sentence."""

    __str__ = str.__str__

    SERVER_ZONE = "availability zone of Nova"
    VOLUME_ZONE = "availability zone of Cinder"
    VOLUME_TYPE = "volume type"
    BALANCER_PROVIDER = "load balancer provider"
    BALANCER_FLAVOR = "load balancer flavor"
    BALANCER_ZONE = "availability zone of Octavia"


class QuotaResource(str, enum.Enum):
    """What a project has a quota of; the value is its name in a sentence."""

    __str__ = str.__str__

    INSTANCES = "servers"
    CORES = "vCPUs"
    RAM = "MiB of memory"
    SERVER_GROUPS = "server groups"
    SERVER_GROUP_MEMBERS = "servers in one server group"
    VOLUMES = "volumes"
    GIGABYTES = "GiB of volumes"
    VOLUME_GIGABYTES = "GiB in one volume"
    NETWORKS = "networks"
    SUBNETS = "subnets"
    ROUTERS = "routers"
    PORTS = "ports"
    SECURITY_GROUPS = "security groups"
    FLOATING_IPS = "floating IPs"
    LOAD_BALANCERS = "load balancers"
    LISTENERS = "load balancer listeners"
    POOLS = "load balancer pools"


#: A quota of the project, or the one of a single volume type.
QuotaKey: TypeAlias = QuotaResource | tuple[QuotaResource, str]


@dataclasses.dataclass(frozen=True, slots=True)
class Quota:
    """What a project may have of something, and what it has, reserved included."""

    limit: int
    used: int = 0

    @property
    def free(self) -> int:
        """How many more it may have; 0 where it has more than it may."""
        return max(0, self.limit - self.used)


@dataclasses.dataclass(frozen=True, slots=True)
class CloudFacts:
    """What OpenStack said when it was asked, for one operation.

    What was asked for and is not there is left out, or "" and None; cloud/preflight makes sentences
    of that. A render is only made of facts without such gaps.

    :ivar image_id: of the cluster's image.
    :ivar kubernetes_version: of the cluster's image, without a leading ``v``, e.g. ``1.36.3``.
    :ivar flavors: by the text the request used.
    :ivar volume_types: names of Cinder's types, in Cinder's order; the first is the default one.
    :ivar server_groups: ids of those that were made for the cluster, by name of the nodegroup.
    :ivar api_address: floating IP that was made for the Kubernetes API.
    :ivar images: by the text the request used.
    :ivar networks: all that have one of the names or ids that were asked for; None: not asked.
    :ivar subnets: the same.
    :ivar extra_networks: ids of all that a label's text for a further network of workers can mean;
        None: not asked.
    :ivar floating_ips: those of the address that a label names; None: not asked.
    :ivar has_keypair: whether the person who asks has the keypair; None: not asked.
    :ivar capabilities: what there is to choose from, of each kind that was asked for.
    :ivar quotas: limited ones only, and only those that could be read; per volume type by
        (resource, type).
    :ivar refusals: what a service said instead of an answer, a sentence each.
    """

    image_id: str
    kubernetes_version: str
    os_distro: str
    flavors: Mapping[str, Flavor]
    auth_url: str
    external_network_id: str | None = None
    fixed_network_id: str | None = None
    fixed_subnet_id: str | None = None
    volume_types: tuple[str, ...] = ()
    server_groups: Mapping[str, str] = dataclasses.field(default_factory=dict)
    api_address: str | None = None
    images: Mapping[str, Image] = dataclasses.field(default_factory=dict)
    networks: tuple[Network, ...] | None = None
    subnets: tuple[Subnet, ...] | None = None
    extra_networks: Mapping[str, tuple[str, ...]] | None = None
    floating_ips: tuple[FloatingIp, ...] | None = None
    has_keypair: bool | None = None
    capabilities: Mapping[CloudCapability, tuple[str, ...]] = dataclasses.field(
        default_factory=dict
    )
    quotas: Mapping[QuotaKey, Quota] = dataclasses.field(default_factory=dict)
    refusals: tuple[str, ...] = ()

    @property
    def resolved_names(self) -> ResolvedNames:
        """What names stand for, to be kept with the request."""
        return ResolvedNames(
            images=self.images,
            flavors={text: flavor for text, flavor in self.flavors.items() if flavor.id},
            external_network_id=self.external_network_id or "",
            fixed_network_id=self.fixed_network_id or "",
            fixed_subnet_id=self.fixed_subnet_id or "",
            extra_networks={
                text: ids[0] for text, ids in (self.extra_networks or {}).items() if len(ids) == 1
            },
        )


#: Distributions of images, as Glance's property os_distro has them.
DISTROS = ("ubuntu", "flatcar")
