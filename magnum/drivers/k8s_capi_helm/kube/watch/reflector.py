# SPDX-License-Identifier: Apache-2.0
"""A reflector: lists one kind, watches its changes, and starts again after an error.

The way of https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes:
a list in pages, a watch from its resourceVersion on, a new list after 410 Gone. Bookmarks, and the
ends that each watch is asked to come to soon, are the proof that nothing was missed until then. A
watch that comes to another end, and one that tells nothing at all, prove nothing by that.

``kubernetes.informer`` of the client library is not used: it has no timeout for its requests, so
that a dead connection is never noticed; no time at which it was last right, so that nothing can be
called stale; no pause that grows; it lists in one piece and keeps whole objects; and with custom
objects, whose lists are dicts, it fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
import random
import threading
import time
from typing import Protocol

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.kube.watch import memory
from magnum.drivers.k8s_capi_helm.kube.watch.cache import CachedObject, ObjectCache
from magnum.drivers.k8s_capi_helm.metrics import record
from magnum.drivers.k8s_capi_helm.model import Json, names

LOG = logging.getLogger(__name__)

#: Seconds after which everything is listed again, whatever the watches say. Each watch that tells
#: nothing is compared with the server's resourceVersion, and each that fails begins with a list, so
#: this is for what neither tells: a management cluster that was restored from a backup of a moment
#: ago, and has caught up before the watch was back.
_LIST_AGAIN = 1800.0
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 30.0
#: Seconds at most after a refusal, which ends only when somebody grants the right.
_LONGEST_REFUSED = 300.0
#: A watch has lasted as long as it was asked to from this part of its time on.
_LASTED = 0.9
#: Of the first pause, at most: no number that an outage of days lets grow.
_DOUBLINGS = 10


class ListWatcher(Protocol):
    """What a watch needs of the management cluster; kube_client.KubeClient has it."""

    def identity(self) -> str: ...

    def snapshot(
        self, kind: names.Kind, keep: Callable[[Json], CachedObject | None], label: str, /
    ) -> tuple[Iterable[CachedObject], str]: ...

    def changes(
        self, kind: names.Kind, since: str, seconds: int, label: str, /
    ) -> Iterator[tuple[str, Json]]: ...

    def revision(self, kind: names.Kind, /) -> str: ...


class Reflector:
    """Keeps one store up to date; each round is one list or one watch.

    :param seconds: how long one watch lasts at most.
    :param on_change: called with every object of ours that was made, changed or deleted.
    :param jitter: a random number between two others, so that nothing happens in step.
    :ivar attempted: set when the first round of :meth:`run` has ended, whether it failed or not.
    """

    def __init__(
        self,
        source: ListWatcher,
        store: ObjectCache,
        *,
        seconds: int,
        on_change: Callable[[Json], None],
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._source = source
        self._store = store
        self._seconds = seconds
        self._told = on_change
        self._clock = clock
        self._spread = jitter
        self._since = ""
        #: Of whom was listed last, and who was asked last.
        self._identity = self._tried = ""
        self._list_again = 0.0
        self._failures = 0
        self._trouble: type[errors.DriverError] | None = None
        self._woken = threading.Event()
        self.attempted = threading.Event()

    def run(self, stop_event: threading.Event) -> None:
        """Rounds until *stop_event*, with a pause after each that fails."""
        while not stop_event.is_set():
            try:
                pause = self.list_and_watch()
            except Exception:
                # Without its thread a store would be stale for ever, and nobody would know why.
                LOG.exception(
                    "%s are listed again after an unexpected error", self._store.kind.plural
                )
                record.watch_restart(self._store.kind.plural)
                self._since, pause = "", _LONGEST_PAUSE
            self.attempted.set()
            if pause and not stop_event.is_set():
                self._woken.wait(pause)
                self._woken.clear()

    def wake(self) -> None:
        """End the current pause: the kubeconfig has changed, or the reflector is stopped."""
        self._woken.set()

    def list_and_watch(self) -> float:
        """List, or follow the changes until the watch ends.

        :returns: seconds to wait before the next round.
        """
        try:
            identity = self._source.identity()
            if identity != self._tried:
                # What was wrong with the one before says nothing of this one.
                self._tried, self._failures, self._trouble = identity, 0, None
            if not self._since or identity != self._identity or self._clock() >= self._list_again:
                self._list(identity)
            else:
                self._follow()
                # Not after a list: one that works does not make up for a watch that does not.
                self._failures, self._trouble = 0, None
        except errors.DriverError as error:
            # A watch that ended in any other way than asked for may have missed something.
            self._since = ""
            return self._pause(error)
        return 0.0

    def _list(self, identity: str) -> None:
        started = self._clock()
        objects, since = self._source.snapshot(
            self._store.kind, self._store.keep, self._store.label
        )
        changed = self._store.fill(objects, identity, started)
        memory.reduce()
        self._since, self._identity = since, identity
        self._list_again = started + self._spread(_LIST_AGAIN / 2, _LIST_AGAIN)
        # No watch has told of it, or it would be known.
        for cached in changed:
            self._tell(cached.unpack())

    def _follow(self) -> None:
        seconds = max(1, int(self._spread(self._seconds * 0.7, self._seconds)))
        started, quiet = self._clock(), True
        events = self._source.changes(self._store.kind, self._since, seconds, self._store.label)
        for event_type, obj in events:
            quiet = False
            self._since = obj["metadata"]["resourceVersion"]
            if event_type == "BOOKMARK":
                self._store.confirm()
            elif self._store.change(obj, is_deleted=event_type == "DELETED"):
                self._tell(obj)
        duration = self._clock() - started
        if duration >= seconds * _LASTED:
            if quiet:
                self._check_not_ahead()
            self._store.confirm()
        elif quiet:
            # By somebody in between that lets no stream pass, or by a server that stops.
            raise errors.ManagementUnreachable(
                "A watch of the management cluster ended without an event.",
                f"a watch ended after {duration:.1f} of {seconds} seconds without an event",
            )
        # Else it was cut off, as of whoever does not keep up: what was not told is told next.

    def _tell(self, obj: Json) -> None:
        """What is known by now is not told again, so no error may take the rest along."""
        try:
            self._told(obj)
        except Exception:
            LOG.exception("The handler of a watch event of %s failed", self._store.kind.plural)

    def _check_not_ahead(self) -> None:
        """Nothing is ever told of a management cluster that is behind what is known of it.

        :raises errors.Conflict: it is: it was restored from a backup, or is another one.
        """
        current = self._source.revision(self._store.kind)
        if current.isdigit() and self._since.isdigit() and int(current) < int(self._since):
            raise errors.Conflict(
                "The management cluster has an older state than the watch.",
                f"its resourceVersion is {current}, lower than the observed {self._since}",
            )

    def _pause(self, error: errors.DriverError) -> float:
        kind = self._store.kind
        self._failures += 1
        record.watch_restart(kind.plural)
        if isinstance(error, errors.Conflict) and self._failures == 1:
            LOG.info("%s are listed again: %s", kind.plural, error.detail)
            return 0.0
        refused = isinstance(error, errors.ManagementRefused)
        max_pause = _LONGEST_REFUSED if refused else _LONGEST_PAUSE
        bound = min(max_pause, _FIRST_PAUSE * 2 ** min(self._failures - 1, _DOUBLINGS))
        pause = self._spread(bound / 2, bound)
        known, self._trouble = self._trouble is type(error), type(error)
        LOG.log(
            logging.DEBUG if known else logging.WARNING,
            "%s are not watched now; the next attempt is in %.1f seconds: %s",
            kind.plural,
            pause,
            error.detail or error.sentence,
        )
        return pause
