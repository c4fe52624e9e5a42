# SPDX-License-Identifier: Apache-2.0
"""A conductor that is killed, at every moment at which that makes a difference, and its successor.

Who is killed runs no ``finally`` and no ``except``: what is left is what had been written by then.
So nothing is raised here. Every port and Magnum's database stand behind a :class:`Door`, and before
and after each call through one (and in the middle of each run of helm) a photograph is taken of
everything that outlives a process. Each photograph that differs from the one before it is a world
in which a conductor was killed, and another one, with ports of its own, has to go on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import dataclasses
import datetime
import itertools
import pathlib
import pickle
import types
from typing import Any

import fixtures
from oslo_service import loopingcall
import sqlalchemy
from sqlalchemy import orm

from magnum import objects
from magnum.drivers import k8s_capi_helm
from magnum.drivers.k8s_capi_helm import chart_store, lease
from magnum.drivers.k8s_capi_helm.model import names
from magnum.service import periodic
from magnum.tests.unit.drivers.k8s_capi_helm import driver_case, test_database
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import NAMESPACE, RELEASE
from magnum.tests.unit.drivers.k8s_capi_helm.fakes import barbican

_LEASE_SECONDS = 60
#: What a fake only counts, and what it cannot outlive.
_LISTS_OF_CALLS = ("calls", "asked", "runs", "_log")
_LASTING = (dict, list, set, tuple, str, int, bool, type(None), itertools.count)
_FINALIZER = "cluster.cluster.x-k8s.io"
#: What of the release the controllers have brought up.
_GROWN = "example.org/grown"


@dataclasses.dataclass(frozen=True, slots=True)
class Photograph:
    """Everything that outlives a conductor.

    :ivar moment: after which call.
    :ivar minutes: the clock.
    """

    moment: str
    minutes: float
    picture: tuple[bytes, ...] = dataclasses.field(repr=False)


class Camera:
    """Takes photographs of the world while it is on.

    :ivar points: how many moments there were; ``photographs`` are those that differ.
    """

    def __init__(
        self, develop: Callable[[], tuple[bytes, ...]], clock: Callable[[], float]
    ) -> None:
        self._develop, self._clock = develop, clock
        self._last: tuple[bytes, ...] = ()
        self.on = False
        self.points = 0
        #: How many doors are being passed.
        self.calls = 0
        self.photographs: list[Photograph] = []
        #: Calls before which the world was another one than after the call before them.
        self.unseen: list[str] = []
        #: Called at each moment, on or off: what another worker does then.
        self.meanwhile: Callable[[str], None] | None = None

    def look(self, moment: str) -> None:
        if self.meanwhile is not None:
            self.meanwhile(moment)
        if not self.on:
            return
        self.points += 1
        picture = self._develop()
        if picture != self._last:
            if self._last and moment.startswith("before "):
                self.unseen.append(moment)
            self._last = picture
            self.photographs.append(Photograph(moment, self._clock(), picture))

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        self.on = True
        self.look("the beginning")
        try:
            yield
        finally:
            self.on = False

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """Meanwhile the world changes by itself."""
        before, self.on = self.on, False
        try:
            yield
        finally:
            self.on = before
            if before:
                self._last = self._develop()
                self.photographs.append(Photograph("others' work", self._clock(), self._last))


class Door:
    """A port, through which every call is seen; what it gives that has calls itself is one, too."""

    def __init__(self, port: Any, name: str, camera: Camera) -> None:
        self.__dict__.update(_port=port, _name=name, _camera=camera)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if name.startswith("_") or not callable(found):
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            words = f"{self._name}.{name}"
            self._camera.look(f"before {words}")
            self._camera.calls += 1
            try:
                answer = found(*args, **kwargs)
            finally:
                self._camera.calls -= 1
                self._camera.look(f"after {words}")
            has_calls = isinstance(answer, types.SimpleNamespace) and any(
                callable(one) for one in vars(answer).values()
            )
            return Door(answer, words, self._camera) if has_calls else answer

        return call

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._port, name, value)


class CrashCase(driver_case.DriverCase):
    """The small world, whose conductors are mortal."""

    def setUp(self) -> None:
        super().setUp()
        self.minutes = 0.0
        self.camera = Camera(self.develop, lambda: self.minutes)
        self.helm.midway = self._half_done
        self.keys = barbican.FakeBarbican()
        self.openstack = self.cloud.openstack
        self.cloud.between = lambda clients: self.door(clients, "openstack")
        self._open_database()
        self._conductors = itertools.count(1)
        self.conductor()

    def openstack_of(self, context: Any) -> Any:
        return self.door(super().openstack_of(context), "cloud")

    def door(self, port: Any, name: str) -> Any:
        return Door(port, name, self.camera)

    def _open_database(self) -> None:
        self._database = test_database.current()
        named = vars(objects).values()
        kinds = {one for one in named if isinstance(one, type) and hasattr(one, "dbapi")}
        for kind in (
            objects.Cluster,
            objects.ClusterTemplate,
            objects.Federation,
            objects.MagnumService,
            objects.NodeGroup,
            objects.Quota,
            objects.Stats,
            objects.X509KeyPair,
        ):
            stand_in = self.door(kind.dbapi, "database")
            self.useFixture(fixtures.MockPatchObject(kind, "dbapi", stand_in))
            kinds.remove(kind)
        self.assertEqual(set(), kinds)
        # A write with a condition, which Magnum's own calls cannot have, passes no door.
        sqlalchemy.event.listen(orm.Session, "after_commit", self._committed)
        self.addCleanup(sqlalchemy.event.remove, orm.Session, "after_commit", self._committed)

    def _committed(self, _session: orm.Session) -> None:
        if not self.camera.calls:
            self.camera.look("after database commit")

    # Conductors -----------------------------------------------------------------------------------
    def conductor(self) -> None:
        """A new one, on another host: it knows nothing but what is written."""
        number = next(self._conductors)
        kube = self.door(self.kube, "kube")
        self.driver = self.new_driver()
        self.ports = self.clients_of(
            kube=kube,
            leases=lease.ReleaseLeases(
                kube,
                holder=f"conductor-{number}",
                lease_duration=_LEASE_SECONDS,
                clock=lambda: self.minutes * 60,
                pause=lambda seconds: None,
            ),
            helm=self.door(self.helm, "helm"),
            charts=chart_store.ChartStore(
                bundled_charts=pathlib.Path(k8s_capi_helm.__file__).parent / "charts",
                directory=pathlib.Path(self.useFixture(fixtures.TempDir()).path),
                copies=chart_store.ChartConfigMaps(kube),
            ),
        )

    # What outlives them ---------------------------------------------------------------------------
    def develop(self) -> tuple[bytes, ...]:
        """A photograph."""
        kept = (pickle.dumps(_lasting(fake)) for fake in self._lasting_fakes())
        return self._database.photograph(), *kept

    def restore(self, taken: Photograph) -> None:
        """Everything is as on a photograph, and a new conductor begins."""
        self.minutes = taken.minutes
        self._database.restore(taken.picture[0])
        for fake, kept in zip(self._lasting_fakes(), taken.picture[1:], strict=True):
            vars(fake).update(pickle.loads(kept))  # noqa: S301 - our own
        self.conductor()

    def _lasting_fakes(self) -> tuple[Any, ...]:
        return self.kube, self.helm, self.cloud, self.openstack, self.keys

    # Time -----------------------------------------------------------------------------------------
    def wall_clock(self) -> datetime.datetime:
        return datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(
            minutes=self.minutes
        )

    def step(self) -> None:
        """Everybody does what they do all the time, once."""
        self.status_task()
        with self.camera.away():
            self.controllers()
        self.health_task()

    def status_task(self) -> None:
        for cluster in objects.Cluster.list(self.context):
            if cluster.status.endswith("_IN_PROGRESS"):
                with contextlib.suppress(loopingcall.LoopingCallDone):
                    periodic.ClusterUpdateJob(self.context, cluster).update_status()

    def health_task(self) -> None:
        for cluster in objects.Cluster.list(self.context):
            with contextlib.suppress(loopingcall.LoopingCallDone):
                periodic.ClusterHealthUpdateJob(self.context, cluster).update_health_status()

    # What Cluster API does ------------------------------------------------------------------------
    def controllers(self) -> None:
        """Cluster API brings what is there on, or away."""
        found = self.kube.get(names.CLUSTER, NAMESPACE, RELEASE)
        if found is None:
            return
        if found["metadata"].get("deletionTimestamp"):
            self.capi_deletes()
        elif (found["metadata"].get("annotations") or {}).get(_GROWN) != self._wanted_now():
            self.capi_converges()
            self._keep_cluster({_GROWN: self._wanted_now()})

    def _wanted_now(self) -> str:
        """What the controllers are told, in short."""
        live = self.helm.live(NAMESPACE, RELEASE)
        listed = self.kube.list(names.MACHINE_DEPLOYMENT, NAMESPACE)
        counts = [one["spec"].get("replicas") for one in listed]
        return f"{live.revision} {live.status} {counts}" if live else f"{counts}"

    def _half_done(self, live: Any) -> None:
        """Helm has said that it begins, and then made or removed some objects."""
        self.camera.look("after helm's first step")
        if live.status == "uninstalling":
            self.kube.delete(names.CLUSTER, NAMESPACE, RELEASE)
        else:
            self._keep_cluster()
        self.camera.look("after helm's second step")

    def _keep_cluster(self, notes: dict[str, str] | None = None) -> None:
        """The Cluster is there, and nobody but its controller lets it go."""
        found = self.kube.get(names.CLUSTER, NAMESPACE, RELEASE)
        fresh = {"metadata": {"name": RELEASE, "namespace": NAMESPACE}}
        made = self.kube.put(names.CLUSTER, fresh) if found is None else found
        if notes or not made["metadata"].get("finalizers"):
            made["metadata"].update(finalizers=[_FINALIZER], annotations=notes or {})
            self.kube.put(names.CLUSTER, made)


def _lasting(fake: Any) -> dict[str, Any]:
    return {
        key: value
        for key, value in vars(fake).items()
        if isinstance(value, _LASTING) and key not in _LISTS_OF_CALLS
    }
