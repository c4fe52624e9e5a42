# SPDX-License-Identifier: Apache-2.0
"""What a run of Helm changes: last and new manifest beside the object that exists, as Helm does."""

from __future__ import annotations

from collections.abc import Iterator
import dataclasses
import enum
from typing import Any

from magnum.drivers.k8s_capi_helm.commands.desired import dry_run
from magnum.drivers.k8s_capi_helm.commands.lookup.namespace_reader import NamespaceReader
from magnum.drivers.k8s_capi_helm.helm import manifest_diff, release_secret
from magnum.drivers.k8s_capi_helm.helm.deployed_objects import DeployedObjects
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.model import Json, LiveRelease, names
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation


class ChangeKind(str, enum.Enum):
    """The effect on an object."""

    CREATED = "created"
    DELETED = "deleted"
    CHANGED = "changed"


@dataclasses.dataclass(frozen=True, slots=True)
class ObjectChange:
    """A change of one object, of one of its fields if it stays.

    :ivar title: kind and name of the object.
    :ivar manifest: the object as it is rendered; as Helm has written it, if it is deleted.
    :ivar existing_object: the object that is there, where a field changes.
    :ivar path: of the field, "" where the object is created or deleted.
    :ivar desired_value: of the field, None if it is removed.
    :ivar current_value: of the field, None if it is not there.
    :ivar changed_object: the existing object, as the API server would have it then.
    """

    title: str
    kind: ChangeKind
    manifest: Json
    existing_object: Json | None = None
    path: str = ""
    desired_value: Any = None
    current_value: Any = None
    changed_object: Json | None = None

    @property
    def replaces_machines(self) -> bool:
        """Whether Cluster API replaces machines because of it."""
        return manifest_diff.replaces_machines(self.manifest["kind"], self.path)

    @property
    def text(self) -> str:
        """The change in a few words; "(replaces machines)" ends those that do."""
        if self.kind is not ChangeKind.CHANGED:
            return f"{self.title} is {self.kind.value}"
        suffix = " (replaces machines)" if self.replaces_machines else ""
        return f"{self.title}: {self.path}{suffix}"


def release_changes(
    run: Reconciliation,
    live: LiveRelease,
    manifests: list[Json],
    reader: NamespaceReader | None = None,
) -> list[ObjectChange]:
    """What Helm would change, were a release to have these objects; nothing is written.

    The API server is asked what it would make of each patch that Helm would send.

    :param reader: of the management cluster, where it has read something already.
    :raises errors.DriverError: the management cluster cannot be read, or refuses a patch.
    """
    clients = run.clients
    if reader is None:
        reader, selector = NamespaceReader(run), release_secret.release_labels(live.name)
        secrets = clients.kube.list(names.SECRET, live.namespace, selector)
    else:
        secrets = reader.revisions(live.namespace, live.name)
    deployed = DeployedObjects.of_release(
        live.namespace, live.name, secrets, clients.helm.version()
    )
    changes: list[ObjectChange] = []
    for manifest in manifests:
        existing = reader.find(manifest, live.namespace)
        if existing is None:
            changes.append(ObjectChange(object_title(manifest), ChangeKind.CREATED, manifest))
        else:
            changes += _field_changes(clients.kube, manifest, existing, deployed)
    for manifest in deployed.not_rendered(manifests):
        existing = reader.find(manifest, live.namespace)
        if existing is not None and deployed.is_deleted(manifest, existing):
            changes.append(ObjectChange(object_title(manifest), ChangeKind.DELETED, manifest))
    return changes


def _field_changes(
    kube: KubeClient, manifest: Json, existing: Json, deployed: DeployedObjects
) -> Iterator[ObjectChange]:
    """The fields of an object that Helm's patch changes."""
    changed = dry_run.patched_object(kube, existing, deployed.patch(manifest, existing))
    if _version(changed) != _version(existing):
        # It was changed since it was listed.
        existing = kube.find(manifest, existing["metadata"].get("namespace") or "") or existing
    title = object_title(manifest)
    for field in manifest_diff.state_changes(changed, existing):
        yield ObjectChange(
            title,
            ChangeKind.CHANGED,
            manifest,
            existing_object=existing,
            changed_object=changed,
            path=field.path,
            desired_value=field.desired_value,
            current_value=field.current_value,
        )


def _version(obj: Json) -> Any:
    return obj["metadata"].get("resourceVersion")


def object_title(manifest: Json) -> str:
    """Kind and name of an object."""
    return f"{manifest['kind']} {manifest['metadata']['name']}"
