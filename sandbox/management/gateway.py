# SPDX-License-Identifier: Apache-2.0
"""A way to an API server on which requests wait, fail or are refused: ``gateway FROM TO MODE``.

As a program it leads to the API server of the kubeconfig FROM, writes the kubeconfig TO that leads
through it, and does with each request what MODE says, until it is ended.
"""

from __future__ import annotations

from collections.abc import Callable
import contextlib
import dataclasses
import http.client
import http.server
import json
from pathlib import Path
import ssl
import sys
import threading
import time
from typing import Any
from urllib import parse

import yaml

from sandbox.management.pki import write_private

SLOW, ERRORS = "slow", "500"
MODES = (SLOW, ERRORS)
#: Seconds that each request waits. Helm makes dozens, one after the other, and has to be
#: through within the driver's time for it.
SLOW_SECONDS = 1.0
_TIMEOUT = 120.0
_CHUNK = 1 << 16
_NOT_FORWARDED = frozenset({"connection", "host", "transfer-encoding", "content-length"})


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """What a client wants.

    :ivar path: with its query.
    :ivar agent: what the client calls itself.
    """

    method: str
    path: str
    agent: str


class Refused(Exception):
    """The connection is closed without an answer."""


class Failed(Exception):
    """The request is answered with an internal error, and does not reach the API server."""


class Gateway:
    """An HTTP server of loopback in front of an API server; a request is one connection.

    :param kubeconfig: of the API server, with a token.
    :param before: what is done before a request is sent on; it may raise :class:`Refused` or
        :class:`Failed`.
    :param after: what is done when the API server has answered it.
    """

    def __init__(
        self,
        kubeconfig: str,
        before: Callable[[Request], None],
        after: Callable[[Request], None] = lambda request: None,
    ) -> None:
        config = yaml.safe_load(Path(kubeconfig).read_text())
        [cluster], [user] = config["clusters"], config["users"]
        self._address = parse.urlsplit(cluster["cluster"]["server"])
        self._token = user["user"]["token"]
        self._tls = ssl.create_default_context(cafile=cluster["cluster"]["certificate-authority"])
        self._before, self._after = before, after
        gateway = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def handle_one_request(self) -> None:
                self.raw_requestline = self.rfile.readline(_CHUNK)
                self.close_connection = True
                if self.raw_requestline and self.parse_request():
                    gateway._carry(self)

            def log_message(self, *_: Any) -> None:
                """A line for each request helps no reader."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def kubeconfig(self) -> str:
        """The text of a kubeconfig that leads through it."""
        server = f"http://127.0.0.1:{self._server.server_address[1]}"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "gateway", "cluster": {"server": server}}],
            "users": [{"name": "gateway", "user": {}}],
            "contexts": [{"name": "gateway", "context": {"cluster": "gateway", "user": "gateway"}}],
            "current-context": "gateway",
        }
        return yaml.safe_dump(config)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _carry(self, handler: Any) -> None:
        """One request to the server, and its answer back."""
        length = int(handler.headers.get("Content-Length") or 0)
        body = handler.rfile.read(length) if length else None
        agent = handler.headers.get("User-Agent") or ""
        request = Request(handler.command, handler.path, agent)
        try:
            self._before(request)
        except Refused:
            return
        except Failed:
            _fail(handler)
            return
        headers = {k: v for k, v in handler.headers.items() if k.lower() not in _NOT_FORWARDED}
        headers["Authorization"] = f"Bearer {self._token}"
        connection = http.client.HTTPSConnection(
            self._address.hostname or "", self._address.port, timeout=_TIMEOUT, context=self._tls
        )
        with contextlib.closing(connection), contextlib.suppress(OSError):
            connection.request(handler.command, handler.path, body, headers)
            answer = connection.getresponse()
            self._after(request)
            handler.send_response_only(answer.status)
            for key, value in answer.getheaders():
                if key.lower() not in _NOT_FORWARDED:
                    handler.send_header(key, value)
            handler.send_header("Connection", "close")
            handler.end_headers()
            while piece := answer.read1(_CHUNK):
                handler.wfile.write(piece)
                handler.wfile.flush()


def _fail(handler: Any) -> None:
    """Answer as an API server does whose etcd has failed."""
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": "etcdserver: request timed out",
        "code": 500,
    }
    body = json.dumps(status).encode()
    handler.send_response_only(500)
    for key, value in (("Content-Type", "application/json"), ("Content-Length", str(len(body)))):
        handler.send_header(key, value)
    handler.send_header("Connection", "close")
    handler.end_headers()
    handler.wfile.write(body)


def degrade(mode: str) -> Callable[[Request], None]:
    """What a mode does with each request."""

    def wait(request: Request) -> None:
        time.sleep(SLOW_SECONDS)

    def fail(request: Request) -> None:
        raise Failed

    return {SLOW: wait, ERRORS: fail}[mode]


def main(arguments: list[str]) -> int:
    source, target, mode = arguments
    gateway = Gateway(source, degrade(mode))
    write_private(Path(target), gateway.kubeconfig().encode())
    threading.Event().wait()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
