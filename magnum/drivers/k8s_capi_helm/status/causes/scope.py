# SPDX-License-Identifier: Apache-2.0
"""The scope of a reason: its objects, and the current reason of its record."""

from __future__ import annotations

import dataclasses
import datetime

from magnum.drivers.k8s_capi_helm.model import (
    conditions,
    GroupState,
    Json,
    Missing,
    Observed,
    present,
)
from magnum.drivers.k8s_capi_helm.status.objects import machines, timestamps

#: So many characters of a reason tell it from others, also where it was cut.
_BEGINNING = 80


@dataclasses.dataclass(frozen=True, slots=True)
class Scope:
    """The objects that one reason is about: those of a group, or all of the cluster.

    :ivar whole: it is the cluster's reason, not a group's.
    :ivar previous_reasons: what Magnum's objects say now: a reported fault stays while it lasts.
    :ivar deleting_names: names of servers and machines that are being deleted and that nobody
        waits for.
    """

    observed: Observed
    machines: tuple[Json, ...]
    sets: tuple[Json, ...]
    servers: tuple[Json, ...]
    whole: bool
    previous_reasons: str = ""
    deleting_names: frozenset[str] = frozenset()

    def is_older(
        self, since: datetime.datetime | None, duration: datetime.timedelta, text: str
    ) -> bool:
        """Whether a fault has lasted that long, by its writer's clock, or is reported already.

        A conductor that has just begun may know less of that clock than the one before it.

        :param text: that it is told with.
        """
        return self.is_reported(text) or timestamps.is_older(since, self.observed, duration)

    def is_reported(self, text: str) -> bool:
        """Whether the rows say it already."""
        return text[:_BEGINNING] in self.previous_reasons

    def affects(self, name: str, text: str) -> bool:
        """Whether the fault of a server or machine is why something is waited for.

        That of one which is being deleted is, as long as no other one is in its place or the rows
        have told it; a request that takes machines away does not wait for them.
        """
        return name not in self.deleting_names or self.is_reported(text)


def readable_objects(objects: tuple[Json, ...] | Missing) -> tuple[Json, ...]:
    """What a list has to tell; one that could not be read tells nothing."""
    return () if isinstance(objects, Missing) else objects


def scope_of(observed: Observed, nodegroup: GroupState | None, previous_reasons: str = "") -> Scope:
    """The objects of *nodegroup*, or of everything for None.

    :param previous_reasons: what the rows say now.
    """
    all_machines, sets, servers = map(
        readable_objects, (observed.machines, observed.machine_sets, observed.servers)
    )
    if nodegroup is None:
        owners_of_machines = (*sets, *present(observed.control_plane))
        return Scope(
            observed,
            all_machines,
            sets,
            servers,
            True,
            previous_reasons,
            _leaving(all_machines, owners_of_machines),
        )
    if nodegroup.is_control_plane:
        own_machines, sets = machines.of_control_plane(all_machines), ()
        owners_of_machines = tuple(present(observed.control_plane))
    else:
        owners = machines.deployments_of(
            nodegroup.name, readable_objects(observed.machine_deployments)
        )
        own_machines = machines.of_nodegroup(all_machines, nodegroup.name, owners)
        owners_of_machines = sets = machines.of_nodegroup(sets, nodegroup.name, owners)
    server_names = {machines.server_name(machine) for machine in own_machines}
    servers = tuple(server for server in servers if conditions.name(server) in server_names)
    return Scope(
        observed,
        own_machines,
        sets,
        servers,
        False,
        previous_reasons,
        _leaving(own_machines, owners_of_machines),
    )


def _leaving(own_machines: tuple[Json, ...], owners: tuple[Json, ...]) -> frozenset[str]:
    """Machines that are being deleted, and their servers; none while others have to replace them.

    :param owners: MachineSets and control plane, which say how many there are to be.
    """
    deleting = [machine for machine in own_machines if conditions.is_terminating(machine)]
    counts = [conditions.at_path(owner, "spec", "replicas") for owner in owners]
    if len(own_machines) - len(deleting) < sum(count for count in counts if isinstance(count, int)):
        return frozenset()
    return frozenset(
        name
        for machine in deleting
        for name in (conditions.name(machine), machines.server_name(machine))
    )
