# SPDX-License-Identifier: Apache-2.0
"""The Machines of a nodegroup: ready ones with addresses, others with the cause."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
import re

from magnum.drivers.k8s_capi_helm.labels.value_types.versions import plain
from magnum.drivers.k8s_capi_helm.model import conditions, Json, Missing, names
from magnum.drivers.k8s_capi_helm.status.texts.issue import Issue

#: Major, minor and patch of a version.
_NUMBER = re.compile(r"\d+\.\d+\.\d+(?!\d)", re.ASCII)
_ADDRESS_TYPES = ("InternalIP", "ExternalIP")


def is_control_plane(machine: Json) -> bool:
    """Cluster API's own label says so; its value is empty."""
    return conditions.object_label(machine, names.LABEL_CONTROL_PLANE) is not None


def of_control_plane(machines: Iterable[Json]) -> tuple[Json, ...]:
    """The control plane's Machines."""
    return tuple(machine for machine in machines if is_control_plane(machine))


def of_nodegroup(
    objects: Iterable[Json], nodegroup: str, deployments: Iterable[Json]
) -> tuple[Json, ...]:
    """The MachineSets or Machines of a node group.

    They are its own by the deployment-name label of Cluster API, or by the chart's node group
    label, which also holds when the MachineDeployment is gone already.

    :param deployments: the group's MachineDeployments.
    """
    owners = {conditions.name(deployment) for deployment in deployments}
    return tuple(
        obj
        for obj in objects
        if conditions.object_label(obj, names.LABEL_DEPLOYMENT_NAME) in owners
        or conditions.object_label(obj, names.LABEL_NODE_GROUP) == nodegroup
    )


def deployments_of(nodegroup: str, deployments: Iterable[Json]) -> tuple[Json, ...]:
    """The MachineDeployments of a node group, by the chart's label."""
    return tuple(
        deployment
        for deployment in deployments
        if conditions.object_label(deployment, names.LABEL_NODE_GROUP) == nodegroup
    )


def is_ready(machine: Json) -> bool:
    """The Machine serves: server, bootstrap and node are good, and it is not going away."""
    return not conditions.is_terminating(machine) and conditions.condition(machine, "Ready").good


def is_current(machine: Json, desired_version: str) -> bool:
    """Whether a Machine is what was asked for, and its node serves.

    :param desired_version: without ``v``; "" if any will do.
    """
    if conditions.is_terminating(machine) or not conditions.generation_seen(machine):
        return False
    if desired_version and plain(conditions.at_path(machine, "spec", "version")) != desired_version:
        return False
    if not conditions.at_path(machine, "status", "nodeRef", "name"):
        return False
    if other_kubelet(machine) is not None:
        return False
    return all(conditions.condition(machine, kind).good for kind in ("Ready", "UpToDate"))


def other_kubelet(machine: Json) -> tuple[str, str] | None:
    """The version of a machine's kubelet and the one that it should have, if they are two.

    Cluster API compares them itself since its release 1.13, in the condition ``UpToDate``. What a
    distribution appends to a version is not compared here.
    """
    has = str(conditions.at_path(machine, "status", "nodeInfo", "kubeletVersion") or "")
    wanted = str(conditions.at_path(machine, "spec", "version") or "")
    numbers = [_NUMBER.match(plain(version)) for version in (has, wanted)]
    found = {match[0] for match in numbers if match}
    return (has, wanted) if len(found) > 1 else None


def count_issue(machines: Sequence[Json], count: int, version: str, title: str) -> Issue | None:
    """What keeps *machines* from being *count* good ones and nothing else.

    :param title: whose machines, for the sentence: ``control plane`` or a group's name.
    """
    in_place = {conditions.name(machine): is_current(machine, version) for machine in machines}
    good = sum(in_place.values())
    if good == count == len(machines):
        return None
    if good >= count:
        old_names = (
            sorted(name for name, is_good in in_place.items() if not is_good)
            or sorted(in_place)[count:]
        )
        subject = (
            f"an old {title} machine"
            if len(old_names) == 1
            else f"{len(old_names)} old {title} machines"
        )
        verb = "exists" if len(old_names) == 1 else "exist"
        return Issue(f"{subject} still {verb}: {', '.join(old_names)}")
    rolling = any(_is_outdated(machine, version) for machine in machines)
    at = f" at version {version}" if rolling and version else ""
    noun = "machine is" if count == 1 else "machines are"
    return Issue(f"{good} of {count} {title} {noun} ready{at}")


def _is_outdated(machine: Json, wanted_version: str) -> bool:
    return plain(conditions.at_path(machine, "spec", "version")) != wanted_version


def server_name(machine: Json) -> str:
    """Name of the Machine's OpenStackMachine, which is also its OpenStackServer's."""
    return str(conditions.at_path(machine, "spec", "infrastructureRef", "name") or "")


def is_of_machine(server: Json) -> bool:
    """The OpenStackServer was made for a machine, and is no bastion of the OpenStackCluster's."""
    references = conditions.metadata(server).get("ownerReferences")
    owners = references if isinstance(references, list) else ()
    return any(
        conditions.mapping(reference).get("kind") == "OpenStackMachine" for reference in owners
    )


def server_issue(machines: Iterable[Json], servers: tuple[Json, ...] | Missing) -> Issue | None:
    """A Machine whose server is gone, unreadable or not ready: its node cannot be trusted."""
    if isinstance(servers, Missing):
        return Issue("OpenStackServers cannot be read")
    by_name = {conditions.name(server): server for server in servers}
    for machine in machines:
        name = server_name(machine)
        server = by_name.get(name)
        if server is None:
            return Issue(f"machine {conditions.name(machine)} has no OpenStackServer")
        if (
            conditions.is_terminating(server)
            or not conditions.condition(server, "InstanceReady").good
        ):
            return Issue(f"server {name} is not ready")
    return None


def addresses(machines: Iterable[Json]) -> tuple[str, ...]:
    """Internal and external IP addresses, by machine name, each once."""
    by_address: dict[str, None] = {}
    for machine in sorted(machines, key=conditions.name):
        status_addresses = conditions.at_path(machine, "status", "addresses")
        for item in status_addresses if isinstance(status_addresses, list) else ():
            if conditions.mapping(item).get("type") in _ADDRESS_TYPES and item.get("address"):
                by_address[str(item["address"])] = None
    return tuple(by_address)
