# SPDX-License-Identifier: Apache-2.0
"""The cached objects of one kind, with the time of the last confirmation."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
import dataclasses
import json
import threading
import time
from typing import Any, Self
import zlib

from magnum.drivers.k8s_capi_helm.kube.transform import transform
from magnum.drivers.k8s_capi_helm.model import conditions, Json, names

_Key = tuple[str, str]
_Place = tuple[str, str, str]
#: By these, looks ask for the objects of a release.
_INDEXED = (names.LABEL_CLUSTER_NAME, names.LABEL_CHART_CLUSTER)


@dataclasses.dataclass(frozen=True, slots=True)
class CachedObject:
    """An object as it is kept: packed, it takes a tenth of the memory, and a look unpacks few.

    :ivar places: where it stands in the index of labels.
    """

    key: _Key
    labels: Mapping[str, str]
    places: tuple[_Place, ...]
    packed: bytes

    @classmethod
    def of(cls, thing: Json) -> Self:
        """What is kept of an object that is trimmed."""
        metadata = thing["metadata"]
        namespace, labels = metadata.get("namespace") or "", metadata.get("labels") or {}
        places = tuple((namespace, one, labels[one]) for one in _INDEXED if one in labels)
        packed = zlib.compress(json.dumps(thing).encode(), level=1)
        return cls((namespace, metadata["name"]), labels, places, packed)

    def thing(self) -> Json:
        """The object; whoever has it may do with it what he wants."""
        found: Json = json.loads(zlib.decompress(self.packed))
        return found


class ObjectCache:
    """What is known of a kind; safe to share between threads.

    :param covers: whether a namespace is one of those that are kept.
    :param clock: seconds that only ever go up.
    """

    def __init__(
        self,
        kind: names.Kind,
        covers: Callable[[str], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.kind = kind
        self.covers = covers
        self._clock = clock
        self._lock = threading.Lock()
        self._objects: dict[_Key, CachedObject] = {}
        self._labelled: dict[_Place, set[_Key]] = {}
        self._spaces: dict[str, set[_Key]] = {}
        self._identity = ""
        self._proved: float | None = None

    # What watches write ---------------------------------------------------------------------------
    def keep(self, thing: Json) -> CachedObject | None:
        """What is to be kept of an object; None if it is of no namespace of ours.

        Nor is an Event that tells of nothing: a look goes through all of a project's, and most of
        thousands tell of what went well.
        """
        namespace = (thing.get("metadata") or {}).get("namespace") or ""
        if not self.covers(namespace):
            return None
        if self.kind == names.EVENT and not conditions.tells_of_failure(thing):
            return None
        return CachedObject.of(transform(self.kind, thing))

    def fill(
        self, things: Iterable[CachedObject], identity: str, asked: float
    ) -> list[CachedObject]:
        """Everything that there is, in place of what was known.

        :param things: made by :meth:`keep`.
        :param identity: of whom it was read, as a text that is another one for another place.
        :param asked: when it was asked for, on the clock.
        :returns: what is other than it was known, new, or gone; nothing if nothing was known yet.
        """
        with self._lock:
            begun, before = bool(self._identity), dict(self._objects)
            for index in (self._objects, self._labelled, self._spaces):
                index.clear()
            for one in things:
                self._put(one)
            self._identity, self._proved = identity, asked
            there = self._objects
            other = [one for key, one in there.items() if before.get(key) != one]
            gone = [one for key, one in before.items() if key not in there]
        return [*other, *gone] if begun else []

    def change(self, thing: Json, *, gone: bool) -> bool:
        """One object was made, changed or deleted; False if nothing is kept of it."""
        kept = self.keep(thing)
        if kept is None:
            return False
        with self._lock:
            self._remove(kept.key)
            if not gone:
                self._put(kept)
        return True

    def confirm(self) -> None:
        """All that had happened until now has been told."""
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

    def get(self, namespace: str, name: str) -> Json | None:
        """As ``KubeClient.get``, but with what is kept only."""
        with self._lock:
            found = self._objects.get((namespace, name))
        return found.thing() if found else None

    def list(self, namespace: str, selector: Mapping[str, str] | None) -> list[Json]:
        """As ``KubeClient.list``, but with what is kept only."""
        wanted = dict(selector or {})
        with self._lock:
            keys = self._spaces.get(namespace, set())
            for label in _INDEXED:
                if label in wanted:
                    keys = keys & self._labelled.get((namespace, label, wanted.pop(label)), set())
            found = [self._objects[key] for key in sorted(keys)]
        return [one.thing() for one in found if wanted.items() <= one.labels.items()]

    # ----------------------------------------------------------------------------------------------
    def _put(self, one: CachedObject) -> None:
        self._objects[one.key] = one
        self._spaces.setdefault(one.key[0], set()).add(one.key)
        for place in one.places:
            self._labelled.setdefault(place, set()).add(one.key)

    def _remove(self, key: _Key) -> None:
        one = self._objects.pop(key, None)
        if one is None:
            return
        _discard(self._spaces, key[0], key)
        for place in one.places:
            _discard(self._labelled, place, key)


def _discard(index: dict[Any, set[_Key]], place: Hashable, key: _Key) -> None:
    index[place].discard(key)
    if not index[place]:
        del index[place]
