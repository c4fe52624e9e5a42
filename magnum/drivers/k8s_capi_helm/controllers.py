# SPDX-License-Identifier: Apache-2.0
"""Whether the controllers of the management cluster live: their Leases, asked now and then.

All clusters have the same controllers, so one process asks for all of its clusters at once.
"""

from __future__ import annotations

from collections.abc import Iterable
import datetime
import threading
from typing import Protocol

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors, names, patience
from magnum.drivers.k8s_capi_helm.model import Json, Silence
from magnum.drivers.k8s_capi_helm.status import heartbeats

LOG = logging.getLogger(__name__)

#: They renew every two seconds, and nobody has to know of their end at once.
_EVERY = datetime.timedelta(seconds=20)


class Reader(Protocol):
    """What is needed of the management cluster; kube_client.KubeClient has it."""

    def get(self, kind: names.Kind, namespace: str, name: str, /) -> Json | None: ...

    def identity(self) -> str: ...


class Controllers:
    """What this process knows of the controllers; safe to share between threads.

    :param leases: ``namespace/name`` of the Lease of each controller.
    :param longest: how long one may be silent; zero for always, and then nobody is asked.
    """

    def __init__(
        self,
        leases: Iterable[str] = (),
        longest: datetime.timedelta = datetime.timedelta(minutes=3),
    ) -> None:
        self._leases = tuple(dict.fromkeys(leases)) if longest else ()
        self._longest = longest
        self._asking = threading.Lock()
        self._lock = threading.Lock()
        self._asked: datetime.datetime | None = None
        self._known: dict[str, heartbeats.Heartbeat] = {}
        self._place = ""
        self._refused: set[str] = set()

    def silent(self, kube: Reader, now: datetime.datetime) -> tuple[Silence, ...]:
        """Who is silent, in the order of the Leases.

        A Lease that was never seen, or that may not be read, says nothing about anybody. One that
        was seen and is gone was taken away with its controller.

        Magnum polls all of its clusters at once, and then none of them for a minute. So who comes
        while another thread asks waits for the answer; what was known before is a minute old.

        :param now: aware, UTC.
        """
        if self._asking.acquire(timeout=patience.left(_EVERY.total_seconds())):
            try:
                if self._asked is None or abs(now - self._asked) >= _EVERY:
                    self._asked = now
                    self._ask(kube, now)
            finally:
                self._asking.release()
        with self._lock:
            known = [self._known[one] for one in self._leases if one in self._known]
        found = (heartbeats.silence(one, self._longest) for one in known)
        return tuple(one for one in found if one is not None)

    def _ask(self, kube: Reader, now: datetime.datetime) -> None:
        try:
            self._be_at(kube.identity())
        except errors.DriverError:
            return
        for lease in self._leases:
            namespace, _, name = lease.partition("/")
            try:
                found = kube.get(names.LEASE, namespace, name)
            except errors.ManagementUnreachable:
                # What is known stays as it is: nobody has looked.
                return
            except errors.DriverError as error:
                self._not_allowed(lease, error)
                continue
            self._note(lease, found, now)

    def _be_at(self, place: str) -> None:
        """Forget those of another kubeconfig: what is not here never went away."""
        with self._lock:
            if place != self._place:
                self._known.clear()
                self._place = place

    def _note(self, lease: str, found: Json | None, now: datetime.datetime) -> None:
        with self._lock:
            self._refused.discard(lease)
            before = self._known.pop(lease, None)
            beat = heartbeats.heartbeat(_controller(lease, self._leases), found, before, now)
            if beat is not None:
                self._known[lease] = beat

    def _not_allowed(self, lease: str, error: errors.DriverError) -> None:
        with self._lock:
            known = lease in self._refused
            self._refused.add(lease)
            self._known.pop(lease, None)
        LOG.log(
            logging.DEBUG if known else logging.WARNING,
            "Whether the controller of Lease %s lives is not known: %s",
            lease,
            error.detail or error.sentence,
        )


def _controller(lease: str, leases: Iterable[str]) -> str:
    """How people call it: ``capi`` for one in ``capi-system``, if no other is there."""
    namespace = lease.partition("/")[0]
    alone = [one.partition("/")[0] for one in leases].count(namespace) == 1
    return namespace.removesuffix("-system") if alone else lease
