# SPDX-License-Identifier: Apache-2.0
"""Rows of the tree of a cluster: Magnum's record, the Lease, the release, the objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
import dataclasses
from typing import Any

from magnum.drivers.k8s_capi_helm.model import (
    conditions,
    Json,
    LiveRelease,
    Missing,
    names,
    Observed,
    present,
    ReleaseRecord,
    secrets,
    Verdict,
)
from magnum.drivers.k8s_capi_helm.status import health
from magnum.drivers.k8s_capi_helm.status.objects import addons, machines
from magnum.drivers.k8s_capi_helm.status.texts.issue import unwrap_message

_LONGEST_MESSAGE = 400
#: State of an object that a deletion has taken away.
DELETED = "deleted"


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """One line of the tree.

    :ivar depth: below how many others.
    """

    depth: int
    subject: str
    state: str = ""
    message: str = ""

    @property
    def columns(self) -> tuple[str, str, str]:
        """The printed row, on one line."""
        message = " ".join(self.message.split())
        return f"{'  ' * self.depth}{self.subject}", self.state, message


def database_rows(cluster: Any, verdict: Verdict | None = None) -> Iterator[Row]:
    """Magnum's records of the cluster and of its nodegroups, and the current health."""
    yield Row(0, f"Cluster {cluster.name} {cluster.uuid}", cluster.status or "", _reason(cluster))
    for nodegroup in cluster.nodegroups:
        yield Row(1, f"Nodegroup {nodegroup.name}", nodegroup.status or "", _reason(nodegroup))
    for part, text in health.parts_not_ready(verdict.health_reason).items() if verdict else ():
        yield Row(1, f"Health {part}", "", text)


def _reason(obj: Any) -> str:
    return obj.status_reason or ""


def record_rows(release: str, record: ReleaseRecord | None) -> Iterator[Row]:
    """The Lease, and what is pending in it."""
    if record is None:
        return
    holder = f"held by {record.holder}" if record.holder else "free"
    yield Row(1, f"Lease {names.lease(release)}", holder)
    for operation in record.operations:
        until = f", until {operation.deadline:%Y-%m-%d %H:%M:%S}" if operation.deadline else ""
        yield Row(
            2,
            f"Operation {' '.join((operation.title, *operation.groups))}",
            "pending",
            f"since {operation.started_at:%Y-%m-%d %H:%M:%S}{until}",
        )


def release_rows(owner: secrets.Owner, live: LiveRelease | None, absent: str) -> Iterator[Row]:
    """The newest revision of the Helm release, and the namespace of all that is below it.

    :param absent: state of what is not there.
    """
    place = f"namespace {owner.namespace}"
    if live is None:
        yield Row(1, f"Release {owner.release}", absent, place)
        return
    text = f"revision {live.revision}, chart {live.chart_name} {live.chart_version}, {place}"
    yield Row(1, f"Release {owner.release}", live.status, text)


def observed_rows(observed: Observed, absent: str) -> Iterator[Row]:
    """The objects of Cluster API, each machine below its owner and each server below its machine.

    Addons that are deployed are left out, and so are machines that are ready.

    :param absent: state of what is not there.
    """
    yield from _single_rows(1, "Cluster", observed.cluster, absent)
    yield from _single_rows(2, "OpenStackCluster", observed.infrastructure, absent)
    if observed.failed_balancer:
        yield Row(3, f"Load balancer {observed.failed_balancer}", "ERROR")
    yield from _single_rows(2, "KubeadmControlPlane", observed.control_plane, absent)
    all_machines = tuple(present(observed.machines))
    yield from _machine_rows(machines.of_control_plane(all_machines), observed)
    for deployment in sorted(present(observed.machine_deployments), key=conditions.name):
        yield from _object_rows(2, deployment)
        group = conditions.object_label(deployment, names.LABEL_NODE_GROUP) or ""
        own = machines.of_nodegroup(all_machines, group, [deployment])
        yield from _machine_rows(own, observed)
    yield from _ownerless_rows(all_machines, observed)
    for part, objects in (
        ("Machines", observed.machines),
        ("MachineDeployments", observed.machine_deployments),
        ("OpenStackServers", observed.servers),
        ("Addons", observed.addons),
    ):
        if isinstance(objects, Missing):
            yield Row(2, part, objects.value)
    for addon in sorted(present(observed.addons), key=conditions.name):
        if not addons.is_addon_deployed(addon):
            phase = conditions.words(conditions.at_path(addon, "status", "phase"))
            message = conditions.at_path(addon, "status", "failureMessage")
            yield Row(2, _title(addon), phase or "no status", _shortened(message))
    for event in present(observed.events):
        involved = conditions.mapping(event.get("involvedObject"))
        subject = f"Event {involved.get('kind')} {involved.get('name')}"
        yield Row(
            2, subject, conditions.words(event.get("reason")), _shortened(event.get("message"))
        )


def _ownerless_rows(all_machines: Iterable[Json], observed: Observed) -> Iterator[Row]:
    """Servers whose machine is gone before them; a bastion never had one."""
    server_names = {machines.server_name(machine) for machine in all_machines}
    for server in sorted(present(observed.servers), key=conditions.name):
        if machines.is_of_machine(server) and conditions.name(server) not in server_names:
            yield from _object_rows(2, server)
            yield from _nova_rows(server, observed)


def _single_rows(depth: int, kind: str, obj: Json | Missing, absent: str) -> Iterator[Row]:
    if isinstance(obj, Missing):
        yield Row(depth, kind, absent if obj is Missing.NOT_FOUND else obj.value)
    else:
        yield from _object_rows(depth, obj)


def _machine_rows(own: Iterable[Json], observed: Observed) -> Iterator[Row]:
    """Machines that are not ready, or not as they should be, each with its server."""
    servers = {conditions.name(server): server for server in present(observed.servers)}
    for machine in sorted(own, key=conditions.name):
        server = servers.get(machines.server_name(machine))
        is_server_fine = server is not None and conditions.condition(server, "InstanceReady").good
        if machines.is_current(machine, "") and is_server_fine:
            continue
        yield from _object_rows(3, machine)
        if server is None:
            yield Row(4, "OpenStackServer", "not found")
            continue
        yield from _object_rows(4, server)
        yield from _nova_rows(server, observed)


def _nova_rows(server: Json, observed: Observed) -> Iterator[Row]:
    """The server in Nova, with what an operator looks for there: flavor, image and fault."""
    status, spec = conditions.mapping(server.get("status")), conditions.mapping(server.get("spec"))
    server_id = conditions.words(status.get("instanceID"))
    if not server_id:
        return
    flavor = conditions.words(spec.get("flavor") or spec.get("flavorID"))
    zone = conditions.words(spec.get("availabilityZone"))
    image = conditions.words(conditions.at_path(server, "status", "resolved", "imageID"))
    parts = [
        f"flavor {flavor}" if flavor else "",
        f"image {image}" if image else "",
        f"availability zone {zone}" if zone else "",
        _shortened(observed.server_faults.get(server_id, "")),
    ]
    state = conditions.words(status.get("instanceState"))
    yield Row(5, f"Nova server {server_id}", state, "; ".join(filter(None, parts)))


def _object_rows(depth: int, obj: Json) -> Iterator[Row]:
    """An object with its phase, and what its conditions say that is not good."""
    phase = conditions.at_path(obj, "status", "phase")
    state = conditions.words(phase) or conditions.words(
        conditions.at_path(obj, "status", "instanceState")
    )
    if conditions.is_terminating(obj):
        state = "Deleting"
    bad = []
    for item in conditions.items(obj):
        condition_type = conditions.words(item.get("type"))
        if condition_type not in conditions.GOOD:
            continue
        condition = conditions.condition(obj, condition_type)
        if condition.bad:
            bad.append(f"{condition_type}: {_shortened(condition.message or condition.reason)}")
    yield Row(depth, _title(obj), state, "; ".join(bad))


def _title(obj: Json) -> str:
    return f"{obj.get('kind') or 'Object'} {conditions.name(obj)}"


def _shortened(message: object) -> str:
    """A message of another program in one line; of a whole HTTP answer only its sentence."""
    return " ".join(unwrap_message(conditions.words(message)).split())[:_LONGEST_MESSAGE]
