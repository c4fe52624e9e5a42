# SPDX-License-Identifier: Apache-2.0
"""An upgrade that an operator has planned: an annotation of the Cluster, and its notice."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from magnum.drivers.k8s_capi_helm.labels import Labels
from magnum.drivers.k8s_capi_helm.model import conditions, Missing, names, Observed, secrets
from magnum.drivers.k8s_capi_helm.reconcile.process.clients import Clients

#: Of a Cluster whose upgrade is planned.
ANNOTATION = "k8s-capi-helm.magnum.openstack.org/planned-upgrade"


@dataclasses.dataclass(frozen=True, slots=True)
class PlannedUpgrade:
    """An upgrade of a cluster.

    :ivar template: UUID of the cluster template that it leads to, *name* its name.
    :ivar window: the operator's maintenance window in which it is requested, "" for none.
    """

    template: str
    name: str
    window: str = ""


def record_plan(clients: Clients, owner: secrets.Owner, upgrade: PlannedUpgrade | None) -> None:
    """Write a planned upgrade on the Cluster, or remove the one that is there.

    :param upgrade: None to remove it.
    :raises errors.DriverError: the management cluster cannot be used.
    """
    text = json.dumps(dataclasses.asdict(upgrade)) if upgrade else None
    merge = {"metadata": {"annotations": {ANNOTATION: text}}}
    if clients.kube.get(names.CLUSTER, owner.namespace, owner.release) is not None:
        clients.kube.patch(names.CLUSTER, owner.namespace, owner.release, merge)


def notice(cluster: Any, labels: Labels, observed: Observed) -> str:
    """A notice of an upgrade that is planned and not made yet, "" without one.

    :param cluster: ``magnum.objects.Cluster``.
    :param labels: of the cluster.
    """
    planned = None if isinstance(observed.cluster, Missing) else _planned(observed.cluster)
    if planned is None or planned.template == cluster.cluster_template_id:
        return ""
    windows = [f"in the maintenance window {planned.window}"] if planned.window else []
    if labels.maintenance_window:
        windows.append(f"in the cluster's own maintenance window {labels.maintenance_window}")
    when = " and ".join(windows) or "at any time"
    return (
        "The cloud's operator has planned an upgrade of this cluster to cluster template "
        f"'{planned.name}', which may begin {when}."
    )


def _planned(obj: Any) -> PlannedUpgrade | None:
    """The upgrade in the annotation; None without one, and where it cannot be read."""
    text = conditions.object_annotations(obj).get(ANNOTATION)
    try:
        return PlannedUpgrade(**json.loads(text)) if isinstance(text, str) else None
    except (ValueError, TypeError):
        return None
