# SPDX-License-Identifier: Apache-2.0
"""Cache record and release of settled clusters."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
import json
import random
import threading
import time
import zlib

from magnum.drivers.k8s_capi_helm.model import ClusterRequest, LiveRelease, ReleaseRecord

#: Seconds after which they are read again at the latest, should somebody run helm by hand.
_PATIENCE = 900.0


@dataclasses.dataclass(frozen=True, slots=True)
class _Kept:
    until: float
    place: str
    request: ClusterRequest
    record: ReleaseRecord
    packed: bytes


class SettledCache:
    """Safe to share between threads.

    Whoever changes a cluster through Magnum changes its rows first, so they are good for the same
    request only. They decide nothing: what would be news is judged by what is read then.

    :param clock: seconds that only ever go up.
    :param jitter: a random number between two others, so that not all are read again at once.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._clock = clock
        self._spread = jitter
        self._lock = threading.Lock()
        self._kept: dict[str, _Kept] = {}

    def get(
        self, request: ClusterRequest, location: str
    ) -> tuple[ReleaseRecord, LiveRelease] | None:
        """What was kept for this very request, unless it is too old, or of another place."""
        with self._lock:
            entry = self._kept.get(request.release)
        if entry is None or (entry.place, entry.request) != (location, request):
            return None
        if self._clock() > entry.until:
            return None
        return entry.record, LiveRelease(**json.loads(zlib.decompress(entry.packed)))

    def keep(
        self,
        request: ClusterRequest,
        location: str,
        record: ReleaseRecord | None,
        live: LiveRelease | None,
    ) -> None:
        """Remember what was read, if nothing of it is pending.

        :param location: where, as a text that is another one for another kubeconfig.
        """
        if record is None or live is None or live.status != "deployed":
            return
        if record.operations or record.retired or record.deferred or record.tombstone:
            return
        data = zlib.compress(json.dumps(dataclasses.asdict(live)).encode(), level=1)
        now = self._clock()
        expires_at = now + self._spread(_PATIENCE / 2, _PATIENCE)
        with self._lock:
            for release in [release for release in self._kept if self._kept[release].until < now]:
                del self._kept[release]
            self._kept[request.release] = _Kept(expires_at, location, request, record, data)

    def forget(self, release: str) -> None:
        """It is not at rest."""
        with self._lock:
            self._kept.pop(release, None)
