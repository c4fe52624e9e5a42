# SPDX-License-Identifier: Apache-2.0
"""What stands between the parent process, a service and the user."""

from collections.abc import Callable, Iterable
from concurrent import futures
import io
import os
from typing import Any
import unittest

from sandbox import cloud
from sandbox.cloud import fork_server, plugins, service_process
from sandbox.cloud.services import SERVICES
from sandbox.state import SandboxError
from sandbox.tests.test_state import StateCase


class TestAccessLog(unittest.TestCase):
    def call(self, application: service_process.Application, query: str = "") -> str:
        log = io.StringIO()
        environ = {
            "REQUEST_METHOD": "GET",
            "PATH_INFO": "/v3",
            "QUERY_STRING": query,
            "HTTP_USER_AGENT": "curl",
        }
        service_process.access_logged("keystone", application, log)(environ, lambda *_: None)
        return log.getvalue()

    def test_one_line_per_request(self) -> None:
        def answer(_: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
            start("300 Multiple Choices", [])
            return []

        self.assertRegex(
            self.call(answer, "a=1"), r"^\d+\.\d{3} keystone GET /v3\?a=1 300 \d+ms curl\n$"
        )

    def test_the_project_of_the_token_is_told(self) -> None:
        def told(**by: Any) -> str:
            def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
                environ.update(by)
                start("200 OK", [])
                return []

            return self.call(answer).rpartition("ms ")[2]

        self.assertEqual("curl project=p1\n", told(HTTP_X_PROJECT_ID="p1"))
        self.assertEqual("curl project=p2\n", told(KEYSTONE_AUTH_CONTEXT={"project_id": "p2"}))
        self.assertEqual("curl\n", told(KEYSTONE_AUTH_CONTEXT={"user_id": "u1"}))

    def test_a_request_that_broke_is_logged_too(self) -> None:
        log = io.StringIO()

        def broken(_: dict[str, Any], __: Callable[..., Any]) -> Iterable[bytes]:
            raise ValueError("x")

        with self.assertRaises(ValueError):
            service_process.access_logged("nova", broken, log)(
                {"REQUEST_METHOD": "POST", "PATH_INFO": "/"}, lambda *_: None
            )
        self.assertIn(" nova POST / - ", log.getvalue())


class TestWishes(StateCase):
    def test_a_wish_is_read_by_another_process_s_state(self) -> None:
        fork_server.want(self.sandbox(), "magnum", {"PATH": "/bin"})
        self.assertEqual({"PATH": "/bin"}, fork_server.wanted(self.sandbox())["magnum"].env)

    def test_a_later_wish_is_a_new_start(self) -> None:
        box = self.sandbox()
        fork_server.want(box, "nova")
        first = fork_server.wanted(box)["nova"].asked
        fork_server.want(box, "nova")
        self.assertGreater(fork_server.wanted(box)["nova"].asked, first)

    def test_nothing_is_wanted_after_forget(self) -> None:
        box = self.sandbox()
        fork_server.want(box, "nova")
        fork_server.forget(box)
        self.assertEqual({}, fork_server.wanted(box))


class TestCatalog(StateCase):
    def test_endpoints_have_this_sandbox_s_ports(self) -> None:
        box = self.sandbox()
        self.assertEqual(
            f"http://127.0.0.1:{box.port('cinder')}/v3/%(project_id)s",
            SERVICES["cinder"].endpoint(box),
        )

    def test_no_two_services_are_of_one_kind(self) -> None:
        self.assertEqual(len(SERVICES), len({service.kind for service in SERVICES.values()}))


class TestPlugins(StateCase):
    def test_the_sandbox_is_found_where_it_is_announced(self) -> None:
        folder = plugins.announce(self.place / "plugins")
        plugins.announce(folder)
        self.assertTrue((folder / "sandbox" / "cloud" / "plugins" / "network.py").exists())
        text = (folder / "sandbox_cloud-0.dist-info" / "entry_points.txt").read_text()
        self.assertIn("ovn = sandbox.cloud.plugins.loadbalancer:Driver", text)
        self.assertCountEqual(["sandbox", "sandbox_cloud-0.dist-info"], os.listdir(folder))

    def test_services_announce_it_side_by_side(self) -> None:
        folder = plugins.announce(self.place / "plugins")
        found = folder / "sandbox" / "cloud" / "plugins" / "network.py"
        with futures.ThreadPoolExecutor(8) as pool:
            done = [pool.submit(plugins.announce, folder) for _ in range(200)]
            while not all(one.done() for one in done):
                self.assertTrue(found.exists())
            for one in done:
                one.result()


class TestCertificates(StateCase):
    def test_an_unknown_store_shows_the_known_ones(self) -> None:
        with self.assertRaisesRegex(SandboxError, "choose one of barbican, x509keypair"):
            cloud.up(self.sandbox(), "vault")

    def test_the_store_stays_while_there_may_be_certificates(self) -> None:
        self.sandbox().record(certificates="barbican", cloud_ready=True)
        with self.assertRaisesRegex(SandboxError, "reset --certificates x509keypair"):
            cloud.up(self.sandbox(), "x509keypair")
        self.assertEqual("barbican", self.sandbox().get("certificates"))

    def test_barbican_is_not_started_without_need(self) -> None:
        self.sandbox().record(certificates="x509keypair")
        names = [name for name, _ in cloud.status(self.sandbox())]
        self.assertEqual([name for name in SERVICES if name != "barbican"], names)
