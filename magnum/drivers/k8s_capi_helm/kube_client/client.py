# SPDX-License-Identifier: Apache-2.0
"""The verbs on objects of the management cluster, each bounded in time and number of attempts."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
import threading
from typing import Any

from magnum.drivers.k8s_capi_helm import errors, names
from magnum.drivers.k8s_capi_helm.kube_client.breaker import Breaker
from magnum.drivers.k8s_capi_helm.kube_client.request import (
    APPLY_PATCH,
    describe,
    is_missing_kind,
    label_query,
    MERGE_PATCH,
    missing_kind,
    path,
    Request,
)
from magnum.drivers.k8s_capi_helm.kube_client.wire import Wire
from magnum.drivers.k8s_capi_helm.model import Json

#: Objects per page of a list.
PAGE = 500


class KubeClient:
    """Plain JSON in and out; only errors of this driver come out.

    It is safe to share between threads, and made without any I/O. The identity is read again when
    the kubeconfig, or a file that it refers to, has other contents.

    :param kubeconfig: path from the configuration, None to look in the usual places.
    :param connect_timeout: seconds for a connection to come about.
    :param read_timeout: seconds without a byte of the answer, and for the whole of it.
    :param pause: seconds before the second attempt, growing and jittered after; 0 in tests.
    :param breaker_failures: attempts in a row without an answer after which requests fail at once
        for a while; 0 for never.
    :param breaker_pause: seconds that this lasts at most until one request tries again.
    """

    def __init__(
        self,
        kubeconfig: str | None,
        *,
        connect_timeout: float = 5,
        read_timeout: float = 30,
        pause: float = 0.2,
        breaker_failures: int = 5,
        breaker_pause: float = 15,
    ) -> None:
        self._wire = Wire(
            kubeconfig,
            connect_timeout=connect_timeout,
            read_timeout=read_timeout,
            pause=pause,
            breaker=Breaker(
                failures=breaker_failures,
                longest=breaker_pause,
                patience=2 * (connect_timeout + read_timeout),
            ),
        )
        self._lock = threading.Lock()
        self._served: dict[names.Kind, str] = {}

    @property
    def kubeconfig_path(self) -> str | None:
        """The kubeconfig in force, for helm; None in a pod with a service account."""
        return self._wire.kubeconfig_path

    def get(self, kind: names.Kind, namespace: str | None, name: str) -> Json | None:
        """One object, or None when it is not there.

        :raises errors.ManagementUnreachable: no answer, or trouble in the server.
        :raises errors.ManagementRefused: not allowed, or the kind is not served.
        """
        return self._on_kind("GET", kind, namespace, name, verb="read")

    def list(
        self, kind: names.Kind, namespace: str | None, selector: Mapping[str, str] | None = None
    ) -> builtins.list[Json]:
        """All objects of a kind that have the labels of *selector*, in the server's order.

        :param namespace: None for all namespaces, which the driver's own role does not allow.
        :raises errors.DriverError: as for get.
        """
        try:
            return self._pages(kind, namespace, selector, limit=PAGE)
        except errors.Conflict:
            # The continuation was too old for the server (410): one list in a single piece.
            return self._pages(kind, namespace, selector, limit=None)

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

    def patch(self, kind: names.Kind, namespace: str | None, name: str, merge: Json) -> Json:
        """Change some fields of an object by a JSON merge patch (RFC 7386).

        :param merge: with ``metadata.resourceVersion`` in it, the server compares that first.
        :raises errors.Conflict: it has changed, or is gone.
        :raises errors.DriverError: otherwise as for get.
        """
        compared = bool((merge.get("metadata") or {}).get("resourceVersion"))
        answer = self._on_kind(
            "PATCH",
            kind,
            namespace,
            name,
            verb="change",
            body=merge,
            content_type=MERGE_PATCH,
            repeatable=not compared,
        )
        if answer is None:
            raise _gone(kind, namespace, name)
        return answer

    def delete(
        self, kind: names.Kind, namespace: str | None, name: str, *, uid: str | None = None
    ) -> bool:
        """Have an object deleted; its finalizers may keep it there for a while.

        :param uid: delete only this very object, not a later one of the same name.
        :returns: False when it is not there.
        :raises errors.Conflict: the object of that name has another uid.
        :raises errors.DriverError: otherwise as for get.
        """
        options: Json = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
        }
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        return (
            self._on_kind("DELETE", kind, namespace, name, verb="delete", body=options) is not None
        )

    def served(self, kind: names.Kind) -> str:
        """The version of a kind to talk in: the first of its versions that the server has.

        Asked once and kept until a request says that it is no longer there.

        :raises errors.ManagementRefused: the server has the kind in none of them.
        :raises errors.DriverError: otherwise as for get.
        """
        if not kind.group:
            return kind.versions[0]
        with self._lock:
            known = self._served.get(kind)
        if known is not None:
            return known
        for version in kind.versions:
            api = f"{kind.group}/{version}"
            request = Request("GET", f"/apis/{api}", "read", f"the API {api}")
            answer = self._wire.send(request)
            resources = [] if answer.code == 404 else answer.json(request).get("resources", [])
            if any(resource["name"] == kind.plural for resource in resources):
                with self._lock:
                    self._served[kind] = version
                return version
        raise missing_kind(
            f"{kind.name} objects",
            f"{kind.plural}.{kind.group} is not served in {', '.join(kind.versions)}",
        )

    # ---------------------------------------------------------------------------------------------
    def _pages(
        self,
        kind: names.Kind,
        namespace: str | None,
        labels: Mapping[str, str] | None,
        *,
        limit: int | None,
    ) -> builtins.list[Json]:
        found: builtins.list[Json] = []
        query = label_query(labels) + ([("limit", str(limit))] if limit else [])
        more: builtins.list[tuple[str, str]] = []
        while True:
            page = self._on_kind("GET", kind, namespace, None, verb="list", query=query + more)
            if page is None:
                return found
            # The items of a list of a built-in kind do not say what they are.
            marks = {"apiVersion": page.get("apiVersion"), "kind": kind.name}
            found += [{**marks, **item} for item in page.get("items") or ()]
            token = (page.get("metadata") or {}).get("continue")
            if not token:
                return found
            more = [("continue", token)]

    def _send_manifest(self, method: str, kind: names.Kind, manifest: Json, **extra: Any) -> Json:
        metadata = manifest["metadata"]
        # A review (SelfSubjectReview and its like) is made without a name.
        namespace, name = metadata.get("namespace"), metadata.get("name")
        if kind.namespaced and not namespace:
            raise ValueError(f"{kind.name} '{name}' needs metadata.namespace")
        answer = self._on_kind(method, kind, namespace, name, body=manifest, **extra)
        if answer is None:
            raise _gone(kind, namespace, name)
        return answer

    def _on_kind(
        self,
        method: str,
        kind: names.Kind,
        namespace: str | None,
        name: str | None,
        *,
        body: Json | None = None,
        **extra: Any,
    ) -> Json | None:
        """The answer to a request in the version that is served; None when there is no object."""
        request = self._request(method, kind, namespace, name, body, extra)
        answer = self._wire.send(request)
        if is_missing_kind(answer.code, answer.body) and kind.group:
            # The version that was served before may be gone with an update of its provider.
            with self._lock:
                self._served.pop(kind, None)
            request = self._request(method, kind, namespace, name, body, extra)
            answer = self._wire.send(request)
        if answer.code == 404 and not is_missing_kind(answer.code, answer.body):
            return None
        return answer.json(request)

    def _request(
        self,
        method: str,
        kind: names.Kind,
        namespace: str | None,
        name: str | None,
        body: Json | None,
        extra: Mapping[str, Any],
    ) -> Request:
        version = self.served(kind)
        if (
            body is not None
            and method in ("POST", "PUT", "PATCH")
            and extra.get("content_type") != MERGE_PATCH
        ):
            group = f"{kind.group}/" if kind.group else ""
            body = {**body, "apiVersion": f"{group}{version}", "kind": kind.name}
        return Request(
            method,
            path(kind, version, namespace, None if method == "POST" else name),
            what=describe(kind, namespace, name),
            body=body,
            private=kind == names.SECRET,
            **extra,
        )


def _gone(kind: names.Kind, namespace: str | None, name: str | None) -> errors.Conflict:
    return errors.Conflict(
        f"{describe(kind, namespace, name)} is not there any more, or its namespace is not. "
        "The request will be tried again.",
        f"{kind.plural}: HTTP 404",
    )
