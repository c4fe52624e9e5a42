# SPDX-License-Identifier: Apache-2.0
"""What the first operation on a cluster of magnum-capi-helm changes; nothing is written.

The same functions decide as in the operation itself: whose the cluster is, which chart it has, what
Magnum's records ask for, which values Helm gets. Helm renders them with the API server, as in the
operation, and what it renders is compared with the objects that are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import dataclasses
import enum
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.lister import operator_text
from magnum.drivers.k8s_capi_helm.helm import manifest_diff, release_secret
from magnum.drivers.k8s_capi_helm.magnum_objects import reader
from magnum.drivers.k8s_capi_helm.model import (
    conditions,
    Json,
    LiveRelease,
    names,
    Operation,
    secrets,
    Verb,
)
from magnum.drivers.k8s_capi_helm.reconcile import (
    adoption,
    autoscaler_deployment,
    credential_secret,
    ownership,
)
from magnum.drivers.k8s_capi_helm.reconcile.context import Reconciliation
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


class NamespaceObjects:
    """The objects of namespaces, each kind of a namespace listed once."""

    def __init__(self, run: Reconciliation) -> None:
        self._kube = run.clients.kube
        self._objects: dict[tuple[names.Kind, str], Mapping[str, Json]] = {}

    def find(self, manifest: Json, namespace: str) -> Json | None:
        """The object that a manifest is about; None if it does not exist.

        :raises errors.DriverError: the objects cannot be read.
        """
        kind = self._kube.kind_of(manifest)
        if not kind.namespaced:
            return self._kube.find(manifest, namespace)
        key = kind, manifest["metadata"].get("namespace") or namespace
        if key not in self._objects:
            self._objects[key] = {conditions.name(obj): obj for obj in self._kube.list(*key)}
        return self._objects[key].get(conditions.name(manifest))


def plan_adoption(run: Reconciliation, cluster: Any, objects: NamespaceObjects) -> AdoptionPlan:
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
    run: Reconciliation, cluster: Any, owner: secrets.Owner, objects: NamespaceObjects
) -> AdoptionPlan:
    """The plan of a cluster that has a release.

    :raises errors.DriverError: it is refused, or cannot be found out.
    """
    clients = run.clients
    live = clients.helm.live(owner.namespace, owner.release)
    title = f"{live.chart_name} {live.chart_version}" if live else ""
    record = clients.leases.read(owner.namespace, owner.release)
    if record is not None:
        if record.cluster_uuid == owner.cluster_uuid:
            return AdoptionPlan(AdoptionState.ADOPTED, title)
        raise errors.NotOwned(
            "The release has the Lease of another cluster of Magnum. The Lease of "
            f"'{owner.release}' is that of cluster '{record.cluster_uuid}'."
        )
    if not credential_secret.find_secrets(clients.kube, owner):
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
    objects: NamespaceObjects,
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
    existing = {_title(manifest): objects.find(manifest, live.namespace) for manifest in rendered}
    for obj in filter(None, existing.values()):
        adoption.check_owner(owner, obj)
    changes = (
        *map(_operation_text, operations),
        *object_changes(rendered, _deployed_objects(run, live), existing),
    )
    if changes:
        return AdoptionPlan(AdoptionState.CHANGES, title, changes, _text(changes))
    text = "The first operation changes what is asked for, and nothing else."
    return AdoptionPlan(AdoptionState.UNCHANGED, title, text=text)


def _operation_text(operation: Operation) -> str:
    """What Magnum's records ask for and the release does not have yet."""
    return f"Magnum's records ask for: {operation.verb} {' '.join(operation.groups)}".rstrip()


def _text(changes: tuple[str, ...]) -> str:
    replaced = sum(change_text.endswith(_REPLACES) for change_text in changes)
    machines = f"{replaced} of them replace machines" if replaced else "no machine is replaced"
    return f"The first operation makes these {len(changes)} changes; {machines}."


_REPLACES = "(replaces machines)"


def _deployed_objects(run: Reconciliation, live: LiveRelease) -> list[Json]:
    """What Helm has written last.

    :raises errors.DriverError: it cannot be read.
    """
    selector = release_secret.release_labels(live.name)
    listed = run.clients.kube.list(names.SECRET, live.namespace, selector)
    newest = release_secret.newest_revision(listed)
    return [] if newest is None else release_secret.documents(release_secret.manifest(newest))


def object_changes(
    manifests: list[Json],
    deployed_manifests: list[Json],
    existing_objects: Mapping[str, Json | None],
) -> Iterator[str]:
    """What a run of Helm changes: by what exists, and by what Helm has written last.

    :param existing_objects: by kind and name of what is rendered; None where there is none.
    """
    before = {_title(manifest): manifest for manifest in deployed_manifests}
    for manifest in manifests:
        title = _title(manifest)
        obj = existing_objects[title]
        if obj is None:
            yield f"{title} is created"
            continue
        paths = dict.fromkeys(manifest_diff.differences(manifest, obj))
        if title in before:
            # A field that Helm does not write any more is removed.
            paths |= dict.fromkeys(manifest_diff.differences(before[title], manifest))
        for path in paths:
            replaces = manifest_diff.replaces_machines(manifest["kind"], path)
            yield f"{title}: {path}{f' {_REPLACES}' if replaces else ''}"
    for title, manifest in before.items():
        if title not in existing_objects and not _is_kept(manifest):
            yield f"{title} is deleted"


def _is_kept(manifest: Json) -> bool:
    """Whether Helm leaves an object that is no longer rendered."""
    annotations = manifest["metadata"].get("annotations") or {}
    return str(annotations.get("helm.sh/resource-policy", "")).strip() == "keep"


def _title(manifest: Json) -> str:
    return f"{manifest['kind']} {manifest['metadata']['name']}"
