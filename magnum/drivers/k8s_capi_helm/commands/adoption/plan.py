# SPDX-License-Identifier: Apache-2.0
"""What the first operation on a cluster of magnum-capi-helm changes; nothing is written.

The same functions decide as in the operation itself: whose the cluster is, which chart it has, what
Magnum's records ask for, which values Helm gets. Helm renders them with the API server, as in the
operation, and what it renders is compared as Helm compares it.
"""

from __future__ import annotations

import dataclasses
import enum
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.desired.object_changes import (
    ObjectChange,
    release_changes,
)
from magnum.drivers.k8s_capi_helm.commands.lookup.namespace_reader import NamespaceReader
from magnum.drivers.k8s_capi_helm.commands.output.lister import operator_text
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import reader
from magnum.drivers.k8s_capi_helm.model import (
    LiveRelease,
    Operation,
    secrets,
    Verb,
)
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.ownership import adoption, ownership
from magnum.drivers.k8s_capi_helm.reconcile.release import autoscaler_deployment
from magnum.drivers.k8s_capi_helm.values import change


class AdoptionState(str, enum.Enum):
    """What an adoption comes to."""

    ADOPTED = "adopted"
    UNCHANGED = "unchanged"
    CHANGES = "changes"
    WAITS = "waits"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclasses.dataclass(frozen=True, slots=True)
class AdoptionPlan:
    """What the first operation does.

    :ivar chart: name and version of the release's chart, "" where there is none.
    :ivar changes: a text for each object that is created or deleted, and for each field that
        changes; "(replaces machines)" ends those that do.
    :ivar text: why it is so, and what to do.
    """

    state: AdoptionState
    chart: str = ""
    changes: tuple[str, ...] = ()
    text: str = ""


def plan_adoption(run: Reconciliation, cluster: Any, objects: NamespaceReader) -> AdoptionPlan:
    """What the first operation on a cluster changes.

    :param objects: shared between the clusters of a run.
    """
    if sentence := ownership.foreign_reason(cluster):
        return AdoptionPlan(AdoptionState.REFUSED, text=sentence)
    if not cluster.stack_id:
        text = "The cluster has no release. Delete it and create it again."
        return AdoptionPlan(AdoptionState.REFUSED, text=text)
    try:
        return _plan(run, cluster, ownership.owner(cluster, run.settings), objects)
    except errors.DriverError as error:
        state = AdoptionState.UNKNOWN if error.retryable else AdoptionState.REFUSED
        return AdoptionPlan(state, text=operator_text(error))


def _plan(
    run: Reconciliation, cluster: Any, owner: secrets.Owner, objects: NamespaceReader
) -> AdoptionPlan:
    """The plan of a cluster that has a release.

    :raises errors.DriverError: it is refused, or cannot be found out.
    """
    live = objects.live(owner.namespace, owner.release)
    title = f"{live.chart_name} {live.chart_version}" if live else ""
    record = objects.record(owner.namespace, owner.release)
    if record is not None:
        ownership.check_record(record, owner)
        return AdoptionPlan(AdoptionState.ADOPTED, title)
    if not objects.credential_secrets(owner):
        text = (
            "No Secret on this management cluster proves whose the release is. Check the "
            "kubeconfig; if it is the right one, use --confirm."
        )
        return AdoptionPlan(AdoptionState.REFUSED, title, text=text)
    if (cluster.status or "").endswith("_IN_PROGRESS"):
        text = f"Wait until the cluster is not {cluster.status} any more."
        return AdoptionPlan(AdoptionState.WAITS, title, text=text)
    if live is None:
        text = (
            "Its Helm release does not exist on this management cluster. Restore its Secrets "
            "'sh.helm.release.v1.*'; else the first operation compares the objects with Magnum's "
            "records, and refuses if they differ."
        )
        return AdoptionPlan(AdoptionState.REFUSED, text=text)
    return _plan_release(run, cluster, live, objects, owner)


def _plan_release(
    run: Reconciliation,
    cluster: Any,
    live: LiveRelease,
    objects: NamespaceReader,
    owner: secrets.Owner,
) -> AdoptionPlan:
    """The plan for a release that is there.

    :raises errors.DriverError: its chart cannot be fetched, or Helm refuses.
    """
    clients, title = run.clients, f"{live.chart_name} {live.chart_version}"
    request = reader.cluster_request(cluster, list(cluster.nodegroups), run.settings)
    operations = change.pending_changes(live.values, request)
    chart = clients.charts.of_release(live, "")
    # What a nodegroup without an entry becomes is decided when it is created.
    known = [operation for operation in operations if operation.verb is not Verb.NODEGROUP_CREATE]
    values = change.next_values(live.values, change.with_sizes(live.values, request), known)
    values = autoscaler_deployment.with_operators_settings(values, chart, run.settings)
    rendered = clients.helm.preview(live.namespace, live.name, chart, values)
    for obj in objects.find_all(rendered, live.namespace):
        adoption.check_owner(owner, obj)
    changed = tuple(release_changes(run, live, rendered, objects))
    if operations or changed:
        texts = (*map(_operation_text, operations), *(one.text for one in changed))
        return AdoptionPlan(AdoptionState.CHANGES, title, texts, _text(len(texts), changed))
    text = "The first operation changes what is asked for, and nothing else."
    return AdoptionPlan(AdoptionState.UNCHANGED, title, text=text)


def _operation_text(operation: Operation) -> str:
    """What Magnum's records ask for and the release does not have yet."""
    return f"Magnum's records ask for: {operation.verb} {' '.join(operation.groups)}".rstrip()


def _text(count: int, changed: tuple[ObjectChange, ...]) -> str:
    replaced = sum(one.replaces_machines for one in changed)
    machines = f"{replaced} of them replace machines" if replaced else "no machine is replaced"
    return f"The first operation makes these {count} changes; {machines}."
