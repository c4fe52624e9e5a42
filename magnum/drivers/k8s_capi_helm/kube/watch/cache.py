# SPDX-License-Identifier: Apache-2.0
"""The cached objects of one kind, with the time of the last confirmation."""

from __future__ import annotations

import builtins
import collections
from collections.abc import Callable, Hashable, Iterable, Mapping
import dataclasses
import json
import sys
import threading
import time
from typing import TYPE_CHECKING
import zlib

from magnum.drivers.k8s_capi_helm.kube.watch.transform import transform
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


@dataclasses.dataclass(frozen=True, slots=True)
class _Space:
    """All objects of a namespace, and those with a label.

    Nothing of it is changed: it is replaced, so who has got one sees all of it as it was at one
    time, and who comes later nothing that is older.
    """

    objects: Mapping[_Key, CachedObject] = dataclasses.field(default_factory=dict)
    labelled: Mapping[_Place, Mapping[_Key, CachedObject]] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, objects: Iterable[CachedObject]) -> Self:
        """One with these objects."""
        by_key = {cached.key: cached for cached in objects}
        labelled: dict[_Place, dict[_Key, CachedObject]] = {}
        for key, cached in by_key.items():
            for place in cached.index_keys:
                labelled.setdefault(place, {})[key] = cached
        return cls(by_key, labelled)

    def replaced(self, key: _Key, cached: CachedObject | None) -> Self:
        """The same with another object under a key; None for none."""
        before = self.objects.get(key)
        former = before.index_keys if before else ()
        current = cached.index_keys if cached else ()
        labelled = dict(self.labelled)
        for place in {*former, *current}:
            with_label = _replaced(
                labelled.pop(place, {}), key, cached if place in current else None
            )
            if with_label:
                labelled[place] = with_label
        return type(self)(_replaced(self.objects, key, cached), labelled)


#: A namespace in which nothing is.
_EMPTY = _Space()


class ObjectCache:
    """What is known of a kind; safe to share between threads.

    A lock is for those who write. Looks take none: Magnum has a thread for each cluster, each look
    asks for every kind, and hundreds of threads that stand in line for a lock a hundred times each
    keep every one of them from its work.

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
        self._spaces: dict[str, _Space] = {}
        self._dictionary = b""
        #: Changes seen in each namespace; there is one for each project.
        self._changes: collections.Counter[str] = collections.Counter()
        #: Of whom everything was read, and when all of it was known for sure last.
        self._proof: tuple[str, float | None] = "", None

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
            was_filled, before = bool(self._proof[0]), self._all()
            by_space: dict[str, builtins.list[CachedObject]] = {}
            for cached in objects:
                by_space.setdefault(cached.key[0], []).append(cached)
            self._spaces = {space: _Space.of(found) for space, found in by_space.items()}
            self._proof, current = (identity, read_at), self._all()
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
            namespace = cached.key[0]
            space = self._space(namespace).replaced(cached.key, None if is_deleted else cached)
            if space.objects:
                self._spaces[namespace] = space
            else:
                self._spaces.pop(namespace, None)
            # What looks read is at least as new as the number that they have read before.
            self._changes[namespace] += 1
        return True

    def confirm(self) -> None:
        """Confirm that all changes until now are in the cache."""
        with self._lock:
            self._proof = self._proof[0], self._clock()

    def forget(self) -> None:
        """What is known is not to be relied on any more."""
        with self._lock:
            self._proof = self._proof[0], None

    # What looks read ------------------------------------------------------------------------------
    def age(self, identity: str) -> float | None:
        """Seconds since everything was known for sure; None if that is not of *identity*, or never.

        What has happened since then is known too, unless the connection has died unseen.
        """
        known, proved = self._proof
        return None if proved is None or identity != known else self._clock() - proved

    def seconds_since_proof(self, default: float) -> float:
        """The same, whomever it was read of; *default* where nothing was known yet."""
        proved = self._proof[1]
        return default if proved is None else self._clock() - proved

    def get(self, namespace: str, name: str) -> Json | None:
        """As ``KubeClient.get``, but with what is kept only."""
        cached = self._space(namespace).objects.get((namespace, name))
        return cached.unpack() if cached else None

    def list(self, namespace: str, selector: Mapping[str, str] | None) -> list[Json]:
        """As ``KubeClient.list``, but with what is kept only."""
        labels, space = dict(selector or {}), self._space(namespace)
        label = next((label for label in _INDEXED if label in labels), None)
        found = space.objects
        if label is not None:
            found = space.labelled.get((namespace, label, labels.pop(label)), {})
        objects = [found[key].unpack() for key in sorted(found)]
        return [obj for obj in objects if labels.items() <= _labels(obj).items()]

    def version(self, namespace: str, name: str) -> str:
        """The resourceVersion of an object; "" without one."""
        cached = self._space(namespace).objects.get((namespace, name))
        return cached.version if cached else ""

    def versions(self, namespace: str, release: str) -> Hashable:
        """Equal as long as no object changes that a snapshot of a release reads.

        Objects have a label of the release, or a name that the chart gives them. Events have
        neither, so any failure in the namespace counts.
        """
        if self.kind == names.EVENT:
            return self._changes[namespace]
        space = self._space(namespace)
        keys = [(namespace, name) for name in _unlabelled_names(release)]
        found = {key: cached for key in keys if (cached := space.objects.get(key)) is not None}
        for label in _INDEXED:
            found.update(space.labelled.get((namespace, label, release), {}))
        return frozenset((key[1], cached.version) for key, cached in found.items())

    # ----------------------------------------------------------------------------------------------
    def _space(self, namespace: str) -> _Space:
        return self._spaces.get(namespace, _EMPTY)

    def _all(self) -> dict[_Key, CachedObject]:
        spaces = self._spaces.values()
        return {key: cached for space in spaces for key, cached in space.objects.items()}


def _labels(obj: Json) -> Json:
    labels: Json = obj["metadata"].get("labels") or {}
    return labels


def _text(obj: Json) -> bytes:
    return json.dumps(obj, separators=(",", ":")).encode()


def _unlabelled_names(release: str) -> tuple[str, str]:
    """Names of objects that Cluster API has not labelled yet."""
    return release, names.kubeadm_control_plane(release)


def _replaced(
    objects: Mapping[_Key, CachedObject], key: _Key, cached: CachedObject | None
) -> Mapping[_Key, CachedObject]:
    """The same objects with another one under a key; None for none."""
    found = dict(objects)
    if cached is None:
        found.pop(key, None)
    else:
        found[key] = cached
    return found
