# SPDX-License-Identifier: Apache-2.0
"""Complete ``clusterctl move``: what it leaves on the former management cluster is taken along.

clusterctl moves the objects of the CRDs that it has installed, and Secrets and ConfigMaps that a
Cluster owns or that have its label
(https://cluster-api.sigs.k8s.io/clusterctl/commands/move). It knows no Lease, no Deployment, no
role, no label of a namespace and no addon; and the driver has no rights in a namespace that
clusterctl has created.

What Cluster API makes machines of is never created here: where it is missing, nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterator
import dataclasses

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm.helm import manifest_diff, release_secret
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.lease import codec, record_format
from magnum.drivers.k8s_capi_helm.model import conditions, Json, names, secrets
from magnum.drivers.k8s_capi_helm.reconcile.ownership import ownership
from magnum.drivers.k8s_capi_helm.reconcile.process.clients import Clients
from magnum.drivers.k8s_capi_helm.reconcile.release import project_namespace
from magnum.drivers.k8s_capi_helm.values.sections import pod_security

LOG = logging.getLogger(__name__)

_MANAGED_BY = {"app.kubernetes.io/managed-by": "Helm"}
#: What the server or a controller writes into an object's metadata.
_SERVER_FIELDS = (
    *("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"),
    *("ownerReferences", "finalizers", "selfLink", "deletionTimestamp"),
    "deletionGracePeriodSeconds",
)


@dataclasses.dataclass(frozen=True, slots=True)
class Move:
    """The two management clusters of a release.

    :ivar clients: of the one that the release is on now.
    :ivar former: of the one that it was on.
    :ivar level: the Pod Security Standard of a namespace whose former one has none.
    """

    clients: Clients
    former: KubeClient
    owner: secrets.Owner
    level: str

    @property
    def kube(self) -> KubeClient:
        """Client of the management cluster that the release is on now."""
        return self.clients.kube


@dataclasses.dataclass(frozen=True, slots=True)
class MoveChange:
    """What was changed.

    :ivar title: kind and name of an object.
    :ivar text: what was done to it.
    """

    title: str
    text: str


def complete_move(move: Move) -> Iterator[MoveChange]:
    """Take along what belongs to a release whose Cluster is here, and not there; safe to repeat.

    First everything is here, and then it is removed there.

    :raises errors.NotOwned: a Lease is another cluster's.
    :raises errors.DriverError: one of the management clusters cannot be used.
    """
    former_lease = _former_lease(move)
    project_namespace.bind_role(move.clients, move.owner.namespace)
    if former_lease is not None:
        yield from _copy_record(move, former_lease)
    yield from _label_namespace(move)
    yield from _copy_objects(move)
    manifests = _chart_objects(move)
    yield from _create_missing(move, manifests)
    yield from _remove_former(move, manifests, former_lease)


def _former_lease(move: Move) -> Json | None:
    """The Lease that was left, if it is this cluster's."""
    name = names.lease(move.owner.release)
    lease = move.former.get(names.LEASE, move.owner.namespace, name)
    if lease is not None:
        record_format.require_readable(lease)
        ownership.check_record(codec.record(lease), move.owner)
    return lease


def _copy_record(move: Move, former: Json) -> Iterator[MoveChange]:
    """Copy the record: what a Lease here says already is newer, and stays."""
    owner = move.owner
    name = names.lease(owner.release)
    notes = former["metadata"].get("annotations") or {}
    lease = move.kube.get(names.LEASE, owner.namespace, name)
    if lease is None:
        lease = codec.new(owner.namespace, owner.release, owner.cluster_uuid, owner.project_id)
        lease["metadata"]["annotations"] = dict(notes)
        move.kube.create(names.LEASE, lease)
        yield MoveChange(f"Lease {name}", "created with the record")
        return
    ownership.check_record(codec.record(lease), owner)
    own = lease["metadata"].get("annotations") or {}
    if missing := sorted(notes.keys() - own.keys()):
        lease["metadata"]["annotations"] = {**notes, **own}
        move.kube.replace(names.LEASE, lease)
        keys = ", ".join(key.rpartition("/")[2] for key in missing)
        yield MoveChange(f"Lease {name}", f"completed: {keys}")


def _label_namespace(move: Move) -> Iterator[MoveChange]:
    """Give the namespace what the former one had from the driver, where it says nothing else."""
    namespace = move.owner.namespace
    here = move.kube.get(names.NAMESPACE, None, namespace) or {}
    there = move.former.get(names.NAMESPACE, None, namespace) or {}
    labels = conditions.metadata(here).get("labels") or {}
    former_labels = conditions.metadata(there).get("labels") or {}
    driver_labels = {
        names.LABEL_PROJECT: move.owner.project_id,
        **pod_security.namespace_labels(move.level),
    }
    change: Json = {
        "labels": {
            key: former_labels.get(key, text)
            for key, text in driver_labels.items()
            if key not in labels
        }
    }
    created = conditions.object_annotations(there).get(names.CREATED_NAMESPACE)
    if created and names.CREATED_NAMESPACE not in conditions.object_annotations(here):
        change["annotations"] = {names.CREATED_NAMESPACE: created}
    if any(change.values()):
        move.kube.patch(names.NAMESPACE, None, namespace, {"metadata": change})
        yield MoveChange(f"Namespace {namespace}", "labelled")


def _copy_objects(move: Move) -> Iterator[MoveChange]:
    """Copy the driver's and Helm's Secrets that had no label for clusterctl."""
    owner = move.owner
    for selector in (_own_labels(owner), release_secret.release_labels(owner.release)):
        present = set(map(conditions.name, move.kube.list(names.SECRET, owner.namespace, selector)))
        for secret in move.former.list(names.SECRET, owner.namespace, selector):
            if conditions.name(secret) not in present:
                move.kube.create(names.SECRET, _without_server_fields(secret))
                yield MoveChange(f"Secret {conditions.name(secret)}", "copied")


def _own_labels(owner: secrets.Owner) -> dict[str, str]:
    return {names.LABEL_UUID: owner.cluster_uuid, names.LABEL_CLUSTER_NAME: owner.release}


def _without_server_fields(obj: Json) -> Json:
    content = {key: value for key, value in obj.items() if key != "status"}
    metadata = {k: v for k, v in obj["metadata"].items() if k not in _SERVER_FIELDS}
    metadata["labels"] = {**(metadata.get("labels") or {}), names.LABEL_MOVE: ""}
    return {**content, "metadata": metadata}


def _chart_objects(move: Move) -> list[Json]:
    """The objects of Helm's newest revision that clusterctl does not move."""
    owner = move.owner
    selector = release_secret.release_labels(owner.release)
    revisions = move.kube.list(names.SECRET, owner.namespace, selector)
    newest = release_secret.newest_revision(revisions)
    if newest is None:
        return []
    documents = release_secret.documents(release_secret.manifest(newest))
    return [one for one in documents if not _is_of_cluster_api(one)]


def _is_of_cluster_api(document: Json) -> bool:
    group = str(document["apiVersion"]).rpartition("/")[0]
    return group == names.CORE_GROUP or group.endswith(f".{names.CORE_GROUP}")


def _create_missing(move: Move, documents: list[Json]) -> Iterator[MoveChange]:
    """Create the objects of the release that are not here, as Helm would."""
    owner = move.owner
    for document in documents:
        if move.kube.find(document, owner.namespace) is not None:
            continue
        metadata = document["metadata"]
        whose = {
            manifest_diff.RELEASE_NAME: owner.release,
            manifest_diff.RELEASE_NAMESPACE: owner.namespace,
        }
        new = {
            **metadata,
            "namespace": metadata.get("namespace") or owner.namespace,
            "labels": {**(metadata.get("labels") or {}), **_MANAGED_BY},
            "annotations": {**(metadata.get("annotations") or {}), **whose},
        }
        move.kube.create(move.kube.kind_of(document), {**document, "metadata": new})
        yield MoveChange(_title(document), "created")


def _remove_former(
    move: Move, documents: list[Json], former_lease: Json | None
) -> Iterator[MoveChange]:
    """Remove what is here now, the Lease at last, and the namespace if nothing is left in it."""
    former, namespace = move.former, move.owner.namespace
    for document in documents:
        obj = former.find(document, namespace)
        if obj is not None:
            uid, name = obj["metadata"]["uid"], conditions.name(obj)
            former.delete(former.kind_of(document), namespace, name, uid=uid)
            yield MoveChange(_title(document), "removed from the former management cluster")
    for selector in (_own_labels(move.owner), release_secret.release_labels(move.owner.release)):
        for secret in former.list(names.SECRET, namespace, selector, metadata_only=True):
            uid, name = secret["metadata"]["uid"], conditions.name(secret)
            former.delete(names.SECRET, namespace, name, uid=uid)
            yield MoveChange(f"Secret {name}", "removed from the former management cluster")
    if former_lease is not None:
        metadata = former_lease["metadata"]
        former.delete(names.LEASE, namespace, metadata["name"], uid=metadata["uid"])
        title = f"Lease {metadata['name']}"
        yield MoveChange(title, "removed from the former management cluster")
    yield from _remove_namespace(move)


def _remove_namespace(move: Move) -> Iterator[MoveChange]:
    """Remove the project's namespace there, if nothing is left in it."""
    former, namespace = move.former, move.owner.namespace
    if former.get(names.NAMESPACE, None, namespace) is None:
        return
    clients = dataclasses.replace(move.clients, kube=former)
    project_namespace.delete_unused(clients, namespace, move.owner.project_id)
    obj = former.get(names.NAMESPACE, None, namespace)
    is_leaving = obj is None or conditions.is_terminating(obj)
    text = "removed from" if is_leaving else "not empty, stays on"
    yield MoveChange(f"Namespace {namespace}", f"{text} the former management cluster")


def _title(document: Json) -> str:
    return f"{document['kind']} {conditions.name(document)}"
