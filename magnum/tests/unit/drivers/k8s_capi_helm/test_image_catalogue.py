# SPDX-License-Identifier: Apache-2.0
"""What openstacksdk sends to Glance for an operator's images, and reads of its answers."""

from __future__ import annotations

import http.server
import json
import pathlib
import tempfile
import threading
import types
from typing import Any
import unittest

from keystoneauth1 import noauth, session
from openstack.connection import Connection
from openstack.image.v2 import _proxy

from magnum.drivers.k8s_capi_helm.cloud.access.services import Services
from magnum.drivers.k8s_capi_helm.cloud.catalogue.image_catalogue import ImageCatalogue

_ID = "11111111-1111-4111-8111-111111111111"


class _Proxy(_proxy.Proxy):
    """As the driver has it: without discovery."""

    skip_discovery = True


class GlanceCase(unittest.TestCase):
    """A server with one image.

    :ivar image: it, as JSON.
    :ivar sent: methods, and what came with them.
    """

    def setUp(self) -> None:
        super().setUp()
        self.image: dict[str, Any] = {"id": _ID, "name": "a", "status": "active"}
        self.sent: list[tuple[str, Any]] = []
        test = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def handle_any(self) -> None:
                content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                is_json = "json" in (self.headers.get("Content-Type") or "")
                sent = json.loads(content) if is_json and content else content
                test.sent.append((self.command, sent or self.path))
                self.send_response(204 if self.command == "PUT" else 200)
                is_list = self.path.startswith("/v2/images?")
                hidden = "os_hidden=True" in self.path
                found = [] if hidden else [test.image]
                answer = {"images": found} if is_list else test.image
                body = b"" if self.command == "PUT" else json.dumps(answer).encode()
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_PATCH = handle_any

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing is printed."""

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.catalogue = ImageCatalogue(self.services(f"http://127.0.0.1:{server.server_port}/v2"))

    def services(self, url: str) -> Services:
        opened = session.Session(auth=noauth.NoAuth(endpoint=url))
        connection = Connection(session=opened, image_endpoint_override=url)
        proxy = _Proxy(session=opened, service_type="image", endpoint_override=url)
        proxy._connection = connection
        keystone = types.SimpleNamespace(session=opened)
        clients: Any = types.SimpleNamespace(glance=lambda: proxy, keystone=lambda: keystone)
        return Services(clients, is_admin=True)


class TestImageCatalogue(GlanceCase):
    def test_what_is_listed(self) -> None:
        self.image |= {
            "owner": "p",
            "visibility": "community",
            "os_hidden": False,
            "min_disk": 7,
            "min_ram": 512,
            "os_hash_algo": "sha512",
            "os_hash_value": "abc",
            "os_distro": "ubuntu",
            "kube_version": "v1.35.2",
            "hw_vif_multiqueue_enabled": "true",
            "hw_cpu_cores": "4",
        }
        [listed] = self.catalogue.list_all()
        image = listed.image
        self.assertEqual(("1.35.2", 7, 512), (image.kubernetes_version, image.disk, image.ram))
        self.assertEqual(("p", "community"), (listed.project_id, listed.visibility))
        self.assertFalse(listed.hidden)
        self.assertEqual(("abc", 7), (listed.data_hash, listed.min_disk))
        self.assertEqual(
            {
                "os_distro": "ubuntu",
                "kube_version": "v1.35.2",
                "hw_vif_multiqueue_enabled": "true",
                "hw_cpu_cores": "4",
            },
            dict(listed.properties),
        )
        paths = sorted(path for _, path in self.sent)
        self.assertEqual(
            ["/v2/images?visibility=all", "/v2/images?visibility=all&os_hidden=True"], paths
        )

    def test_a_hash_of_another_kind(self) -> None:
        self.image |= {"os_hash_algo": "sha256", "os_hash_value": "abc"}
        self.assertEqual("", self.catalogue.list_all()[0].data_hash)

    def test_what_is_created(self) -> None:
        fields = {
            "visibility": "public",
            "is_hidden": True,
            "min_disk": 3,
            "owner": "p",
            "disk_format": "raw",
            "container_format": "bare",
            "kube_version": "v1.35.2",
        }
        with tempfile.TemporaryDirectory() as place:
            path = pathlib.Path(place) / "disk.img"
            path.write_bytes(b"a disk")
            self.assertEqual(_ID, self.catalogue.create("a", path, fields))
        created = next(sent for method, sent in self.sent if method == "POST")
        expected = {**fields, "name": "a", "os_hidden": True}
        del expected["is_hidden"]
        self.assertEqual(expected, {field: created[field] for field in expected})
        self.assertIn(("PUT", b"a disk"), self.sent)

    def test_what_is_changed(self) -> None:
        """Nothing but that, whatever the answers of a Glance with several stores have besides."""
        self.image |= {"kube_version": "v1.34.4", "os_hidden": False, "stores": "files"}
        self.catalogue.change(_ID, {"kube_version": "v1.35.2", "is_hidden": True, "new": "x"})
        [patch] = [sent for method, sent in self.sent if method == "PATCH"]
        self.assertEqual(
            {"/kube_version": "v1.35.2", "/new": "x", "/os_hidden": True},
            {one["path"]: one["value"] for one in patch},
        )
        self.assertNotIn("remove", {one["op"] for one in patch})
