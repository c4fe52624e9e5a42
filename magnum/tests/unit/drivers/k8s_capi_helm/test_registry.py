# SPDX-License-Identifier: Apache-2.0
"""Names of images, and registries that misbehave: nothing is believed without its digest."""

from __future__ import annotations

import base64
from collections.abc import Callable
import hashlib
import http.server
import json
import pathlib
import tempfile
import threading
from typing import Any
import unittest
import urllib.parse

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.registry import image_copy
from magnum.drivers.k8s_capi_helm.commands.registry.client import (
    Manifest,
    read_logins,
    RegistryClient,
)
from magnum.drivers.k8s_capi_helm.commands.registry.image_layout import ImageLayout
from magnum.drivers.k8s_capi_helm.commands.registry.image_reference import (
    ImageReference,
    parse_reference,
)

_DIGEST = f"sha256:{'0' * 64}"
#: Status, headers and content.
Answer = tuple[int, dict[str, str], bytes]


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


class TestReferences(unittest.TestCase):
    def test_as_container_runtimes_read_them(self) -> None:
        for text, expected in (
            ("busybox", "docker.io/library/busybox"),
            ("calico/node:v3.31.4", "docker.io/calico/node:v3.31.4"),
            ("registry.k8s.io/pause:3.10", "registry.k8s.io/pause:3.10"),
            ("localhost/a:1", "localhost/a:1"),
            ("127.0.0.1:5000/a/b__c:1", "127.0.0.1:5000/a/b__c:1"),
            (f"quay.io/a/b:1@{_DIGEST}", f"quay.io/a/b:1@{_DIGEST}"),
            (f"quay.io/a/b@{_DIGEST}", f"quay.io/a/b@{_DIGEST}"),
        ):
            with self.subTest(text):
                self.assertEqual(expected, str(parse_reference(text)))

    def test_what_the_registry_is_asked_for(self) -> None:
        self.assertEqual("latest", parse_reference("quay.io/a/b").version)
        self.assertEqual("1", parse_reference("quay.io/a/b:1").version)
        self.assertEqual(_DIGEST, parse_reference(f"quay.io/a/b:1@{_DIGEST}").version)
        self.assertEqual("registry-1.docker.io", parse_reference("busybox").api_host)
        self.assertEqual("quay.io", parse_reference("quay.io/a/b").api_host)

    def test_what_is_none(self) -> None:
        for text in (
            "",
            "A",
            "a b",
            "quay.io/A",
            "a:",
            "a@sha256:0",
            "https://quay.io/a",
            "a" * 600,
        ):
            with self.subTest(text):
                self.assertRaises(errors.InvalidRequest, parse_reference, text)


class RegistryCase(unittest.TestCase):
    """A registry whose answers a test chooses."""

    def setUp(self) -> None:
        super().setUp()
        self.asked: list[tuple[str, str, str]] = []
        self.answer: Callable[[str, str], Answer] = lambda method, path: (404, {}, b"")
        test = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def handle_any(self) -> None:
                login = self.headers.get("Authorization", "")
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                test.asked.append((self.command, self.path, login))
                status, headers, content = test.answer(self.command, self.path)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_PUT = do_POST = handle_any

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing is printed."""

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.host = f"127.0.0.1:{server.server_port}"
        self.client = self.client_of()
        self.image = ImageReference(self.host, "a/b", "1")

    def client_of(self, *login: str) -> RegistryClient:
        """A client, with user and password or without."""
        logins = {self.host: (login[0], login[1])} if login else {}
        return RegistryClient(logins, (self.host,), pause=0.0)


class TestRegistry(RegistryCase):
    def test_a_manifest_has_the_digest_of_its_content(self) -> None:
        content = json.dumps({"config": {}, "layers": []}).encode()
        headers = {"Content-Type": "application/vnd.oci.image.manifest.v1+json; charset=utf-8"}
        self.answer = lambda method, path: (200, headers, content)
        manifest = self.client.manifest(self.image)
        self.assertEqual(_digest(content), manifest.digest)
        self.assertEqual("application/vnd.oci.image.manifest.v1+json", manifest.media_type)

    def test_another_manifest_than_was_asked_for(self) -> None:
        self.answer = lambda method, path: (200, {}, b"{}")
        named = ImageReference(self.host, "a/b", digest=_DIGEST)
        with self.assertRaises(errors.RegistryRefused):
            self.client.manifest(named)

    def test_a_manifest_that_is_none(self) -> None:
        for content in (b"[]", b"{}", b"<html>", b'{"config": 1, "layers": 2}'):
            with self.subTest(content), self.assertRaises(errors.RegistryRefused):
                Manifest(_DIGEST, "", content).descriptors()

    def test_a_part_whose_name_is_no_digest(self) -> None:
        content = json.dumps({"config": {"digest": "sha256:../../x"}, "layers": []}).encode()
        with tempfile.TemporaryDirectory() as place:
            layout = ImageLayout(pathlib.Path(place))
            manifest = Manifest(_digest(content), "", content)
            with self.assertRaises(errors.RegistryRefused):
                image_copy.save_image(self.client, layout, self.image, manifest)
        self.assertEqual([], self.asked)

    def test_a_blob_of_another_content(self) -> None:
        self.answer = lambda method, path: (200, {}, b"something else")
        with tempfile.TemporaryDirectory() as place:
            layout = ImageLayout(pathlib.Path(place))
            with self.assertRaises(errors.RegistryRefused):
                layout.add(_DIGEST, self.client.blob(self.image, _DIGEST))
            self.assertEqual([], list((pathlib.Path(place) / "blobs" / "sha256").iterdir()))

    def test_what_passes_is_tried_again(self) -> None:
        statuses = iter((503, 429, 200))
        self.answer = lambda method, path: (next(statuses), {"Retry-After": "9999"}, b"{}")
        self.assertEqual(_digest(b"{}"), self.client.manifest(self.image).digest)
        self.assertEqual(3, len(self.asked))

    def test_what_does_not_pass_is_given_up(self) -> None:
        self.answer = lambda method, path: (503, {}, b"")
        with self.assertRaises(errors.RegistryUnreachable):
            self.client.manifest(self.image)
        self.assertEqual(4, len(self.asked))

    def test_a_registry_that_is_not_there(self) -> None:
        away = ImageReference("127.0.0.1:1", "a/b", "1")
        client = RegistryClient(plain_hosts=("127.0.0.1:1",), pause=0.0)
        with self.assertRaises(errors.RegistryUnreachable):
            client.manifest(away)

    def test_a_token(self) -> None:
        client = self.client_of("reader", "secret")

        def answer(method: str, path: str) -> Answer:
            if path.startswith("/token"):
                return 200, {}, b'{"token": "T"}'
            if self.asked[-1][2] == "Bearer T":
                return 200, {}, b"{}"
            realm = f'Bearer realm="http://{self.host}/token",service="s"'
            return 401, {"WWW-Authenticate": realm}, b""

        self.answer = answer
        for _ in range(2):
            client.manifest(self.image)
        paths = [urllib.parse.unquote(path) for _, path, _ in self.asked]
        manifest = "/v2/a/b/manifests/1"
        asked = "/token?scope=repository:a/b:pull&service=s"
        self.assertEqual([manifest, asked, manifest, manifest], paths)
        login = base64.b64encode(b"reader:secret").decode()
        self.assertEqual(f"Basic {login}", self.asked[1][2])

    def test_a_token_from_elsewhere_without_tls(self) -> None:
        """A registry with TLS sends nobody's password to a server without."""
        client = RegistryClient({"registry.example.org": ("reader", "secret")})
        image = ImageReference("registry.example.org", "a/b", "1")
        challenge = {"WWW-Authenticate": f'Bearer realm="http://{self.host}/token"'}
        with self.assertRaises(errors.RegistryRefused):
            client._authorization(image, challenge, push=False)
        self.assertEqual([], self.asked)

    def test_logins_of_a_file(self) -> None:
        login = base64.b64encode(b"reader:pass:word").decode()
        with tempfile.TemporaryDirectory() as place:
            path = pathlib.Path(place) / "auth.json"
            hub = "https://index.docker.io/v1/"
            path.write_text(json.dumps({"auths": {hub: {"auth": login}, "quay.io": {}}}))
            self.assertEqual({"docker.io": ("reader", "pass:word")}, read_logins(path))
            path.write_text('{"auths": {"quay.io": {"auth": "secret"}}}')
            with self.assertRaises(errors.InvalidRequest) as caught:
                read_logins(path)
            self.assertNotIn("secret", str(caught.exception))
        self.assertEqual({}, read_logins(None))
