# SPDX-License-Identifier: Apache-2.0
"""One snapshot of the management cluster, and reasons for missing objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import dataclasses
import datetime
import enum
from typing import Any

from magnum.drivers.k8s_capi_helm.model import names

Json = dict[str, Any]
#: Entries of a list in a status that are read; Helm writes some of them in a tenant's cluster.
LONGEST_LIST = 1000


class Missing(enum.Enum):
    """Why there is no object: three different things are never one."""

    NOT_FOUND = "not found"
    UNREADABLE = "could not be read"


@dataclasses.dataclass(frozen=True, slots=True)
class WorkloadObject:
    """An object of an addon in a tenant's cluster.

    :ivar addon: its component.
    """

    addon: str
    kind: names.Kind
    namespace: str
    name: str

    @property
    def title(self) -> str:
        """Kind, namespace and name, for people."""
        return f"{self.kind.name} {self.namespace}/{self.name}"


@dataclasses.dataclass(frozen=True, slots=True)
class AddonInventory:
    """What was found in a tenant's cluster.

    :ivar unknown: why nothing is known, "" if it is.
    """

    missing: tuple[WorkloadObject, ...] = ()
    unknown: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class StaleController:
    """A controller of the management cluster that does nothing any more, by its Lease.

    :ivar since: its last sign of life, by its own clock (aware).
    """

    controller: str
    since: datetime.datetime


@dataclasses.dataclass(frozen=True, slots=True)
class Observed:
    """One snapshot of all objects of one release on the management cluster.

    A single object is its JSON, ``Missing.NOT_FOUND`` or ``Missing.UNREADABLE``; a list is a tuple
    of JSON or ``Missing.UNREADABLE``.

    :ivar at: when the look began (aware, UTC), by the conductor's clock: for how old it is, and for
        what is as late as the world is. No time on the management cluster is compared with it.
    :ivar asof: the same by the clocks of the management cluster; None: no later than the newest
        time in the look.
    :ivar addons: HelmRelease and Manifests of the cluster.
    :ivar server_faults: Nova's fault text by server id, for servers that are in ERROR.
    :ivar failed_balancer: name of the API's load balancer if Octavia has it in ERROR, else "".
    :ivar credential: what is wrong with the application credential, "" if nothing is known.
    :ivar autoscaler: its Deployment; None where the release has no autoscaled group.
    :ivar inside: what of the addons is missing in the tenant's cluster; None: not looked for.
    :ivar stale_controllers: controllers by whose word everything above is, and who are gone.
    :ivar unreachable: the operator's detail when the management cluster could not be read, else "".
    """

    at: datetime.datetime
    cluster: Json | Missing
    infrastructure: Json | Missing
    control_plane: Json | Missing
    machine_deployments: tuple[Json, ...] | Missing
    machine_sets: tuple[Json, ...] | Missing
    machines: tuple[Json, ...] | Missing
    servers: tuple[Json, ...] | Missing
    addons: tuple[Json, ...] | Missing
    events: tuple[Json, ...] | Missing = ()
    server_faults: Mapping[str, str] = dataclasses.field(default_factory=dict)
    failed_balancer: str = ""
    credential: str = ""
    autoscaler: tuple[Json, ...] | Missing | None = None
    inside: AddonInventory | None = None
    stale_controllers: tuple[StaleController, ...] = ()
    unreachable: str = ""
    asof: datetime.datetime | None = None

    def objects(self) -> Iterator[Json]:
        """What Cluster API and its OpenStack provider have; the addon provider may run anywhere."""
        return present(
            self.cluster,
            self.infrastructure,
            self.control_plane,
            self.machine_deployments,
            self.machine_sets,
            self.machines,
            self.servers,
        )


def present(*parts: Json | tuple[Json, ...] | Missing | None) -> Iterator[Json]:
    """The objects of some parts of a look; nothing of a part that is missing."""
    for part in parts:
        if isinstance(part, dict):
            yield part
        elif part is not None and not isinstance(part, Missing):
            yield from part
