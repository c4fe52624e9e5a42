# SPDX-License-Identifier: Apache-2.0
"""Scope: the objects that one reason is about, and what its row says of them already."""

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
from magnum.drivers.k8s_capi_helm.status import machines, timestamps

#: So many characters of a reason tell it from others, also where it was cut.
_BEGINNING = 80


@dataclasses.dataclass(frozen=True, slots=True)
class Scope:
    """The objects that one reason is about: those of a group, or all of the cluster.

    :ivar whole: it is the cluster's reason, not a group's.
    :ivar said: what the rows say now: what was told once is told as long as it is so.
    :ivar leaving: names of servers and machines that are being deleted and that nobody waits for.
    """

    observed: Observed
    machines: tuple[Json, ...]
    sets: tuple[Json, ...]
    servers: tuple[Json, ...]
    whole: bool
    said: str = ""
    leaving: frozenset[str] = frozenset()

    def lasts(
        self, since: datetime.datetime | None, longest: datetime.timedelta, text: str
    ) -> bool:
        """Whether something has lasted that long, by its writer's clock, or was told already.

        A conductor that has just begun may know less of that clock than the one before it.

        :param text: that it is told with.
        """
        return self.has_told(text) or timestamps.has_lasted(since, self.observed, longest)

    def has_told(self, text: str) -> bool:
        """Whether the rows say it already."""
        return text[:_BEGINNING] in self.said

    def concerns(self, name: str, text: str) -> bool:
        """Whether the fault of a server or machine is why something is waited for.

        That of one which is being deleted is, as long as no other one is in its place or the rows
        have told it; a request that takes machines away does not wait for them.
        """
        return name not in self.leaving or self.has_told(text)


def items(listed: tuple[Json, ...] | Missing) -> tuple[Json, ...]:
    """What a list has to tell; one that could not be read tells nothing."""
    return () if isinstance(listed, Missing) else listed


def scope_of(observed: Observed, group: GroupState | None, said: str = "") -> Scope:
    """The objects of *group*, or of everything for None.

    :param said: what the rows say now.
    """
    every, sets = items(observed.machines), items(observed.machine_sets)
    servers = items(observed.servers)
    if group is None:
        makers = (*sets, *present(observed.control_plane))
        return Scope(observed, every, sets, servers, True, said, _leaving(every, makers))
    if group.is_control_plane:
        mine, sets = machines.of_control_plane(every), ()
        makers = tuple(present(observed.control_plane))
    else:
        owners = machines.deployments_of(group.name, items(observed.machine_deployments))
        mine = machines.of_group(every, group.name, owners)
        makers = sets = machines.of_group(sets, group.name, owners)
    wanted = {machines.server_name(one) for one in mine}
    servers = tuple(one for one in servers if conditions.name(one) in wanted)
    return Scope(observed, mine, sets, servers, False, said, _leaving(mine, makers))


def _leaving(mine: tuple[Json, ...], makers: tuple[Json, ...]) -> frozenset[str]:
    """Machines that are being deleted, and their servers; none while others have to replace them.

    :param makers: MachineSets and control plane, which say how many there are to be.
    """
    going = [one for one in mine if conditions.deleting(one)]
    counts = [conditions.at_path(one, "spec", "replicas") for one in makers]
    if len(mine) - len(going) < sum(one for one in counts if isinstance(one, int)):
        return frozenset()
    return frozenset(
        name for one in going for name in (conditions.name(one), machines.server_name(one))
    )
