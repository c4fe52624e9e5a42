# SPDX-License-Identifier: Apache-2.0
"""Remediation: keep the cause of a replaced machine until its replacement has one.

Cluster API deletes a machine whose health check has failed, or that has no server after a while,
and makes another one. With its deletion all conditions of the machine are of an older spec, and
once it is gone nothing on the management cluster says why the next one has to be waited for; the
row does.
"""

from __future__ import annotations

from collections.abc import Iterable
import itertools
import re

from magnum.drivers.k8s_capi_helm.errors import Cause
from magnum.drivers.k8s_capi_helm.model import conditions, Json
from magnum.drivers.k8s_capi_helm.status.objects import machines
from magnum.drivers.k8s_capi_helm.status.texts.issue import Issue
from magnum.drivers.k8s_capi_helm.status.texts.public_text import first_sentence

_CLASSES = "|".join(cause.value for cause in Cause)
#: What a row says of a machine's health check, and of a server.
_MACHINE = re.compile(
    rf"\b(?P<cause>{Cause.BOOTSTRAP.value}): "
    r"(?P<text>machine (?P<name>[\w.-]+): Health check failed[^;]*)"
)
_SERVER = re.compile(rf"\b(?P<cause>{_CLASSES}): (?P<text>[^;]+? \(server (?P<name>[\w.-]+)\))")


def cause(own: Iterable[Json], owners: Iterable[Json], previous_reasons: str) -> Issue | None:
    """The fault of a machine that is deleted, or was, while another one is made in its place.

    :param own: the machines of a group, or of the cluster.
    :param owners: what makes them; with its name theirs begin.
    :param previous_reasons: what the rows say now, of something that still is waited for.
    """
    machines_by_name = {conditions.name(machine): machine for machine in own}
    for name in sorted(machines_by_name):
        health_check = conditions.condition(machines_by_name[name], "HealthCheckSucceeded")
        has_failed = health_check.was is conditions.ConditionStatus.FALSE
        is_own_fault = has_failed and "InfrastructureReady" not in health_check.message
        if is_own_fault and conditions.is_terminating(machines_by_name[name]):
            text = f"machine {name}: {first_sentence(health_check.message)}"
            return Issue(text, Cause.BOOTSTRAP)
    prefixes = tuple(f"{conditions.name(owner)}-" for owner in owners if _makes_machines(owner))
    living = [one for one in machines_by_name.values() if not conditions.is_terminating(one)]
    names = {name(one) for one in living for name in (conditions.name, machines.server_name)}
    found = itertools.chain(_MACHINE.finditer(previous_reasons), _SERVER.finditer(previous_reasons))
    for match in found:
        if match["name"].startswith(prefixes) and match["name"] not in names:
            return Issue(match["text"], Cause(match["cause"]))
    return None


def reported_of_server(name: str, previous_reasons: str) -> Issue | None:
    """The fault that the rows have of a server; with the server, Nova forgets it."""
    for match in _SERVER.finditer(previous_reasons):
        if match["name"] == name:
            return Issue(match["text"], Cause(match["cause"]))
    return None


def _makes_machines(owner: Json) -> bool:
    """Whether a MachineSet or control plane is to have machines: an old set replaces none."""
    return bool(conditions.at_path(owner, "spec", "replicas") != 0)
