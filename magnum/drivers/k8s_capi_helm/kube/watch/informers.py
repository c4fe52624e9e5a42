# SPDX-License-Identifier: Apache-2.0
"""All watches of a process on its management cluster, and the cached reader."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
import functools
import math
import random
import threading
import time
from typing import Protocol

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.kube.watch.answer_check import ANSWER_HOLDS, AnswerCheck
from magnum.drivers.k8s_capi_helm.kube.watch.cache import ObjectCache
from magnum.drivers.k8s_capi_helm.kube.watch.reflector import ListWatcher, Reflector
from magnum.drivers.k8s_capi_helm.kube.watch.snapshot import Reader
from magnum.drivers.k8s_capi_helm.metrics import record
from magnum.drivers.k8s_capi_helm.model import Json, names

LOG = logging.getLogger(__name__)

#: What a look reads.
KINDS = (
    names.CLUSTER,
    names.OPENSTACK_CLUSTER,
    names.CONTROL_PLANE,
    names.MACHINE_DEPLOYMENT,
    names.MACHINE_SET,
    names.MACHINE,
    names.OPENSTACK_SERVER,
    names.HELM_RELEASE,
    names.MANIFESTS,
    names.EVENT,
)
#: What is watched: what a snapshot reads, and the releases' Leases.
WATCHED = (*KINDS, names.LEASE)
#: Labels of the driver's own objects among many others: kubelets and controllers renew a Lease
#: every few seconds.
_LABELS = {names.LEASE: names.LABEL_UUID}

#: Seconds after which a process that had no thread left tries again; it is asked all the time.
_BEGIN_AGAIN = 30.0
#: The part of the time for the first lists in which they begin: conductors that start at once, and
#: the kinds of each, do not all list at the same moment.
_BEGIN_WITHIN = 1 / 6


class WatchedCluster(Reader, ListWatcher, Protocol):
    """A management cluster that can be read and watched."""


class CachedReader:
    """A :class:`Reader` for one look: asks nothing of what is watched and fresh, the rest directly.

    :ivar behind: seconds that what it gives out may be behind at most.
    :ivar answered: seconds since a watch heard of the management cluster last.
    :ivar watched: whether it gives out anything that it does not ask for.
    :ivar kinds: of what it does not ask for.
    :ivar place: of whom that was read, as a text that is another one for another place.
    """

    def __init__(
        self,
        kube: Reader,
        fresh: Mapping[names.Kind, ObjectCache],
        ages: Mapping[names.Kind, float] | None = None,
        location: str = "",
    ) -> None:
        self._kube = kube
        self._fresh = fresh
        self._ages = ages or {}
        self.behind = max(self._ages.values(), default=0.0)
        self.answered = min(self._ages.values(), default=math.inf)
        self.watched = bool(fresh)
        self.kinds = frozenset(fresh)
        self.place = location

    def get(self, kind: names.Kind, namespace: str, name: str) -> Json | None:
        """As ``KubeClient.get``."""
        store = self._store(kind, namespace)
        return store.get(namespace, name) if store else self._kube.get(kind, namespace, name)

    def list(
        self, kind: names.Kind, namespace: str, selector: Mapping[str, str] | None
    ) -> list[Json]:
        """As ``KubeClient.list``."""
        store = self._store(kind, namespace)
        return (
            store.list(namespace, selector) if store else self._kube.list(kind, namespace, selector)
        )

    def only(self, kinds: Collection[names.Kind]) -> CachedReader:
        """The same, but everything except *kinds* is read from the management cluster."""
        fresh = {kind: store for kind, store in self._fresh.items() if kind in kinds}
        ages = {kind: age for kind, age in self._ages.items() if kind in kinds}
        return CachedReader(self._kube, fresh, ages, self.place)

    def version(self, kind: names.Kind, namespace: str, name: str) -> str:
        """The resourceVersion of an object in the cache; "" if it is not watched."""
        store = self._store(kind, namespace)
        return store.version(namespace, name) if store else ""

    def versions(self, namespace: str, release: str) -> Hashable | None:
        """Equal as long as nothing changes of what a verdict on a release is made of.

        :returns: None where not all of that is watched.
        """
        if not self.kinds >= frozenset(WATCHED):
            return None
        if not all(store.covers(namespace) for store in self._fresh.values()):
            return None
        return self.place, *(store.versions(namespace, release) for store in self._fresh.values())

    def _store(self, kind: names.Kind, namespace: str) -> ObjectCache | None:
        store = self._fresh.get(kind)
        return store if store and store.covers(namespace) else None


def _after(
    all_started: threading.Event,
    run: Callable[[threading.Event], None],
    stopped: threading.Event,
    delay: float,
) -> None:
    all_started.wait()
    stopped.wait(delay)
    run(stopped)


def _thread(name: str, run: Callable[[], None]) -> None:
    threading.Thread(target=run, name=name, daemon=True).start()


class Informers:
    """The stores of what a look reads, and the watches that fill them.

    What is older than the bound is not given out: it is read from the management cluster, and where
    that cannot be done it is unreadable, as for everybody who reads directly.

    :param staleness: seconds that what is given out may be behind at most, should the connection
        have died unseen; while it lives it is behind by a fraction of a second.
    :param covers: whether a namespace is one of this Magnum's.
    :param seconds: how long one watch lasts; None for a third of *staleness*.
    :param first_lists: seconds at most that :meth:`wait_for_lists` waits.
    :param spawn: runs a function, under a name, beside everything else.
    :param management: its name in metrics, "" for the default one.
    """

    def __init__(
        self,
        kube: WatchedCluster,
        *,
        staleness: float,
        covers: Callable[[str], bool],
        kinds: tuple[names.Kind, ...] = WATCHED,
        seconds: int | None = None,
        first_lists: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
        spawn: Callable[[str, Callable[[], None]], None] = _thread,
        management: str = "",
    ) -> None:
        self._kube = kube
        self._spawn = spawn
        self._staleness = staleness
        self._stores = {
            kind: ObjectCache(kind, covers, clock, _LABELS.get(kind, "")) for kind in kinds
        }
        # A watch that ends is a proof; a few have to fit into the bound.
        seconds = seconds or max(1, int(staleness / 3))
        self.watches = tuple(
            Reflector(kube, store, seconds=seconds, on_change=self._tell, clock=clock)
            for store in self._stores.values()
        )
        self._clock = clock
        self._first_lists = first_lists
        self._listed_by = 0.0
        self._answer_check = AnswerCheck(kube, clock)
        self._lock = threading.Lock()
        self._stopped: threading.Event | None = None
        self._told: Callable[[Json], None] | None = None
        self._identity = ""
        self._not_before = 0.0
        self._started_at = 0.0
        record.watch_ages(management, self.ages)

    def start(
        self,
        on_change: Callable[[Json], None] | None = None,
        serve: Iterable[Callable[[threading.Event], None]] = (),
    ) -> None:
        """Begin to watch, each kind in a thread of its own; once is enough.

        Each pass of a periodic task comes here, hundreds at a time: none waits for another one.

        :param on_change: called with every object that changes, in the thread of its watch; as it
            is kept, if it changed while nobody watched.
        :param serve: each is run in one more thread, until the event that it is given.
        """
        if self._stopped is not None:
            return
        with self._lock:
            if self._stopped is not None or self._clock() < self._not_before:
                return
            self._started_at = self._clock()
            self._listed_by = self._started_at + self._first_lists
            self._told = on_change
            self._stopped = threading.Event()
            watches = zip(self._stores, self.watches, strict=True)
            runs = {f"watch-{kind.plural}": watch.run for kind, watch in watches}
            prompts = {f"watch-prompts-{index}": run for index, run in enumerate(serve, 1)}
            self._spawn_all({**runs, **prompts}, self._stopped)

    def _spawn_all(
        self, runs: Mapping[str, Callable[[threading.Event], None]], stopped: threading.Event
    ) -> None:
        """Run each in a thread of its name, or none where not all can have one."""
        # None begins before all can: a round takes long, and the next attempt comes soon.
        all_started = threading.Event()
        try:
            for name, run in runs.items():
                longest = self._first_lists * _BEGIN_WITHIN
                delay = random.uniform(0, longest)  # noqa: S311
                self._spawn(name, functools.partial(_after, all_started, run, stopped, delay))
        except RuntimeError:
            LOG.exception("No thread can be started for the watches; objects are read directly.")
            self._not_before = self._clock() + _BEGIN_AGAIN
            self._end()
        finally:
            all_started.set()

    def wait_for_lists(self) -> None:
        """Wait until every kind is listed, or cannot be, for the first time since the start.

        Magnum begins with a pass of each cluster. Without the lists each of them would read all of
        its objects: as many requests as there are clusters, times the kinds.
        """
        for watch in self.watches:
            # An Event that is set is not waited for: its wait() takes a lock of all passes.
            if not watch.attempted.is_set():
                watch.attempted.wait(max(0.0, self._listed_by - self._clock()))

    def _tell(self, obj: Json) -> None:
        if self._told is not None:
            self._told(obj)

    def stop(self) -> None:
        """End all watches; a thread ends with the round that it is in."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._stopped is not None:
            self._stopped.set()
            self._stopped = None
        self._listed_by = 0.0
        self._wake()
        for store in self._stores.values():
            store.forget()

    def ages(self) -> dict[str, float]:
        """Seconds since each kind was known for sure, or since the start; nothing once stopped."""
        if self._stopped is None:
            return {}
        longest = self._clock() - self._started_at
        return {
            kind.plural: min(longest, store.seconds_since_proof(longest))
            for kind, store in self._stores.items()
        }

    def _wake(self) -> None:
        for watch in self.watches:
            watch.wake()

    def is_whole(self, view: CachedReader) -> bool:
        """Whether a snapshot asks for nothing, and the management cluster has answered just now.

        Watches that are fresh tell nothing of a management cluster that went away a moment ago. The
        end of any of them does, and so does one request of one thread, for a few seconds and all.
        """
        if not view.kinds >= frozenset(KINDS).intersection(self._stores):
            return False
        return view.answered <= ANSWER_HOLDS or self._answer_check.answers()

    def view(self) -> CachedReader:
        """A reader for one look that begins now."""
        try:
            identity = self._kube.identity()
        except errors.DriverError as error:
            LOG.warning("Watched objects are not used, objects are read directly: %s", error.detail)
            self._identity = ""
            return CachedReader(self._kube, {})
        if identity != self._identity:
            # A watch that was refused pauses for minutes, and the right may have come with this.
            self._identity = identity
            self._wake()
        ages = {store: store.age(identity) for store in self._stores.values()}
        fresh = {
            store.kind: age
            for store, age in ages.items()
            if age is not None and age <= self._staleness
        }
        stores = {kind: self._stores[kind] for kind in fresh}
        return CachedReader(self._kube, stores, fresh, identity)
