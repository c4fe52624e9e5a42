# SPDX-License-Identifier: Apache-2.0
"""Trigger a pass of a cluster in progress by watch events of its objects.

Magnum has no lock around its status task: it starts a thread for each cluster every ten seconds, in
every conductor, and waits for none, so passes of one cluster meet anyway and the Lease keeps them
apart where they act. What must not happen twice is what Magnum's own job does after a pass:
it tells the notification bus of an end, and destroys the rows of a deleted cluster. So a prompted
pass only carries on and refreshes what is shown; it ends nothing: no COMPLETE, no FAILED, no row.
And the two looks that an end asks for stay one period apart.

Nothing waits for a prompt: watches only leave a name, and the few threads that look make no pass
where somebody else holds the lock. What they do not come to is seen by the next period.
"""

from __future__ import annotations

from collections.abc import Callable
import functools
import math
import threading
import time

from oslo_log import log as logging

from magnum.common import context as magnum_context
from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.handlers import reconciliation, status_task
from magnum.drivers.k8s_capi_helm.kube import informers
from magnum.drivers.k8s_capi_helm.magnum_objects.writer import Status
from magnum.drivers.k8s_capi_helm.model import conditions, Json, names
from magnum.drivers.k8s_capi_helm.reconcile.clients import Clients
from magnum.objects import cluster as cluster_object

LOG = logging.getLogger(__name__)
_lock = threading.Lock()

#: Seconds since Magnum's status task has come by last, after which a cluster is not in progress.
_IN_PROGRESS = 30.0
#: Seconds for what happens together to be looked at together.
_GATHER = 0.5
#: Seconds at least between two prompted passes of one cluster.
_APART = 3.0
#: Threads that look: one may run helm while another one refreshes.
_THREADS = 2
_made: dict[informers.Informers, WatchTriggers] = {}


class WatchTriggers:
    """Releases with pending watch events; a few threads reconcile them.

    :param sync: makes a pass of a release; what it raises is logged.
    :param clock: seconds that only ever go up.
    """

    def __init__(
        self, sync: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._sync = sync
        self._clock = clock
        self._lock = threading.Lock()
        self._visited: dict[str, float] = {}
        self._synced: dict[str, float] = {}
        #: In the order in which they are looked at.
        self._waiting: dict[str, None] = {}
        self._running: set[str] = set()
        self._something = threading.Event()

    def mark_visited(self, release: str) -> None:
        """Magnum's status task has come by: the cluster is in progress."""
        with self._lock:
            now = self._clock()
            self._visited[release] = now
            for times in (self._visited, self._synced):
                for name in [name for name in times if now - times[name] > _IN_PROGRESS]:
                    del times[name]

    def handle_event(self, obj: Json) -> None:
        """Note that an object was created, changed or deleted."""
        with self._lock:
            watched = [release for release in _releases(obj) if release in self._visited]
            self._waiting.update(dict.fromkeys(watched))
        if watched:
            self._something.set()

    def run(self, stop_event: threading.Event) -> None:
        """Reconcile releases with watch events, until *stop_event* is set."""
        while not stop_event.is_set():
            if self._something.wait(_IN_PROGRESS):
                stop_event.wait(_GATHER)
                self.reconcile_waiting()

    def reconcile_waiting(self) -> None:
        """Reconcile all releases whose minimum interval has passed."""
        while release := self._next():
            try:
                self._sync(release)
            except Exception:
                # The thread serves all clusters; the next period sees to this one.
                LOG.exception(
                    "Release %s: an event-triggered reconcile failed with an unexpected error.",
                    release,
                )
            finally:
                with self._lock:
                    self._running.discard(release)

    def _next(self) -> str | None:
        """A release that no thread looks at and that waits long enough; None if there is none."""
        with self._lock:
            now = self._clock()
            for release in list(self._waiting):
                if now - self._visited.get(release, -math.inf) > _IN_PROGRESS:
                    del self._waiting[release]
                elif release not in self._running and self._rested(release, now):
                    del self._waiting[release]
                    self._synced[release] = now
                    self._running.add(release)
                    return release
            if not self._waiting:
                self._something.clear()
            return None

    def _rested(self, release: str, now: float) -> bool:
        return release not in self._synced or now - self._synced[release] >= _APART


def start(clients: Clients, settings: Settings, release: str | None = None) -> None:
    """There was a periodic question: watch, if that has not begun.

    Only one process of a service is asked periodically. Its workers and magnum-api never come here;
    their verbs read what they need.

    :param release: whose status was asked for, because it is in progress.
    """
    watching = clients.informers
    if watching is None:
        return
    with _lock:
        if watching not in _made:
            _made.clear()
            _made[watching] = WatchTriggers(functools.partial(sync, clients, settings))
        prompts = _made[watching]
    watching.start(prompts.handle_event, [prompts.run] * _THREADS)
    if release:
        prompts.mark_visited(release)


def sync(clients: Clients, settings: Settings, release: str) -> None:
    """One pass of what is being created or changed, that ends nothing."""
    context = magnum_context.make_admin_context(all_tenants=True)
    filters = {
        "stack_id": release,
        "status": [Status.CREATE_IN_PROGRESS, Status.UPDATE_IN_PROGRESS],
    }
    for cluster in cluster_object.Cluster.list(context, filters=filters):
        run = reconciliation.of_periodic_task(clients, settings)
        status_task.advance(run, context, cluster, may_finish=False)


def _releases(obj: Json) -> list[str]:
    """Names of releases that an object may belong to.

    Events tell of what is told of by itself, and Leases of what conductors do.
    """
    if obj.get("kind") in (names.EVENT.name, names.LEASE.name):
        return []
    labels = conditions.mapping(conditions.metadata(obj).get("labels"))
    label_texts = (labels.get(names.LABEL_CLUSTER_NAME), labels.get(names.LABEL_CHART_CLUSTER))
    return [str(text) for text in (*label_texts, conditions.name(obj)) if text]
