# SPDX-License-Identifier: Apache-2.0
"""The cached objects of one kind, with the time of the last confirmation."""

from __future__ import annotations

import collections
from collections.abc import Callable, Hashable, Iterable, Mapping
import dataclasses
import json
import sys
import threading
import time
from typing import Any, TYPE_CHECKING
import zlib

from magnum.drivers.k8s_capi_helm.kube.transform import transform
from magnum.drivers.k8s_capi_helm.model import conditions, Json, names

if TYPE_CHECKING:
    from typing_extensions import Self

_Key = tuple[str, str]
_Place = tuple[str, str, str]
#: By these, looks ask for the objects of a release.
_INDEXED = (names.LABEL_CLUSTER_NAME, names.LABEL_CHART_CLUSTER)


@dataclasses.dataclass(frozen=True, slots=True)
class CachedObject:
    """A compressed object: a tenth of the memory, and few are decompressed per snapshot.

    :ivar version: its resourceVersion.
    :ivar index_keys: where it stands in the index of labels.
    :ivar dictionary: another object's text, with which it is compressed: objects of a kind have
        most of their text in common (https://www.rfc-editor.org/rfc/rfc1950, "preset dictionary").
    """

    key: _Key
    version: str
    index_keys: tuple[_Place, ...]
    data: bytes
    dictionary: bytes

    @classmethod
    def of(cls, obj: Json, dictionary: bytes = b"") -> Self:
        """What is kept of an object that is trimmed.

        :param dictionary: text of a similar object, if there is one.
        """
        metadata, text = obj["metadata"], _text(obj)
        # The same text in a thousand objects is one text in memory.
        namespace = sys.intern(metadata.get("namespace") or "")
        labels = _labels(obj)
        index_keys = tuple(
            (namespace, label, sys.intern(str(labels[label])))
            for label in _INDEXED
            if label in labels
        )
        packer = zlib.compressobj(level=1, zdict=dictionary)
        packed = packer.compress(text) + packer.flush()
        version = str(metadata.get("resourceVersion") or "")
        return cls((namespace, metadata["name"]), version, index_keys, packed, dictionary)

    def unpack(self) -> Json:
        """A copy of the object; the caller may change it."""
        obj: Json = json.loads(zlib.decompressobj(zdict=self.dictionary).decompress(self.data))
        return obj


class ObjectCache:
    """What is known of a kind; safe to share between threads.

    :param covers: whether a namespace is one of those that are kept.
    :param clock: seconds that only ever go up.
    :param label: only objects that have this label are listed and watched; "" for all.
    """

    def __init__(
        self,
        kind: names.Kind,
        covers: Callable[[str], bool],
        clock: Callable[[], float] = time.monotonic,
        label: str = "",
    ) -> None:
        self.kind = kind
        self.covers = covers
        self.label = label
        self._clock = clock
        self._lock = threading.Lock()
        self._objects: dict[_Key, CachedObject] = {}
        self._labelled: dict[_Place, set[_Key]] = {}
        self._spaces: dict[str, set[_Key]] = {}
        self._dictionary = b""
        #: Changes seen in each namespace; there is one for each project.
        self._changes: collections.Counter[str] = collections.Counter()
        self._identity = ""
        self._proved: float | None = None

    # What watches write ---------------------------------------------------------------------------
    def keep(self, obj: Json) -> CachedObject | None:
        """What is to be kept of an object; None if it is of no namespace of ours.

        Nor is an Event that tells of nothing: a look goes through all of a project's, and most of
        thousands tell of what went well.
        """
        namespace = (obj.get("metadata") or {}).get("namespace") or ""
        if not self.covers(namespace):
            return None
        if self.kind == names.EVENT and not conditions.tells_of_failure(obj):
            return None
        kept = transform(self.kind, obj)
        self._dictionary = self._dictionary or _text(kept)
        return CachedObject.of(kept, self._dictionary)

    def fill(
        self, objects: Iterable[CachedObject], identity: str, read_at: float
    ) -> list[CachedObject]:
        """Everything that there is, in place of what was known.

        :param objects: made by :meth:`keep`.
        :param identity: of whom it was read, as a text that is another one for another place.
        :param read_at: when it was asked for, on the clock.
        :returns: what is other than it was known, new, or gone; nothing if nothing was known yet.
        """
        with self._lock:
            was_filled, before = bool(self._identity), dict(self._objects)
            for index in (self._objects, self._labelled, self._spaces):
                index.clear()
            for cached in objects:
                self._put(cached)
            self._identity, self._proved = identity, read_at
            current = self._objects
            changed = [cached for key, cached in current.items() if before.get(key) != cached]
            deleted = [cached for key, cached in before.items() if key not in current]
            self._changes.update(cached.key[0] for cached in (*changed, *deleted))
        return [*changed, *deleted] if was_filled else []

    def change(self, obj: Json, *, is_deleted: bool) -> bool:
        """One object was made, changed or deleted; False if nothing is kept of it."""
        cached = self.keep(obj)
        if cached is None:
            return False
        with self._lock:
            self._remove(cached.key)
            if not is_deleted:
                self._put(cached)
            self._changes[cached.key[0]] += 1
        return True

    def confirm(self) -> None:
        """Confirm that all changes until now are in the cache."""
        with self._lock:
            self._proved = self._clock()

    def forget(self) -> None:
        """What is known is not to be relied on any more."""
        with self._lock:
            self._proved = None

    # What looks read ------------------------------------------------------------------------------
    def age(self, identity: str) -> float | None:
        """Seconds since everything was known for sure; None if that is not of *identity*, or never.

        What has happened since then is known too, unless the connection has died unseen.
        """
        with self._lock:
            if self._proved is None or identity != self._identity:
                return None
            return self._clock() - self._proved

    def seconds_since_proof(self, default: float) -> float:
        """The same, whomever it was read of; *default* where nothing was known yet."""
        with self._lock:
            return default if self._proved is None else self._clock() - self._proved

    def get(self, namespace: str, name: str) -> Json | None:
        """As ``KubeClient.get``, but with what is kept only."""
        with self._lock:
            cached = self._objects.get((namespace, name))
        return cached.unpack() if cached else None

    def list(self, namespace: str, selector: Mapping[str, str] | None) -> list[Json]:
        """As ``KubeClient.list``, but with what is kept only."""
        labels_left = dict(selector or {})
        with self._lock:
            keys = self._spaces.get(namespace, set())
            for label in _INDEXED:
                if label in labels_left:
                    keys = keys & self._labelled.get(
                        (namespace, label, labels_left.pop(label)), set()
                    )
            matches = [self._objects[key] for key in sorted(keys)]
        objects = [cached.unpack() for cached in matches]
        return [obj for obj in objects if labels_left.items() <= _labels(obj).items()]

    def version(self, namespace: str, name: str) -> str:
        """The resourceVersion of an object; "" without one."""
        with self._lock:
            cached = self._objects.get((namespace, name))
        return cached.version if cached else ""

    def versions(self, namespace: str, release: str) -> Hashable:
        """Equal as long as no object changes that a snapshot of a release reads.

        Objects have a label of the release, or a name that the chart gives them. Events have
        neither, so any failure in the namespace counts.
        """
        with self._lock:
            if self.kind == names.EVENT:
                return self._changes[namespace]
            keys = {(namespace, name) for name in _unlabelled_names(release)}
            for label in _INDEXED:
                keys |= self._labelled.get((namespace, label, release), set())
            return frozenset(
                (key[1], cached.version)
                for key in keys
                if (cached := self._objects.get(key)) is not None
            )

    # ----------------------------------------------------------------------------------------------
    def _put(self, cached: CachedObject) -> None:
        self._objects[cached.key] = cached
        self._spaces.setdefault(cached.key[0], set()).add(cached.key)
        for index_key in cached.index_keys:
            self._labelled.setdefault(index_key, set()).add(cached.key)

    def _remove(self, key: _Key) -> None:
        cached = self._objects.pop(key, None)
        if cached is None:
            return
        _discard(self._spaces, key[0], key)
        for index_key in cached.index_keys:
            _discard(self._labelled, index_key, key)


def _labels(obj: Json) -> Json:
    labels: Json = obj["metadata"].get("labels") or {}
    return labels


def _text(obj: Json) -> bytes:
    return json.dumps(obj, separators=(",", ":")).encode()


def _unlabelled_names(release: str) -> tuple[str, str]:
    """Names of objects that Cluster API has not labelled yet."""
    return release, names.kubeadm_control_plane(release)


def _discard(index: dict[Any, set[_Key]], index_key: Hashable, key: _Key) -> None:
    index[index_key].discard(key)
    if not index[index_key]:
        del index[index_key]
