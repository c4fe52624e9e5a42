# SPDX-License-Identifier: Apache-2.0
"""Requests for objects of a kind, in a version that the management cluster serves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
import threading
from typing import Any, TypeVar

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.kube.http import response
from magnum.drivers.k8s_capi_helm.kube.http.request import (
    DISCOVERY,
    is_about,
    is_missing_kind,
    label_query,
    MERGE_PATCH,
    METADATA_LIST,
    missing_kind,
    object_reference,
    path,
    Request,
    unreachable,
)
from magnum.drivers.k8s_capi_helm.kube.http.transport import Transport
from magnum.drivers.k8s_capi_helm.model import Json, names

#: Objects per page of a list. Most of what a page takes in memory is not kept (``managedFields``),
#: and leaves holes between what is.
PAGE = 50
_Kept = TypeVar("_Kept")


class Discovery:
    """The versions that are served, and requests in them; safe to share between threads."""

    def __init__(self, transport: Transport) -> None:
        self._wire = transport
        self._lock = threading.Lock()
        self._served: dict[names.Kind, str] = {}
        self._found: dict[tuple[str, str], names.Kind] = {}

    def served_version(self, kind: names.Kind) -> str:
        """As :meth:`KubeClient.served_version`."""
        if not kind.group:
            return kind.versions[0]
        with self._lock:
            known = self._served.get(kind)
        if known is not None:
            return known
        for version in kind.versions:
            api = f"{kind.group}/{version}"
            if any(
                resource["name"] == kind.plural for resource in self._resources(f"/apis/{api}", api)
            ):
                with self._lock:
                    self._served[kind] = version
                return version
        raise missing_kind(
            f"{kind.name} objects",
            f"{kind.plural}.{kind.group} is not served in {', '.join(kind.versions)}",
        )

    def kind_of(self, manifest: Json) -> names.Kind:
        """As :meth:`KubeClient.kind_of`."""
        api, name = str(manifest["apiVersion"]), str(manifest["kind"])
        with self._lock:
            known = self._found.get((api, name))
        if known is not None:
            return known
        api_group, _, version = api.rpartition("/")
        for resource in self._resources(f"/apis/{api}" if api_group else f"/api/{api}", api):
            if resource["kind"] == name and "/" not in resource["name"]:
                kind = names.Kind(
                    api_group, name, resource["name"], (version,), resource["namespaced"]
                )
                with self._lock:
                    self._found[api, name] = kind
                return kind
        raise missing_kind(f"{name} objects", f"{name} is not served in {api}")

    def namespaced_kinds(self) -> list[names.Kind]:
        """As :meth:`KubeClient.namespaced_kinds`."""
        kinds: list[names.Kind] = []
        for root in ("/api", "/apis"):
            request = Request("GET", root, "read", "the kinds that it has", accept=DISCOVERY)
            body = self._wire.send(request).json(request)
            try:
                if reason := response.not_a_discovery(body):
                    raise unreachable(f"GET {root}: {reason}")
                kinds += response.namespaced_kinds(body)
            except (AttributeError, KeyError, TypeError) as error:
                raise unreachable(f"GET {root}: no discovery: {error!r}") from None
        with self._lock:
            self._served.update({kind: kind.versions[0] for kind in kinds})
        return kinds

    def _resources(self, path_of_api: str, api: str) -> list[Json]:
        """What an API has; nothing where it is not served."""
        request = Request("GET", path_of_api, "read", f"the API {api}")
        reply = self._wire.send(request)
        return [] if reply.code == 404 else list(reply.json(request).get("resources", []))

    def is_namespace_missing(self, kind: names.Kind, namespace: str | None) -> bool:
        """Whether there is no such namespace, where objects of this kind would be in one.

        The driver's role is bound in each, so that without one the server does not tell that there
        is nothing, but that it may not be read.
        """
        if namespace is None or not kind.namespaced:
            return False
        try:
            obj = self.exchange("GET", names.NAMESPACE, None, namespace, verb="read")
        except errors.ManagementRefused:
            return False
        return obj is None

    def exchange(
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
        request = self.request(method, kind, namespace, name, body, extra)
        reply = self._wire.send(request)
        if is_missing_kind(reply.code, reply.body) and kind.group:
            # The version that was served before may be gone with an update of its provider.
            with self._lock:
                self._served.pop(kind, None)
            request = self.request(method, kind, namespace, name, body, extra)
            reply = self._wire.send(request)
        reads = method in ("GET", "DELETE")
        if is_about(reply.code, reply.body, (name,) if reads else (name, namespace)):
            return None
        obj = reply.json(request)
        is_object = method != "DELETE" and name is not None
        reason = response.not_the_object(obj, kind, namespace, name) if is_object else ""
        if reason:
            raise unreachable(f"{kind.plural}: {reason}")
        return obj

    def request(
        self,
        method: str,
        kind: names.Kind,
        namespace: str | None,
        name: str | None,
        body: Json | None,
        extra: Mapping[str, Any],
    ) -> Request:
        version = self.served_version(kind)
        if (
            body is not None
            and method in ("POST", "PUT", "PATCH")
            and extra.get("content_type") != MERGE_PATCH
        ):
            prefix = f"{kind.group}/" if kind.group else ""
            body = {**body, "apiVersion": f"{prefix}{version}", "kind": kind.name}
        return Request(
            method,
            path(kind, version, namespace, None if method == "POST" else name),
            subject=object_reference(kind, namespace, name),
            body=body,
            private=kind == names.SECRET,
            **extra,
        )

    def pages(
        self,
        kind: names.Kind,
        namespace: str | None,
        labels: Mapping[str, str | None] | None,
        limit: int | None,
        **extra: Any,
    ) -> Iterator[Json]:
        """The pages of a list; their items say what they are."""
        query = label_query(labels) + ([("limit", str(limit))] if limit else [])
        continuation: list[tuple[str, str]] = []
        while True:
            page = self.exchange(
                "GET", kind, namespace, None, verb="list", query=query + continuation, **extra
            )
            if extra.get("accept") == METADATA_LIST:
                page = response.metadata_page(page)
            if reason := response.not_a_list(page, kind, namespace, labels or {}):
                raise unreachable(f"{kind.plural}: {reason}")
            assert page is not None  # or it would be no list
            # The items of a list of a built-in kind do not say what they are.
            marks = {"apiVersion": page.get("apiVersion"), "kind": kind.name}
            yield {**page, "items": [{**marks, **item} for item in page["items"]]}
            token = (page.get("metadata") or {}).get("continue")
            if not token:
                return
            continuation = [("continue", token)]

    def read_objects(
        self, kind: names.Kind, namespace: str | None, selector: Mapping[str, str] | None
    ) -> list[Json]:
        """All objects of a kind with these labels."""
        return self.read_all(kind, namespace, selector, lambda item: item)[0]

    def read_metadata(
        self, kind: names.Kind, namespace: str | None, selector: Mapping[str, str] | None
    ) -> list[Json]:
        """Only ``metadata`` of each of them, which the server sends without the rest."""

        def keep(item: Json) -> Json:
            return {"metadata": item["metadata"]}

        return self.read_all(kind, namespace, selector, keep, accept=METADATA_LIST)[0]

    def read_all(
        self,
        kind: names.Kind,
        namespace: str | None,
        selector: Mapping[str, str | None] | None,
        keep: Callable[[Json], _Kept | None],
        **extra: Any,
    ) -> tuple[list[_Kept], str]:
        """What is wanted of all objects of a kind, and the resourceVersion of their list.

        :param keep: what is wanted of an object; None if nothing.
        :param extra: fields of :class:`Request`.
        """

        def read(limit: int | None) -> tuple[list[_Kept], str]:
            objects: list[_Kept] = []
            since = ""
            for page in self.pages(kind, namespace, selector, limit, **extra):
                objects += [
                    trimmed for item in page["items"] if (trimmed := keep(item)) is not None
                ]
                since = str((page.get("metadata") or {}).get("resourceVersion") or "")
            return objects, since

        try:
            return read(PAGE)
        except errors.Conflict:
            # The continuation was too old for the server (410), as where a starved process takes
            # minutes between its pages: one list in a single piece.
            return read(None)
