# SPDX-License-Identifier: Apache-2.0
"""The objects of namespaces, read with one list of each kind, whatever the number of clusters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from magnum.drivers.k8s_capi_helm.helm import release_secret
from magnum.drivers.k8s_capi_helm.lease import codec
from magnum.drivers.k8s_capi_helm.model import (
    conditions,
    Json,
    LiveRelease,
    names,
    ReleaseRecord,
    secrets,
)
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation


class NamespaceReader:
    """The objects, releases and records of the namespaces of a management cluster.

    They are as they were when the first of them was asked for. What cannot be listed is asked for
    again with the next cluster.
    """

    def __init__(self, run: Reconciliation) -> None:
        self._kube, self._helm = run.clients.kube, run.clients.helm
        self._objects: dict[tuple[names.Kind, str], Mapping[str, Json]] = {}
        self._releases: dict[str, Mapping[str, LiveRelease]] = {}

    def find(self, manifest: Json, namespace: str) -> Json | None:
        """The object that a manifest is about; None if it does not exist.

        :raises errors.DriverError: the objects cannot be read.
        """
        kind = self._kube.kind_of(manifest)
        if not kind.namespaced:
            return self._kube.find(manifest, namespace)
        listed = self._list(kind, manifest["metadata"].get("namespace") or namespace)
        return listed.get(conditions.name(manifest))

    def find_all(self, manifests: Iterable[Json], namespace: str) -> list[Json]:
        """The objects that manifests are about, as far as they exist.

        :raises errors.DriverError: the objects cannot be read.
        """
        found = (self.find(manifest, namespace) for manifest in manifests)
        return [obj for obj in found if obj is not None]

    def live(self, namespace: str, release: str) -> LiveRelease | None:
        """The newest revision of a release, as :meth:`HelmClient.live`.

        Only one that is not deployed takes requests of its own.

        :raises errors.DriverError: the releases cannot be read.
        """
        if namespace not in self._releases:
            self._releases[namespace] = self._helm.deployed_releases(namespace)
        return self._releases[namespace].get(release) or self._helm.live(namespace, release)

    def revisions(self, namespace: str, release: str) -> list[Json]:
        """The Secrets of all revisions of a release.

        :raises errors.DriverError: they cannot be read.
        """
        return self._labelled_secrets(namespace, release_secret.release_labels(release))

    def record(self, namespace: str, release: str) -> ReleaseRecord | None:
        """What the Lease of a release says, None without one.

        :raises errors.DriverError: the Leases cannot be read, or this one is not readable.
        """
        lease = self._list(names.LEASE, namespace).get(names.lease(release))
        return None if lease is None else codec.record(lease)

    def credential_secrets(self, owner: secrets.Owner) -> list[Json]:
        """All Secrets with a clouds.yaml that have the labels of this very cluster.

        :raises errors.DriverError: they cannot be read.
        """
        labels = {names.LABEL_UUID: owner.cluster_uuid, names.LABEL_CLUSTER_NAME: owner.release}
        found = self._labelled_secrets(owner.namespace, labels)
        return [secret for secret in found if secrets.is_credential_secret(secret)]

    def _labelled_secrets(self, namespace: str, labels: Mapping[str, str]) -> list[Json]:
        return [
            secret
            for secret in self._list(names.SECRET, namespace).values()
            if labels.items() <= conditions.mapping(secret["metadata"].get("labels")).items()
        ]

    def _list(self, kind: names.Kind, namespace: str) -> Mapping[str, Json]:
        """All objects of a kind in a namespace, by name; in the version that is asked for."""
        key = kind, namespace
        if key not in self._objects:
            listed = self._kube.list(kind, namespace)
            if kind == names.SECRET:
                listed = list(_without_superseded(listed))
            self._objects[key] = {conditions.name(obj): obj for obj in listed}
        return self._objects[key]


def _without_superseded(listed: Iterable[Json]) -> Iterator[Json]:
    """Secrets without the charts of revisions with which nothing is compared any more."""
    deployed = {
        release_secret.release_label(secret, "name")
        for secret in listed
        if release_secret.release_label(secret, "status") == "deployed"
    }
    for secret in listed:
        is_superseded = release_secret.release_label(secret, "status") == "superseded"
        if is_superseded and release_secret.release_label(secret, "name") in deployed:
            yield {key: value for key, value in secret.items() if key != "data"}
        else:
            yield secret
