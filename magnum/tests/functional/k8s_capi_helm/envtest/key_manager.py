# SPDX-License-Identifier: Apache-2.0
"""What barbican-kms-plugin asks of Keystone and Barbican: a token, and the payload of one key."""

from __future__ import annotations

import http.server
import json
import os
import threading
from typing import Any

KEY_ID = "b5309dfb-b326-4148-b0ad-e9cd1ec223a8"
_BARBICAN = "/key-manager/"
_LIFETIME = "2099-01-01T00:00:00.000000Z"


class KeyManager:
    """Both services on one port of loopback.

    :ivar url: where Keystone is.
    :ivar key: its payload, None once it is deleted.
    :ivar readers: one entry for each time that it was read.
    """

    def __init__(self) -> None:
        self.credential = {"id": os.urandom(8).hex(), "secret": os.urandom(8).hex()}
        self.token, self.readers = os.urandom(16).hex(), list[str]()
        self.key: bytes | None = os.urandom(32)
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def stop(self) -> None:
        """End it."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def clouds(self) -> str:
        """A clouds.yaml with the credential, as Keystone's dashboard offers it."""
        auth = {
            "auth_url": f"{self.url}/v3",
            "application_credential_id": self.credential["id"],
            "application_credential_secret": self.credential["secret"],
        }
        cloud = {"auth": auth, "auth_type": "v3applicationcredential", "region_name": "one"}
        return json.dumps({"clouds": {"openstack": cloud}})

    def issue(self, request: Any) -> dict[str, Any] | None:
        """The token for a request that has the credential; its catalog has the key manager."""
        identity = request["auth"]["identity"]
        if identity.get("application_credential") != self.credential:
            return None
        endpoint = {
            "interface": "public",
            "region": "one",
            "region_id": "one",
            "url": f"{self.url}{_BARBICAN}",
        }
        catalog = [{"type": "key-manager", "name": "barbican", "endpoints": [endpoint]}]
        return {"token": {"expires_at": _LIFETIME, "catalog": catalog}}

    def versions(self, path: str) -> dict[str, Any]:
        """What a service says of its version."""
        name, number = ("v1", "v1") if path == _BARBICAN else ("v3.14", "v3")
        links = [{"rel": "self", "href": f"{self.url}{path}{number}/"}]
        return {"versions": {"values": [{"id": name, "status": "stable", "links": links}]}}


def _handler(manager: KeyManager) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            token = manager.issue(json.loads(body)) if self.path == "/v3/auth/tokens" else None
            self._answer(201 if token else 401, json.dumps(token).encode())

        def do_GET(self) -> None:
            if self.path in ("/", _BARBICAN):
                self._answer(300, json.dumps(manager.versions(self.path)).encode())
                return
            allowed = self.headers["X-Auth-Token"] == manager.token
            found = self.path == f"{_BARBICAN}v1/secrets/{KEY_ID}/payload"
            if allowed and found and manager.key:
                manager.readers.append(self.headers["User-Agent"])
                self._answer(200, manager.key)
            else:
                self._answer(404 if allowed else 401, b"{}")

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("X-Subject-Token", manager.token)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    return Handler
