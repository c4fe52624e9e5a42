# SPDX-License-Identifier: Apache-2.0
"""Failure events: the cause of a fault if no object's status has one."""

from __future__ import annotations

from collections.abc import Collection
import datetime
import re

from magnum.drivers.k8s_capi_helm.model import conditions, Missing, Observed
from magnum.drivers.k8s_capi_helm.status.causes.scope import readable_objects, Scope
from magnum.drivers.k8s_capi_helm.status.objects import infrastructure, machines, timestamps
from magnum.drivers.k8s_capi_helm.status.texts.issue import about, cause_of, Issue
from magnum.drivers.k8s_capi_helm.status.texts.public_text import public

EVENT_AGE = datetime.timedelta(minutes=30)
#: Reasons of events about what OpenStack did not create.
_CREATION = re.compile(r"failedcreate", re.IGNORECASE)


def event_fault(scope: Scope) -> Issue | None:
    """The newest failure of an object that is not fine now: an old fault is no reason."""
    return newest_failure(scope.observed, _suspects(scope), _created(scope))


def newest_failure(
    observed: Observed,
    suspects: set[tuple[str, str]],
    created_objects: Collection[tuple[str, str]] = (),
) -> Issue | None:
    """The newest event, not older than EVENT_AGE, that tells of a failure of one of *suspects*.

    :param suspects: (kind, name) of objects.
    :param created_objects: those that there are in OpenStack by now: they failed to be created
        before.
    """
    newest: tuple[datetime.datetime, str, str] | None = None
    for event in readable_objects(observed.events):
        at = timestamps.of_event(event)
        name = str(conditions.at_path(event, "involvedObject", "name") or "")
        kind = str(conditions.at_path(event, "involvedObject", "kind") or "")
        if not conditions.tells_of_failure(event) or at is None or (kind, name) not in suspects:
            continue
        if (kind, name) in created_objects and _CREATION.match(str(event.get("reason"))):
            continue
        is_recent = not timestamps.is_older(at, observed, EVENT_AGE)
        if is_recent and (newest is None or at > newest[0]):
            newest = (at, str(event.get("message") or event.get("reason")), name)
    if newest is None:
        return None
    return Issue(about(public(newest[1]), newest[2]), cause_of(newest[1]))


def _suspects(scope: Scope) -> set[tuple[str, str]]:
    suspects = {
        ("OpenStackServer", conditions.name(server))
        for server in scope.servers
        if not conditions.condition(server, "InstanceReady").good
    }
    for machine in scope.machines:
        if not machines.is_ready(machine):
            server = machines.server_name(machine)
            suspects |= {("Machine", conditions.name(machine))}
            suspects |= {("OpenStackMachine", server), ("OpenStackServer", server)}
    suspects = {(kind, name) for kind, name in suspects if name not in scope.deleting_names}
    suspects |= {
        ("MachineSet", conditions.name(machine_set))
        for machine_set in scope.sets
        if conditions.counter(machine_set, "replicas")
        != conditions.at_path(machine_set, "spec", "replicas")
    }
    owner = scope.observed.infrastructure
    if not isinstance(owner, Missing) and infrastructure.openstack_missing(owner):
        suspects.add(("OpenStackCluster", conditions.name(owner)))
    return suspects


def _created(scope: Scope) -> set[tuple[str, str]]:
    """Machines of OpenStack that Nova has, whatever kept it from that before."""
    names = {
        conditions.name(server)
        for server in scope.servers
        if conditions.at_path(server, "status", "instanceID")
    }
    return {(kind, name) for name in names for kind in ("OpenStackServer", "OpenStackMachine")}
