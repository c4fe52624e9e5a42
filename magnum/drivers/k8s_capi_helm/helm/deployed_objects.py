# SPDX-License-Identifier: Apache-2.0
"""The objects of a release's revisions, with which an upgrade compares the rendered ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
import dataclasses

from magnum.drivers.k8s_capi_helm.helm import (
    manifest_diff,
    recovery,
    release_secret,
    upgrade_patch,
)
from magnum.drivers.k8s_capi_helm.model import Json
from magnum.drivers.k8s_capi_helm.values.tree import merge


@dataclasses.dataclass(frozen=True, slots=True)
class DeployedObjects:
    """What Helm, and the repair after it, compare the rendered objects of a release with.

    :ivar revisions: the objects of each of the compared revisions; Helm's own first.
    :ivar is_server_side: whether the server applies.
    """

    namespace: str
    release: str
    revisions: tuple[Mapping[recovery.ObjectKey, Json], ...]
    is_server_side: bool

    @classmethod
    def of_release(
        cls, namespace: str, release: str, secrets: Iterable[Json], helm_version: str
    ) -> DeployedObjects:
        """Those of a release.

        :param secrets: of all its revisions.
        :param helm_version: of the Helm that upgrades it; Helm 3 never lets the server apply.
        :raises errors.HelmRefused: a revision is not readable.
        """
        compared = recovery.compared_revisions(secrets)
        newest = release_secret.newest_revision(compared)
        by_server = newest is not None and release_secret.is_server_side(newest)
        return cls(
            namespace,
            release,
            tuple(map(recovery.revision_objects, compared)),
            is_server_side=by_server and not helm_version.startswith("3."),
        )

    def patch(self, manifest: Json, existing_object: Json) -> Json:
        """The JSON merge patch by which an upgrade changes an object that exists.

        :param manifest: of the object, as it is rendered.
        """
        new = merge.merge(manifest, {"metadata": self._ownership()})
        key = recovery.object_key(manifest)
        last = [objects[key] for objects in self.revisions if key in objects]
        if not upgrade_patch.is_compared_with_live(manifest, is_server_side=self.is_server_side):
            # One that is in no revision is compared with itself.
            return upgrade_patch.manifest_patch(last, new)
        own = self.revisions[0].get(key, new) if self.revisions else new
        return upgrade_patch.three_way_patch(own, new, existing_object)

    def not_rendered(self, manifests: Iterable[Json]) -> Iterator[Json]:
        """The manifests of objects that are in a compared revision, and not in *manifests*."""
        rendered = {recovery.object_key(manifest) for manifest in manifests}
        known: dict[recovery.ObjectKey, Json] = {}
        for objects in reversed(self.revisions):
            known |= objects
        for key, manifest in known.items():
            if key not in rendered:
                yield manifest

    def is_deleted(self, manifest: Json, existing_object: Json) -> bool:
        """Whether an object is deleted that is not rendered any more."""
        key = recovery.object_key(manifest)
        own, *interrupted = self.revisions
        if key in own and not recovery.is_kept(existing_object):
            return True
        return recovery.is_of_release(existing_object, self.namespace, self.release) and any(
            key in objects and not recovery.is_kept(objects[key]) for objects in interrupted
        )

    def _ownership(self) -> Json:
        """What Helm writes on each object."""
        return {
            "labels": {manifest_diff.MANAGED_BY: "Helm"},
            "annotations": {
                manifest_diff.RELEASE_NAME: self.release,
                manifest_diff.RELEASE_NAMESPACE: self.namespace,
            },
        }
