# SPDX-License-Identifier: Apache-2.0
"""The client of the management cluster: verbs on objects, bounded in time and attempts."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Container, Iterator, Mapping
import json
from typing import Any, TypeVar

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.kube.discovery import Discovery
from magnum.drivers.k8s_capi_helm.kube.http.circuit_breaker import CircuitBreaker
from magnum.drivers.k8s_capi_helm.kube.http.request import (
    APPLY_PATCH,
    delete_options,
    DRY_RUN,
    MERGE_PATCH,
    not_found_error,
    refusal,
    unreachable,
    watch_query,
)
from magnum.drivers.k8s_capi_helm.kube.http.transport import Transport
from magnum.drivers.k8s_capi_helm.model import Json, names
from magnum.drivers.k8s_capi_helm.model.management_cluster import (
    as_management_cluster,
    ManagementCluster,
)

LOG = logging.getLogger(__name__)

_Kept = TypeVar("_Kept")


class KubeClient:
    """Plain JSON in and out; only errors of this driver come out.

    It is safe to share between threads, and made without any I/O. The identity is read again when
    the kubeconfig, or a file that it refers to, has other contents.

    :param kubeconfig: path from the configuration, None to look in the usual places; or the
        management cluster as it is configured.
    :param connect_timeout: seconds for a connection to come about.
    :param read_timeout: seconds without a byte of the answer, and for the whole of it.
    :param pause: seconds before the second attempt, growing and jittered after; 0 in tests.
    :param breaker_failures: attempts in a row without an answer after which requests fail at once
        for a while; 0 for never.
    :param breaker_pause: seconds that this lasts at most until one request tries again.
    """

    def __init__(
        self,
        kubeconfig: str | ManagementCluster | None,
        *,
        connect_timeout: float = 5,
        read_timeout: float = 30,
        pause: float = 0.2,
        breaker_failures: int = 5,
        breaker_pause: float = 15,
    ) -> None:
        self._breaker = CircuitBreaker(
            failures=breaker_failures,
            max_pause=breaker_pause,
            max_wait=2 * (connect_timeout + read_timeout),
            management=as_management_cluster(kubeconfig).metrics_label,
        )
        self._wire = Transport(
            kubeconfig,
            connect_timeout=connect_timeout,
            read_timeout=read_timeout,
            pause=pause,
            breaker=self._breaker,
        )
        self._kinds = Discovery(self._wire)

    @property
    def kubeconfig_path(self) -> str | None:
        """The kubeconfig in force, for helm; None in a pod with a service account."""
        return self._wire.kubeconfig_path

    @property
    def context(self) -> str:
        """Its context, for helm; "" for the current one."""
        return self._wire.context

    def is_unreachable(self) -> bool:
        """Whether the last requests had no response, so that others are refused; no request."""
        return self._breaker.is_open()

    def get(self, kind: names.Kind, namespace: str | None, name: str) -> Json | None:
        """One object, or None when it is not there.

        :raises errors.ManagementUnreachable: no answer, or trouble in the server.
        :raises errors.ManagementRefused: not allowed, or the kind is not served.
        """
        try:
            return self._kinds.exchange("GET", kind, namespace, name, verb="read")
        except errors.NotAllowed:
            if self._kinds.is_namespace_missing(kind, namespace):
                return None
            raise

    def kind_of(self, manifest: Json) -> names.Kind:
        """The kind of any manifest, in the manifest's version; the server is asked once.

        :raises errors.ManagementRefused: the server does not have it.
        :raises errors.DriverError: as for get.
        """
        return self._kinds.kind_of(manifest)

    def find(self, manifest: Json, namespace: str) -> Json | None:
        """The object that a manifest of any kind is about, in the manifest's version; None without.

        :param namespace: where it is, if the manifest does not say.
        :raises errors.DriverError: as for get.
        """
        metadata, kind = manifest["metadata"], self.kind_of(manifest)
        return self.get(kind, metadata.get("namespace") or namespace, metadata["name"])

    def list(
        self,
        kind: names.Kind,
        namespace: str | None,
        selector: Mapping[str, str] | None = None,
        *,
        metadata_only: bool = False,
    ) -> builtins.list[Json]:
        """All objects of a kind that have the labels of *selector*, in the server's order.

        :param namespace: None for all namespaces, which the driver's own role does not allow.
        :param metadata_only: nothing but ``metadata`` of each is sent: no data of a Secret.
        :raises errors.DriverError: as for get.
        """
        read = self._kinds.read_metadata if metadata_only else self._kinds.read_objects
        try:
            return read(kind, namespace, selector)
        except errors.NotAllowed:
            if self._kinds.is_namespace_missing(kind, namespace):
                return []
            raise

    def clock_difference(self) -> int | None:
        """Seconds that this host's clock was ahead of the server's in the last minute, if known."""
        return self._wire.clock_check.difference

    def namespaced_kinds(self) -> builtins.list[names.Kind]:
        """All kinds of objects in namespaces that can be listed; raises as get does."""
        return self._kinds.namespaced_kinds()

    def identity(self) -> str:
        """A text that is another one when the kubeconfig says something else; no request.

        :raises errors.ManagementRefused: the kubeconfig cannot be used.
        """
        return self._wire.identity()

    def snapshot(
        self, kind: names.Kind, keep: Callable[[Json], _Kept | None], label: str = ""
    ) -> tuple[builtins.list[_Kept], str]:
        """All objects of a kind in all namespaces, and the resourceVersion that they were read at.

        :param keep: what is wanted of an object; None if nothing. Each page goes when it is read.
        :param label: only objects that have this label; "" for all.
        :raises errors.DriverError: as for get.
        """
        selector = {label: None} if label else None
        objects, since = self._kinds.read_all(kind, None, selector, keep)
        if not since:
            raise unreachable(f"{kind.plural}: a list without a resourceVersion")
        return objects, since

    def revision(self, kind: names.Kind) -> str:
        """The current resourceVersion of all objects of a kind; one is read. Raises as get does."""
        page = next(self._kinds.pages(kind, None, None, 1), {})
        return str((page.get("metadata") or {}).get("resourceVersion") or "")

    def changes(
        self, kind: names.Kind, since: str, seconds: int, label: str = ""
    ) -> Iterator[tuple[str, Json]]:
        """What happens to objects of a kind in all namespaces, until the server ends it.

        :param since: resourceVersion of a snapshot or of an earlier change.
        :param seconds: after which the server is asked to end it.
        :param label: as for :meth:`snapshot`.
        :returns: ADDED, MODIFIED or DELETED with the object, or BOOKMARK with an object that has a
            resourceVersion only.
        :raises errors.Conflict: *since* is too long ago (410 Gone): a new snapshot is needed.
        :raises errors.DriverError: otherwise as for get. Something may have been missed.
        """
        extra = {"verb": "watch", "query": watch_query(since, seconds, label)}
        request = self._kinds.request("GET", kind, None, None, None, extra)
        for event in self._wire.stream(request, seconds):
            obj = event.get("object") or {}
            if event.get("type") == "ERROR":
                code = int(obj.get("code") or 500)
                raise refusal(request, code, json.dumps(obj).encode())
            yield str(event.get("type")), {**obj, "kind": kind.name}

    def create(self, kind: names.Kind, manifest: Json) -> Json:
        """Make an object.

        :raises errors.Conflict: there is one of that name.
        :raises errors.DriverError: otherwise as for get. After ManagementUnreachable it may exist.
        """
        return self._send_manifest(
            "POST", kind, manifest, verb="create", repeatable=False, new_role=True
        )

    def replace(self, kind: names.Kind, manifest: Json) -> Json:
        """Overwrite an object, unless it has changed since *manifest* was read.

        :param manifest: the whole object with its ``metadata.resourceVersion``.
        :raises errors.Conflict: it has changed, or is gone.
        :raises ValueError: no resourceVersion, so nothing could be compared.
        :raises errors.DriverError: otherwise as for get. After ManagementUnreachable it may have
            been done.
        """
        if not manifest["metadata"].get("resourceVersion"):
            raise ValueError("replace needs metadata.resourceVersion")
        return self._send_manifest("PUT", kind, manifest, verb="change", repeatable=False)

    def apply(self, kind: names.Kind, manifest: Json) -> Json:
        """Make an object, or set the fields of *manifest* on it, as this driver's field manager.

        Server-side apply with force: fields set by others and not in *manifest* stay as they are
        (https://kubernetes.io/docs/reference/using-api/server-side-apply/).

        :raises errors.DriverError: as for get.
        """
        query = [("fieldManager", names.FIELD_MANAGER), ("force", "true")]
        return self._send_manifest(
            "PATCH", kind, manifest, verb="apply", query=query, content_type=APPLY_PATCH
        )

    def patch(
        self, kind: names.Kind, namespace: str | None, name: str, merge: Json, *, dry: bool = False
    ) -> Json:
        """Change some fields of an object by a JSON merge patch (RFC 7386).

        :param merge: with ``metadata.resourceVersion`` in it, the server compares that first.
        :param dry: whether the server only says what the object would be, and stores nothing.
        :raises errors.Conflict: it has changed, or is gone.
        :raises errors.DriverError: otherwise as for get.
        """
        extra: dict[str, Any] = {"content_type": MERGE_PATCH, "query": DRY_RUN if dry else ()}
        extra["repeatable"] = not (merge.get("metadata") or {}).get("resourceVersion")
        reply = self._kinds.exchange(
            "PATCH", kind, namespace, name, verb="change", body=merge, **extra
        )
        if reply is None:
            raise not_found_error(kind, namespace, name)
        return reply

    def delete(
        self,
        kind: names.Kind,
        namespace: str | None,
        name: str,
        *,
        uid: str | None = None,
        version: str | None = None,
    ) -> bool:
        """Have an object deleted; its finalizers may keep it there for a while.

        :param uid: delete only this very object, not a later one of the same name.
        :param version: delete it only if this is still its resourceVersion.
        :returns: False when it is not there.
        :raises errors.Conflict: the object of that name has another uid, or another version.
        :raises errors.DriverError: otherwise as for get.
        """
        body = delete_options(uid, version)
        obj = self._kinds.exchange("DELETE", kind, namespace, name, verb="delete", body=body)
        return obj is not None

    def delete_collection(
        self,
        kind: names.Kind,
        namespace: str,
        selector: Mapping[str, str],
        *,
        keep: Container[str] = (),
        level: int = logging.INFO,
    ) -> None:
        """Delete the objects with these labels but those named in *keep*; each is logged first.

        An object that is created meanwhile under one of these names stays.

        :raises errors.DriverError: as for :meth:`list` and :meth:`delete`.
        """
        # The API's own deletecollection would take what is created meanwhile, too.
        for item in self.list(kind, namespace, selector):
            name, uid = item["metadata"]["name"], item["metadata"]["uid"]
            if name not in keep:
                LOG.log(level, "%s %s in %s is deleted", kind.name, name, namespace)
                self.delete(kind, namespace, name, uid=uid)

    def served_version(self, kind: names.Kind) -> str:
        """The first of a kind's versions that the server has, kept until a request contradicts.

        :raises errors.ManagementRefused: the server has the kind in none of them.
        :raises errors.DriverError: otherwise as for get.
        """
        return self._kinds.served_version(kind)

    def _send_manifest(self, method: str, kind: names.Kind, manifest: Json, **extra: Any) -> Json:
        metadata = manifest["metadata"]
        # A review (SelfSubjectReview and its like) is made without a name.
        namespace, name = metadata.get("namespace"), metadata.get("name")
        if kind.namespaced and not namespace:
            raise ValueError(f"{kind.name} '{name}' needs metadata.namespace")
        reply = self._kinds.exchange(method, kind, namespace, name, body=manifest, **extra)
        if reply is None:
            raise not_found_error(kind, namespace, name)
        return reply
