# SPDX-License-Identifier: Apache-2.0
"""Remediation: keep the cause of a replaced machine until its replacement has one.

Cluster API deletes a machine whose health check has failed and makes another one. With its deletion
all conditions of the machine are of an older spec, and once it is gone nothing on the management
cluster says why the next one has to be waited for; the row does.
"""

from __future__ import annotations

from collections.abc import Iterable
import re

from magnum.drivers.k8s_capi_helm.errors import Cause
from magnum.drivers.k8s_capi_helm.model import conditions, Json
from magnum.drivers.k8s_capi_helm.status.texts.issue import Issue
from magnum.drivers.k8s_capi_helm.status.texts.public_text import first_sentence

#: As the MachineHealthCheck says it, in the reason of a row.
_TOLD = re.compile(
    rf"\b{Cause.BOOTSTRAP}: (?P<text>machine (?P<name>[\w.-]+): Health check failed[^;]*)"
)


def cause(machines: Iterable[Json], owners: Iterable[Json], previous_reasons: str) -> Issue | None:
    """The failed check of a machine that goes, or is gone while another one is made in its place.

    :param machines: the machines of a group, or of the cluster.
    :param owners: what makes them; with its name theirs begin.
    :param previous_reasons: what the rows say now, of something that still is waited for.
    """
    machines_by_name = {conditions.name(machine): machine for machine in machines}
    for name in sorted(machines_by_name):
        health_check = conditions.condition(machines_by_name[name], "HealthCheckSucceeded")
        has_failed = health_check.was is conditions.ConditionStatus.FALSE
        is_own_fault = has_failed and "InfrastructureReady" not in health_check.message
        if is_own_fault and conditions.is_terminating(machines_by_name[name]):
            text = f"machine {name}: {first_sentence(health_check.message)}"
            return Issue(text, Cause.BOOTSTRAP)
    for match in _TOLD.finditer(previous_reasons):
        name = match["name"]
        is_replaced = any(name.startswith(f"{conditions.name(owner)}-") for owner in owners)
        if is_replaced and name not in machines_by_name:
            return Issue(match["text"], Cause.BOOTSTRAP)
    return None
