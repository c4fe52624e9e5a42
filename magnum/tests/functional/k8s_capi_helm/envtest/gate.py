# SPDX-License-Identifier: Apache-2.0
"""A way to the API server on which single requests are held up, or refused, as a test says."""

from __future__ import annotations

from collections.abc import Callable
import contextlib
import dataclasses
import http.client
import http.server
import pathlib
import ssl
import threading
from typing import Any
from urllib import parse

import yaml

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


class Gate:
    """An HTTP server of loopback in front of the API server; a request is one connection.

    :param kubeconfig: of the API server, with a token.
    """

    def __init__(self, kubeconfig: str) -> None:
        config = yaml.safe_load(pathlib.Path(kubeconfig).read_text())
        [cluster], [user] = config["clusters"], config["users"]
        self._address = parse.urlsplit(cluster["cluster"]["server"])
        self._token = user["user"]["token"]
        self._tls = ssl.create_default_context(cafile=cluster["cluster"]["certificate-authority"])
        self._holds: Callable[[Request], bool] = lambda request: False
        self._refuses: Callable[[Request], bool] = lambda request: False
        self._opened = threading.Event()
        #: Set as soon as a request is held up, and when one that was has been carried out.
        self.waiting, self.passed = threading.Event(), threading.Event()
        gate = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def handle_one_request(self) -> None:
                self.raw_requestline = self.rfile.readline(_CHUNK)
                self.close_connection = True
                if self.raw_requestline and self.parse_request():
                    gate._carry(self)

            def log_message(self, *_: Any) -> None:
                """Nobody reads it."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def kubeconfig(self, directory: pathlib.Path) -> str:
        """A kubeconfig that leads through the gate, in a new file."""
        server = f"http://127.0.0.1:{self._server.server_address[1]}"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "gate", "cluster": {"server": server}}],
            "users": [{"name": "gate", "user": {}}],
            "contexts": [{"name": "gate", "context": {"cluster": "gate", "user": "gate"}}],
            "current-context": "gate",
        }
        path = directory / "gate.kubeconfig"
        path.write_text(yaml.safe_dump(config))
        return str(path)

    def hold(self, which: Callable[[Request], bool]) -> None:
        """Let the first of these requests wait, as it is, before it gets to the server."""
        self._holds = which

    def refuse(self, which: Callable[[Request], bool]) -> None:
        """Close the connection of each of these requests without an answer."""
        self._refuses = which

    def open(self) -> None:
        """Let through what waits, and everything after it."""
        self._holds = self._refuses = lambda request: False
        self._opened.set()

    def close(self) -> None:
        self.open()
        self._server.shutdown()
        self._server.server_close()

    def _carry(self, handler: Any) -> None:
        """One request to the server, and its answer back."""
        length = int(handler.headers.get("Content-Length") or 0)
        body = handler.rfile.read(length) if length else None
        agent = handler.headers.get("User-Agent") or ""
        request = Request(handler.command, handler.path, agent)
        if self._refuses(request):
            return
        held = self._holds(request)
        if held:
            self._holds = lambda request: False
            self.waiting.set()
            self._opened.wait(_TIMEOUT)
        headers = {k: v for k, v in handler.headers.items() if k.lower() not in _NOT_FORWARDED}
        headers["Authorization"] = f"Bearer {self._token}"
        connection = http.client.HTTPSConnection(
            self._address.hostname or "", self._address.port, timeout=_TIMEOUT, context=self._tls
        )
        with contextlib.closing(connection), contextlib.suppress(OSError):
            connection.request(handler.command, handler.path, body, headers)
            answer = connection.getresponse()
            if held:
                self.passed.set()
            handler.send_response_only(answer.status)
            for key, value in answer.getheaders():
                if key.lower() not in _NOT_FORWARDED:
                    handler.send_header(key, value)
            handler.send_header("Connection", "close")
            handler.end_headers()
            while piece := answer.read1(_CHUNK):
                handler.wfile.write(piece)
                handler.wfile.flush()
