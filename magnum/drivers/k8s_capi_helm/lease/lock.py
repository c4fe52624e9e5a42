# SPDX-License-Identifier: Apache-2.0
"""The Lease as a lock: one holder over all conductors, which stops before it expires.

A holder stops what it does well before others may take the Lease, by its own clock alone; others
judge a Lease by how long *they* have seen it unchanged, never by the times in it. So the clocks of
different hosts need not agree. The lock of a process that the kernel reports as ended is taken at
once (:mod:`.holder`). What remains is a process that is frozen between looking at its lock
and its next call; ``doc/source/contributor/lock.rst`` says what it can still do, case by case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import copy
import datetime
import math
import threading
import uuid

from oslo_log import log as logging
import tenacity

from magnum.drivers.k8s_capi_helm import deadline, errors
from magnum.drivers.k8s_capi_helm.lease import codec, record_format
from magnum.drivers.k8s_capi_helm.lease.holder import has_ended
from magnum.drivers.k8s_capi_helm.lease.update import LeaseUpdates
from magnum.drivers.k8s_capi_helm.lease.waiting_requests import WaitingRequests
from magnum.drivers.k8s_capi_helm.metrics import record as metrics
from magnum.drivers.k8s_capi_helm.model import Json, log_scope, ReleaseRecord

LOG = logging.getLogger(__name__)

# A holder takes its lock for lost this part of the lease's duration after its last renewal.
_CAUTION = 0.75
# Renewals in that time: one may fail and one may be late.
_RENEWALS = 3
_LONGEST_POLL = 1.0
_GIVING_BACK = 2.0
_RACES = 5
# Many requests at once write for seconds, and a lock that is not given back holds all of them up.
_LAST_RACES = 200


class Lock:
    """The locks of all releases, as one process sees them; parameters as for ReleaseLeases."""

    def __init__(
        self,
        leases: LeaseUpdates,
        *,
        holder: str,
        lease_duration: float,
        clock: Callable[[], float],
        pause: Callable[[float], None],
        now: Callable[[], datetime.datetime],
    ) -> None:
        self.leases = leases
        self.clock = clock
        self.duration = max(1, math.ceil(lease_duration))
        self._holder = holder
        self._pause = pause
        self._now = now
        self._requests = WaitingRequests()
        self._guard = threading.Lock()
        # What each Lease looked like and since when it has looked so: kept from one attempt to the
        # next, for a single one may be shorter than a lease.
        self._seen: dict[tuple[str, str], tuple[str, float]] = {}

    @contextlib.contextmanager
    def acquire(self, namespace: str, release: str, *, wait: float) -> Iterator[HeldLease]:
        """As :meth:`ReleaseLeases.acquire`."""
        holder = f"{self._holder}/{uuid.uuid4().hex[:8]}"
        with self._requests.enter(namespace) as may_wait:
            wait = wait if may_wait else 0
            with metrics.lock_wait():
                renewed, record = self._take_when_free(namespace, release, holder, wait)
        held_lease = HeldLease(self, namespace, release, holder, renewed, record)
        held_lease.begin()
        try:
            yield held_lease
        finally:
            held_lease.end()

    def _take_when_free(
        self, namespace: str, release: str, own_holder: str, wait: float
    ) -> tuple[float, ReleaseRecord]:
        end = self.clock() + deadline.seconds_left(wait)

        def take(lease: Json) -> ReleaseRecord | None:
            try:
                return self._take(namespace, release, lease, own_holder)
            except errors.Conflict:
                return None
            except errors.ManagementUnreachable:
                # The write may have succeeded: the next read shows the holder.
                if self.clock() >= end:
                    raise
                return None

        def read_and_take() -> tuple[float, ReleaseRecord] | None:
            started = self.clock()
            lease = self._read_free(namespace, release, own_holder)
            record = take(lease)
            return None if record is None else (started, record)

        def take_in_turns() -> tuple[float, ReleaseRecord]:
            # A writer that adds an operation meanwhile is no holder, so it is not waited for.
            turns = self.leases.retry_on_conflict(_LAST_RACES, deadline.is_expired)
            taken: tuple[float, ReleaseRecord] | None = turns(read_and_take)
            if taken is None:
                raise codec.lock_held(namespace, release, {"metadata": {}})
            return taken

        started, known = self.clock(), self._free_as_known(namespace, release)
        if known is not None and (record := take(known)) is not None:
            return started, record
        return self._retrying(end)(take_in_turns)

    def _read_free(self, namespace: str, release: str, own_holder: str) -> Json:
        """The current Lease, whose lock is free, expired or this holder's own.

        :raises errors.LockHeld: another holder has it.
        """
        lease = self.leases.read(namespace, release)
        if lease is None:
            self._forget(namespace, release)
            raise codec.lease_not_found(release)
        holder = codec.holder(lease)
        if holder in ("", own_holder):
            return lease
        if has_ended(holder):
            LOG.info("The holder %s of the lock of %s has ended.", holder, release)
            return lease
        if self._expired(namespace, release, lease):
            return lease
        raise codec.lock_held(namespace, release, lease)

    def _retrying(self, end: float) -> tenacity.Retrying:
        """Retry while another holder has the lock.

        :param end: when to stop, as :attr:`clock` tells it.
        """
        interval = min(_LONGEST_POLL, self.duration / 10)
        jitter = tenacity.wait_random(0.5 * interval, 1.5 * interval)
        return tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(errors.LockHeld),
            stop=lambda state: self.clock() >= end,
            wait=lambda state: max(0.0, min(end - self.clock(), jitter(state))),
            sleep=self._pause,
            reraise=True,
        )

    def write_holder(self, lease: Json, holder: str) -> None:
        """Name the holder in a Lease, from now on for the duration of one."""
        codec.take(lease, holder, self.duration, self._now())

    def _take(self, namespace: str, release: str, lease: Json, holder: str) -> ReleaseRecord:
        record_format.require_readable(lease)
        taken = copy.deepcopy(lease)
        self.write_holder(taken, holder)
        record = self.leases.replace(namespace, release, taken)
        self._forget(namespace, release)
        return record

    def _free_as_known(self, namespace: str, release: str) -> Json | None:
        """The Lease as it was read a moment ago, where nobody held it then."""
        known = self.leases.cache.take(namespace, release)
        return known if known is not None and codec.holder(known) == "" else None

    def _forget(self, namespace: str, release: str) -> None:
        with self._guard:
            self._seen.pop((namespace, release), None)

    def _expired(self, namespace: str, release: str, lease: Json) -> bool:
        """Whether this process has seen the lock without a renewal for its whole duration."""
        renewal, now = codec.renew(lease), self.clock()
        with self._guard:
            known, since = self._seen.get((namespace, release), ("", now))
            if known != renewal:
                self._seen[namespace, release] = (renewal, now)
                return False
        return now - since > (lease["spec"].get("leaseDurationSeconds") or self.duration)


class HeldLease:
    """A lock that is held; the value of ``with leases.acquire(...) as held_lease``."""

    def __init__(
        self,
        lock: Lock,
        namespace: str,
        release: str,
        holder: str,
        renewed_at: float,
        record: ReleaseRecord,
    ) -> None:
        self._lock = lock
        self._namespace = namespace
        self._release = release
        self._me = holder
        self._renewed = renewed_at
        self._record = record
        self._taken = False
        self._given_back = False
        self._ended = threading.Event()
        self._log_scope = log_scope.current()
        self._thread = threading.Thread(
            target=self._renew_all_along, name=f"lease-{release}", daemon=True
        )

    @property
    def record(self) -> ReleaseRecord:
        """What the Lease said when this holder last wrote it."""
        return self._record

    @property
    def final_record(self) -> ReleaseRecord | None:
        """What the Lease said when the lock was given back, None where it was not."""
        return self._record if self._given_back else None

    def is_lost(self) -> bool:
        """Whether another conductor may hold the lock by now: work under it has to stop at once."""
        return self._taken or self._lock.clock() > self._renewed + self._patience

    def check(self) -> None:
        """Look whether what is written next is still this holder's to write.

        :raises errors.Busy: others may hold the lock by now.
        """
        if self.is_lost():
            raise errors.Busy(
                "Another Magnum conductor may have taken over this cluster. The work continues "
                "there.",
                f"the lock of {self._namespace}/{self._release} was lost",
            )

    def begin(self) -> None:
        """Keep the lock from now on."""
        self._thread.start()

    def end(self) -> None:
        """Give the lock back; where that fails, it is free when the lease's duration is over."""
        self._ended.set()
        if self.is_lost():
            return
        try:
            # Also for whoever does not wait any more: others would wait for the lock.
            with deadline.at_least(_GIVING_BACK):
                self._given_back = self._write(codec.clear_holder, _LAST_RACES)
            if not self._given_back and not self._taken:
                LOG.warning(
                    "Release %s: its Lease is not released: too many conflicting writes.",
                    self._release,
                )
        except errors.DriverError as error:
            LOG.warning("Release %s: its Lease is not released: %s", self._release, error.detail)

    def renew(self) -> None:
        """Say once that the holder is alive; called by the hold's own thread.

        :raises errors.DriverError: the management cluster cannot be used; nothing is lost yet.
        """
        started = self._lock.clock()
        if self._write(lambda lease: self._lock.write_holder(lease, self._me)):
            self._renewed = started

    @property
    def _patience(self) -> float:
        return self._lock.duration * _CAUTION

    def _renew_all_along(self) -> None:
        # Not the whole context of the thread: the lock is kept beyond the deadline of a request.
        with log_scope.enter(self._log_scope):
            while not self._ended.wait(self._patience / _RENEWALS) and not self._taken:
                try:
                    self.renew()
                except errors.DriverError as error:
                    LOG.warning(
                        "Release %s: its Lease is not renewed: %s", self._release, error.detail
                    )

    def _write(self, change: Callable[[Json], None], attempts: int = _RACES) -> bool:
        """Change the Lease while it is ours; False when it is somebody else's or nobody's, or when
        others were faster as often as that.
        """
        leases = self._lock.leases

        def attempt() -> bool | None:
            lease = self._as_known() or leases.read(self._namespace, self._release)
            if lease is None or codec.holder(lease) != self._me:
                self._taken = True
                return False
            change(lease)
            # The others who write are those who add operations: a few, and each only once.
            with contextlib.suppress(errors.Conflict):
                answer = leases.write(self._namespace, self._release, lease)
                if record_format.is_readable(answer):
                    self._record = codec.record(answer)
                return True
            return None

        return bool(leases.retry_on_conflict(attempts, self.is_lost)(attempt))

    def _as_known(self) -> Json | None:
        """The Lease as it was read or written a moment ago, where it was this holder's."""
        known = self._lock.leases.cache.take(self._namespace, self._release)
        return known if known is not None and codec.holder(known) == self._me else None
