# SPDX-License-Identifier: Apache-2.0
"""What a run of Helm changes: rendered objects beside those that exist."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import dataclasses
import enum
from typing import Any

from magnum.drivers.k8s_capi_helm.helm import manifest_diff, release_secret
from magnum.drivers.k8s_capi_helm.model import conditions, Json, LiveRelease, names
from magnum.drivers.k8s_capi_helm.reconcile.context import Reconciliation


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
    :ivar existing_object: the object that is there, None if there is none.
    :ivar path: of the field, "" where the object is created or deleted.
    :ivar desired_value: of the field.
    :ivar current_value: of the field, None if it is not there.
    """

    title: str
    kind: ChangeKind
    manifest: Json
    existing_object: Json | None = None
    path: str = ""
    desired_value: Any = None
    current_value: Any = None

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

    def find_all(self, manifests: list[Json], namespace: str) -> dict[str, Json | None]:
        """The objects that manifests are about, by kind and name; None where there is none.

        :raises errors.DriverError: the objects cannot be read.
        """
        return {object_title(manifest): self.find(manifest, namespace) for manifest in manifests}


def deployed_objects(run: Reconciliation, live: LiveRelease) -> list[Json]:
    """What Helm has written last.

    :raises errors.DriverError: it cannot be read.
    """
    selector = release_secret.release_labels(live.name)
    listed = run.clients.kube.list(names.SECRET, live.namespace, selector)
    newest = release_secret.newest_revision(listed)
    return [] if newest is None else release_secret.documents(release_secret.manifest(newest))


def release_changes(
    run: Reconciliation, live: LiveRelease, manifests: list[Json]
) -> list[ObjectChange]:
    """What Helm would change, were a release to have these objects.

    :raises errors.DriverError: the management cluster cannot be read.
    """
    existing = NamespaceObjects(run).find_all(manifests, live.namespace)
    return list(object_changes(manifests, deployed_objects(run, live), existing))


def object_changes(
    manifests: list[Json],
    deployed_manifests: list[Json],
    existing_objects: Mapping[str, Json | None],
) -> Iterator[ObjectChange]:
    """What a run of Helm changes: by what exists, and by what Helm has written last.

    :param existing_objects: by kind and name of what is rendered; None where there is none.
    """
    before = {object_title(manifest): manifest for manifest in deployed_manifests}
    for manifest in manifests:
        title = object_title(manifest)
        obj = existing_objects[title]
        if obj is None:
            yield ObjectChange(title, ChangeKind.CREATED, manifest)
            continue
        yield from _field_changes(title, manifest, obj, before.get(title))
    for title, manifest in before.items():
        if title not in existing_objects and not _is_kept(manifest):
            yield ObjectChange(title, ChangeKind.DELETED, manifest)


def _field_changes(
    title: str, manifest: Json, obj: Json, deployed_manifest: Json | None
) -> Iterator[ObjectChange]:
    fields = {change.path: change for change in manifest_diff.field_changes(manifest, obj)}
    if deployed_manifest is not None:
        # A field that Helm does not write any more is removed.
        for change in manifest_diff.field_changes(deployed_manifest, manifest):
            if change.current_value is not None:
                continue
            removed = manifest_diff.FieldChange(
                change.path, change.current_value, change.desired_value
            )
            fields.setdefault(change.path, removed)
    for path, change in fields.items():
        values = change.desired_value, change.current_value
        yield ObjectChange(title, ChangeKind.CHANGED, manifest, obj, path, *values)


def _is_kept(manifest: Json) -> bool:
    """Whether Helm leaves an object that is no longer rendered."""
    annotations = manifest["metadata"].get("annotations") or {}
    return str(annotations.get("helm.sh/resource-policy", "")).strip() == "keep"


def object_title(manifest: Json) -> str:
    """Kind and name of an object."""
    return f"{manifest['kind']} {manifest['metadata']['name']}"
