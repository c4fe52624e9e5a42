# SPDX-License-Identifier: Apache-2.0
"""Interrupted revisions of a release, and the repair of objects that they changed.

Helm compares the manifest of the last revision that was applied as a whole with the next one; of a
custom resource it sends that difference and does not look at what is there (``createPatch`` in
https://github.com/helm/helm/blob/main/pkg/kube/client.go; where the server applies there is no such
gap). What a run has written that was killed, refused half-way or late is in neither manifest, and
would stay for ever. So the revision of such a run is marked, and the mark goes only when a later
run is through and has been gone over: fields are set to what it says, and objects that only the
marked revision knows are taken away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
import dataclasses
from typing import Any

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.helm import failures, manifest_diff, release_secret
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.model import Json, names
from magnum.drivers.k8s_capi_helm.values import merge

LOG = logging.getLogger(__name__)

#: Annotation of the Secret of a revision that may have left something: its status before. Helm
#: drops it when it writes the Secret itself, and then has taken all of that into account.
MARK = "k8s-capi-helm.magnum.openstack.org/half-done"
#: Status of a release whose newest revision is deployed, while an older one is not gone over yet.
HALF_DONE = "half-done"
_DEPLOYED = "deployed"
_FAILED = "failed"
_INSTALLING = "pending-install"
_KEEP = ("helm.sh/resource-policy", "keep")


@dataclasses.dataclass(frozen=True, slots=True)
class ObjectRepair:
    """What is to be done to one object.

    :ivar manifest: the object as it is written in one of the two revisions.
    :ivar patch: a JSON merge patch; None to delete it.
    """

    manifest: Json
    patch: Json | None

    @property
    def name(self) -> str:
        """Of the object."""
        return str(self.manifest["metadata"]["name"])


def is_interrupted(status: str) -> bool:
    """Whether a revision of this status may have left something."""
    return status in release_secret.PENDING or status == _FAILED


def with_mark(secret: Json) -> Json:
    """The Secret of a revision whose run is over: failed for Helm, and to be gone over."""
    found = release_secret.with_status(secret, _FAILED)
    notes = found["metadata"].get("annotations") or {}
    found["metadata"]["annotations"] = {**notes, MARK: release_secret.label(secret, "status")}
    return found


def is_marked(secret: Json) -> bool:
    return MARK in (secret["metadata"].get("annotations") or {})


def without_mark(secret: Json) -> Json:
    """The Secret of a revision that was gone over."""
    status = release_secret.label(secret, "status")
    found = release_secret.with_status(secret, "superseded" if status == _DEPLOYED else status)
    notes = found["metadata"].get("annotations") or {}
    found["metadata"]["annotations"] = {key: notes[key] for key in notes if key != MARK}
    return found


def remaining(secrets: Iterable[Json]) -> list[Json]:
    """Revisions that are to be gone over, oldest first; *secrets* are all of the release.

    Two that are deployed tell of a helm that was late: it came to its end after another one had
    begun, and each marks only those as superseded that it knows.
    """
    *older, newest = sorted(secrets, key=release_secret.revision)
    is_whole = release_secret.label(newest, "status") == _DEPLOYED
    return [
        one
        for one in older
        if is_marked(one) or (is_whole and release_secret.label(one, "status") == _DEPLOYED)
    ]


def effective_status(secrets: Iterable[Json], status: str) -> str:
    """What a release is, all of whose revisions are *secrets*.

    :param status: of the newest one.
    """
    listed = list(secrets)
    if status == _DEPLOYED:
        return HALF_DONE if remaining(listed) else status
    began = any(_note(one, MARK) == _INSTALLING for one in listed)
    whole = any(release_secret.label(one, "status") in release_secret.WHOLE for one in listed)
    return _INSTALLING if began and not whole else status


def last_complete(secrets: Iterable[Json]) -> int:
    """The newest revision that was applied as a whole; 0 for none."""
    found = (one for one in secrets if release_secret.label(one, "status") in release_secret.WHOLE)
    return max((release_secret.revision(one) for one in found), default=0)


def repair_objects(
    kube: KubeClient, namespace: str, release: str, stop: Callable[[], bool]
) -> None:
    """Put right what revisions have left that were not applied as a whole.

    :param stop: asked before each change; whether the release's lock is lost.
    :raises errors.Busy: it is.
    :raises errors.DriverError: the management cluster cannot be used.
    """
    secrets = kube.list(names.SECRET, namespace, release_secret.labels(release))
    whole = release_secret.newest(secrets)
    if whole is None:
        return
    for half in remaining(secrets):
        # Nothing goes as long as something else may point to it.
        for repair in sorted(repairs(half, whole), key=lambda one: one.patch is None):
            if stop():
                raise failures.lock_lost(namespace, release, "objects were put right")
            _repair(kube, namespace, release, repair)
        kube.replace(names.SECRET, without_mark(half))


def _repair(kube: KubeClient, namespace: str, release: str, repair: ObjectRepair) -> None:
    what = f"Release {namespace}/{release}: {repair.manifest['kind']} {repair.name}"
    place = repair.manifest["metadata"].get("namespace") or namespace
    try:
        kind = kube.kind_of(repair.manifest)
        if repair.patch is not None:
            kube.patch(kind, place, repair.name, repair.patch)
            LOG.info("%s is restored to the deployed revision after an interrupted Helm run.", what)
            return
        found = kube.get(kind, place, repair.name)
        if found is not None and _is_of(found, namespace, release):
            kube.delete(kind, place, repair.name, uid=found["metadata"]["uid"])
            LOG.info("%s is deleted: only an interrupted Helm run created it.", what)
    except errors.DriverError as error:
        if error.retryable:
            raise
        # Helm has applied the release as a whole; to try again would get nobody further.
        LOG.warning("%s cannot be restored after an interrupted Helm run: %s", what, error.detail)


def repairs(half: Json, whole: Json) -> Iterator[ObjectRepair]:
    """What brings objects that have something of one revision to what another one says.

    :param half: the Secret of the revision that may have left something.
    :param whole: the Secret of one that was applied since, as a whole.
    """
    before, after = _documents(half), _documents(whole)
    for key, old in before.items():
        new = after.get(key)
        if new is None:
            if _note(old, _KEEP[0]) != _KEEP[1]:
                yield ObjectRepair(old, None)
        # Helm compares objects of the built-in kinds with what is there, and so does the server.
        elif not _is_built_in(key[0]) and not release_secret.is_server_side(whole):
            patch = merge.merge_patch(old, new)
            if patch:
                yield ObjectRepair(new, patch)


def _documents(secret: Json) -> dict[tuple[str, str, str], Json]:
    """The objects of a revision, hooks left out; by group, kind and name, as Helm tells them."""
    found = {}
    for document in release_secret.documents(release_secret.manifest(secret)):
        group = document["apiVersion"].rpartition("/")[0]
        found[group, document["kind"], document["metadata"]["name"]] = document
    return found


def _is_built_in(group: str) -> bool:
    return "." not in group or group.endswith(".k8s.io")


def _is_of(found: Json, namespace: str, release: str) -> bool:
    """Whether an object says that it belongs to a release."""
    place = _note(found, manifest_diff.RELEASE_NAMESPACE)
    return (place, _note(found, manifest_diff.RELEASE_NAME)) == (namespace, release)


def _note(document: Json, key: str) -> Any:
    return (document["metadata"].get("annotations") or {}).get(key)
