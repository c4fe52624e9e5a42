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
from magnum.drivers.k8s_capi_helm.model import Json, LiveRelease, names
from magnum.drivers.k8s_capi_helm.values.tree import merge

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
#: Group, kind and name.
ObjectKey = tuple[str, str, str]


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
    marked = release_secret.with_status(secret, _FAILED)
    annotations = marked["metadata"].get("annotations") or {}
    marked["metadata"]["annotations"] = {
        **annotations,
        MARK: release_secret.release_label(secret, "status"),
    }
    return marked


def is_marked(secret: Json) -> bool:
    return MARK in (secret["metadata"].get("annotations") or {})


def without_mark(secret: Json) -> Json:
    """The Secret of a revision that was gone over."""
    status = release_secret.release_label(secret, "status")
    unmarked = release_secret.with_status(secret, "superseded" if status == _DEPLOYED else status)
    annotations = unmarked["metadata"].get("annotations") or {}
    unmarked["metadata"]["annotations"] = {
        key: annotations[key] for key in annotations if key != MARK
    }
    return unmarked


def interrupted_revisions(secrets: Iterable[Json]) -> list[Json]:
    """Revisions that are to be gone over, oldest first; *secrets* are all of the release.

    Two that are deployed tell of a helm that was late: it came to its end after another one had
    begun, and each marks only those as superseded that it knows.
    """
    *older, newest = sorted(secrets, key=release_secret.revision)
    is_whole = release_secret.release_label(newest, "status") == _DEPLOYED
    return [
        secret
        for secret in older
        if is_marked(secret)
        or (is_whole and release_secret.release_label(secret, "status") == _DEPLOYED)
    ]


def compared_revisions(secrets: Iterable[Json]) -> list[Json]:
    """The revisions with which a run of Helm, and the repair after it, compare what is new.

    :param secrets: all of the release; it is not pending.
    :returns: Helm's own first, then those that would be gone over, oldest first.
    """
    revisions = sorted(secrets, key=release_secret.revision)
    if not revisions:
        return []
    newest = revisions[-1]
    deployed = [secret for secret in revisions if _status(secret) == _DEPLOYED]
    compared = deployed[-1] if deployed else newest
    others = [
        secret
        for secret in revisions
        if secret is not compared
        and (
            is_marked(secret)
            or secret in deployed
            or (secret is newest and is_interrupted(_status(secret)))
        )
    ]
    return [compared, *others]


def effective_status(secrets: Iterable[Json], status: str) -> str:
    """What a release is, all of whose revisions are *secrets*.

    :param status: of the newest one.
    """
    revisions = list(secrets)
    if status == _DEPLOYED:
        return HALF_DONE if interrupted_revisions(revisions) else status
    is_installing = any(_note(secret, MARK) == _INSTALLING for secret in revisions)
    has_whole = any(
        release_secret.release_label(secret, "status") in release_secret.WHOLE
        for secret in revisions
    )
    return _INSTALLING if is_installing and not has_whole else status


def last_complete(secrets: Iterable[Json]) -> int:
    """The newest revision that was applied as a whole; 0 for none."""
    complete = (
        secret
        for secret in secrets
        if release_secret.release_label(secret, "status") in release_secret.WHOLE
    )
    return max((release_secret.revision(secret) for secret in complete), default=0)


def effective_release(secrets: Iterable[Json]) -> LiveRelease | None:
    """What all revisions of a release say, the newest one with its data; None without any.

    :raises errors.HelmRefused: it is not readable.
    """
    revisions = list(secrets)
    newest = release_secret.newest_revision(revisions)
    if newest is None:
        return None
    decoded = release_secret.decode(newest)
    status = effective_status(revisions, decoded.status)
    return dataclasses.replace(decoded, status=status, whole=last_complete(revisions))


def repair_objects(
    kube: KubeClient, namespace: str, release: str, stop: Callable[[], bool]
) -> None:
    """Put right what revisions have left that were not applied as a whole.

    :param stop: asked before each change; whether the release's lock is lost.
    :raises errors.Busy: it is.
    :raises errors.DriverError: the management cluster cannot be used.
    """
    selector = release_secret.release_labels(release)
    listed = kube.list(names.SECRET, namespace, selector, metadata_only=True)
    if not listed or not interrupted_revisions(listed):
        return
    secrets = kube.list(names.SECRET, namespace, selector)
    whole = release_secret.newest_revision(secrets)
    if whole is None:
        return
    for interrupted in interrupted_revisions(secrets):
        # Nothing goes as long as something else may point to it.
        for repair in sorted(
            repairs(interrupted, whole), key=lambda object_repair: object_repair.patch is None
        ):
            if stop():
                raise failures.lock_lost(namespace, release, "objects were put right")
            _repair(kube, namespace, release, repair)
        kube.replace(names.SECRET, without_mark(interrupted))


def _repair(kube: KubeClient, namespace: str, release: str, repair: ObjectRepair) -> None:
    title = f"Release {namespace}/{release}: {repair.manifest['kind']} {repair.name}"
    object_namespace = repair.manifest["metadata"].get("namespace") or namespace
    try:
        kind = kube.kind_of(repair.manifest)
        if repair.patch is not None:
            kube.patch(kind, object_namespace, repair.name, repair.patch)
            LOG.info(
                "%s is restored to the deployed revision after an interrupted Helm run.", title
            )
            return
        obj = kube.get(kind, object_namespace, repair.name)
        if obj is not None and is_of_release(obj, namespace, release):
            kube.delete(kind, object_namespace, repair.name, uid=obj["metadata"]["uid"])
            LOG.info("%s is deleted: only an interrupted Helm run created it.", title)
    except errors.DriverError as error:
        if error.retryable:
            raise
        # Helm has applied the release as a whole; to try again would get nobody further.
        LOG.warning("%s cannot be restored after an interrupted Helm run: %s", title, error.detail)


def repairs(interrupted_secret: Json, applied_secret: Json) -> Iterator[ObjectRepair]:
    """What brings objects that have something of one revision to what another one says.

    :param interrupted_secret: the Secret of the revision that may have left something.
    :param applied_secret: the Secret of one that was applied since, as a whole.
    """
    before, after = revision_objects(interrupted_secret), revision_objects(applied_secret)
    for key, old in before.items():
        new = after.get(key)
        if new is None:
            if not is_kept(old):
                yield ObjectRepair(old, None)
        # Helm compares objects of the built-in kinds with what is there, and so does the server.
        elif not is_built_in(key[0]) and not release_secret.is_server_side(applied_secret):
            patch = merge.merge_patch(old, new)
            if patch:
                yield ObjectRepair(new, patch)


def revision_objects(secret: Json) -> dict[ObjectKey, Json]:
    """The objects of a revision, hooks left out."""
    documents = release_secret.documents(release_secret.manifest(secret))
    return {object_key(document): document for document in documents}


def object_key(document: Json) -> ObjectKey:
    """By what Helm tells objects of a release apart."""
    api_group = document["apiVersion"].rpartition("/")[0]
    return api_group, document["kind"], document["metadata"]["name"]


def is_kept(document: Json) -> bool:
    """Whether Helm leaves an object that is no longer rendered."""
    return bool(_note(document, _KEEP[0]) == _KEEP[1])


def is_built_in(api_group: str) -> bool:
    """Whether the API server itself has the kinds of a group, and no definition in it."""
    return "." not in api_group or api_group.endswith(".k8s.io")


def is_of_release(obj: Json, namespace: str, release: str) -> bool:
    """Whether an object says that it belongs to a release."""
    release_namespace = _note(obj, manifest_diff.RELEASE_NAMESPACE)
    return (release_namespace, _note(obj, manifest_diff.RELEASE_NAME)) == (namespace, release)


def _status(secret: Json) -> str:
    return release_secret.release_label(secret, "status")


def _note(document: Json, key: str) -> Any:
    return (document["metadata"].get("annotations") or {}).get(key)
