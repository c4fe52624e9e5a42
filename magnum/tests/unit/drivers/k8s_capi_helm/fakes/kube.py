# SPDX-License-Identifier: Apache-2.0
"""A management cluster in memory."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
import copy
import itertools
import json
import re
import threading
from typing import Any
import uuid

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.kube.http import request as wording
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.model import Json, names

_Key = tuple[str, str, str, str]
#: Bytes of annotations that an API server takes.
_ANNOTATIONS = 256 * 1024
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")


class FakeKube:
    """A management cluster in memory, with KubeClient's methods.

    It keeps resource versions and generations, compares them, keeps what has finalizers, takes
    fields back that an apply no longer sets, and knows namespaces. There are no controllers: a test
    writes what they would write with :meth:`put`.

    :ivar unserved: kinds whose custom resource definition is not installed.
    :ivar unreachable: while True nothing answers.
    :ivar before: called as ``before(verb, kind, name)`` at the start of every call; may raise an
        error of the driver, or change the cluster as somebody else would.
    :ivar calls: what was called so far: (verb, kind, namespace, name).
    :ivar hand_out: makes what a caller gets of an object; who measures may do without copies.
    :ivar namespaces_linger: deleted namespaces stay, and take nothing, until a test removes them.
    :ivar place: which management cluster it is; another text stands for another kubeconfig.
    """

    def __init__(self) -> None:
        self.unserved: set[names.Kind] = set()
        self.unreachable = False
        self.namespaces_linger = False
        self.before: Callable[[str, names.Kind, str], None] | None = None
        self.calls: list[tuple[str, str, str, str]] = []
        self.user = "magnum"
        self.kubeconfig_path: str | None = None
        self.context = ""
        self._objects: dict[_Key, Json] = {}
        self._applied: dict[_Key, Json] = {}
        self._versions = itertools.count(1)
        self._log: list[tuple[int, str, _Key, Json]] = []
        self._oldest = 0
        self.place = "here"
        #: Whether the driver's user may do what an access review asks for.
        self.allows: Callable[[Json], bool] = lambda asked: True
        #: Seconds that the driver's clock is ahead.
        self.ahead: int | None = 0
        self.hand_out: Callable[[Any], Any] = copy.deepcopy
        self._lock = threading.RLock()

    # The port ------------------------------------------------------------------------------------
    def get(self, kind: names.Kind, namespace: str | None, name: str) -> Json | None:
        with self._call("get", kind, namespace, name):
            return self.hand_out(self._objects.get(_key(kind, namespace, name)))

    def kind_of(self, manifest: Json) -> names.Kind:
        group, _, version = str(manifest["apiVersion"]).rpartition("/")
        return names.Kind(group, manifest["kind"], "", (version,))

    def find(self, manifest: Json, namespace: str) -> Json | None:
        space = manifest["metadata"].get("namespace") or namespace
        return self.get(self.kind_of(manifest), space, manifest["metadata"]["name"])

    def list(
        self,
        kind: names.Kind,
        namespace: str | None,
        selector: Mapping[str, str] | None = None,
        *,
        metadata_only: bool = False,
    ) -> list[Json]:
        wanted = set((selector or {}).items())
        with self._call("list metadata" if metadata_only else "list", kind, namespace, ""):
            return [
                self.hand_out({"metadata": found["metadata"]} if metadata_only else found)
                for key, found in sorted(self._objects.items())
                if key[:2] == (kind.group, kind.name)
                and (namespace is None or not kind.namespaced or key[2] == namespace)
                and wanted <= set((found["metadata"].get("labels") or {}).items())
            ]

    def create(self, kind: names.Kind, manifest: Json) -> Json:
        namespace, name = _place(kind, manifest)
        with self._call("create", kind, namespace, name):
            if kind.name == "SelfSubjectReview":
                return {**manifest, "status": {"userInfo": {"username": self.user}}}
            if kind.name == "SelfSubjectAccessReview":
                asked = manifest["spec"]["resourceAttributes"]
                return {**manifest, "status": {"allowed": self.allows(asked)}}
            self._need_namespace(kind, namespace, name)
            key = _key(kind, namespace, name)
            if key in self._objects:
                raise _conflict(kind, namespace, name, f'"{name}" already exists')
            return self._store(key, self._new(kind, manifest))

    def replace(self, kind: names.Kind, manifest: Json) -> Json:
        namespace, name = _place(kind, manifest)
        if not manifest["metadata"].get("resourceVersion"):
            raise ValueError("replace needs metadata.resourceVersion")
        with self._call("replace", kind, namespace, name):
            return self._change(kind, namespace, name, lambda found: copy.deepcopy(manifest))

    def apply(self, kind: names.Kind, manifest: Json) -> Json:
        namespace, name = _place(kind, manifest)
        with self._call("apply", kind, namespace, name):
            self._need_namespace(kind, namespace, name)
            key = _key(kind, namespace, name)
            applied = _plain(manifest)
            if key not in self._objects:
                self._applied[key] = applied
                return self._store(key, self._new(kind, manifest))
            before = self._applied.get(key, {})
            self._applied[key] = applied
            return self._change(
                kind,
                namespace,
                name,
                lambda found: _merged(_without(found, before, applied), applied),
                compare=False,
            )

    def patch(
        self, kind: names.Kind, namespace: str | None, name: str, merge: Json, *, dry: bool = False
    ) -> Json:
        with self._call("dry patch" if dry else "patch", kind, namespace, name):
            key = _key(kind, namespace, name)
            if dry and key in self._objects:
                return _plain(_merge_patched(copy.deepcopy(self._objects[key]), merge))
            return self._change(kind, namespace, name, lambda found: _merge_patched(found, merge))

    def is_unreachable(self) -> bool:
        return self.unreachable

    delete_collection = KubeClient.delete_collection

    def delete(
        self,
        kind: names.Kind,
        namespace: str | None,
        name: str,
        *,
        uid: str | None = None,
        version: str | None = None,
    ) -> bool:
        with self._call("delete", kind, namespace, name):
            key = _key(kind, namespace, name)
            found = self._objects.get(key)
            if found is None:
                return False
            if uid is not None and found["metadata"]["uid"] != uid:
                raise _conflict(kind, namespace, name, "the UID in the precondition does not match")
            if version is not None and found["metadata"]["resourceVersion"] != version:
                raise _conflict(kind, namespace, name, "the object has been modified")
            lingers = kind == names.NAMESPACE and self.namespaces_linger
            if found["metadata"].get("finalizers") or lingers:
                found["metadata"].setdefault("deletionTimestamp", "2026-01-01T00:00:00Z")
                found["metadata"]["resourceVersion"] = self._next()
                self._note("MODIFIED", key, found)
            else:
                self._forget(key)
            return True

    def served_version(self, kind: names.Kind) -> str:
        with self._call("served", kind, None, ""):
            return kind.versions[0]

    def namespaced_kinds(self) -> list[names.Kind]:
        with self._call("discover", names.NAMESPACE, None, ""):
            there = {(group, name) for group, name, _, _ in self._objects} | {
                (kind.group, kind.name) for kind in (names.SECRET, names.LEASE)
            }
            return [
                names.Kind(group, name, f"{name.lower()}s", ("v1",))
                for group, name in sorted(there)
                if name != names.NAMESPACE.name
            ]

    def identity(self) -> str:
        return self.place

    def clock_difference(self) -> int | None:
        return self.ahead

    def snapshot(
        self, kind: names.Kind, keep: Callable[[Json], Any], label: str = ""
    ) -> tuple[list[Any], str]:
        with self._lock:
            found = [one for one in self.list(kind, None) if _has(one, label)]
            return [kept for one in found if (kept := keep(one)) is not None], self._next()

    def revision(self, kind: names.Kind) -> str:
        with self._call("revision", kind, None, ""):
            return self._next()

    def changes(
        self, kind: names.Kind, since: str, seconds: int, label: str = ""
    ) -> Iterator[tuple[str, Json]]:
        """All that is in the log, a bookmark, and the end, as after the seconds.

        A bookmark is never older than what was asked for, as those of a real server.
        """
        with self._call("watch", kind, None, ""):
            if int(since) < self._oldest:
                raise errors.Conflict("Gone.", "HTTP 410: too old resource version")
            events = [
                (what if _has(thing, label) else "DELETED", copy.deepcopy(thing))
                for version, what, key, thing in self._log
                if version > int(since)
                and key[:2] == (kind.group, kind.name)
                # What has lost the label is gone, of what never had it nothing is told.
                and any(_has(one, label) for _, _, other, one in self._log if other == key)
            ]
            version = self._next()
            mark = {"kind": kind.name, "metadata": {"resourceVersion": version}}
            if int(version) > int(since):
                events.append(("BOOKMARK", mark))
        for what, thing in events:
            if self.before is not None:
                self.before("event", kind, what)
            yield what, thing

    # For tests -----------------------------------------------------------------------------------
    def compact(self) -> None:
        """Forget what has happened so far: whoever has not seen it has to list again."""
        with self._lock:
            self._oldest = int(self._next())

    def restore(self) -> None:
        """Be as at the very beginning, resourceVersions too, like one restored from a backup."""
        with self._lock:
            for kept in (self._objects, self._applied, self._log):
                kept.clear()
            self._versions = itertools.count(1)

    def put(self, kind: names.Kind, manifest: Json) -> Json:
        """Write an object as somebody else: made with its namespace, or replaced unseen."""
        namespace, name = _place(kind, manifest)
        with self._lock:
            if kind.namespaced and namespace:
                space = _key(names.NAMESPACE, None, namespace)
                if space not in self._objects:
                    self._store(
                        space, self._new(names.NAMESPACE, {"metadata": {"name": namespace}})
                    )
            key = _key(kind, namespace, name)
            found = self._objects.get(key)
            fresh = self._new(kind, manifest)
            if found is not None:
                for field in ("uid", "creationTimestamp"):
                    fresh["metadata"][field] = found["metadata"][field]
            return self._store(key, fresh)

    def remove(self, kind: names.Kind, namespace: str | None, name: str) -> None:
        """Take an object away for good, as its controller does at the end."""
        with self._lock:
            self._forget(_key(kind, namespace, name))

    def everything(self) -> Iterator[Json]:
        """All objects, for a look for what should not be there."""
        with self._lock:
            yield from copy.deepcopy(list(self._objects.values()))

    # ---------------------------------------------------------------------------------------------
    def _call(self, verb: str, kind: names.Kind, namespace: str | None, name: str) -> Any:
        self.calls.append((verb, kind.name, namespace or "", name))
        if self.before is not None:
            self.before(verb, kind, name)
        if self.unreachable:
            raise wording.unreachable(f"{verb} {kind.name}: connection refused")
        if kind in self.unserved:
            raise wording.missing_kind(f"{kind.name} objects", f"{kind.plural} is not served")
        return self._lock

    def _need_namespace(self, kind: names.Kind, namespace: str | None, name: str) -> None:
        if not kind.namespaced:
            return
        found = self._objects.get(_key(names.NAMESPACE, None, namespace or ""))
        if found is None:
            raise _conflict(kind, namespace, name, f'namespaces "{namespace}" not found')
        if found["metadata"].get("deletionTimestamp"):
            raise errors.NotAllowed("No.", f"namespace {namespace} is being terminated")

    def _empty(self, namespace: str) -> None:
        """What the controller of namespaces does with one that is deleted."""
        for key in [key for key in self._objects if key[2] == namespace]:
            self._forget(key)

    def _new(self, kind: names.Kind, manifest: Json) -> Json:
        group = f"{kind.group}/" if kind.group else ""
        fresh = {"apiVersion": f"{group}{kind.versions[0]}", **_plain(manifest), "kind": kind.name}
        fresh["metadata"] = {
            "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            **fresh["metadata"],
            "uid": str(uuid.uuid4()),
        }
        return fresh

    def _change(
        self,
        kind: names.Kind,
        namespace: str | None,
        name: str,
        change: Callable[[Json], Json],
        *,
        compare: bool = True,
    ) -> Json:
        key = _key(kind, namespace, name)
        found = self._objects.get(key)
        if found is None:
            raise _conflict(kind, namespace, name, "not found")
        changed = _plain(change(copy.deepcopy(found)))
        asked = changed["metadata"].get("resourceVersion")
        if compare and asked != found["metadata"]["resourceVersion"]:
            raise _conflict(kind, namespace, name, "the object has been modified")
        for field in ("uid", "creationTimestamp", "resourceVersion"):
            changed["metadata"][field] = found["metadata"][field]
        if changed == found:
            return copy.deepcopy(found)
        if changed.get("spec") != found.get("spec"):
            changed["metadata"]["generation"] = found["metadata"].get("generation", 1) + 1
        if changed["metadata"].get("deletionTimestamp") and not changed["metadata"].get(
            "finalizers"
        ):
            self._forget(key)
            return changed
        return self._store(key, changed)

    def _store(self, key: _Key, fresh: Json) -> Json:
        for label, value in (fresh["metadata"].get("labels") or {}).items():
            if not _LABEL_VALUE.fullmatch(value):
                raise errors.ManagementRefused(
                    f"The management cluster refused '{value}' as the value of label '{label}'."
                )
        notes = fresh["metadata"].get("annotations") or {}
        if sum(len(text.encode()) for pair in notes.items() for text in pair) > _ANNOTATIONS:
            raise errors.ManagementRefused(
                "The management cluster refused an object.",
                f"metadata.annotations: Too long: may not be more than {_ANNOTATIONS} bytes",
            )
        fresh["metadata"]["resourceVersion"] = self._next()
        self._note("MODIFIED" if key in self._objects else "ADDED", key, fresh)
        self._objects[key] = fresh
        return copy.deepcopy(fresh)

    def _note(self, what: str, key: _Key, thing: Json) -> None:
        version = int(thing["metadata"]["resourceVersion"])
        self._log.append((version, what, key, copy.deepcopy(thing)))

    def _forget(self, key: _Key) -> None:
        if key[:2] == (names.NAMESPACE.group, names.NAMESPACE.name):
            self._empty(key[3])
        gone = self._objects.pop(key, None)
        if gone is not None:
            version = {"resourceVersion": self._next()}
            self._note("DELETED", key, {**gone, "metadata": {**gone["metadata"], **version}})
        self._applied.pop(key, None)

    def _next(self) -> str:
        return str(next(self._versions))


def _key(kind: names.Kind, namespace: str | None, name: str) -> _Key:
    return kind.group, kind.name, (namespace or "") if kind.namespaced else "", name


def _has(obj: Json, label: str) -> bool:
    return not label or label in (obj["metadata"].get("labels") or {})


def _place(kind: names.Kind, manifest: Json) -> tuple[str | None, str]:
    metadata = manifest["metadata"]
    if kind.namespaced and not metadata.get("namespace"):
        raise ValueError(f"{kind.name} '{metadata.get('name')}' needs metadata.namespace")
    return metadata.get("namespace"), metadata.get("name", "")


def _conflict(kind: names.Kind, namespace: str | None, name: str, detail: str) -> errors.Conflict:
    about = wording.object_reference(kind, namespace, name)
    return errors.Conflict(f"Somebody else changed or made {about} first.", detail)


def _plain(manifest: Json) -> Json:
    """As it arrives at the server: JSON, empty and null fields gone, stringData folded in."""
    plain: Json = json.loads(json.dumps(manifest))
    for text_key, text in (plain.pop("stringData", None) or {}).items():
        plain.setdefault("data", {})[text_key] = _encoded(text)
    for field in ("labels", "annotations", "finalizers", "ownerReferences"):
        if not plain["metadata"].get(field):
            plain["metadata"].pop(field, None)
    return plain


def _encoded(text: str) -> str:
    """A text as the ``data`` of a Secret has it."""
    return base64.b64encode(text.encode()).decode()


def _merged(found: Json, applied: Json) -> Json:
    """*found* with the fields of *applied* set; lists are set as a whole."""
    result = dict(found)
    for key, value in applied.items():
        old = result.get(key)
        both = isinstance(old, dict) and isinstance(value, dict)
        result[key] = _merged(old, value) if both else value
    return result


def _without(found: Json, before: Json, after: Json) -> Json:
    """*found* without the fields that the last apply set and this one does not."""
    result = dict(found)
    for key, value in before.items():
        if key not in after:
            result.pop(key, None)
        elif (
            isinstance(value, dict)
            and isinstance(after[key], dict)
            and isinstance(result.get(key), dict)
        ):
            result[key] = _without(result[key], value, after[key])
    return result


def _merge_patched(found: Any, merge: Any) -> Any:
    """RFC 7386."""
    if not isinstance(merge, dict):
        return merge
    result = dict(found) if isinstance(found, dict) else {}
    for key, value in merge.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merge_patched(result.get(key), value)
    return result
