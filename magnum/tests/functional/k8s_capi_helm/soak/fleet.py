# SPDX-License-Identifier: Apache-2.0
"""Clusters of a fleet, and tenants who ask for something all the time."""

from __future__ import annotations

import collections
from concurrent import futures
import random
import threading
import time
import traceback
from typing import Any
import uuid

from magnum import objects
from magnum.common import exception
from magnum.tests.functional.k8s_capi_helm.adoption.setting import CLUSTER
from magnum.tests.functional.k8s_capi_helm.kills import conductor, project
from magnum.tests.functional.k8s_capi_helm.kills.desired import Request, Wishes

#: Requests that are carried out at once, by threads of a worker of Magnum's.
_TENANTS = 3
#: Of so many requests, one is to delete the cluster, which is then made anew.
_DELETED = 12
#: Seconds that a tenant waits who has found nothing to ask for.
_PAUSE = 0.1


class Place(conductor.Conductor):
    """A place for one cluster after another."""

    def __init__(self, cloud: project.Cloud, lots: random.Random) -> None:
        super().__init__(cloud)
        self._lots = lots
        self._wishes = Wishes(lots)
        self._uuid = ""
        #: Held by whoever asks for something.
        self.lock = threading.Lock()

    def cluster(self) -> Any | None:
        """The cluster that is there now."""
        try:
            return objects.Cluster.get_by_uuid(self._admin, self._uuid)
        except exception.ClusterNotFound:
            return None

    def _cluster(self) -> Any:
        return objects.Cluster.get_by_uuid(self._user, self._uuid)

    def wish(self) -> Request | None:
        """What is asked for next; None while something goes on."""
        cluster = self.cluster()
        if cluster is None:
            self._uuid = str(uuid.UUID(int=self._lots.getrandbits(128), version=4))
            new = {**CLUSTER, "uuid": self._uuid, "name": f"soak-{self._uuid[:8]}"}
            return "create", {"masters": 1, "workers": 1, **new}
        if not self.is_at_rest(cluster):
            return None
        if self._lots.randrange(_DELETED) == 0:
            return "delete", {}
        return self._wishes.draw(conductor.row(cluster))


class Fleet:
    """All places, what was asked for, and what went wrong."""

    def __init__(self, cloud: project.Cloud, clusters: int, seed: str) -> None:
        lots = [random.Random(f"{seed}-{number}") for number in range(clusters)]  # noqa: S311
        self._places = [Place(cloud, one) for one in lots]
        self._lots = random.Random(seed)  # noqa: S311 - no secret
        self._counting = threading.Lock()
        self.requests: collections.Counter[str] = collections.Counter()
        self.failed: list[str] = []

    def found(self) -> None:
        """Make every cluster."""
        with futures.ThreadPoolExecutor(_TENANTS) as tenants:
            list(tenants.map(self._ask, self._places))

    def change(self, seconds: float) -> None:
        """Ask for something all the time, for so long."""
        end = time.monotonic() + seconds

        def ask() -> None:
            while time.monotonic() < end and not self.failed:
                if not self._ask(self._lots.choice(self._places)):
                    threading.Event().wait(_PAUSE)

        with futures.ThreadPoolExecutor(_TENANTS) as tenants:
            for one in [tenants.submit(ask) for _ in range(_TENANTS)]:
                one.result()

    def delete(self) -> None:
        """Delete every cluster."""
        there = [one for one in self._places if one.cluster() is not None]
        with futures.ThreadPoolExecutor(_TENANTS) as tenants:
            list(tenants.map(lambda place: self._carry_out(place, "delete", {}), there))

    def clusters(self) -> int:
        """How many clusters there are."""
        return sum(one.cluster() is not None for one in self._places)

    def is_at_rest(self) -> bool:
        """Whether nobody waits for anything."""
        there = [(one, one.cluster()) for one in self._places]
        return all(cluster is None or one.is_at_rest(cluster) for one, cluster in there)

    def wrong(self) -> list[str]:
        """What is not as the database says, when everything rests."""
        there = [(one, one.cluster()) for one in self._places]
        return [
            f"{cluster.uuid}: {text}"
            for one, cluster in there
            if cluster is not None
            for text in one.wrong_of(cluster)
        ]

    def _ask(self, place: Place) -> bool:
        if not place.lock.acquire(blocking=False):
            return False
        try:
            wish = place.wish()
            if wish is not None:
                self._carry_out(place, *wish)
            return wish is not None
        finally:
            place.lock.release()

    def _carry_out(self, place: Place, verb: str, arguments: dict[str, Any]) -> None:
        try:
            getattr(place, verb)(**arguments)
        except Exception:
            self.failed.append(f"{verb} {arguments}: {traceback.format_exc()}")
        with self._counting:
            self.requests[verb] += 1
