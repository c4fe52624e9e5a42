# SPDX-License-Identifier: Apache-2.0
"""Trigger a pass of a cluster in progress by watch events of its objects.

Magnum has no lock around its status task: it starts a thread for each cluster every ten seconds, in
every conductor, and waits for none, so passes of one cluster meet anyway and the Lease keeps them
apart where they act. What must not happen twice is what Magnum's own job does after a pass:
it tells the notification bus of an end, and destroys the rows of a deleted cluster. So a prompted
pass only carries on and refreshes what is shown; it ends nothing: no COMPLETE, no FAILED, no row.
It may take the first of the two snapshots that an end asks for. Then Magnum's own job takes the
second one between its periods, two seconds later, and not beside another one of this process.

Nothing waits for a prompt: watches only leave a name, and the few threads that look make no pass
where another one holds the lock. Projects take turns with these threads, and none has all of
them: the changes of one with five hundred clusters delay those of another by the end of one pass at
most. What they do not come to is seen by the next period.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator
import contextlib
import functools
import math
import threading
import time
from typing import Any

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.handlers.entry import log_context, reconciliation
from magnum.drivers.k8s_capi_helm.handlers.tasks import failed_clusters, status_task
from magnum.drivers.k8s_capi_helm.kube.watch import informers
from magnum.drivers.k8s_capi_helm.magnum_objects.rows.writer import Status
from magnum.drivers.k8s_capi_helm.model import conditions, Json, names
from magnum.drivers.k8s_capi_helm.model.fair_order import FairOrder
from magnum.drivers.k8s_capi_helm.model.management_cluster import with_management
from magnum.drivers.k8s_capi_helm.reconcile.process.clients import Clients
from magnum.objects import cluster as cluster_object
from magnum.service import periodic

LOG = logging.getLogger(__name__)
_lock = threading.Lock()

#: Seconds since Magnum's status task has come by last, after which a cluster is not in progress.
_IN_PROGRESS = 30.0
#: Seconds between two looks for those: not in each pass, of which each looks at all clusters then.
_CLEAN = 1.0
#: Seconds for what happens together to be looked at together.
_GATHER = 0.5
#: Seconds at least between two prompted passes of one cluster.
_APART = 3.0
#: Seconds from a snapshot that finds everything in place to the one that confirms it.
_CONFIRM = 2.0
#: Threads that look: one may run helm while another one refreshes, and one is kept for a project
#: whose clusters no other one looks at.
_THREADS = 3
#: By the watches of a management cluster, with what its threads run.
_made: dict[informers.Informers, tuple[WatchTriggers, list[Callable[[threading.Event], None]]]] = {}


class WatchTriggers:
    """Releases with pending watch events; a few threads reconcile them.

    :param sync: makes a pass of a release that ends nothing, and returns whether everything is in
        place; what it raises is logged.
    :param confirm: makes a pass of a release as Magnum's status task does.
    :param clock: seconds that only ever go up.
    """

    def __init__(
        self,
        sync: Callable[[str], bool],
        confirm: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sync = sync
        self._confirm = confirm
        self._clock = clock
        self._lock = threading.Lock()
        self._visited: dict[str, float] = {}
        self._synced: dict[str, float] = {}
        #: Within a project, in the order in which they are looked at.
        self._waiting: dict[str, None] = {}
        #: Namespace, and so the project, of each release that events were about.
        self._namespaces: dict[str, str] = {}
        self._order = FairOrder()
        self._running: set[str] = set()
        #: When the second snapshot of a release is due, and which thread takes it.
        self._due: dict[str, float] = {}
        self._confirming: dict[str, int] = {}
        #: Passes of Magnum's status task that have not ended.
        self._visits: collections.Counter[str] = collections.Counter()
        self._something = threading.Event()
        self._cleaned = -math.inf

    @contextlib.contextmanager
    def visit(self, release: str) -> Iterator[bool]:
        """A pass of Magnum's status task: the cluster is in progress.

        :returns: False while another thread of this process makes one between two periods.
        """
        with self._lock:
            now = self._clock()
            self._visited[release] = now
            if now - self._cleaned >= _CLEAN:
                self._clean(now)
            own_thread = threading.get_ident()
            is_free = self._confirming.get(release, own_thread) == own_thread
            self._visits[release] += 1
        try:
            yield is_free
        finally:
            with self._lock:
                self._visits[release] -= 1
                if not self._visits[release]:
                    del self._visits[release]

    def _clean(self, now: float) -> None:
        """Forget what is no longer in progress."""
        self._cleaned = now
        for times in (self._visited, self._synced):
            for name in [name for name in times if now - times[name] > _IN_PROGRESS]:
                del times[name]
        for name in self._namespaces.keys() - self._visited.keys():
            del self._namespaces[name]

    def handle_event(self, obj: Json) -> None:
        """Note that an object was created, changed or deleted."""
        with self._lock:
            watched = [release for release in _releases(obj) if release in self._visited]
            self._waiting.update(dict.fromkeys(watched))
            namespace = str(conditions.metadata(obj).get("namespace"))
            self._namespaces.update(dict.fromkeys(watched, namespace))
        if watched:
            self._something.set()

    def run(self, stop_event: threading.Event) -> None:
        """Reconcile releases with watch events, until *stop_event* is set."""
        while not stop_event.is_set():
            if self._something.wait(self._seconds_until_due()):
                stop_event.wait(_GATHER)
            self.reconcile_waiting()

    def _seconds_until_due(self) -> float:
        with self._lock:
            first = min(self._due.values(), default=math.inf)
            return min(max(0.0, first - self._clock()), _IN_PROGRESS)

    def reconcile_waiting(self) -> None:
        """Reconcile all releases whose minimum interval has passed."""
        while found := self._next():
            release, is_second = found
            try:
                if is_second:
                    self._confirm(release)
                elif self._sync(release):
                    with self._lock:
                        self._due[release] = self._clock() + _CONFIRM
            except Exception:
                # The thread serves all clusters; the next period sees to this one.
                LOG.exception(
                    "Release %s: an event-triggered reconcile failed with an unexpected error.",
                    release,
                )
            finally:
                with self._lock:
                    self._running.discard(release)
                    self._confirming.pop(release, None)

    def _next(self) -> tuple[str, bool] | None:
        """A release that no thread looks at and that waits long enough; None if there is none.

        :returns: its name, and whether its second snapshot is due.
        """
        with self._lock:
            now = self._clock()
            ready = self._ready(now)
            if not self._waiting:
                self._something.clear()
            if not ready:
                return None
            namespace = self._order.first(ready)
            self._order.take(namespace)
            release, is_second = ready[namespace]
            self._running.add(release)
            if is_second:
                del self._due[release]
                self._confirming[release] = threading.get_ident()
            else:
                del self._waiting[release]
                self._synced[release] = now
            return release, is_second

    def _ready(self, now: float) -> dict[str, tuple[str, bool]]:
        """What :meth:`_next` may return, by namespace: second snapshots first."""
        ready: dict[str, tuple[str, bool]] = {}
        for release, due in self._due.items():
            if due > now:
                continue
            if release in self._running or self._visits[release]:
                # The pass that runs may end it.
                self._due[release] = now + _CONFIRM
            else:
                ready.setdefault(self._namespaces.get(release, ""), (release, True))
        for release in list(self._waiting):
            if now - self._visited.get(release, -math.inf) > _IN_PROGRESS:
                del self._waiting[release]
            elif release not in self._running and self._rested(release, now):
                ready.setdefault(self._namespaces.get(release, ""), (release, False))
        if len(self._running) >= _THREADS - 1:
            for release in self._running:
                ready.pop(self._namespaces.get(release, ""), None)
        return ready

    def _rested(self, release: str, now: float) -> bool:
        return release not in self._synced or now - self._synced[release] >= _APART


def start(clients: Clients, settings: Settings) -> WatchTriggers | None:
    """Start the watches of a management cluster, once in a process, and wait for the first lists.

    Only one process of a service is asked periodically. Its workers and magnum-api never come here;
    their verbs read what they need.

    :returns: None without watches.
    """
    watching = clients.informers
    if watching is None:
        return None
    prompts, serve = _made.get(watching) or _make(watching, clients, settings)
    watching.start(prompts.handle_event, serve)
    watching.wait_for_lists()
    return prompts


def _make(
    watching: informers.Informers, clients: Clients, settings: Settings
) -> tuple[WatchTriggers, list[Callable[[threading.Event], None]]]:
    with _lock:
        if watching not in _made:
            own = {one.informers for one in clients.all_clients()}
            for other in [other for other in _made if other not in own]:
                del _made[other]
            make_pass = functools.partial(sync, clients, settings)
            run_job = functools.partial(confirm, clients.management)
            triggers = WatchTriggers(make_pass, run_job)
            serve: list[Callable[[threading.Event], None]] = [triggers.run] * _THREADS
            if not _made:  # once for the clusters of all management clusters
                serve += failed_clusters.polls(failed_clusters.magnum_release())
            _made[watching] = triggers, serve
        return _made[watching]


@contextlib.contextmanager
def visit(clients: Clients, settings: Settings, release: str | None) -> Iterator[bool]:
    """A pass of Magnum's status task; parameters and value as for :meth:`WatchTriggers.visit`.

    :param release: None for a cluster that has none yet.
    """
    triggers = start(clients, settings)
    if triggers is None or not release:
        yield True
        return
    with triggers.visit(release) as is_free:
        yield is_free


def sync(clients: Clients, settings: Settings, release: str) -> bool:
    """One pass of what is being created or changed, that ends nothing.

    :returns: whether everything is in place.
    """
    context = log_context.make_admin_context()
    trigger, passes = reconciliation.Trigger.WATCH_EVENT, []
    for cluster in _in_progress(context, with_management(release, clients.management)):
        with log_context.log_errors(cluster, log_context.WATCH_EVENT, context):
            run = reconciliation.of_periodic_task(clients, settings)
            passes.append(status_task.advance(run, context, cluster, trigger=trigger))
    return any(passes)


def confirm(management: str, release: str) -> None:
    """Magnum's own job for what is being created or changed, between its periods.

    It tells the notification bus of an end, as always.

    :param management: name of the management cluster.
    """
    context = log_context.make_admin_context()
    for cluster in _in_progress(context, with_management(release, management)):
        with log_context.log_errors(cluster, log_context.WATCH_EVENT, context):
            periodic.ClusterUpdateJob(context, cluster).update_status()


def _in_progress(context: Any, stack_id: str) -> list[Any]:
    filters = {
        "stack_id": stack_id,
        "status": [Status.CREATE_IN_PROGRESS, Status.UPDATE_IN_PROGRESS],
    }
    return list(cluster_object.Cluster.list(context, filters=filters))


def _releases(obj: Json) -> list[str]:
    """Names of releases that an object may belong to.

    Events are about other objects, whose own changes are watched; Leases about conductors.
    """
    if obj.get("kind") in (names.EVENT.name, names.LEASE.name):
        return []
    labels = conditions.mapping(conditions.metadata(obj).get("labels"))
    label_texts = (labels.get(names.LABEL_CLUSTER_NAME), labels.get(names.LABEL_CHART_CLUSTER))
    return [str(text) for text in (*label_texts, conditions.name(obj)) if text]
