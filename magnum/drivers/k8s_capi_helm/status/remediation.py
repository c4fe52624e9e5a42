# SPDX-License-Identifier: Apache-2.0
"""Remediation: why a machine was given up, told until the machine in its place has its own word.

Cluster API deletes a machine whose health check has failed and makes another one. With its deletion
all conditions of the machine are of an older spec, and once it is gone nothing on the management
cluster says why the next one has to be waited for; the row does.
"""

from __future__ import annotations

from collections.abc import Iterable
import re

from magnum.drivers.k8s_capi_helm.errors import Cause
from magnum.drivers.k8s_capi_helm.model import conditions, Json
from magnum.drivers.k8s_capi_helm.status.issue import Issue
from magnum.drivers.k8s_capi_helm.status.public_text import first_bullet

#: As the MachineHealthCheck says it, in the reason of a row.
_TOLD = re.compile(
    rf"\b{Cause.BOOTSTRAP}: (?P<text>machine (?P<name>[\w.-]+): Health check failed[^;]*)"
)


def cause(mine: Iterable[Json], owners: Iterable[Json], said: str) -> Issue | None:
    """The failed check of a machine that goes, or is gone while another one is made in its place.

    :param mine: the machines of a group, or of the cluster.
    :param owners: what makes them; with its name theirs begin.
    :param said: what the rows say now, of something that still is waited for.
    """
    there = {conditions.name(one): one for one in mine}
    for name in sorted(there):
        said_before = conditions.condition(there[name], "HealthCheckSucceeded")
        failed = said_before.was is conditions.Truth.FALSE
        own = failed and "InfrastructureReady" not in said_before.message
        if own and conditions.deleting(there[name]):
            text = f"machine {name}: {first_bullet(said_before.message)}"
            return Issue(text, Cause.BOOTSTRAP)
    for found in _TOLD.finditer(said):
        name = found["name"]
        made = any(name.startswith(f"{conditions.name(one)}-") for one in owners)
        if made and name not in there:
            return Issue(found["text"], Cause.BOOTSTRAP)
    return None
