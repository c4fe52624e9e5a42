# SPDX-License-Identifier: Apache-2.0
"""Shorten long messages of OpenStack and Cluster API for tenants."""

from __future__ import annotations

import re

from magnum.drivers.k8s_capi_helm.model import conditions

#: Nova when all hosts that it tried had refused (nova.scheduler.utils.populate_retry).
_GIVEN_UP = re.compile(
    r"Exceeded max scheduling attempts (?P<tries>\d{1,6}) for instance \S+ "
    r"Last exception: (?P<why>.+)",
    re.DOTALL,
)
#: Cluster API of a Machine whose node is of another version.
_KUBELET = re.compile(r"kubeletVersion (?P<has>\S+), (?P<wanted>\S+) required")
#: Cluster API's preflight checks of a MachineSet's version.
_SKEW = re.compile(
    r"MachineSet version \((?P<has>\S+)\) and ControlPlane version \((?P<wanted>\S+)\) .*"
    r'"(?P<check>\w+)" preflight',
    re.DOTALL,
)
#: Neutron of a network that is to be deleted (neutron_lib.exceptions.NetworkInUse).
_IN_USE = re.compile(
    r"Unable to complete operation on network \S+ There are one or more ports still in use on the "
    r"network(, id for these ports is: (?P<ports>[^.(]+))?[. ]"
)


def of_neutron(text: str) -> str:
    """Neutron's sentence on a network in use, of which only the ports are news."""
    text = conditions.words(text)
    match = _IN_USE.search(text)
    if match is None:
        return text
    ports = (match["ports"] or "").split(",")
    by = f"port {ports[0]}" if len(ports) == 1 else f"{len(ports)} ports"
    return f"its network is in use by {by}" if ports[0] else "its network is in use"


def of_nova(text: str) -> str:
    """What the last hypervisor said, where Nova's scheduler tells how often it has tried."""
    text = conditions.words(text)
    match = _GIVEN_UP.search(text)
    if match is None:
        return text
    return f"{match['tries']} hosts failed to start the server, the last one: {match['why']}"


def of_kubelet(text: str) -> str:
    """How a machine's kubelet is another than its image promises."""
    text = conditions.words(text)
    match = _KUBELET.search(text)
    if match is None:
        return f"is not up to date: {text}"
    return other_kubelet(match["has"], match["wanted"])


def other_kubelet(version: str, desired_version: str) -> str:
    """That a machine's kubelet is another than its image promises."""
    return (
        f"runs kubelet {version} instead of {desired_version}: the image does not match its "
        "property kube_version"
    )


def of_skew(text: str) -> str:
    """How the versions of a group and of its control plane do not fit."""
    text = conditions.words(text)
    match = _SKEW.search(text)
    if match is None:
        return text
    return (
        f"its version is {match['has']}, and that of the control plane is {match['wanted']} "
        f"({match['check']})"
    )
