# SPDX-License-Identifier: Apache-2.0
"""When the certificates of the control plane's machines expire.

kubeadm gives them a year; KubeadmControlPlane replaces the machines before, if the chart says so
("rollout.before.certificatesExpiryDays" in the Cluster API book). A date that is near all the same
tells that nobody does.
"""

from __future__ import annotations

from collections.abc import Iterable
import datetime

from magnum.drivers.k8s_capi_helm.model import conditions, Json, Missing, Observed
from magnum.drivers.k8s_capi_helm.status.objects import machines

#: What is renewed by itself is renewed earlier than that.
NEAR = datetime.timedelta(days=14)


def control_plane_expiry(observed: Observed) -> tuple[datetime.datetime, str] | None:
    """As :func:`first_expiry`, of a control plane; None also where its machines are unreadable."""
    if isinstance(observed.machines, Missing):
        return None
    return first_expiry(machines.of_control_plane(observed.machines))


def first_expiry(machines: Iterable[Json]) -> tuple[datetime.datetime, str] | None:
    """When the first certificate ends, and of which node; None where no machine says it."""
    expiries = []
    for machine in machines:
        expiry = conditions.instant(conditions.at_path(machine, "status", "certificatesExpiryDate"))
        if expiry is not None:
            node = conditions.at_path(machine, "status", "nodeRef", "name") or conditions.name(
                machine
            )
            expiries.append((expiry, str(node)))
    return min(expiries, default=None)
