# SPDX-License-Identifier: Apache-2.0
"""Read the revisions of a release: the Secret of the newest one, and the metadata of the others.

Each Secret has the whole chart, and Helm keeps ten of them; what the older ones are asked for is in
their labels and annotations.
"""

from __future__ import annotations

import contextlib
import threading

import cachetools

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.helm import recovery, release_secret
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.model import Json, LiveRelease, names

#: Attempts to read the newest revision as it was in the list of all.
_ATTEMPTS = 3
#: Up to so many revisions, one request for all of them is cheaper than two.
_SHORT = 2
#: Releases whose number of revisions is remembered.
_RELEASES = 10_000


class ReleaseHistory:
    """The revisions of all releases on a management cluster; safe to share between threads."""

    def __init__(self, kube: KubeClient) -> None:
        self._kube = kube
        self._lock = threading.Lock()
        self._counts = cachetools.LRUCache[tuple[str, str], int](_RELEASES)

    def exists(self, namespace: str, release: str) -> bool:
        """Whether there is any revision.

        :raises errors.DriverError: the management cluster cannot be used.
        """
        return bool(self._metadata(namespace, release))

    def newest(self, namespace: str, release: str) -> Json | None:
        """The Secret of the newest revision; None without any.

        :raises errors.DriverError: the management cluster cannot be used.
        """
        return release_secret.newest_revision(self.revisions(namespace, release))

    def revisions(self, namespace: str, release: str) -> list[Json]:
        """All revisions as they were at one moment, the newest one with its data.

        :raises errors.DriverError: the management cluster cannot be used.
        """
        with self._lock:
            is_short = self._counts.get((namespace, release), _SHORT + 1) <= _SHORT
        for _ in range(0 if is_short else _ATTEMPTS):
            secrets = self._newest_and_metadata(namespace, release)
            if secrets is not None:
                break
        else:
            labels = release_secret.release_labels(release)
            secrets = self._kube.list(names.SECRET, namespace, labels)
        with self._lock:
            self._counts[namespace, release] = len(secrets)
        return secrets

    def deployed_releases(self, namespace: str) -> dict[str, LiveRelease]:
        """Releases of a namespace whose newest revision is deployed, by name, with two requests.

        One that changes between the two lists, or that is not readable, is left out.

        :raises errors.DriverError: the management cluster cannot be used.
        """
        listed: dict[str, list[Json]] = {}
        for one in self._kube.list(
            names.SECRET, namespace, release_secret.OWNER, metadata_only=True
        ):
            listed.setdefault(release_secret.release_label(one, "name"), []).append(one)
        selector = {**release_secret.OWNER, **release_secret.DEPLOYED}
        releases: dict[str, LiveRelease] = {}
        for secret in self._kube.list(names.SECRET, namespace, selector):
            release = release_secret.release_label(secret, "name")
            newest = release_secret.newest_revision(listed.get(release, ()))
            if newest is None or not _is_same(newest, secret):
                continue
            revisions = [*(one for one in listed[release] if one is not newest), secret]
            with contextlib.suppress(errors.HelmRefused):
                if live := recovery.effective_release(revisions):
                    releases[release] = live
        return releases

    def _newest_and_metadata(self, namespace: str, release: str) -> list[Json] | None:
        """All revisions; None if the newest one has changed since it was listed."""
        listed = self._metadata(namespace, release)
        newest = release_secret.newest_revision(listed)
        if newest is None:
            return []
        secret = self._kube.get(names.SECRET, namespace, newest["metadata"]["name"])
        if secret is None or _version(secret) != _version(newest):
            return None
        return [*(one for one in listed if one is not newest), secret]

    def _metadata(self, namespace: str, release: str) -> list[Json]:
        labels = release_secret.release_labels(release)
        return self._kube.list(names.SECRET, namespace, labels, metadata_only=True)


def _is_same(listed: Json, secret: Json) -> bool:
    """Whether both are the same revision at the same moment."""
    is_named = listed["metadata"]["name"] == secret["metadata"]["name"]
    return is_named and _version(listed) == _version(secret)


def _version(secret: Json) -> str:
    return str(secret["metadata"].get("resourceVersion"))
