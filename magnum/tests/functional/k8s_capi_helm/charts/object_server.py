# SPDX-License-Identifier: Apache-2.0
"""A Kubernetes API on loopback that keeps what it is given, for programs that reconcile objects.

It stores, lists by the existence of a label, patches and replaces; of what an API server checks it
knows the names of labels and annotations. A program under test connects with a kubeconfig, so
that nothing of the program is replaced.
"""

from __future__ import annotations

import base64
import copy
import functools
from http import server
import itertools
import json
import re
import threading
from typing import Any
from urllib import parse

from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object

#: Plural by group and version, and kind.
SERVED: dict[str, dict[str, str]] = {
    "v1": {
        "Secret": "secrets",
        "ConfigMap": "configmaps",
        "PersistentVolumeClaim": "persistentvolumeclaims",
    },
    "addons.stackhpc.com/v1alpha1": {"HelmRelease": "helmreleases", "Manifests": "manifests"},
    "cluster.x-k8s.io/v1beta2": {"Cluster": "clusters"},
    "infrastructure.cluster.x-k8s.io/v1beta1": {"OpenStackCluster": "openstackclusters"},
}
_OBJECT = re.compile(
    r"^/(?:api|apis)/(?P<version>v1|[^/]+/[^/]+)/namespaces/(?P<namespace>[^/]+)"
    r"/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?(?P<status>/status)?$"
)
_KEY = re.compile(r"^(?:(?P<prefix>[^/]{1,253})/)?[A-Za-z0-9](?:[-\w.]{0,61}[A-Za-z0-9])?$")


class Refusal(Exception):
    """The API answers with an error.

    :ivar status: of HTTP.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class ObjectServer:
    """The objects and the server; a context manager, which starts and ends it.

    :ivar writes: body, with verb and path, of each change that was accepted, in their order.
    """

    def __init__(self) -> None:
        self._objects: dict[tuple[str, str, str], Object] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self.writes: list[tuple[str, str, Object]] = []
        self._server = server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    def __enter__(self) -> ObjectServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def kubeconfig(self) -> Object:
        """How one connects to it."""
        url = f"http://127.0.0.1:{self._server.server_port}"
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "objects", "cluster": {"server": url, "insecure-skip-tls-verify": True}}
            ],
            "users": [{"name": "objects", "user": _client()}],
            "contexts": [{"name": "objects", "context": {"cluster": "objects", "user": "objects"}}],
            "current-context": "objects",
        }

    def clear(self) -> None:
        """Forget all objects and writes."""
        with self._lock:
            self._objects.clear()
            self.writes.clear()

    def put(self, found: Object) -> Object:
        """Store an object as an API server keeps it.

        :returns: a copy of what is stored.
        """
        kept = copy.deepcopy(found)
        meta = kept["metadata"]
        meta.setdefault("uid", f"uid-of-{kept['kind'].lower()}-{meta['name']}")
        meta.setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
        meta["resourceVersion"] = str(next(self._numbers))
        if "data" in kept:
            kept["data"] = dict(sorted(kept["data"].items()))
        plural = SERVED.get(kept["apiVersion"], {}).get(kept["kind"], f"{kept['kind'].lower()}s")
        self._objects[plural, meta["namespace"], meta["name"]] = kept
        return copy.deepcopy(kept)

    def get(self, kind: str, namespace: str, name: str) -> Object:
        """A copy of an object.

        :raises KeyError: it is not there.
        """
        plurals = {kind: plural for kinds in SERVED.values() for kind, plural in kinds.items()}
        return copy.deepcopy(self._objects[plurals[kind], namespace, name])

    def labelled(self, label: str) -> tuple[tuple[str, str], ...]:
        """Plural and name of the objects that have a label."""
        return tuple(
            sorted(
                (plural, name)
                for (plural, _, name), one in self._objects.items()
                if label in (one["metadata"].get("labels") or {})
            )
        )

    def answer(self, verb: str, url: str, body: Object) -> Object:
        """The answer to a request.

        :raises Refusal: it is an error.
        """
        asked = parse.urlsplit(url)
        if verb == "GET" and (described := _described(asked.path)) is not None:
            return described
        found = _OBJECT.match(asked.path)
        if found is None:
            raise Refusal(404, "the server could not find the requested resource")
        plural, namespace, name = found["plural"], found["namespace"], found["name"]
        with self._lock:
            if name is None:
                if verb == "POST":
                    body["metadata"].setdefault("namespace", namespace)
                    return self.put(body)
                label = dict(parse.parse_qsl(asked.query)).get("labelSelector")
                found_now = self._listed(plural, namespace, label)
                return {"items": found_now, "metadata": {"resourceVersion": "1"}}
            key = plural, namespace, name
            if key not in self._objects:
                raise Refusal(404, f'{plural} "{name}" not found')
            if verb == "DELETE":
                return self._objects.pop(key)
            if verb in ("PATCH", "PUT"):
                self._change(key, body, status=bool(found["status"]), whole=verb == "PUT")
                self.writes.append((verb, asked.path, copy.deepcopy(body)))
            return copy.deepcopy(self._objects[key])

    def _listed(self, plural: str, namespace: str, label: str | None) -> list[Object]:
        return [
            copy.deepcopy(one)
            for (kind, place, _), one in self._objects.items()
            if (kind, place) == (plural, namespace)
            and (label is None or label in (one["metadata"].get("labels") or {}))
        ]

    def _change(self, key: tuple[str, str, str], body: Object, status: bool, whole: bool) -> None:
        before = self._objects[key]
        expected = body.get("metadata", {}).get("resourceVersion")
        if expected not in (None, before["metadata"]["resourceVersion"]):
            raise Refusal(409, "the object has been modified")
        wanted = {"status": body.get("status")} if status else body
        after = {**before, **wanted} if whole else _merged(before, wanted)
        for field in ("labels", "annotations"):
            for name in after["metadata"].get(field) or {}:
                if not _KEY.match(name):
                    raise Refusal(422, f"metadata.{field}: Invalid value: {name!r}")
        after["metadata"]["resourceVersion"] = str(next(self._numbers))
        self._objects[key] = after

    def _handler(self) -> type[server.BaseHTTPRequestHandler]:
        objects = self

        class Handler(server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # head and body in one packet, without a delayed acknowledgement

            def _reply(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else {}
                status, answer = 200, {}
                try:
                    answer = objects.answer(self.command, self.path, body)
                except Refusal as error:
                    status = error.status
                    answer = {"kind": "Status", "message": str(error), "reason": "Refused"}
                text = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _reply

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        return Handler


@functools.cache
def _client() -> Object:
    """A client certificate, without which some programs do not connect; it is not verified."""
    from sandbox.management import pki

    pair = pki.make_pair("objects")
    pems = {"client-certificate-data": pair.pem, "client-key-data": pair.key_pem}
    return {name: base64.b64encode(pem).decode() for name, pem in pems.items()}


def _described(path: str) -> Object | None:
    """What discovery tells of a group or of a version, None for any other path."""
    group = path.removeprefix("/apis/")
    for version, kinds in SERVED.items():
        if path == f"/apis/{version}" or path == f"/api/{version}":
            resources: list[Object] = []
            for kind, plural in kinds.items():
                named = {"kind": kind, "singularName": kind.lower(), "namespaced": True}
                resources += [{"name": plural, **named}, {"name": f"{plural}/status", **named}]
            return {"kind": "APIResourceList", "resources": resources}
        if version.startswith(f"{group}/"):
            return {"kind": "APIGroup", "preferredVersion": {"groupVersion": version}}
    return None


def _merged(below: Any, above: Any) -> Any:
    """JSON Merge Patch, RFC 7396."""
    if not isinstance(above, dict):
        return copy.deepcopy(above)
    result = copy.deepcopy(below) if isinstance(below, dict) else {}
    for key, value in above.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key), value)
    return result
