# SPDX-License-Identifier: Apache-2.0
"""Controller checks: whether controllers renew their Leases, and their clocks.

Their Leases are asked for now and then: what they renew tells both.

All clusters have the same controllers, so one process asks for all of its clusters at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
import dataclasses
import datetime
import threading
import time
from typing import Protocol

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import deadline, errors
from magnum.drivers.k8s_capi_helm.model import Json, names, Observed, StaleController
from magnum.drivers.k8s_capi_helm.status.objects import controller_leases, timestamps

LOG = logging.getLogger(__name__)

#: They renew every two seconds, and nobody has to know of their end at once.
_EVERY = 20.0
#: Seconds after which a time that was written is no word any more on what clocks show: one of them
#: may have been put right since. Nothing is waited for as long as that.
_BELIEVED = 3600.0


class ObjectReader(Protocol):
    """What is needed of the management cluster; kube_client.KubeClient has it."""

    def get(self, kind: names.Kind, namespace: str, name: str, /) -> Json | None: ...

    def identity(self) -> str: ...


class ControllerCheck:
    """What this process knows of the controllers; safe to share between threads.

    :param leases: ``namespace/name`` of the Lease of each controller.
    :param max_staleness: how long one may stay silent; zero for always, and no Lease is read then.
    :param clock: seconds that only ever go up.
    """

    def __init__(
        self,
        leases: Iterable[str] = (),
        max_staleness: datetime.timedelta = datetime.timedelta(minutes=3),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._leases = tuple(dict.fromkeys(leases)) if max_staleness else ()
        self._longest = max_staleness
        self._asking = threading.Lock()
        self._lock = threading.Lock()
        self._asked: float | None = None
        #: When the last answers were asked for that are there.
        self._answered: float | None = None
        self._known: dict[str, controller_leases.ControllerLease] = {}
        self._place = ""
        self._refused: set[str] = set()
        self._shown = _Shown()

    def observe_controllers(
        self, kube: ObjectReader, observed: Observed, recorded_text: str = ""
    ) -> Observed:
        """A look with what the controllers' Leases tell: who is silent, and what time it was.

        :param recorded_text: what the rows of the cluster say now, reason and health.
        """
        self._ask_now_and_then(kube)
        newest = timestamps.newest(observed)
        with self._lock:
            self._shown.note(newest, self._clock())
            asof = self._shown.at(self._clock())
        return dataclasses.replace(
            observed, stale_controllers=self._silent(recorded_text), asof=asof
        )

    def stale_controllers(
        self, kube: ObjectReader, recorded_text: str = ""
    ) -> tuple[StaleController, ...]:
        """Who is silent, in the order of the Leases.

        A Lease that was never seen, or that may not be read, says nothing about anybody. One that
        was seen and is gone was taken away with its controller.

        Magnum polls all of its clusters at once, and then none of them for a minute. So who comes
        while another thread asks waits for the answer; what was known before is a minute old.

        :param recorded_text: what the rows of the cluster say now, reason and health.
        """
        self._ask_now_and_then(kube)
        return self._silent(recorded_text)

    def _ask_now_and_then(self, kube: ObjectReader) -> None:
        answered = self._answered
        if answered is not None and self._clock() - answered < _EVERY:
            # Hundreds of threads would wait for the lock, one after another.
            return
        if self._asking.acquire(timeout=deadline.seconds_left(_EVERY)):
            try:
                now = self._clock()
                if self._asked is None or now - self._asked >= _EVERY:
                    self._asked = now
                    self._ask(kube, now)
                self._answered = self._asked
            finally:
                self._asking.release()

    def _silent(self, recorded_text: str) -> tuple[StaleController, ...]:
        with self._lock:
            leases = [self._known[name] for name in self._leases if name in self._known]
            # By when each was seen last: of what was since nobody knows.
            times = [self._shown.at(lease.last_seen) for lease in leases]
        recorded_stale = {
            controller.controller: controller
            for controller in controller_leases.recorded_stale_since(leases, recorded_text)
        }
        stale = (
            controller_leases.stale_controller(lease, self._longest, at)
            or recorded_stale.get(lease.controller)
            for lease, at in zip(leases, times, strict=True)
        )
        return tuple(controller for controller in stale if controller is not None)

    def _ask(self, kube: ObjectReader, now: float) -> None:
        try:
            self._be_at(kube.identity())
        except errors.DriverError:
            return
        for lease in self._leases:
            namespace, _, name = lease.partition("/")
            try:
                obj = kube.get(names.LEASE, namespace, name)
            except errors.ManagementUnreachable:
                # What is known stays as it is: nobody has looked.
                return
            except errors.DriverError as error:
                self._not_allowed(lease, error)
                continue
            self._note(lease, obj, now)

    def _be_at(self, identity: str) -> None:
        """Forget those of another kubeconfig: what is not here never went away."""
        with self._lock:
            if identity != self._place:
                self._known.clear()
                self._shown = _Shown()
                self._place = identity

    def _note(self, lease: str, obj: Json | None, now: float) -> None:
        with self._lock:
            self._refused.discard(lease)
            previous = self._known.pop(lease, None)
            controller_lease = controller_leases.controller_lease(
                _controller(lease, self._leases), obj, previous, now
            )
            if controller_lease is not None:
                self._known[lease] = controller_lease
                if controller_lease is not previous and controller_lease.first_seen == now:
                    self._shown.note(controller_lease.renewed_at, now)

    def _not_allowed(self, lease: str, error: errors.DriverError) -> None:
        with self._lock:
            known = lease in self._refused
            self._refused.add(lease)
            self._known.pop(lease, None)
        LOG.log(
            logging.DEBUG if known else logging.WARNING,
            "Lease %s cannot be read, its controller is not checked: %s",
            lease,
            error.detail or error.sentence,
        )


class _Shown:
    """What the clocks of a management cluster show, by the newest time that was written there.

    Since then as much time has passed there as here. Times are believed for an hour or two: the
    newest of this hour and of the hour before. Whoever uses it holds a lock.
    """

    def __init__(self) -> None:
        self._ahead: float | None = None
        self._before: float | None = None
        self._began = 0.0

    def note(self, timestamp: datetime.datetime | None, now: float) -> None:
        """Take in a time that was read just now.

        :param now: seconds of a clock of this process.
        """
        if timestamp is None:
            return
        if self._ahead is not None and now - self._began >= _BELIEVED:
            self._before, self._ahead = self._ahead, None
        offset = timestamp.timestamp() - now
        if self._ahead is None:
            self._began = now
        self._ahead = offset if self._ahead is None else max(self._ahead, offset)

    def at(self, now: float) -> datetime.datetime | None:
        """What they show now, at least; None before anything was read."""
        offsets = [offset for offset in (self._ahead, self._before) if offset is not None]
        return (
            datetime.datetime.fromtimestamp(max(offsets) + now, datetime.timezone.utc)
            if offsets
            else None
        )


def _controller(lease: str, leases: Iterable[str]) -> str:
    """How people call it: ``capi`` for one in ``capi-system``, if no other is there."""
    namespace = lease.partition("/")[0]
    is_only = [other.partition("/")[0] for other in leases].count(namespace) == 1
    return namespace.removesuffix("-system") if is_only else lease
