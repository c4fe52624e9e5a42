# SPDX-License-Identifier: Apache-2.0
"""The watch streams of one namespace, in order of arrival, with marks of the true moments."""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import datetime
import gzip
import json
from pathlib import Path
import threading
import time
from typing import Any

import kubernetes
import urllib3

from magnum.tests.functional.k8s_capi_helm.recording.transform import Json, trimmed
from magnum.tests.functional.k8s_capi_helm.sandbox import setting
from magnum.tests.functional.k8s_capi_helm.sandbox.management import PATHS
from sandbox.management import kubeconfig
from sandbox.management.releases import Providers

_CORE = ("Cluster", "KubeadmControlPlane", "MachineDeployment", "MachineSet", "Machine")
_OLD, _NEW = "v1beta1", "v1beta2"
_OTHERS = ("OpenStackCluster", "OpenStackServer", "HelmRelease", "Manifests")
#: Seconds after which a watch is begun anew where it ended; the end of a recording waits for it.
_TURN = 15


class Stream:
    """Records from :meth:`open` on, in one thread per kind and version.

    Each kind is watched by a connection of its own, so that across kinds the order is true to some
    ten milliseconds only, as for anybody who watches.

    :param namespace: of the cluster; it need not be there yet.
    """

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._lines: list[Json] = []
        self._lock = threading.Lock()
        self._begin = time.monotonic()
        self._ended = threading.Event()
        self.trouble = ""

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """Record while the body runs."""
        threads = [
            threading.Thread(target=self._record, args=one, daemon=True) for one in _watched()
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._ended.set()
            for thread in threads:
                thread.join(2 * _TURN)

    def mark(self, text: str, **more: Any) -> None:
        """Say what is the case at this moment."""
        self._take({"mark": text, **more})

    def write(self, path: Path) -> int:
        """Write all lines, compressed without the time, so that equal ones make equal files."""
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(f"{json.dumps(one, separators=(',', ':'))}\n" for one in self._lines)
        path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
        return path.stat().st_size

    def _take(self, line: Json) -> None:
        with self._lock:
            now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
            self._lines.append({"t": round(time.monotonic() - self._begin, 3), "ts": now, **line})

    def _record(self, kind: str, api: str, path: str) -> None:
        client: Any = kubernetes.config.new_client_from_config(  # type: ignore[no-untyped-call]
            str(kubeconfig(setting.state()))
        )
        path = path.format(f"namespaces/{self._namespace}")
        try:
            listed = json.loads(_ask(client, path, {}).read())
            for thing in listed["items"]:
                # Items of a list do not say what they are.
                self._note(kind, api, "ADDED", {**_head(kind, listed), **thing})
            version = listed["metadata"]["resourceVersion"]
            while not self._ended.is_set():
                version = self._watch(client, kind, api, path, version)
        except (OSError, ValueError, KeyError, urllib3.exceptions.HTTPError) as error:
            self.trouble = f"{kind} {api}: {type(error).__name__}: {error}"

    def _watch(self, client: Any, kind: str, api: str, path: str, version: str) -> str:
        query = {
            "watch": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(_TURN),
            # Otherwise a kind that nothing happens to is begun anew where the server forgot.
            "allowWatchBookmarks": "true",
        }
        answer = _ask(client, path, query)
        try:
            for piece in _lines(answer):
                event = json.loads(piece)
                if event["type"] == "ERROR":
                    raise ValueError(str(event["object"])[:300])
                version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] == "BOOKMARK":
                    continue
                self._note(kind, api, event["type"], event["object"])
        except (OSError, urllib3.exceptions.HTTPError):
            return version  # a busy machine: go on where it ended
        finally:
            answer.release_conn()
        return version

    def _note(self, kind: str, api: str, what: str, thing: Json) -> None:
        meta = thing["metadata"]
        line = {"type": what, "api": api, "kind": kind, "name": meta["name"]}
        self._take({**line, "rv": meta["resourceVersion"], "object": trimmed(thing)})


def _watched() -> list[tuple[str, str, str]]:
    """Kind, version and path of everything that is watched, as far as it is served."""
    has_new = _NEW in Providers.of(setting.state()).capi.core
    found = []
    for kind in (*_CORE, *_OTHERS):
        version, path = PATHS[kind].split("/")[3], PATHS[kind]
        if kind in _CORE:
            found.append((kind, _OLD, path.replace(version, _OLD)))
        if kind not in _CORE or has_new:
            found.append((kind, version, path))
    return [*found, ("Event", "v1", "/api/v1/{}/events")]


def _head(kind: str, listed: Json) -> Json:
    return {"kind": kind, "apiVersion": listed["apiVersion"]}


def _ask(client: Any, path: str, query: dict[str, str]) -> Any:
    request = client.param_serialize(
        "GET",
        path,
        query_params=list(query.items()),
        header_params={"Accept": "application/json"},
        auth_settings=["BearerToken"],
    )
    answer = client.call_api(*request, _request_timeout=(5.0, 2.0 * _TURN)).response
    if answer.status != 200:
        raise ValueError(f"{path}: {answer.status} {answer.read()[:300]!r}")
    return answer


def _lines(answer: Any) -> Iterator[bytes]:
    """Lines of a response as they come."""
    left = b""
    for piece in answer.stream(amt=None):
        *whole, left = (left + piece).split(b"\n")
        yield from filter(None, whole)
