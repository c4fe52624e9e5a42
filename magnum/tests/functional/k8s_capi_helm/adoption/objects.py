# SPDX-License-Identifier: Apache-2.0
"""Everything in a namespace, and what differs between two looks at it."""

from __future__ import annotations

import base64
from collections.abc import Iterator
import gzip
import json
from typing import Any

from kubernetes import client, config, dynamic

TIMEOUT = 60
#: What the API server counts up by itself.
_COUNTED = ("managedFields", "resourceVersion", "generation")
#: What is not stored, or comes and goes by itself.
_PASSING = ("ComponentStatus", "Event")
#: What the API server keeps of an object for its other version.
_COPY = "cluster.x-k8s.io/conversion-data"
_REVISION = "sh.helm.release.v1."
#: Kind and name.
Key = tuple[str, str]
Snapshot = dict[Key, dict[str, Any]]
#: Path, value before, value after.
Change = tuple[str, Any, Any]


class ObjectStore:
    """A namespace of an API server, as an administrator sees it."""

    def __init__(self, kubeconfig: str, namespace: str) -> None:
        untyped: Any = config
        self._api = untyped.new_client_from_config(kubeconfig)
        untyped = dynamic
        self._dynamic = untyped.DynamicClient(self._api)
        self.namespace = namespace

    def close(self) -> None:
        """Let the namespace go, and the connections."""
        core = client.CoreV1Api(self._api)
        try:
            core.delete_namespace(self.namespace, _request_timeout=TIMEOUT)
        except client.ApiException as error:
            if error.status != 404:
                raise
        finally:
            self._api.close()

    def snapshot(self) -> Snapshot:
        """Every object of every kind that can be listed, in the version that is preferred."""
        found: Snapshot = {}
        for kind in self._kinds():
            path = kind.path(namespace=self.namespace)
            reply = self._dynamic.request("GET", path, _request_timeout=TIMEOUT)
            for one in reply.to_dict()["items"]:
                one.setdefault("kind", kind.kind)
                found[kind.kind, one["metadata"]["name"]] = one
        return found

    def revision(self, release: str) -> int:
        """Newest revision that Helm has of a release."""
        return max(self._revisions(release), default=0)

    def values(self, release: str) -> dict[str, Any]:
        """The values of the newest revision."""
        revisions = self._revisions(release)
        packed = revisions[max(revisions)]["data"]["release"]
        whole = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(packed))))
        values: dict[str, Any] = whole["config"]
        return values

    def _revisions(self, release: str) -> dict[int, dict[str, Any]]:
        head = f"{_REVISION}{release}.v"
        return {
            int(name.removeprefix(head)): one
            for (kind, name), one in self.snapshot().items()
            if kind == "Secret" and name.startswith(head)
        }

    def _kinds(self) -> Iterator[Any]:
        for group in self._dynamic.resources.search(preferred=True):
            if (
                group.namespaced
                and "list" in (group.verbs or ())
                and "/" not in group.name
                and group.kind not in _PASSING
                and not group.kind.endswith("List")
                and group.group != "metrics.k8s.io"
            ):
                yield group


def lasting(snapshot: Snapshot) -> Snapshot:
    """A snapshot without the history of Helm, which gets longer with each change."""
    return {
        key: one
        for key, one in snapshot.items()
        if not (key[0] == "Secret" and key[1].startswith(_REVISION))
    }


def versions(snapshot: Snapshot) -> dict[Key, str]:
    """The resourceVersion of each object: any write, however small, changes it."""
    return {key: one["metadata"]["resourceVersion"] for key, one in snapshot.items()}


def changes(before: Snapshot, after: Snapshot) -> dict[Key, list[Change]]:
    """What differs, object by object; one that is new or gone has the path ""."""
    found: dict[Key, list[Change]] = {}
    for key in sorted({*before, *after}):
        if key not in before:
            found[key] = [("", None, "new")]
        elif key not in after:
            found[key] = [("", "there", None)]
        else:
            listed = list(_differences(_content(before[key]), _content(after[key]), ""))
            if listed:
                found[key] = listed
    return found


def told(found: dict[Key, list[Change]]) -> str:
    """Changes for people, one per line."""
    lines = [
        f"{kind}/{name}{path}: {json.dumps(old)} -> {json.dumps(new)}"
        for (kind, name), listed in found.items()
        for path, old, new in listed
    ]
    return "\n".join(lines) or "nothing changed"


def _content(one: dict[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in one["metadata"].items() if key not in _COUNTED}
    marks = metadata.get("annotations") or {}
    metadata["annotations"] = {key: value for key, value in marks.items() if key != _COPY}
    return {**one, "metadata": metadata}


def _differences(old: Any, new: Any, path: str) -> Iterator[Change]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            yield from _differences(old.get(key), new.get(key), f"{path}.{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _differences(one, other, f"{path}[{number}]")
    elif old != new:
        yield path, old, new
