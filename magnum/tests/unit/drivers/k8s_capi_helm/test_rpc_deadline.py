# SPDX-License-Identifier: Apache-2.0
"""Each verb answers while Magnum's API waits, whatever the management cluster does.

The client and the runs of helm are the real ones, over sockets and processes. All times are an
eighth of the usual ones.
"""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
import itertools
import pathlib
import time
from typing import Any
import uuid

import fixtures
from testtools import content

from magnum.conductor.handlers import cluster_conductor
from magnum.drivers.k8s_capi_helm import deadline, lease
from magnum.drivers.k8s_capi_helm.handlers.requests import pending_operation
from magnum.drivers.k8s_capi_helm.helm import HelmClient
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.model import LiveRelease, names, Verb
from magnum.tests.unit.drivers.k8s_capi_helm import driver_case, fakes
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import NAMESPACE, RELEASE
from magnum.tests.unit.drivers.k8s_capi_helm.fakes.api_server import FakeApiServer
from magnum.tests.unit.drivers.k8s_capi_helm.magnum_release import credential_conductor
from magnum.tests.unit.drivers.k8s_capi_helm.suites import http_server

LIMIT = 8
#: Seconds for Magnum's own work, which no bound of the driver's makes shorter, on a busy machine.
#: Without these bounds the driver would need more than both together.
LOCAL = 4
#: Seconds for an answer of a slow management cluster, which would be two.
SLOW = 0.25
_HELM = """\
#!/bin/sh
case "$1" in version) echo v3.21.4;; *) exec sleep 100;; esac
"""


class HangingHelm(fakes.FakeHelm):
    """Helm in memory for who reads; whoever runs it gets a process that does not end."""

    def __init__(self, process: HelmClient, before: fakes.FakeHelm) -> None:
        super().__init__()
        self.releases = before.releases
        self._process = process

    def apply(self, *asked: Any, **more: Any) -> LiveRelease:
        return self._process.apply(*asked, **more)


class InTimeCase(driver_case.DriverCase):
    def setUp(self) -> None:
        super().setUp()
        self.config(rpc_response_timeout=LIMIT)
        self.api = FakeApiServer(self.kube)
        self.server = http_server.Server(self.api.answer)
        self.addCleanup(self.server.close)
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.healthy = self.ports

    def connect(self, answer: Callable[[http_server.Seen], http_server.Answer]) -> None:
        """From now on the driver uses a management cluster over HTTP, on which helm hangs."""
        self.server.answer = answer
        where = http_server.write_kubeconfig(self.directory / "config", self.server.url)
        kube = KubeClient(str(where), connect_timeout=5 / 8, read_timeout=30 / 8)
        program = self.directory / "helm"
        program.write_text(_HELM)
        program.chmod(0o755)
        process = HelmClient(kube, executable=str(program), timeout=15)
        self.config(group="capi_helm", lock_wait=1.3)
        self.ports = dataclasses.replace(
            self.healthy,
            kube=kube,
            leases=lease.ReleaseLeases(kube, holder=f"test-{uuid.uuid4()}", lease_duration=60),
            helm=HangingHelm(process, self.helm),
        )

    def slow(self, seen: http_server.Seen) -> http_server.Answer:
        self.server.released.wait(SLOW)
        return self.api.answer(seen)

    def timed(self, verb: Callable[[], Any]) -> float:
        """Seconds that a verb takes; also a refusal is an answer."""
        began = time.monotonic()
        verb()
        return time.monotonic() - began


class TestSlowCloud(InTimeCase):
    """The cloud has taken all the time that there was for a request that nobody waits for."""

    def test_it_is_written_down_all_the_same(self) -> None:
        self.made()
        self.connect(self.api.answer)
        with deadline.end_at(time.monotonic()):
            new = pending_operation.NewOperation(
                Verb.RESIZE, "default-worker", must_be_recorded=True, target_node_count=3
            )
            pending_operation.begin(self.periodic(), self.cluster(), new)
        record = self.healthy.leases.read(NAMESPACE, RELEASE)
        self.assertEqual([3], [one.target_node_count for one in record.operations])

    def test_a_new_nodegroup_has_the_usual_time_of_each_service(self) -> None:
        self.made()
        services = self.cloud.openstack.keystone()
        self.assertEqual(30, services.session.timeout)
        bounds: list[float] = []
        self.cloud.openstack.before = lambda what: bounds.append(services.session.timeout)
        self.add_group("extra")
        self.assertEqual({30.0}, set(bounds[:2]))
        self.assertEqual("CREATE_IN_PROGRESS", self.group("extra").status)


class TestVerbs(InTimeCase):
    """One verb after the other, by a management cluster in each kind of trouble."""

    def in_time(
        self,
        verb: Callable[[], Any],
        after: Callable[[], Any] = lambda: None,
        unbounded: tuple[str, ...] = (),
    ) -> None:
        for name, trouble in {
            "silent": self.server.never,
            "429": lambda seen: (429, b""),
            "500": lambda seen: (500, b""),
            "slow": self.slow,
        }.items():
            self.connect(trouble)
            took = self.timed(verb)
            self.addDetail(name, content.text_content(f"{took:.1f} s"))
            if name not in unbounded:
                self.assertLess(took, LIMIT + LOCAL, name)
            self.recover()
            after()

    def recover(self) -> None:
        """The management cluster is well again, and the passes have come by."""
        self.ports = self.healthy
        # The lock of a holder that could not give it back is free after its time.
        kind, place = names.LEASE, (NAMESPACE, names.lease(RELEASE))
        if self.kube.get(kind, *place) is not None:
            self.kube.patch(kind, *place, {"spec": {"holderIdentity": None}})
        self.status_task()
        if self.helm.live(NAMESPACE, RELEASE) is not None:
            self.capi_converges()
            self.status_task(3)

    def test_create(self) -> None:
        found = []

        def remove() -> None:
            found.append(self.cluster().status)
            for group in self.cluster().nodegroups:
                group.destroy()
            self.cluster().destroy()
            self.helm.releases.clear()
            self.capi_deletes()

        # What a creation founds cannot be left to a pass, and Magnum's API does not wait for it.
        self.in_time(self.create, remove, unbounded=("slow",))
        self.assertEqual([*["CREATE_FAILED"] * 3, "CREATE_COMPLETE"], found)

    def test_update(self) -> None:
        self.made()
        count = itertools.count(2)

        def update() -> None:
            handler = cluster_conductor.Handler()
            self.quietly(
                handler.cluster_update, self.context, self.cluster(), next(count), None, None
            )

        self.in_time(update, self.settled)

    def test_resize(self) -> None:
        self.made()
        count = itertools.count(2)
        self.in_time(lambda: self.resize(next(count)), self.settled)

    def settled(self) -> None:
        """What was asked for is there, or was refused and put back."""
        self.assertIn(self.cluster().status, ("CREATE_COMPLETE", "UPDATE_COMPLETE"))
        self.assertEqual(self.group().node_count, self.replicas("default-worker"))

    def test_upgrade(self) -> None:
        self.made()
        template, told = self._template(uuid=str(uuid.uuid4()), name="newer"), []
        self.in_time(lambda: told.append(self.upgrade(template)), self.settled)
        for one in told[:3]:
            self.assertIn("The management cluster does not answer.", one)
        self.assertEqual(("", template.uuid), (told[3], self.cluster().cluster_template_id))

    def test_nodegroup_create(self) -> None:
        self.made()
        # Passes leave what may still be being checked to its request, for as long as that takes.
        self.after(10)
        number = itertools.count()
        self.in_time(lambda: self.add_group(f"more-{next(number)}"), self.settled)

    def test_nodegroup_update(self) -> None:
        self.made()
        labels = ({"max_node_count": str(n)} for n in itertools.count(5))
        self.in_time(lambda: self.change_group(labels=next(labels)), self.settled)

    def test_nodegroup_delete(self) -> None:
        self.made()
        number = itertools.count()
        for one in range(4):
            self.add_group(f"more-{one}")
        self.capi_converges()
        self.status_task(3)
        self.in_time(lambda: self.drop_group(f"more-{next(number)}"), self.settled)

    def test_delete(self) -> None:
        self.made()
        self.in_time(self.delete)

    def test_credential_rotate(self) -> None:
        self.made()

        def rotate() -> None:
            handler = credential_conductor.Handler()
            self.quietly(handler.credential_rotate, self.context, self.cluster())

        self.in_time(rotate, self.settled)
