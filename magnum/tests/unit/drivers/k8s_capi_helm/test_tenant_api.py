# SPDX-License-Identifier: Apache-2.0
"""A tenant's API server may say what it likes: nothing but a yes or a no comes of it, in time."""

from __future__ import annotations

import pathlib
import socket
import threading
import time

import testtools

from magnum.drivers.k8s_capi_helm.kube.tenant.tenant_api import TenantApi, TenantApiUnavailable
from magnum.drivers.k8s_capi_helm.kube.tenant.tenant_kubeconfig import TenantKubeconfig
from magnum.tests.unit.drivers.k8s_capi_helm.fakes import FakeWorkload
from magnum.tests.unit.drivers.k8s_capi_helm.suites import http_server, tenant_api
from magnum.tests.unit.drivers.k8s_capi_helm.suites.tenant_api import ONE
from magnum.tests.unit.drivers.k8s_capi_helm.test_kube_tls import write_identity


class TestFake(tenant_api.DoorTests, testtools.TestCase):
    """The one in memory."""

    def setUp(self) -> None:
        super().setUp()
        self.workload = FakeWorkload()

    def door(self) -> object:
        return self.workload(TenantKubeconfig("h", 1, "", "", ""))

    def put(self, path: str) -> None:
        self.workload.objects.add(path)

    def forbid(self) -> None:
        self.workload.refusing = True

    def vanish(self) -> None:
        self.workload.away = True


class DoorCase(http_server.WireCase):
    """A TLS server on loopback that a test tells what to answer."""

    def setUp(self) -> None:
        super().setUp()
        self.there: set[str] = set()
        self.identity = write_identity(self.directory / "ours")
        self.tenant = http_server.Server(self.kubernetes, self.identity)
        self.addCleanup(self.tenant.close)

    def kubernetes(self, seen: http_server.Seen) -> http_server.Answer:
        if seen.path in self.there:
            return 200, {"kind": "PartialObjectMetadata", "metadata": {"name": "one"}}
        return 404, http_server.GONE

    def way(self, identity: pathlib.Path | None = None) -> TenantKubeconfig:
        mine = (identity or self.identity).read_text()
        key, _, certificate = mine.partition("-----BEGIN CERTIFICATE")
        certificate = f"-----BEGIN CERTIFICATE{certificate}"
        port = int(self.tenant.url.rpartition(":")[2])
        return TenantKubeconfig("127.0.0.1", port, certificate, certificate, key)

    def door(self, whole: float = 10.0) -> TenantApi:
        return TenantApi(self.way(), whole=whole)


class TestDoor(tenant_api.DoorTests, DoorCase):
    """The real one."""

    def put(self, path: str) -> None:
        self.there.add(path)

    def forbid(self) -> None:
        self.tenant.answer = lambda seen: (403, http_server.status("Forbidden"))

    def vanish(self) -> None:
        self.tenant.close()

    def test_all_is_asked_over_one_connection_without_a_token(self) -> None:
        with self.door() as door:
            for _ in range(5):
                door.has(ONE)
        self.assertEqual(1, self.tenant.connections)
        self.assertEqual({""}, {seen.token for seen in self.tenant.seen})
        self.assertEqual({"GET"}, {seen.method for seen in self.tenant.seen})

    def test_every_other_word_is_neither_yes_nor_no(self) -> None:
        for code in (201, 301, 302, 307, 401, 403, 410, 429, 500, 503):
            self.tenant.answer = lambda seen, code=code: (code, {})
            with self.door() as door:
                self.assertRaises(TenantApiUnavailable, door.has, ONE)

    def test_an_answer_without_end_is_not_read(self) -> None:
        self.tenant.answer = lambda seen: (200, b"x" * (3 << 20))
        with self.door() as door:
            error = self.assertRaises(TenantApiUnavailable, door.has, ONE)
        self.assertIn("longer than", str(error))

    def test_a_server_may_send_the_largest_object_that_there_is(self) -> None:
        """One that knows nothing of asking for metadata alone."""
        self.tenant.answer = lambda seen: (200, {"data": {"a": "x" * (3 << 19)}})
        with self.door() as door:
            self.assertTrue(door.has(ONE))

    def test_a_server_of_another_authority_is_asked_nothing(self) -> None:
        other = self.way(write_identity(self.directory / "theirs"))
        self.assertRaises(TenantApiUnavailable, TenantApi(other).__enter__)
        self.assertEqual([], self.tenant.seen)

    def test_another_host_with_the_right_certificate_is_asked_nothing(self) -> None:
        way = self.way()
        named = TenantKubeconfig("localhost", way.port, way.authority, way.certificate, way.key)
        self.assertRaises(TenantApiUnavailable, TenantApi(named).__enter__)
        self.assertEqual([], self.tenant.seen)

    def test_broken_key_material_is_no_way_in_and_is_not_quoted(self) -> None:
        way = self.way()
        for broken in (
            TenantKubeconfig(way.host, way.port, "no authority", way.certificate, way.key),
            TenantKubeconfig(way.host, way.port, way.authority, way.certificate, "THE KEY"),
        ):
            error = self.assertRaises(TenantApiUnavailable, TenantApi(broken).__enter__)
            self.assertNotIn("THE KEY", str(error))

    def test_a_server_that_never_answers_is_left(self) -> None:
        self.tenant.answer = self.tenant.never
        began = time.monotonic()

        def ask() -> None:
            with self.door(whole=0.5) as door:
                self.assertRaises(TenantApiUnavailable, door.has, ONE)
                door.has(ONE)

        self.assertRaises(TenantApiUnavailable, ask)
        self.assertLess(time.monotonic() - began, 3.5)


class TestDribble(DoorCase):
    """A server that speaks no TLS, and sends a byte now and then for ever."""

    def setUp(self) -> None:
        super().setUp()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.dribble, daemon=True)
        self.thread.start()
        self.addCleanup(self.listener.close)
        self.addCleanup(self.ended.set)

    def dribble(self) -> None:
        # The beginning of a long TLS record of a handshake, so that more is waited for.
        rest = iter(b"\x16\x03\x03\x3f\xff\x02\x00\x3f\xfb" + b"\x03" * 5000)
        try:
            client, _ = self.listener.accept()
            with client:
                while not self.ended.wait(0.05):
                    client.send(bytes([next(rest)]))
        except OSError:
            return

    def test_it_holds_nobody(self) -> None:
        way = self.way()
        port = self.listener.getsockname()[1]
        slow = TenantKubeconfig(way.host, port, way.authority, way.certificate, way.key)
        began = time.monotonic()
        self.assertRaises(TenantApiUnavailable, TenantApi(slow, whole=0.4).__enter__)
        self.assertLess(time.monotonic() - began, 3)
