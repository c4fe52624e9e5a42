# SPDX-License-Identifier: Apache-2.0
"""Requests to the management cluster take the way that Helm takes, with any kubernetes client."""

from __future__ import annotations

import base64
import functools
import http.server
import os
import pathlib
import socket
import threading
from typing import Any

import fixtures
import testtools
import yaml

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.kube.identity import kubeconfig
from magnum.drivers.k8s_capi_helm.kube.identity.proxy import choose_proxy, Proxy

HTTP, HTTPS = "http://management.example.org:6443", "https://management.example.org:6443"
PROXY = "http://proxy.example.org:3128"
_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


class ChoiceTest(testtools.TestCase):
    """Which proxy a server is asked through."""

    def test_the_environment_names_one_for_each_scheme(self) -> None:
        for server, variables, url in (
            (HTTPS, {"HTTPS_PROXY": PROXY}, PROXY),
            (HTTPS, {"https_proxy": PROXY}, PROXY),
            (HTTPS, {"HTTP_PROXY": PROXY}, None),
            (HTTP, {"HTTP_PROXY": PROXY}, PROXY),
            (HTTP, {"HTTPS_PROXY": PROXY}, None),
            (HTTPS, {"HTTPS_PROXY": "proxy.example.org:3128"}, PROXY),
            (HTTPS, {"HTTPS_PROXY": ""}, None),
            (HTTPS, {}, None),
        ):
            self.assertEqual(url, choose_proxy(server, None, variables).url, variables)

    def test_hosts_are_exempted_by_the_rules_of_go(self) -> None:
        """https://pkg.go.dev/golang.org/x/net/http/httpproxy#Config, field NoProxy."""
        for no_proxy, host, is_exempt in (
            ("*", "k8s.example.org", True),
            ("example.org", "k8s.example.org", True),
            ("EXAMPLE.org", "example.org", True),
            ("example.org", "k8s-example.org", False),
            (".example.org", "k8s.example.org", True),
            (".example.org", "example.org", False),
            ("*.example.org", "k8s.example.org", True),
            ("*.example.org", "example.org", False),
            ("k8s.example.org:6443", "k8s.example.org:6443", True),
            ("k8s.example.org:443", "k8s.example.org", True),
            ("k8s.example.org:443", "k8s.example.org:6443", False),
            ("10.0.0.0/8", "10.1.2.3:6443", True),
            ("10.0.0.0/8", "11.1.2.3:6443", False),
            ("10.0.0.0/8", "k8s.example.org", False),
            ("10.0.0.5:6443", "10.0.0.5:6443", True),
            ("10.0.0.5", "10.0.0.50", False),
            ("fd00::/8", "[fd00::1]:6443", True),
            ("fd00::1", "[fd00::1]:6443", True),
            ("[fd00::1]:6443", "[fd00::1]:6443", True),
            ("[fd00::1]:1", "[fd00::1]:6443", False),
            ("a/b, ,:443,x", "k8s.example.org", False),
            ("other.org, example.org ", "k8s.example.org", True),
        ):
            variables = {"HTTPS_PROXY": PROXY, "no_proxy": no_proxy}
            found = choose_proxy(f"https://{host}", None, variables)
            self.assertEqual(None if is_exempt else PROXY, found.url, (no_proxy, host))

    def test_the_kubeconfigs_proxy_wins_whatever_is_exempted(self) -> None:
        variables = {"HTTPS_PROXY": "http://other:1", "NO_PROXY": "*"}
        self.assertEqual(Proxy(PROXY), choose_proxy(HTTPS, PROXY, variables))

    def test_this_host_is_asked_directly(self) -> None:
        variables = {"HTTPS_PROXY": PROXY}
        for host in ("localhost", "127.0.0.1", "127.3.2.1", "[::1]"):
            self.assertEqual(Proxy(), choose_proxy(f"https://{host}:6443", None, variables), host)

    def test_its_password_is_in_no_text(self) -> None:
        proxy = choose_proxy(HTTPS, "http://user:a%20secret%E2%82%AC@proxy.example.org:3128", {})
        self.assertEqual(PROXY, proxy.url)
        expected = base64.b64encode("user:a secret\N{EURO SIGN}".encode()).decode()
        self.assertEqual({"proxy-authorization": f"Basic {expected}"}, proxy.headers)
        self.assertNotIn(expected, repr(proxy))


class Listener(fixtures.Fixture):
    """Answers any request, also those that a proxy gets, and keeps their first lines."""

    def __init__(self, family: socket.AddressFamily = socket.AF_INET) -> None:
        self.lines: list[str] = []
        self.headers: list[Any] = []
        self._family = family

    def _setUp(self) -> None:
        listener = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                listener.lines.append(self.requestline)
                listener.headers.append(self.headers)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Nothing."""

        class Server(http.server.ThreadingHTTPServer):
            address_family = self._family

        host = "::1" if self._family == socket.AF_INET6 else "127.0.0.1"
        server = Server((host, 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.port = server.server_address[1]


class WayTest(testtools.TestCase):
    """The library's own connections, whatever its version."""

    def setUp(self) -> None:
        super().setUp()
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for name in _VARIABLES:
            self.useFixture(fixtures.EnvironmentVariable(name))
            self.useFixture(fixtures.EnvironmentVariable(name.lower()))
        self.proxy = self.useFixture(Listener())

    def set_variables(self, **variables: str) -> None:
        for name, value in variables.items():
            self.useFixture(fixtures.EnvironmentVariable(name, value))

    def ask(self, server: str, **cluster: str) -> None:
        path = self.directory / "kubeconfig"
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "a",
            "clusters": [
                {"name": "other", "cluster": {"server": "http://x", "proxy-url": "http://x:1"}},
                {"name": "a", "cluster": {"server": server, **cluster}},
            ],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "users": [{"name": "a", "user": {"token": "t"}}],
        }
        path.write_text(yaml.safe_dump(content))
        client = kubeconfig.load(str(path))
        answer = client.rest_client.pool_manager.request(
            "GET", f"{client.configuration.host}/version", timeout=5, retries=False
        )
        self.assertEqual(200, answer.status)

    def test_the_environments_proxy_is_asked(self) -> None:
        self.set_variables(HTTP_PROXY=f"http://127.0.0.1:{self.proxy.port}")
        self.ask(HTTP)
        self.assertEqual([f"GET {HTTP}/version HTTP/1.1"], self.proxy.lines)

    def test_the_kubeconfigs_proxy_is_asked_with_its_password(self) -> None:
        self.set_variables(NO_PROXY="*")
        self.ask(HTTP, **{"proxy-url": f"http://user:secret@127.0.0.1:{self.proxy.port}"})
        self.assertEqual([f"GET {HTTP}/version HTTP/1.1"], self.proxy.lines)
        expected = base64.b64encode(b"user:secret").decode()
        [headers] = self.proxy.headers
        self.assertEqual(f"Basic {expected}", headers["Proxy-Authorization"])

    def test_what_is_exempted_is_asked_directly(self) -> None:
        """The name of this host is no loopback address to the rule, so that its list decides."""
        name = socket.gethostname()
        server = self.useFixture(Listener())
        exact = functools.partial(socket.getaddrinfo, "127.0.0.1")
        self.useFixture(
            fixtures.MonkeyPatch("socket.getaddrinfo", lambda host, *args, **kw: exact(*args, **kw))
        )
        self.set_variables(HTTP_PROXY=f"http://127.0.0.1:{self.proxy.port}", NO_PROXY=name)
        self.ask(f"http://{name}:{server.port}")
        self.assertEqual((1, 0), (len(server.lines), len(self.proxy.lines)))

    def test_this_host_is_asked_directly(self) -> None:
        self.set_variables(HTTP_PROXY="http://127.0.0.1:1")
        families = {"127.0.0.1": socket.AF_INET}
        if os.path.exists("/proc/net/if_inet6") and socket.has_ipv6:
            families["[::1]"] = socket.AF_INET6
        for host, family in families.items():
            server = self.useFixture(Listener(family))
            self.ask(f"http://{host}:{server.port}")
            self.assertEqual(1, len(server.lines), host)

    def test_a_url_that_is_none_is_said_without_its_password(self) -> None:
        for url in ("http://[foo", "http://user:secret@pro\N{FULLWIDTH COLON}xy:1"):
            error = self.assertRaises(
                errors.ManagementRefused, self.ask, HTTP, **{"proxy-url": url}
            )
            self.assertIn("the URL of the proxy is not valid", error.detail)
            self.assertNotIn("secret", f"{error} {error.detail}")

    def test_a_proxy_that_cannot_be_used_is_named(self) -> None:
        error = self.assertRaises(
            errors.ManagementRefused, self.ask, HTTP, **{"proxy-url": "gopher://user:secret@p:70"}
        )
        self.assertIn("proxy gopher://p:70: ", error.detail)
        self.assertNotIn("secret", f"{error} {error.detail}")
